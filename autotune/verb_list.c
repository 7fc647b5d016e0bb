/* quarry tune list: what the store holds for a card, or what a model would run with: as lines, as a table of what was measured, as JSON or as
 * tuned/ holds it. Op by op, shapes and buckets beside one another; where layers hold several records of a problem, the one in use comes first. */
#include "look.h"
#include "measured.h"
#include "progress.h"
#include "verbs.h"
#include <stdlib.h>
#include <string.h>

struct listed {
    struct record r;           /* origin "": the model needs it, and there is none */
    int old;                   /* of other templates than this program's: nothing reads it */
    int place;                 /* in the order of the layers */
};

struct list {
    const struct options *o;
    struct gen *g;
    struct listed *v;          /* owned */
    int n, cap, failed;
};

/* --- collecting -------------------------------------------------------------------------------------------------------- */

static int is_old(struct gen *g, const struct record *r)
{
    char generator[65];
    return gen_hash(g, r->op, generator, NULL) || strcmp(generator, r->generator);
}

#define LINES ".jsonl"      /* the file of a card's records that came with the program; they were tuned there */

static int add(void *arg, const struct record *r, const char *path)
{
    struct list *l = arg;
    if (l->n == l->cap) {
        int cap = l->cap ? 2 * l->cap : 128;
        struct listed *more = realloc(l->v, (size_t)cap * sizeof *more);
        if (!more) return l->failed = 1;
        l->v = more;
        l->cap = cap;
    }
    int shipped = path && !strcmp(path + strlen(path) - strlen(LINES), LINES);
    l->v[l->n] = (struct listed){ .r = *r, .old = r->origin[0] && is_old(l->g, r), .place = l->n };
    if (shipped) strcpy(l->v[l->n].r.origin, "shipped");
    l->n++;
    return 0;
}

static int by_problem(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    int d = strcmp(x->r.op, y->r.op);
    if (!d) d = strcmp(x->r.shape, y->r.shape);
    if (!d) d = x->r.rows != y->r.rows ? x->r.rows - y->r.rows : x->r.ctx - y->r.ctx;
    if (!d) d = strcmp(x->r.profile, y->r.profile);
    if (!d) d = x->old - y->old;
    return d ? d : x->place - y->place;
}

/* A model's problems in its own order, with what answers each. */
static int collect_model(struct list *l, struct store *s, struct q_err *e)
{
    const struct options *o = l->o;
    struct target t = verb_target(o);
    struct look look = { 0 };
    int rc = look_of_options(&look, &t, l->g, s, o, e);
    for (int i = 0; i < look.n && !rc && !l->failed; i++) {
        struct record r = look.v[i].record;
        strcpy(r.op, look.v[i].problem.op);
        strcpy(r.shape, look.v[i].problem.shape);
        if (!o->json) r.rows = look.v[i].problem.rows, r.ctx = look.v[i].problem.ctx;      /* JSON is the record as it is stored */
        add(l, &r, NULL);
    }
    look_close(&look);
    target_close(&t);
    return rc;
}

static int collect(struct list *l, struct store *s, struct q_err *e)
{
    int of_model = l->o->model || l->o->preset;
    int rc = of_model ? collect_model(l, s, e) : store_each(s, l->o->card.key, add, l, e);
    if (!rc && l->failed) rc = q_fail(e, Q_EMEM, "no memory for %d records", l->n);
    if (!rc && !of_model && l->n) qsort(l->v, (size_t)l->n, sizeof *l->v, by_problem);
    return rc;
}

/* --- telling ----------------------------------------------------------------------------------------------------------- */

static const char *origin_of(const struct listed *l) { return l->old ? "old" : l->r.origin[0] ? l->r.origin : "none"; }

static void print_line(const struct listed *l)
{
    const struct record *r = &l->r;
    char bucket[32], roof[PROGRESS_ROOF];
    progress_bucket(bucket, r->rows, r->ctx);
    progress_roof(roof, r);
    printf("%-8s %-9s %-9s %s %s%s%s %s", origin_of(l), r->profile, r->numerics, r->op, r->shape, bucket[0] ? " " : "", bucket, r->params);
    if (r->n_times) printf("  %.1f us", r->time[0].median_us);
    if (roof[0]) printf(", %s", roof);
    if (r->gain > 0) printf(", %.1f %% gained", 100 * r->gain);
    puts("");
}

/* What a winner does, in the units that its roof is in. */
static void print_row(const struct listed *l)
{
    const struct record *r = &l->r;
    char bucket[32], roof[PROGRESS_ROOF];
    double bytes = 0, ops = 0, us = r->n_times ? r->time[0].median_us : 0;
    if (us <= 0 || l->old) return;
    progress_bucket(bucket, r->rows, r->ctx);
    progress_roof_cell(roof, r);
    record_cost(&r->cost, r->time[0].rows, r->time[0].past, &bytes, &ops);
    printf("| %-14s | %-70s | %-10s | %5d %6d | %9.1f | %8.1f | %8.2f | %-11s | %5.1f | %s\n", r->op, r->shape, bucket, r->time[0].rows,
           r->time[0].past, us, bytes / us * 1e-3, ops / us * 1e-6, roof, 100 * r->gain, r->params);
}

static void print_table(const struct list *l)
{
    puts("| op             | shape                                                                  | steps      |  rows   past |   us/call |     GB/s |    TOP/s | % of roof   | gain% | params\n"
         "|----------------|------------------------------------------------------------------------|------------|-------------:|----------:|---------:|---------:|-------------|------:|-------");
    for (int i = 0; i < l->n; i++) print_row(&l->v[i]);
}

static int print_json(const struct list *l, struct q_err *e)
{
    for (int i = 0; i < l->n; i++) {
        if (!l->v[i].r.origin[0]) continue;
        char *line = record_print(&l->v[i].r);
        if (!line) return q_fail(e, Q_EMEM, "no memory for a record");
        fputs(line, stdout);
        free(line);
    }
    return Q_OK;
}

/* How many of each origin. */
static void count(const struct list *l)
{
    static const char *const origins[] = { "tuned", "shipped", "borrowed", "default", "none", "old" };
    static const char *const names[] = { "tuned", "shipped", "borrowed", "default", "without a record", "of other templates (not used)" };
    const char *before = "";
    fflush(stdout);      /* both may go to one place */
    fprintf(stderr, "%d %s: ", l->n, l->o->model || l->o->preset ? "problems" : "records");
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        int n = 0;
        for (int j = 0; j < l->n; j++) n += !strcmp(origin_of(&l->v[j]), origins[i]);
        if (n) fprintf(stderr, "%s%d %s", before, n, names[i]);
        if (n) before = ", ";
    }
    fputs("\n", stderr);
}

static int list(struct list *l, struct store *s, struct q_err *e)
{
    fprintf(stderr, "card %s\n", l->o->card.key);
    if (l->o->measured) return measured_print(stdout, s, l->o->card.key, e);
    int rc = collect(l, s, e);
    if (rc) return rc;
    if (l->o->json) return print_json(l, e);
    if (l->o->table) print_table(l);
    for (int i = 0; i < l->n && !l->o->table; i++) print_line(&l->v[i]);
    if (l->n) count(l);
    return Q_OK;
}

int verb_list(const struct options *o, struct q_err *e)
{
    struct list l = { .o = o };
    struct store *s;
    int r = verb_store(o, &s, e);
    if (r) return r;
    if (!(r = gen_open(&l.g, o->generator, e))) {
        r = list(&l, s, e);
        gen_close(l.g);
    }
    free(l.v);
    store_close(s);
    return r;
}
