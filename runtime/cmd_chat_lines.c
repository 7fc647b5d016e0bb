#include "cmd_chat_lines.h"
#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct chat_lines {
    EditLine *edit;   /* NULL: plain */
    History *history;
    char *text;       /* owned: the last line */
    size_t cap;
};

static char *prompt(EditLine *edit) { return "> "; }

/* The editor measures characters by the locale; texts here are UTF-8 whatever that says. */
static void use_utf8(void)
{
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

static int open_editor(struct chat_lines *l, struct q_err *e)
{
    HistEvent event;
    use_utf8();
    l->history = history_init();
    l->edit = el_init("quarry", stdin, stdout, stderr);
    if (!l->history || !l->edit) return q_fail(e, Q_EMEM, "no memory for a line editor");
    history(l->history, &event, H_SETSIZE, 1000);
    history(l->history, &event, H_SETUNIQUE, 1);
    el_set(l->edit, EL_PROMPT, prompt);
    el_set(l->edit, EL_EDITOR, "emacs");
    el_set(l->edit, EL_HIST, history, l->history);
    return Q_OK;
}

int chat_lines_open(struct chat_lines **out, struct q_err *e)
{
    struct chat_lines *l = calloc(1, sizeof *l);
    if (!l) return q_fail(e, Q_EMEM, "no memory for reading lines");
    int rc = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? open_editor(l, e) : Q_OK;
    if (rc) chat_lines_close(l);
    else *out = l;
    return rc;
}

void chat_lines_close(struct chat_lines *l)
{
    if (!l) return;
    if (l->edit) el_end(l->edit);
    if (l->history) history_end(l->history);
    free(l->text);
    free(l);
}

int chat_lines_interactive(const struct chat_lines *l) { return l->edit != NULL; }

static ssize_t read_edited(struct chat_lines *l)
{
    HistEvent event;
    int n = 0;
    const char *line = el_gets(l->edit, &n);
    if (!line || n <= 0) return -1;
    if ((size_t)n + 1 > l->cap) {
        char *more = realloc(l->text, (size_t)n + 1);
        if (!more) return -1;
        l->text = more;
        l->cap = (size_t)n + 1;
    }
    memcpy(l->text, line, (size_t)n);
    l->text[n] = 0;
    if (strspn(line, " \t\r\n") < (size_t)n) history(l->history, &event, H_ENTER, line);
    return n;
}

enum chat_line chat_lines_read(struct chat_lines *l, const char **text, size_t *n)
{
    errno = 0;
    ssize_t got = l->edit ? read_edited(l) : getline(&l->text, &l->cap, stdin);
    if (got < 0) return errno == EINTR ? CHAT_LINE_BREAK : CHAT_LINE_END;
    while (got > 0 && (l->text[got - 1] == '\n' || l->text[got - 1] == '\r')) l->text[--got] = 0;
    *text = l->text;
    *n = (size_t)got;
    return CHAT_LINE;
}
