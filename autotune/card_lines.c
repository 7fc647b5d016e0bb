#define _GNU_SOURCE
#include "card_lines.h"
#include "runtime/files.h"
#include "runtime/json_check.h"
#include <stdlib.h>
#include <string.h>

enum { CARD_BYTES = 16 << 20, RECORD_DEPTH = 8 };

/* So that the same answers stand beside one another. NULL when memory is short. */
static char *key_of(const struct record *r)
{
    char *key;
    return asprintf(&key, "%s %s %08d %010d %s %s", r->op, r->shape, r->rows, r->ctx, r->profile, r->generator) < 0 ? NULL : key;
}

static void free_line(struct card_line *line)
{
    free(line->key);
    free(line->text);
}

void card_lines_free(struct card_lines *l)
{
    for (int i = 0; i < l->n; i++) free_line(&l->v[i]);
    free(l->v);
    *l = (struct card_lines){ 0 };
}

static struct card_line *find(const struct card_lines *l, const char *key)
{
    for (int i = 0; key && i < l->n; i++)
        if (!strcmp(l->v[i].key, key)) return &l->v[i];
    return NULL;
}

struct card_line *card_lines_find(const struct card_lines *l, const struct record *r)
{
    char *key = key_of(r);
    struct card_line *line = find(l, key);
    free(key);
    return line;
}

static int is_stale(const struct record *old, const struct record *r)
{
    return !strcmp(old->op, r->op) && !strcmp(old->shape, r->shape) && old->rows == r->rows && old->ctx == r->ctx && !strcmp(old->profile, r->profile)
           && strcmp(old->generator, r->generator);
}

int card_lines_drop_stale(struct card_lines *l, const struct record *r)
{
    int kept = 0, n = l->n;
    for (int i = 0; i < n; i++) {
        if (is_stale(&l->v[i].record, r)) free_line(&l->v[i]);
        else l->v[kept++] = l->v[i];
    }
    l->n = kept;
    return n - kept;
}

static struct card_line *new_line(struct card_lines *l, char *key)
{
    int cap = l->n < l->cap ? l->cap : l->cap ? 2 * l->cap : 64;
    struct card_line *more = cap == l->cap ? l->v : realloc(l->v, (size_t)cap * sizeof *more);
    if (!more) return NULL;
    l->v = more;
    l->cap = cap;
    l->v[l->n] = (struct card_line){ .key = key };
    return &l->v[l->n++];
}

/* Takes key and text, whatever comes of it. */
static int set_line(struct card_lines *l, char *key, char *text, const struct record *r)
{
    struct card_line *line = key && text ? find(l, key) : NULL;
    int is_new = key && text && !line;
    if (is_new) line = new_line(l, key);
    if (!is_new || !line) free(key);
    if (!line) {
        free(text);
        return -1;
    }
    free(line->text);
    line->text = text;
    line->record = *r;
    return 0;
}

int card_lines_put(struct card_lines *l, const struct record *r, struct q_err *e)
{
    struct record bare = *r;
    memset(bare.objects, 0, sizeof bare.objects);
    bare.n_objects = 0;
    return set_line(l, key_of(&bare), record_print(&bare), &bare) ? q_fail(e, Q_EMEM, "no memory for a list of records") : Q_OK;
}

static int by_key(const void *a, const void *b) { return strcmp(((const struct card_line *)a)->key, ((const struct card_line *)b)->key); }

void card_lines_print(FILE *f, struct card_lines *l)
{
    if (l->n) qsort(l->v, (size_t)l->n, sizeof *l->v, by_key);
    for (int i = 0; i < l->n; i++) fputs(l->v[i].text, f);
}

/* --- files ------------------------------------------------------------------------------------------------------------- */

static int read_line(struct card_lines *l, const char *text, size_t n, const char *where, const char *card, struct q_err *e)
{
    struct record *r = malloc(sizeof *r);
    if (!r) return q_fail(e, Q_EMEM, "no memory for a record");
    int rc = json_check(text, n, RECORD_DEPTH, where, e);
    if (!rc) rc = record_parse(r, text, n, where, e);
    if (!rc && strcmp(r->card, card)) rc = q_fail(e, Q_EINPUT, "%s: expected records of %s, found one of %s", where, card, r->card);
    if (!rc) rc = card_lines_put(l, r, e);
    free(r);
    return rc;
}

int card_lines_read(struct card_lines *l, const char *path, const char *card, struct q_err *e)
{
    char *text, where[Q_PATH + 32];
    size_t n;
    int rc = file_read(path, CARD_BYTES, &text, &n, e), number = 1;
    if (rc) return rc;
    for (const char *at = text, *end; !rc && at < text + n; at = end + 1, number++) {
        if (!(end = memchr(at, '\n', (size_t)(text + n - at)))) end = text + n;
        snprintf(where, sizeof where, "%s:%d", path, number);
        if (end > at) rc = read_line(l, at, (size_t)(end - at), where, card, e);
    }
    free(text);
    return rc;
}

int card_lines_write(struct card_lines *l, const char *path, struct q_err *e)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (f) card_lines_print(f, l);
    int rc = !f || fclose(f) ? q_fail(e, Q_EMEM, "no memory for %s", path) : file_write(path, text, n, e);
    free(text);
    return rc ? rc : file_let_read(path, e);
}
