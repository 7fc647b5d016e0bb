#define _GNU_SOURCE
#include "cli.h"
#include "cmd_chat_kept.h"
#include "cmd_chat_lines.h"
#include "cmd_chat_term.h"
#include "cmd_chat_width.h"
#include "text.h"
#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

/* Lines that come this soon after one another were not typed. */
enum { PASTE_MS = 15 };

struct chat_lines {
    EditLine *edit;          /* NULL: plain */
    History *history;
    struct chat_kept kept;
    wchar_t pushed;          /* read, and not the editor's yet; 0: none */
    struct tok_text text;    /* owned: what was read last */
    char *plain;             /* owned: getline's */
    size_t cap;
    int more;                /* the line continues another */
    int broken;              /* a signal ended the last read */
    int begun;               /* a line was read */
};

static struct chat_lines *self(EditLine *edit)
{
    void *l;
    el_get(edit, EL_CLIENTDATA, &l);
    return l;
}

static char *prompt(EditLine *edit) { return self(edit)->more ? ". " : "> "; }

/* The editor measures characters by the locale; texts here are UTF-8 whatever that says. */
static void use_utf8(void)
{
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

/* ---- characters, for the editor ---- */

static int waiting(int ms)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, ms);
}

/* Until there is something to read. The caller blocks SIGINT and only this wait lets it in, so none can come unnoticed just before. */
static int wait_open_to_interrupt(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    sigdelset(&mask, SIGINT);
    return ppoll(&p, 1, NULL, &mask);
}

/* One byte; 0 at the end, -1 when a signal other than a stop came. */
static int read_byte(EditLine *edit, char *c)
{
    for (;;) {
        if (chat_term_resumed()) el_set(edit, EL_REFRESH);
        if (wait_open_to_interrupt() >= 0) return (int)read(STDIN_FILENO, c, 1);
        if (errno == EINTR && !chat_term_resumed()) return -1;
        el_set(edit, EL_REFRESH);
    }
}

/* One character of UTF-8; bytes that are none are dropped. */
static int read_one(EditLine *edit, wchar_t *out)
{
    mbstate_t state = {0};
    char c;
    errno = 0;
    for (int got; (got = read_byte(edit, &c)) > 0;) {
        size_t n = mbrtowc(out, &c, 1, &state);
        if (n == 0) *out = 0;
        if (n <= 1) return 1;
        if (n == (size_t)-1) memset(&state, 0, sizeof state);
    }
    self(edit)->broken = errno == EINTR;
    return -1;
}

/* The next character, with the marks that came together with it where both are one (cmd_chat_width.h). */
static int read_char(EditLine *edit, wchar_t *out)
{
    struct chat_lines *l = self(edit);
    wchar_t next, both;
    int got = 1;
    chat_term_note();
    *out = l->pushed;
    l->pushed = 0;
    if (!*out) got = read_one(edit, out);
    while (got == 1 && *out >= 'A' && !l->pushed && waiting(0) > 0) {
        if (read_one(edit, &next) != 1) break;
        both = chat_width_is_mark(next) ? chat_width_composed(*out, next) : 0;
        if (both) *out = both;
        else l->pushed = next;
    }
    *out = got == 1 ? chat_width_shown(*out) : 0;
    return got;
}

/* What lies between the marks, with line ends as \n and without other control characters. */
static unsigned char paste(EditLine *edit, int key)
{
    static const wchar_t end[] = L"\033[201~";
    enum { END = 6 };
    wchar_t last[END] = {0}, c, one[2] = {0}, before = 0;
    while (el_wgetc(edit, &c) == 1) {
        wmemmove(last, last + 1, END - 1);
        last[END - 1] = c;
        if (!wmemcmp(last, end, END)) break;
        /* A character is put in once it cannot be of the end mark. */
        one[0] = last[0];
        if (one[0] == '\r' || (one[0] == '\n' && before != '\r')) el_winsertstr(edit, L"\n");
        else if (one[0] == '\t' || (one[0] >= ' ' && one[0] != 127)) el_winsertstr(edit, one);
        before = one[0];
    }
    return CC_REFRESH;
}

static int open_editor(struct chat_lines *l, int keep, void (*say)(void *arg, const char *line), void *arg, struct q_err *e)
{
    HistEvent event;
    struct q_err why;
    const char *terminal = NULL;
    use_utf8();
    l->history = history_init();
    l->edit = el_init("quarry", stdin, stdout, stderr);
    if (!l->history || !l->edit) return q_fail(e, Q_EMEM, "no memory for a line editor");
    history(l->history, &event, H_SETSIZE, CHAT_KEPT_MOST);
    history(l->history, &event, H_SETUNIQUE, 1);
    if (keep && chat_kept_open(&l->kept, l->history, &why)) say(arg, why.text);
    el_set(l->edit, EL_CLIENTDATA, l);
    el_set(l->edit, EL_PROMPT, prompt);
    el_set(l->edit, EL_EDITOR, "emacs");
    el_set(l->edit, EL_HIST, history, l->history);
    el_set(l->edit, EL_GETCFN, read_char);
    el_set(l->edit, EL_ADDFN, "paste", "put in pasted text", paste);
    el_set(l->edit, EL_BIND, "\\e[200~", "paste", NULL);
    el_get(l->edit, EL_TERMINAL, &terminal);
    chat_term_open(terminal && strcmp(terminal, "dumb") != 0);
    /* Between two lines too: what is typed during an answer is kept for later, unseen, a Ctrl-D as well. Ctrl-C and Ctrl-Z work. */
    el_set(l->edit, EL_SETTY, "-x", "-echo", "-icanon", NULL);
    chat_term_note();
    return Q_OK;
}

int chat_lines_open(struct chat_lines **out, int keep, void (*say)(void *arg, const char *line), void *arg, struct q_err *e)
{
    struct chat_lines *l = calloc(1, sizeof *l);
    if (!l) return q_fail(e, Q_EMEM, "no memory for reading lines");
    int rc = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? open_editor(l, keep, say, arg, e) : Q_OK;
    if (rc) chat_lines_close(l);
    else *out = l;
    return rc;
}

void chat_lines_close(struct chat_lines *l)
{
    if (!l) return;
    if (l->edit) el_end(l->edit);
    if (l->history) history_end(l->history);
    chat_term_close();
    free(l->text.at);
    free(l->plain);
    free(l);
}

int chat_lines_interactive(const struct chat_lines *l) { return l->edit != NULL; }

/* ---- lines and texts ---- */

/* Bytes of *line with its end; < 0: none. */
static ssize_t read_line(struct chat_lines *l, const char **line)
{
    int n = 0;
    l->broken = 0;
    if (l->edit) {
        *line = el_gets(l->edit, &n);
        chat_term_note();
        return *line && n > 0 ? n : -1;
    }
    errno = 0;
    ssize_t got = getline(&l->plain, &l->cap, stdin);
    l->broken = got < 0 && errno == EINTR;
    size_t bom = got > 0 && !l->begun ? cli_bom(l->plain, (size_t)got) : 0;
    l->begun |= got > 0;
    *line = l->plain + bom;
    return got - (ssize_t)bom;
}

static void remember(struct chat_lines *l)
{
    HistEvent event;
    if (!l->edit || strspn(l->text.at, " \t\r\n") == l->text.n) return;
    history(l->history, &event, H_ENTER, l->text.at);
    chat_kept_add(&l->kept, l->text.at);
}

/* Whether another line belongs to the text; takes a backslash away that says so. Lines that were typed ahead, during an answer, come at
 * once too, and are texts of their own. */
static int goes_on(struct chat_lines *l, int ahead)
{
    if (l->edit && !ahead && waiting(PASTE_MS) > 0) return 1;
    if (!l->text.n || l->text.at[l->text.n - 1] != '\\') return 0;
    l->text.n--;
    return 1;
}

enum chat_line chat_lines_read(struct chat_lines *l, const char **text, size_t *n)
{
    const char *line;
    int ahead = l->edit && waiting(0) > 0;
    l->text.n = 0;
    for (l->more = 0;; l->more = 1) {
        ssize_t got = read_line(l, &line);
        if (got < 0 && (l->broken || !l->more)) return l->broken ? CHAT_LINE_BREAK : CHAT_LINE_END;
        while (got > 0 && (line[got - 1] == '\n' || line[got - 1] == '\r')) got--;
        if (l->more && got >= 0 && q_text_add(&l->text, "\n", 1, NULL)) return CHAT_LINE_END;
        if (q_text_add(&l->text, line ? line : "", got > 0 ? (size_t)got : 0, NULL)) return CHAT_LINE_END;
        if (got < 0 || !goes_on(l, ahead)) break;
    }
    if (q_text_add(&l->text, "", 1, NULL)) return CHAT_LINE_END;
    l->text.n--;
    remember(l);
    if (l->edit) l->text.n = chat_width_back(l->text.at, l->text.n);
    *text = l->text.at;
    *n = l->text.n;
    return CHAT_LINE;
}
