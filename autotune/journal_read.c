#define _GNU_SOURCE
#include "journal_impl.h"
#include "runtime/json_check.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* --- the folder -------------------------------------------------------------------------------------------------------- */

static int is_session(const struct dirent *d)
{
    return strspn(d->d_name, "0123456789") == JOURNAL_NUMBER && !strcmp(d->d_name + JOURNAL_NUMBER, ".jsonl");
}

int journal_names(struct journal_names *l, const char *dir, struct q_err *e)
{
    struct dirent **d;
    *l = (struct journal_names){ 0 };
    int n = scandir(dir, &d, is_session, alphasort);
    if (n < 0) return errno == ENOENT ? Q_OK : q_fail(e, Q_EIO, "%s: cannot read: %s", dir, strerror(errno));
    l->v = calloc((size_t)n + 1, sizeof *l->v);
    for (int i = 0; i < n; i++) {
        if (l->v) memcpy(l->v[l->n++], d[i]->d_name, JOURNAL_NUMBER);
        free(d[i]);
    }
    free(d);
    return l->v ? Q_OK : q_fail(e, Q_EMEM, "no memory for the names of %d sessions", n);
}

static int is_alive(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);      /* somebody may have put a FIFO there */
    if (fd < 0) return 0;
    int alive = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    close(fd);
    return alive;
}

/* --- a session --------------------------------------------------------------------------------------------------------- */

struct reading {
    const char *card;
    int (*visit)(void *arg, const struct journal_event *ev);
    void *arg;
    struct journal_foreign *foreign;
    const char *path;
    struct journal_event ev;
    int stop;
};

static void note(struct reading *r, const char *why)
{
    if (!r->foreign->files && !r->foreign->lines) snprintf(r->foreign->first, sizeof r->foreign->first, "%.900s: %.280s", r->path, why);
}

static void skip_file(struct reading *r, const char *why)
{
    note(r, why);
    r->foreign->files++;
}

static void skip_line(struct reading *r, const char *why)
{
    note(r, why);
    r->foreign->lines++;
}

/* NULL where the line is no event, or an "open" that is not the first. */
static cJSON *parse(const char *line, size_t n, int first)
{
    if (n > JOURNAL_LINE || json_check(line, n, JOURNAL_DEPTH, "line", NULL)) return NULL;
    cJSON *o = cJSON_ParseWithLength(line, n);
    const char *ev = cJSON_IsObject(o) ? cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "ev")) : NULL;
    if (ev && (first || strcmp(ev, "open"))) return o;
    cJSON_Delete(o);
    return NULL;
}

/* Whether a file is a session of this card that this version reads. */
static int is_ours(struct reading *r, const cJSON *o)
{
    const char *ev = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "ev"));
    const char *card = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "card"));
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(o, "format");
    if (!ev || strcmp(ev, "open")) skip_file(r, "expected the line \"open\" first");
    else if (!cJSON_IsNumber(format) || format->valuedouble != JOURNAL_FORMAT) skip_file(r, "a journal of another format");
    else if (!card || strcmp(card, r->card)) skip_file(r, "a journal of another card");
    else return 1;
    return 0;
}

/* What lies behind the last newline was torn off while it was written. */
static void read_lines(struct reading *r, const char *text, size_t n)
{
    const char *end = text + n, *nl;
    for (int first = 1; text < end && !r->stop && (nl = memchr(text, '\n', (size_t)(end - text))); first = 0, text = nl + 1) {
        cJSON *o = parse(text, (size_t)(nl - text), first);
        int fits = !first || is_ours(r, o);
        if (fits && !o) skip_line(r, "a line that is no event");
        if (fits && o) {
            r->ev.o = o;
            r->ev.ev = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "ev"));
            r->stop = r->visit(r->arg, &r->ev);
        }
        cJSON_Delete(o);
        if (!fits) return;
    }
}

static void read_session(struct reading *r)
{
    struct q_err why;
    char *text;
    size_t n;
    if (!file_is_ours(r->path)) {
        skip_file(r, "others can write it");
        return;
    }
    r->ev.alive = is_alive(r->path);
    if (file_read(r->path, JOURNAL_MOST, &text, &n, &why)) {
        if (why.code != Q_EMISS) skip_file(r, "it cannot be read, or is too large");    /* gone: compacted meanwhile */
        return;
    }
    read_lines(r, text, n);
    free(text);
}

int journal_each(const char *dir, const char *card, int (*visit)(void *arg, const struct journal_event *ev), void *arg,
                 struct journal_foreign *foreign, struct q_err *e)
{
    struct journal_names l;
    char path[Q_PATH];
    memset(foreign, 0, sizeof *foreign);
    struct reading r = { .card = card, .visit = visit, .arg = arg, .foreign = foreign, .path = path };
    int rc = journal_names(&l, dir, e);
    for (int i = 0; i < l.n && !rc && !r.stop; i++) {
        r.ev.session = l.v[i];
        if (!(rc = journal_path(path, dir, l.v[i], e))) read_session(&r);
    }
    free(l.v);
    return rc;
}

/* --- fields ------------------------------------------------------------------------------------------------------------ */

int journal_text(const cJSON *o, const char *name, char *dst, size_t cap)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    if (!s || strlen(s) >= cap) return -1;
    strcpy(dst, s);
    return 0;
}

static int take(const cJSON *o, const char *name, size_t cap, const char **s)
{
    *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    return !*s || strlen(*s) >= cap;
}

static int take_count(const cJSON *o, const char *name, int *v)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 1 << 30)) return -1;
    *v = item->valueint;
    return 0;
}

int journal_key(const cJSON *o, const char *card, struct store_key *k)
{
    const struct record *r = NULL;
    k->card = card;
    return take(o, "op", sizeof r->op, &k->op) || take(o, "shape", sizeof r->shape, &k->shape) || take_count(o, "rows", &k->rows)
           || take_count(o, "ctx", &k->ctx) || take(o, "profile", sizeof r->profile, &k->profile)
           || take(o, "generator", sizeof r->generator, &k->generator);
}
