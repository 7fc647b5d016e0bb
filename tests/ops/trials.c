/* What is tried: shapes and sizes from text files, candidates from the space. */
#include "trials.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "sizes 1/1/0 5/2/70": rows/sequences/past. */
static int read_sizes(struct trial *t, char *text)
{
    t->n_sizes = 0;
    for (char *p = strtok(text, " "); p; p = strtok(NULL, " ")) {
        struct ref_size *z = &t->size[t->n_sizes];
        if (t->n_sizes == MOST_SIZES || sscanf(p, "%d/%d/%d", &z->rows, &z->seqs, &z->past) != 3) return -1;
        if (z->rows < 1 || z->seqs < 1 || z->past < 0) return -1;
        t->n_sizes++;
    }
    return t->n_sizes ? 0 : -1;
}

/* A line that begins with "cpu " or "cuda " is for that kind alone: the rest of it, NULL if it is not for this one. */
static const char *meant_for(const char *line, const char *kind)
{
    const char *blank = strchr(line, ' ');
    if (!blank) return line;
    return strlen(kind) == (size_t)(blank - line) && !strncmp(line, kind, strlen(kind)) ? blank + 1 : NULL;
}

/* Of a space's kind, or of another. */
static int is_kind(const char *line) { return !strncmp(line, "cpu ", 4) || !strncmp(line, "cuda ", 5); }

int trials_read(struct trial t[MOST_LINES], const char *file, const char *kind, struct q_err *e)
{
    struct trial now = {.n_sizes = 0};
    char line[512];
    int n = 0, bad = 0, others = 0;
    FILE *f = fopen(file, "r");
    if (!f) return q_fail(e, Q_EIO, "%s: cannot be read; every op lists its shapes there", file), -1;
    while (!bad && fgets(line, sizeof line, f)) {
        line[strcspn(line, "#\r\n")] = 0;
        const char *text = is_kind(line) ? meant_for(line, kind) : line;
        others += !text;
        if (!text) continue;
        if (!strncmp(text, "sizes ", 6)) bad = read_sizes(&now, line + (text - line) + 6);
        else if (text[0]) {
            bad = n == MOST_LINES || !now.n_sizes || strlen(text) >= sizeof now.shape;
            if (bad) break;
            t[n] = now;
            strcpy(t[n++].shape, text);
        }
    }
    fclose(f);
    if (bad || !(n + others))
        return q_fail(e, Q_EINPUT, "%s: expected 'sizes ROWS/SEQS/PAST ...', then shapes; at '%s'", file, line), -1;
    return n;
}

struct space_list {
    char (*params)[256];
    int n, cap;
};

static int add_legal(void *arg, const char *params, int legal, const char *reason)
{
    struct space_list *l = arg;
    if (!legal) return 0;
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->params = realloc(l->params, (size_t)l->cap * sizeof *l->params);
        if (!l->params) abort();
    }
    snprintf(l->params[l->n++], sizeof *l->params, "%s", params);
    return 0;
}

/* The value of `isa`, on CUDA of `path`, in a params text. */
static size_t path_of(const char *params, const char **path)
{
    const char *p = strstr(params, "isa=");
    if (!p && (p = strstr(params, "path="))) p++;
    *path = p ? p + 4 : "";
    return strcspn(*path, ",");
}

static int same_path(const char *a, const char *b)
{
    const char *pa, *pb;
    size_t na = path_of(a, &pa), nb = path_of(b, &pb);
    return na == nb && !memcmp(pa, pb, na);
}

static void swap(char a[256], char b[256])
{
    char t[256];
    memcpy(t, a, 256);
    memcpy(a, b, 256);
    memcpy(b, t, 256);
}

/* Shuffles, then brings the first of each path to the front: a small sample still sees every path. */
static void mix(struct space_list *l, unsigned long long seed)
{
    int front = 0;
    for (int i = l->n - 1; i > 0; i--) {
        int j = (int)(ref_next(&seed) % (unsigned)(i + 1));
        if (i != j) swap(l->params[i], l->params[j]);
    }
    for (int i = 0; i < l->n; i++) {
        int seen = 0;
        for (int j = 0; j < front; j++) seen |= same_path(l->params[i], l->params[j]);
        if (!seen && i != front) swap(l->params[i], l->params[front]);
        front += !seen;
    }
}

int sample_draw(struct sample *s, struct gen *g, const char *op, const char *shape, const char *card, int most,
                unsigned long long seed, struct q_err *e)
{
    struct space_list l = {0};
    memset(s, 0, sizeof *s);
    int rc = gen_space(g, op, shape, card, "pinned", add_legal, &l, e);
    if (!rc && !l.n) rc = q_fail(e, Q_EUNSUP, "%s %s: no legal candidate", op, shape);
    if (rc) {
        free(l.params);
        return rc;
    }
    mix(&l, seed);
    s->params = l.params;
    s->legal = l.n;
    s->n = l.n < most ? l.n : most;
    return Q_OK;
}
