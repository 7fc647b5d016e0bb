/* Wording a failure: which kernel, block and thread, which line of its text. */
#define _GNU_SOURCE
#include "impl.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void report_block(char *out, size_t cap, const char *before, const u32 block[3])
{
    if (m.grid[1] == 1 && m.grid[2] == 1) snprintf(out, cap, "%s%u", before, block[0]);
    else snprintf(out, cap, "%s(%u, %u, %u)", before, block[0], block[1], block[2]);
}

static void fail(const char *where, const char *text)
{
    char block[60], phase[24] = "";
    if (m.failed) return;
    m.failed = 1;
    report_block(block, sizeof block, "block ", m.block);
    if (m.phase > m.call->launch->phase) snprintf(phase, sizeof phase, "phase %d, ", (int)(m.phase - m.call->launch->phase) + 1);
    q_fail(&m.error, Q_EINTERNAL, "%s%s, %s%s%s", phase, block, text, where[0] ? "; at " : "", where);
}

void host_fail(const char *format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail("", text);
}

_Noreturn void thread_fail(const void *pc, const char *format, ...)
{
    char text[700], where[200] = "";
    va_list args;
    int n = snprintf(text, sizeof text, "thread %d: ", m.now->id);
    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    if (pc) report_where(where, sizeof where, pc);
    fail(where, text);
    for (;;) thread_yield();
}

/* --- lines ------------------------------------------------------------------------------------------------------- */

static void quote_line(char *out, size_t cap, int line)
{
    const char *p = m.call->source;
    for (int i = 1; p && i < line; i++) p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
    if (!p) {
        snprintf(out, cap, "line %d", line);
        return;
    }
    p += strspn(p, " ");
    snprintf(out, cap, "line %d '%.*s'", line, (int)(strcspn(p, "\n") < 100 ? strcspn(p, "\n") : 100), p);
}

/* addr2line names the chain of inlined calls, innermost first: the first line of the kernel's own text is the one. */
void report_where(char *out, size_t cap, const void *pc)
{
    char command[4400], line[600];
    Dl_info info;
    int number = 0;
    snprintf(out, cap, "an unknown line");
    if (!pc || !dladdr(pc, &info)) return;
    snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%tx 2>/dev/null", m.call->object,
             (const char *)pc - 1 - (const char *)info.dli_fbase);
    FILE *f = popen(command, "r");
    if (!f) return;
    while (fgets(line, sizeof line, f))
        if (!number && strstr(line, "kernel.cu:")) number = atoi(strstr(line, "kernel.cu:") + 10);
    pclose(f);
    if (number) quote_line(out, cap, number);
}
