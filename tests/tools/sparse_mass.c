/* sparse_mass MODEL FILE MASS FROM [ROWS]: reads the text of FILE (control tokens as such) with sparse prefill on a CPU, in steps of ROWS, and
 * measures, in double, how much of their attention rows far behind FROM keep in the pages that were picked for them. A line for the model: pages
 * read, and how many would have held the mass had all been known, mass kept (mean, least of a row and head), rows measured; then the ids of the likeliest answer, up to 24.
 * The prefill kernel of attention is wrapped: its first part measures, then all parts compute as ever. Two rows of every fourth block are measured
 * that are no probes. */
#include "cli.h"
#include "engine_impl.h"
#include "model.h"
#include "tokenizer.h"
#include "templates/attn_pick/args.h"
#include "templates/attn_prefill/args.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY = 4, MEASURED = 2, ANSWER = 24, WIDEST = 1024 };

/* What the wrapped kernel, which takes nothing from outside but a step, must know. */
static struct {
    const struct q_kernel *real;
    const struct q_config *c;
    int from;
    double mass, read, seen, kept, least;
    double fewest, of;         /* pages that hold `mass` of the mean of a block's measured rows, and pages seen there */
    long rows;
} probe = {.least = 1};

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Of row r and head h: the share of its mass that lies in the list's pages. Its pages' masses are added to pages[]. */
static double mass_in(const struct attn_args *a, const i32 *list, int r, int h, double *pages)
{
    const struct q_config *c = probe.c;
    const struct step *st = a->step;
    int dim = c->head_dim, j = h / (c->n_head / c->n_head_kv);
    const f32 *q = a->q + ((size_t)r * (size_t)c->n_head + (size_t)h) * (size_t)dim;
    double in = 0, all = 0, max = -INFINITY, *s = malloc((size_t)(st->kv[r] + 1) * sizeof *s);
    if (!s) abort();
    for (int t = 0; t <= st->kv[r]; t++) {
        size_t page = (size_t)st->pages[(size_t)st->seq[r] * (size_t)st->page_stride + (size_t)t / KV_PAGE];
        const _Float16 *k = (const _Float16 *)a->pages_k + ((page * (size_t)c->n_head_kv + (size_t)j) * KV_PAGE + (size_t)t % KV_PAGE) * (size_t)dim;
        s[t] = 0;
        for (int i = 0; i < dim; i++) s[t] += (double)q[i] * (double)k[i];
        max = fmax(max, s[t] *= (double)a->scale);
    }
    for (int t = 0, at = 0; t <= st->kv[r]; t++) {
        double p = exp(s[t] - max);
        while (at < list[0] && list[1 + at] < t / KV_PAGE) at++;
        all += p;
        if (at < list[0] && list[1 + at] == t / KV_PAGE) in += p;
    }
    for (int t = 0; t <= st->kv[r]; t++) pages[t / KV_PAGE] += exp(s[t] - max) / all;
    free(s);
    return in / all;
}

static void measure_block(const struct attn_args *a, int block, int row)
{
    const struct q_config *c = probe.c;
    for (int j = 0; j < c->n_head_kv; j++) {
        const i32 *list = a->pick + ((size_t)block * (size_t)c->n_head_kv + (size_t)j) * (size_t)(1 + a->step->page_stride);
        int seen = a->step->kv[row + PICK_ROWS - 1] / KV_PAGE + 1, group = c->n_head / c->n_head_kv;
        probe.read += list[0];
        probe.seen += seen;
        if (block % EVERY) continue;
        double *pages = calloc((size_t)seen, sizeof *pages), held = 0;
        if (!pages) abort();
        for (int i = 0; i < MEASURED * group; i++) {
            double m = mass_in(a, list, row + 10 + 38 * (i / group), j * group + i % group, pages);
            probe.kept += m;
            probe.least = fmin(probe.least, m);
            probe.rows++;
        }
        qsort(pages, (size_t)seen, sizeof *pages, descending);
        for (int i = 0; i < seen && held < probe.mass * MEASURED * group; i++, probe.fewest++) held += pages[i];
        probe.of += seen;
        free(pages);
    }
}

static void measuring(const void *args, struct team *t)
{
    const struct attn_args *a = args;
    const struct step *st = a->step;
    for (int q = 0, block = 0; t->part == 0 && q < st->n_seqs; q++)
        for (int from = 0; from < st->seq_rows[q]; from += PICK_ROWS, block++) {
            int row = st->seq_row[q] + from, end = st->seq_row[q] + st->seq_rows[q];
            if (!pick_is_dense(st, row, end, probe.from)) measure_block(a, block, row);
        }
    probe.real->fn(args, t);
}

static void wrap(struct q_engine *en, struct q_kernel *with)
{
    struct q_list *l = &en->forward.layers[Q_MANY];
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->launch[i].op, "attn_prefill")) continue;
        probe.real = l->launch[i].kernel;
        *with = *probe.real;
        with->larger = NULL;
        with->fn = measuring;
        l->launch[i].kernel = with;
    }
    probe.c = &en->model->config;
    probe.from = en->o.sparse.from;
    probe.mass = en->o.sparse.mass;
}

/* The prompt, then the likeliest ids one by one. */
static int answer(struct q_engine *en, const int *ids, int n, int rows, struct q_err *e)
{
    struct q_seq *s;
    struct q_result r;
    int rc = q_seq_open(en, &s, e);
    if (!rc) rc = q_prefill(en, s, ids, n, rows, Q_WANT_ID, NULL, &r, e);
    if (rc) return rc;
    printf("pages read %.1f %% (%.1f %% would hold it), mass kept %.5f, least %.5f, %ld rows and heads\n", 100 * probe.read / probe.seen,
           100 * probe.fewest / probe.of, probe.kept / (double)probe.rows, probe.least, probe.rows);
    for (int i = 0, id = r.id[0]; i < ANSWER && !rc; i++, id = r.id[0]) {
        printf("%d ", id);
        rc = q_prefill(en, s, &id, 1, 0, Q_WANT_ID, NULL, &r, e);
    }
    printf("\n");
    q_seq_close(s);
    return rc;
}

int main(int argc, char **argv)
{
    struct q_cli cli;
    struct q_kernel with;
    struct q_engine *en = NULL;
    struct q_err e = {0};
    char *text;
    size_t bytes;
    struct tok_ids ids = {0};
    if (argc < 5) return fprintf(stderr, "usage: sparse_mass MODEL FILE MASS FROM [ROWS]\n"), 2;
    cli_start(&cli, "sparse_mass");
    cli.engine.model = argv[1];
    cli.engine.device = "cpu";
    cli.engine.ctx = 32768;
    cli.engine.sparse = (struct q_sparse){.mass = atof(argv[3]), .from = atoi(argv[4])};
    int rc = cli_read_file(argv[2], &text, &bytes, &e);
    if (!rc) rc = q_engine_open(&en, &cli.engine, &e);
    if (!rc) rc = tok_encode(q_engine_tokenizer(en), text, bytes, TOK_PARSE_CONTROL, &ids, &e);
    if (!rc) wrap(en, &with);
    if (!rc) rc = answer(en, ids.at, (int)ids.n, argc > 5 ? atoi(argv[5]) : 0, &e);
    if (rc) fprintf(stderr, "sparse_mass: %s\n", e.text);
    q_engine_close(en);
    return rc != 0;
}
