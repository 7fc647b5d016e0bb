#define _GNU_SOURCE
#include "trusted.h"
#include "runtime/files.h"
#include "runtime/xdg.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TRUSTED_BYTES = 64 * 1024 };

static int file_path(char path[Q_PATH], struct q_err *e)
{
    char data[Q_PATH];
    int r = xdg_dir(XDG_DATA, data, sizeof data, e);
    return r ? r : path_join(path, e, data, "trusted", NULL);
}

/* KEY ID COMMENT: the id is the key's own and is for people; the comment is the rest. */
static int read_line(struct trusted_list *l, const char *line, struct q_err *e)
{
    struct trusted *t = &l->v[l->n];
    const char *rest = line + strcspn(line, " ");
    if (!*line) return Q_OK;
    if (l->n == TRUSTED_MOST) return q_fail(e, Q_ELIMIT, "expected at most %d keys", TRUSTED_MOST);
    int r = minisign_public_parse(&t->key, line, e);
    if (r) return r;
    rest += strspn(rest, " ");
    rest += strcspn(rest, " ");
    rest += strspn(rest, " ");
    snprintf(t->comment, sizeof t->comment, "%s", rest);
    l->n++;
    return Q_OK;
}

static int read_lines(struct trusted_list *l, const char *path, char *text, struct q_err *e)
{
    struct q_err why;
    char *line;
    for (int number = 1; (line = strsep(&text, "\n")); number++)
        if (read_line(l, line, &why)) return q_fail(e, why.code, "%.700s:%d: %.250s", path, number, why.text);
    return Q_OK;
}

int trusted_read(struct trusted_list *l, struct q_err *e)
{
    char path[Q_PATH], *text;
    size_t n;
    l->n = 0;
    int r = file_path(path, e);
    if (r) return r;
    r = file_read(path, TRUSTED_BYTES, &text, &n, e);
    if (r) return r == Q_EMISS ? Q_OK : r;
    r = file_is_ours(path) ? read_lines(l, path, text, e) : q_fail(e, Q_EINPUT, "%s: others may write it: expected mode 0600 and this user's", path);
    free(text);
    return r;
}

int trusted_write(const struct trusted_list *l, struct q_err *e)
{
    char path[Q_PATH], *text = NULL;
    size_t n;
    int r = file_path(path, e);
    if (r || (r = dir_make_for(path, e))) return r;
    FILE *f = open_memstream(&text, &n);
    if (!f) return q_fail(e, Q_EMEM, "no memory for a list of keys");
    for (int i = 0; i < l->n; i++) {
        char line[MINISIGN_LINE], id[MINISIGN_ID];
        minisign_public_print(line, &l->v[i].key);
        minisign_id(id, l->v[i].key.id);
        fprintf(f, "%s %s%s%s\n", line, id, *l->v[i].comment ? " " : "", l->v[i].comment);
    }
    r = fclose(f) ? q_fail(e, Q_EMEM, "no memory for a list of keys") : file_write(path, text, n, e);
    free(text);
    return r;
}

const struct trusted *trusted_find(const struct trusted_list *l, const unsigned char id[8])
{
    for (int i = 0; i < l->n; i++)
        if (!memcmp(l->v[i].key.id, id, 8)) return &l->v[i];
    return NULL;
}

int trusted_add(struct trusted_list *l, const struct minisign_public *k, const char *comment, int *known, struct q_err *e)
{
    const struct trusted *have = trusted_find(l, k->id);
    char id[MINISIGN_ID];
    minisign_id(id, k->id);
    *known = have != NULL;
    if (have && memcmp(have->key.key, k->key, sizeof k->key))
        return q_fail(e, Q_EINPUT, "another key has the id %s: quarry tune trust --remove %s first", id, id);
    if (have) return Q_OK;
    if (l->n == TRUSTED_MOST) return q_fail(e, Q_ELIMIT, "expected at most %d trusted keys: remove one first", TRUSTED_MOST);
    struct trusted *t = &l->v[l->n++];
    t->key = *k;
    snprintf(t->comment, sizeof t->comment, "%.*s", (int)strcspn(comment, "\r\n"), comment);
    return Q_OK;
}

int trusted_remove(struct trusted_list *l, const char *which, struct q_err *e)
{
    for (int i = 0; i < l->n; i++) {
        char line[MINISIGN_LINE], id[MINISIGN_ID];
        minisign_public_print(line, &l->v[i].key);
        minisign_id(id, l->v[i].key.id);
        if (strcmp(which, line) && strcasecmp(which, id)) continue;
        memmove(&l->v[i], &l->v[i + 1], (size_t)(--l->n - i) * sizeof *l->v);
        return Q_OK;
    }
    return q_fail(e, Q_EMISS, "no trusted key '%.60s': expected a key or an id that `quarry tune trust` lists", which);
}
