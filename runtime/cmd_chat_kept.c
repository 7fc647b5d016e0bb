#define _GNU_SOURCE
#include "cmd_chat_kept.h"
#include "xdg.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Above the first the file is written anew with the texts that count; above the second it is none of ours. */
enum { LARGE = 1 << 20, TOO_LARGE = 1 << 28 };

static int find_path(char path[Q_PATH], struct q_err *e)
{
    char dir[Q_PATH];
    int rc = xdg_dir(XDG_STATE, dir, sizeof dir, e);
    if (!rc) rc = dir_make(dir, e);
    if (!rc) rc = path_join(path, e, dir, "chat_history", NULL);
    return rc;
}

/* The newest texts, beside the file and then in its place. */
static void rewrite(const char *path, History *h)
{
    char temp[Q_PATH + 8];
    HistEvent event;
    struct q_err e;
    snprintf(temp, sizeof temp, "%s.XXXXXX", path);
    int fd = mkstemp(temp);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    int bad = !f || history(h, &event, H_SAVE_FP, f) < 0;
    bad |= f && fclose(f);
    if (!f && fd >= 0) close(fd);
    if (fd >= 0 && (bad || file_publish(temp, path, &e))) unlink(temp);
}

static int read_file(const char *path, History *h, struct q_err *e)
{
    size_t bytes;
    HistEvent event;
    int fd = file_open(path, &bytes, e);
    if (fd == -Q_EMISS) return Q_OK;
    if (fd < 0) return -fd;
    close(fd);
    if (bytes > TOO_LARGE) return q_fail(e, Q_ELIMIT, "%s has %zu bytes, more than a history can", path, bytes);
    if (bytes && history(h, &event, H_LOAD, path) < 0) return q_fail(e, Q_EINPUT, "%s is no history of an earlier run", path);
    if (bytes > LARGE) rewrite(path, h);
    return Q_OK;
}

int chat_kept_open(struct chat_kept *k, History *h, struct q_err *e)
{
    char path[Q_PATH];
    *k->path = 0;
    int rc = find_path(path, e);
    if (!rc) rc = read_file(path, h, e);
    if (!rc) memcpy(k->path, path, sizeof path);
    return rc;
}

/* A history of one text writes itself in the right form, with the head of the file where that is empty. */
static void write_one(FILE *f, const char *text)
{
    HistEvent event;
    History *one = history_init();
    if (!one) return;
    history(one, &event, H_SETSIZE, 1);
    if (history(one, &event, H_ENTER, text) >= 0) history(one, &event, H_SAVE_FP, f);
    history_end(one);
}

void chat_kept_add(const struct chat_kept *k, const char *text)
{
    if (!*k->path) return;
    int fd = open(k->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "a");
    if (f && !flock(fd, LOCK_EX) && !fseek(f, 0, SEEK_END)) write_one(f, text);
    if (f) fclose(f);
    else if (fd >= 0) close(fd);
}
