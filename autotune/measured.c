#define _GNU_SOURCE
#include "measured.h"
#include <stdlib.h>
#include <string.h>

struct lines {
    struct { char *key, *text; } *v;    /* owned, as the texts are */
    int n, cap;
    int failed;
};

/* What a record answers, so that the same answers stand beside one another. NULL when memory is short. */
static char *key_of(const struct record *r)
{
    char *key;
    return asprintf(&key, "%s %s %08d %010d %s %s", r->op, r->shape, r->rows, r->ctx, r->profile, r->generator) < 0 ? NULL : key;
}

static int known(const struct lines *l, const char *key)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->v[i].key, key)) return 1;
    return 0;
}

static int make_room(struct lines *l)
{
    if (l->n < l->cap) return 1;
    int cap = l->cap ? 2 * l->cap : 128;
    void *more = realloc(l->v, (size_t)cap * sizeof *l->v);
    if (!more) return 0;
    l->v = more;
    l->cap = cap;
    return 1;
}

static int collect(void *arg, const struct record *r, const char *path)
{
    struct lines *l = arg;
    struct record bare = *r;
    (void)path;
    if (strcmp(r->origin, "tuned")) return 0;
    char *key = key_of(r);
    if (key && known(l, key)) {
        free(key);
        return 0;
    }
    memset(bare.objects, 0, sizeof bare.objects);
    bare.n_objects = 0;
    char *text = key && make_room(l) ? record_print(&bare) : NULL;
    if (!text) {
        free(key);
        return l->failed = 1;
    }
    l->v[l->n].key = key;
    l->v[l->n++].text = text;
    return 0;
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int measured_print(FILE *f, struct store *s, const char *card, struct q_err *e)
{
    struct lines l = { 0 };
    int rc = store_each(s, card, collect, &l, e);
    if (!rc && l.failed) rc = q_fail(e, Q_EMEM, "no memory for a list of records");
    if (!rc && l.n) qsort(l.v, (size_t)l.n, sizeof *l.v, compare);
    for (int i = 0; i < l.n; i++) {
        if (!rc) fputs(l.v[i].text, f);
        free(l.v[i].key);
        free(l.v[i].text);
    }
    free(l.v);
    return rc;
}
