#include "cmd_chat_impl.h"
#include "files.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- how the model is asked ---- */

static void do_think(struct chat *c, const char *rest)
{
    c->think = 1;
    cli_fact(&c->cli, "the model thinks before it answers");
}

static void do_no_think(struct chat *c, const char *rest)
{
    c->think = 0;
    cli_fact(&c->cli, "the model answers without thinking");
}

static void do_system(struct chat *c, const char *rest)
{
    struct q_err e;
    if (chat_history_system(c->history, *rest ? rest : NULL, &e)) c->failed = cli_fail(&c->cli, &e);
    else cli_fact(&c->cli, *rest ? "the system message is set" : "there is no system message now");
}

static void do_clear(struct chat *c, const char *rest)
{
    chat_history_clear(c->history);
    c->totals.in_context = 0;
    cli_fact(&c->cli, "the conversation is forgotten");
}

static void do_exit(struct chat *c, const char *rest) { c->over = 1; }

/* ---- /save ---- */

static int ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* A file that was there before is somebody's; the one that this conversation was saved to last is not. */
static int may_write(const struct chat *c, const char *path, struct q_err *e)
{
    struct stat st;
    if (c->saved && !strcmp(c->saved, path)) return Q_OK;
    if (lstat(path, &st)) return errno == ENOENT ? Q_OK : q_fail(e, Q_EIO, "%s: %s", path, strerror(errno));
    return q_fail(e, Q_EINPUT, "%s exists already: name another file", path);
}

/* Takes the path. */
static int save(struct chat *c, char *path, struct q_err *e)
{
    char *text = NULL;
    int rc = may_write(c, path, e);
    if (!rc) rc = ends_with(path, ".json") ? chat_history_json(c->history, &text, e) : chat_history_markdown(c->history, &text, e);
    if (!rc) rc = file_write(path, text, strlen(text), e);
    free(text);
    if (rc) return free(path), rc;
    free(c->saved);
    c->saved = path;
    return Q_OK;
}

static void do_save(struct chat *c, const char *rest)
{
    struct q_err e;
    size_t n = strlen(rest);
    while (n && strchr(" \t\n", rest[n - 1])) n--;
    char *path = strndup(rest, n);
    int rc = !path ? q_fail(&e, Q_EMEM, "no memory for a path") : !n ? q_fail(&e, Q_EINPUT, "expected /save FILE") : save(c, path, &e);
    if (path && !n) free(path);
    if (rc) c->failed = cli_fail(&c->cli, &e);
    else cli_fact(&c->cli, "saved to %s", c->saved);
}

/* ---- /stats ---- */

void chat_count(struct chat_totals *t, const struct q_answer *a)
{
    t->answers++;
    t->prompt += a->n_prompt;
    t->cached += a->n_cached;
    t->generated += a->n_generated;
    t->timed += a->n_generated > 1 ? a->n_generated - 1 : 0;
    t->prefill_s += a->prefill_s;
    t->decode_s += a->decode_s;
    t->in_context = a->n_prompt + a->n_generated;
}

static double rate(long tokens, double seconds) { return seconds > 0 ? (double)tokens / seconds : 0; }

static void do_stats(struct chat *c, const char *rest)
{
    const struct chat_totals *t = &c->totals;
    fprintf(stderr, "%d answer%s of %ld token%s in all: %.1f tok/s\n", t->answers, cli_s(t->answers), t->generated, cli_s(t->generated),
            rate(t->timed, t->decode_s));
    fprintf(stderr, "prompts of %ld token%s in all, %ld of them re-used, the others read at %.1f tok/s\n", t->prompt, cli_s(t->prompt), t->cached,
            rate(t->prompt - t->cached, t->prefill_s));
    if (c->from->ctx) fprintf(stderr, "%d of the context's %d tokens are in use\n", t->in_context, c->from->ctx);
    else fprintf(stderr, "the conversation has %d token%s\n", t->in_context, cli_s(t->in_context));
}

/* ---- the list ---- */

static void do_help(struct chat *c, const char *rest);

static const struct command {
    const char *name;
    void (*run)(struct chat *, const char *rest);
    int takes_text;
    const char *what;
} commands[] = {
    {"/help", do_help, 0, "this list"},
    {"/think", do_think, 0, "let the model think before it answers"},
    {"/no_think", do_no_think, 0, "do not"},
    {"/system", do_system, 1, "TEXT: another system message; without TEXT: none"},
    {"/clear", do_clear, 0, "forget the conversation, keep the system message"},
    {"/save", do_save, 1, "FILE: write the conversation, as messages of JSON if FILE ends in .json, else as Markdown without thinking"},
    {"/stats", do_stats, 0, "tokens and rates of this run"},
    {"/exit", do_exit, 0, "leave (as Ctrl-D does)"},
};

static void do_help(struct chat *c, const char *rest)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) fprintf(stderr, "%-10s %s\n", commands[i].name, commands[i].what);
    fprintf(stderr, "A line that ends in \\ goes on in the next one; pasted lines are one text. A text that begins with / goes behind a space.\n"
                    "Ctrl-C stops an answer.\n");
}

static const struct command *find_command(const char *line, size_t n)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strlen(commands[i].name) == n && !memcmp(line, commands[i].name, n)) return &commands[i];
    return NULL;
}

void chat_command(struct chat *c, const char *line)
{
    struct q_err e;
    size_t n = strcspn(line, " \t\n");
    const char *rest = line + n + strspn(line + n, " \t\n");
    const struct command *found = find_command(line, n);
    if (found && (found->takes_text || !*rest)) {
        found->run(c, rest);
        return;
    }
    if (found) q_fail(&e, Q_EINPUT, "%s takes no text; a text that begins with / goes behind a space", found->name);
    else q_fail(&e, Q_EINPUT, "no command %.*s; /help lists them, and a text that begins with / goes behind a space", n < 40 ? (int)n : 40, line);
    c->failed = cli_fail(&c->cli, &e);
}
