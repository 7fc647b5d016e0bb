/* Objects of the store: see store.h. */
#define _GNU_SOURCE
#include "store_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* <cache>/objects/AA/NAME + suffix */
static int object_path(const struct store *s, const char *name, const char *suffix, char path[Q_PATH], struct q_err *e)
{
    const char *cache;
    char aa[3] = { name[0], name[1], 0 }, file[80];
    int r = store_cache(s, &cache, e);
    if (r) return r;
    snprintf(file, sizeof file, "%.64s%s", name, suffix);
    return path_join(path, e, cache, "objects", aa, file, NULL);
}

/* The hash that lies beside an object, "" if it does not. */
static void read_sum(const char *path, char sum[65])
{
    char *text;
    size_t n;
    sum[0] = 0;
    if (file_read(path, 128, &text, &n, NULL)) return;
    if (n >= 64) snprintf(sum, 65, "%.64s", text);
    free(text);
}

static void note(struct store *s, const char *path, const char *why)
{
    char line[Q_PATH + 100];
    snprintf(line, sizeof line, "%s: %s", path, why);
    store_damaged(s, STORE_CACHE, path, line);
}

/* A name is of one kind of object: what it was built from tells which. */
static int find_object(const struct store *s, const char *name, char path[Q_PATH], struct q_err *e)
{
    int r = object_path(s, name, ".cubin", path, e);
    return r || !access(path, F_OK) ? r : object_path(s, name, ".so", path, e);
}

int store_object(struct store *s, const char *name, char path[Q_PATH], struct q_err *e)
{
    char sum_path[Q_PATH], sum[65], found[65];
    struct q_err why;
    long size;
    int r = find_object(s, name, path, e);
    if (r) return r;
    if ((r = object_path(s, name, ".sum", sum_path, e))) return r;
    if ((r = sha_file(found, path, &size, &why))) {
        if (r != Q_EMISS) store_damaged(s, STORE_CACHE, path, why.text);
        return q_fail(e, Q_EMISS, "object %.12s is not there", name);
    }
    read_sum(sum_path, sum);
    if (strcmp(sum, found)) {
        note(s, path, "damaged object: its content is not what its .sum says");
        return q_fail(e, Q_EMISS, "object %.12s is damaged", name);
    }
    if (file_is_ours(path)) return Q_OK;
    note(s, path, "others may write it");
    return q_fail(e, Q_EMISS, "object %.12s is writable by others", name);
}

int store_publish(struct store *s, const char *built, const char *name, char content[65], long *size, struct q_err *e)
{
    char path[Q_PATH], sum_path[Q_PATH];
    int r = sha_file(content, built, size, e);
    if (r) return r;
    const char *dot = strrchr(built, '.');
    if ((r = object_path(s, name, dot ? dot : "", path, e)) || (r = object_path(s, name, ".sum", sum_path, e))) return r;
    if ((r = dir_make_for(path, e))) return r;
    /* The sum first: an object without its sum is a miss, a sum without its object is nothing. */
    if ((r = file_write(sum_path, content, 64, e))) return r;
    return file_publish(built, path, e);
}
