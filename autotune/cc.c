#include "compiler.h"
#include "child.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The last word of the version line that begins with a digit: GCC ends with it, clang has it before "(...)". */
static void brief(struct compiler *c)
{
    const char *best = "";
    int len = 0;
    for (const char *p = c->version; *p;) {
        size_t n = strcspn(p, " ");
        if (isdigit((unsigned char)*p)) {
            best = p;
            len = (int)n;
        }
        p += n + (p[n] == ' ');
    }
    const char *slash = strrchr(c->program, '/');
    snprintf(c->brief, sizeof c->brief, "%.31s %.*s", slash ? slash + 1 : c->program, len > 24 ? 24 : len, best);
}

static int try(struct compiler *c, const char *program, struct q_err *e)
{
    char *argv[] = { c->program, "--version", NULL };
    int status;
    if (snprintf(c->program, sizeof c->program, "%s", program) >= (int)sizeof c->program)
        return q_fail(e, Q_EINPUT, "--cc: the name is longer than %zu bytes", sizeof c->program - 1);
    int r = child_first_line(argv, c->version, sizeof c->version, &status, e);
    if (!r && (status || !c->version[0])) r = q_fail(e, Q_EMISS, "%s --version failed with status %d", program, status);
    if (r) return c->program[0] = 0, r;      /* no compiler was found */
    for (char *p = c->version; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7E) *p = '?';
    brief(c);
    return self_path(c->self, e);
}

int cc_find(struct compiler *c, const char *given, struct q_err *e)
{
    static const char *const names[] = { "cc", "gcc", "clang" };
    if (given) return try(c, given, e);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!try(c, names[i], e)) return Q_OK;
    return q_fail(e, Q_EMISS, "no C compiler: cc, gcc and clang are not on the PATH (install gcc, or name one: quarry tune --cc PROGRAM)");
}
