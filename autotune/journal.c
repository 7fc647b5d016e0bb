#define _GNU_SOURCE
#include "journal_impl.h"
#include "runtime/xdg.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct journal {
    int lock, fd;                  /* fd: -1 once it cannot be written */
    off_t size;
    char path[Q_PATH];
    void (*say)(void *arg, const char *line);
    void *say_arg;
};

int journal_dir(char dst[Q_PATH], const char *state, const char *card, struct q_err *e)
{
    char own[Q_PATH], folder[STORE_FOLDER];
    int rc = state ? Q_OK : xdg_dir(XDG_STATE, own, sizeof own, e);
    store_folder(folder, card);
    return rc ? rc : path_join(dst, e, state ? state : own, "journal/v1", folder, NULL);
}

int journal_path(char dst[Q_PATH], const char *dir, const char *name, struct q_err *e)
{
    char file[JOURNAL_NUMBER + 8];
    snprintf(file, sizeof file, "%.8s.jsonl", name);
    return path_join(dst, e, dir, file, NULL);
}

void journal_boot(char dst[64])
{
    char *text;
    size_t n;
    dst[0] = 0;
    if (file_read("/proc/sys/kernel/random/boot_id", 63, &text, &n, NULL)) return;
    text[strcspn(text, "\n")] = 0;
    snprintf(dst, 64, "%s", text);
    free(text);
}

/* --- a line ------------------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b) { return strcmp((*(cJSON *const *)a)->string, (*(cJSON *const *)b)->string); }

static void sort_keys(cJSON *o)
{
    enum { MOST = 24 };
    cJSON *item[MOST];
    int n = 0;
    while (o->child && n < MOST) item[n++] = cJSON_DetachItemViaPointer(o, o->child);
    qsort(item, (size_t)n, sizeof *item, by_name);
    for (int i = 0; i < n; i++) cJSON_AddItemToObject(o, item[i]->string, item[i]);
}

char *journal_print(cJSON *o)
{
    sort_keys(o);
    char *text = cJSON_PrintUnformatted(o), *line = NULL;
    if (text && asprintf(&line, "%s\n", text) < 0) line = NULL;
    cJSON_free(text);
    return line;
}

static void give_up(struct journal *j, const char *why)
{
    char line[Q_PATH + 200];
    snprintf(line, sizeof line, "%s: cannot be written: %s; the tune goes on, but what it finds from here on cannot be resumed", j->path, why);
    if (j->say) j->say(j->say_arg, line);
    close(j->fd);
    j->fd = -1;
}

/* One write: a line that does not fit is taken back, so that the next reader meets whole lines. */
static void put(struct journal *j, const char *line, int keep)
{
    size_t n = strlen(line);
    if (j->size + (off_t)n > JOURNAL_FULL && !keep) return;
    if (j->size + (off_t)n > JOURNAL_MOST) {
        give_up(j, "it has grown too large");
        return;
    }
    ssize_t k = write(j->fd, line, n);
    if (k == (ssize_t)n && (!keep || !fdatasync(j->fd))) {
        j->size += k;
        return;
    }
    int why = k >= 0 && k < (ssize_t)n ? ENOSPC : errno;
    if (ftruncate(j->fd, j->size)) why = why ? why : errno;
    give_up(j, strerror(why));
}

static void put_event(struct journal *j, const char *ev, const struct store_key *k, cJSON *o, int keep)
{
    if (!j || j->fd < 0 || !o) {
        cJSON_Delete(o);
        return;
    }
    cJSON_AddStringToObject(o, "ev", ev);
    if (k) {
        cJSON_AddStringToObject(o, "op", k->op);
        cJSON_AddStringToObject(o, "shape", k->shape);
        cJSON_AddNumberToObject(o, "rows", k->rows);
        cJSON_AddNumberToObject(o, "ctx", k->ctx);
        cJSON_AddStringToObject(o, "profile", k->profile);
        cJSON_AddStringToObject(o, "generator", k->generator);
    }
    char *line = journal_print(o);
    if (line) put(j, line, keep);
    free(line);
    cJSON_Delete(o);
}

/* --- a session --------------------------------------------------------------------------------------------------------- */

static void say_waiting(const struct journal_opts *o, int fd)
{
    char pid[24] = "", line[200];
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
    pid[n > 0 ? n : 0] = 0;
    pid[strspn(pid, "0123456789")] = 0;
    snprintf(line, sizeof line, "another tune works on this card (process %s): waiting until it ends; Ctrl-C ends this one", *pid ? pid : "unknown");
    if (o->say) o->say(o->say_arg, line);
}

/* Takes the card's lock. */
static int take_lock(int fd, const struct journal_opts *o, const char *path, int *waited, struct q_err *e)
{
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        struct pollfd p = { o->signal_fd, POLLIN, 0 };
        if (errno != EWOULDBLOCK && errno != EINTR) return q_fail(e, Q_EIO, "%s: cannot lock: %s", path, strerror(errno));
        if (!*waited) say_waiting(o, fd);
        *waited = 1;
        if (poll(&p, 1, 100) > 0 && p.revents) return q_fail(e, Q_EIO, "interrupted");
    }
    char pid[24];
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)n, 0) != n) return Q_OK;     /* only the other's line is poorer for it */
    return Q_OK;
}

static int open_lock(struct journal *j, const char *dir, const struct journal_opts *o, int *waited, struct q_err *e)
{
    char path[Q_PATH];
    int rc = path_join(path, e, dir, "lock", NULL);
    if (rc) return rc;
    j->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (j->lock < 0) return q_fail(e, Q_EIO, "%s: cannot open: %s", path, strerror(errno));
    return take_lock(j->lock, o, path, waited, e);
}

/* The number after the last. */
static int open_session(struct journal *j, const char *dir, struct q_err *e)
{
    struct journal_names l;
    char name[24];
    int rc = journal_names(&l, dir, e);
    if (rc) return rc;
    int next = l.n ? atoi(l.v[l.n - 1]) + 1 : 1;
    free(l.v);
    if (next > 99999999) return q_fail(e, Q_ELIMIT, "%s: no numbers are left for another session", dir);
    snprintf(name, sizeof name, "%08d", next);
    if ((rc = journal_path(j->path, dir, name, e))) return rc;
    j->fd = open(j->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (j->fd < 0) return q_fail(e, Q_EIO, "%s: cannot create: %s", j->path, strerror(errno));
    return flock(j->fd, LOCK_EX | LOCK_NB) ? q_fail(e, Q_EIO, "%s: cannot lock: %s", j->path, strerror(errno)) : Q_OK;
}

static void sync_folder(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

static void put_open(struct journal *j, const char *card)
{
    cJSON *o = cJSON_CreateObject();
    char boot[64];
    journal_boot(boot);
    cJSON_AddStringToObject(o, "boot", boot);
    cJSON_AddStringToObject(o, "card", card);
    cJSON_AddNumberToObject(o, "format", JOURNAL_FORMAT);
    cJSON_AddNumberToObject(o, "pid", getpid());
    put_event(j, "open", NULL, o, 1);
}

static void release(struct journal *j)
{
    if (j->fd >= 0) close(j->fd);
    if (j->lock >= 0) close(j->lock);
    free(j);
}

int journal_open(struct journal **out, const struct journal_opts *o, int *waited, struct q_err *e)
{
    char dir[Q_PATH];
    struct q_err why;
    *out = NULL;
    *waited = 0;
    int rc = journal_dir(dir, o->state, o->card, e);
    if (!rc) rc = dir_make(dir, e);
    struct journal *j = rc ? NULL : calloc(1, sizeof *j);
    if (!j) return rc ? rc : q_fail(e, Q_EMEM, "no memory for a journal");
    *j = (struct journal){ .lock = -1, .fd = -1, .say = o->say, .say_arg = o->say_arg };
    rc = open_lock(j, dir, o, waited, e);
    if (!rc && journal_compact(dir, o->card, &why) && o->say) o->say(o->say_arg, why.text);      /* it is only longer then */
    if (!rc) rc = open_session(j, dir, e);
    if (rc) {
        release(j);
        return rc;
    }
    put_open(j, o->card);
    sync_folder(dir);
    *out = j;
    return Q_OK;
}

void journal_close(struct journal *j, int left)
{
    if (!j) return;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "left", left);
    put_event(j, "close", NULL, o, 1);
    release(j);
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

static cJSON *of_candidate(const struct journal_candidate *c)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "params", c->params);
    cJSON_AddStringToObject(o, "object", c->object);
    return o;
}

void journal_start(struct journal *j, const struct journal_candidate *c, const char *what)
{
    cJSON *o = of_candidate(c);
    cJSON_AddStringToObject(o, "what", what);
    put_event(j, "start", c->key, o, 1);
}

void journal_bad(struct journal *j, const struct journal_candidate *c, const char *kind, const char *why)
{
    cJSON *o = of_candidate(c);
    cJSON_AddStringToObject(o, "kind", kind);
    cJSON_AddStringToObject(o, "why", why);
    put_event(j, "bad", c->key, o, 1);
}

void journal_checked(struct journal *j, const struct journal_candidate *c, const char *hash)
{
    cJSON *o = of_candidate(c);
    cJSON_AddStringToObject(o, "hash", hash);
    put_event(j, "checked", c->key, o, 0);
}

void journal_time(struct journal *j, const struct journal_candidate *c, const int size[3], const double *us, int n)
{
    cJSON *o = of_candidate(c);
    cJSON_AddItemToObject(o, "size", cJSON_CreateIntArray(size, 3));
    cJSON_AddItemToObject(o, "us", cJSON_CreateDoubleArray(us, n));
    put_event(j, "time", c->key, o, 0);
}

void journal_problem(struct journal *j, const struct store_key *key, int total, int legal, cJSON *reasons)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "total", total);
    cJSON_AddNumberToObject(o, "legal", legal);
    if (reasons) cJSON_AddItemToObject(o, "reasons", reasons);
    put_event(j, "problem", key, o, 0);
}

static cJSON *record_object(const struct record *r)
{
    char *text = record_print(r);
    cJSON *o = text ? cJSON_Parse(text) : NULL;
    free(text);
    return o;
}

void journal_won(struct journal *j, const struct journal_won *w, const char *const *ties, int n_ties)
{
    const struct record *r = &w->record;
    struct store_key k = { r->op, r->shape, r->rows, r->ctx, r->profile, r->card, r->generator };
    cJSON *o = cJSON_CreateObject(), *duel = cJSON_AddObjectToObject(o, "duel");
    cJSON_AddBoolToObject(duel, "accepted", w->accepted);
    cJSON_AddNumberToObject(duel, "band", w->band);
    cJSON_AddNumberToObject(duel, "gain", w->gain);
    cJSON_AddItemToObject(o, "record", record_object(r));
    if (w->base.origin[0]) cJSON_AddItemToObject(o, "base", record_object(&w->base));
    cJSON_AddItemToObject(o, "ties", cJSON_CreateStringArray(ties, n_ties));
    put_event(j, "won", &k, o, 1);
}

void journal_gate(struct journal *j, int passed, const char *summary)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddBoolToObject(o, "passed", passed);
    cJSON_AddStringToObject(o, "summary", summary);
    put_event(j, "gate", NULL, o, 1);
}

void journal_note(struct journal *j, const char *ev, const struct store_key *key, cJSON *o) { put_event(j, ev, key, o, 0); }
