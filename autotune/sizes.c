#include "sizes.h"
#include <string.h>

/* What a call may cost, in operations: of a timed one (int8 products are done four times as fast as others), and of ref.c's double
 * loops. Weights beyond BIG_BYTES are timed at the first size only, since each size holds its own. */
#define TIME_OPS 1.5e9
#define TIME_INT8_OPS 6e9
#define CHECK_OPS 2e8
#define BIG_BYTES 1e8
#define HEAD_BYTES 5e8

struct row {
    const char *op;
    struct sizes s;
};

/* The last row is for all ops that are not named: those that go over the rows of a step one by one. */
static const struct row table[] = {
    { "matvec", { { { 5, 2, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 }, { 4, 1, 0 }, { 8, 1, 0 } }, { 0.8, 0.1, 0.1 }, 3, 1 } },
    { "matmul", { { { 37, 2, 0 }, { 9, 1, 0 } }, { { 512, 1, 0 }, { 64, 1, 0 } }, { 0.85, 0.15 }, 2, 0 } },
    { "attn_decode", { { { 7, 3, 70 }, { 1, 1, 300 } }, { { 1, 1, 1024 }, { 1, 1, 16384 } }, { 0.5, 0.5 }, 2, 1 } },
    { "attn_prefill", { { { 40, 3, 300 }, { 65, 1, 0 } }, { { 512, 1, 0 }, { 512, 1, 2048 } }, { 0.5, 0.5 }, 2, 0 } },
    { "attn_pick", { { { 200, 3, 700 }, { 64, 1, 500 } }, { { 512, 1, 8192 }, { 512, 1, 32768 } }, { 0.5, 0.5 }, 2, 0 } },
    { "gdn_step", { { { 7, 3, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 } }, { 1 }, 1, 1 } },
    { "gdn_chunk", { { { 70, 2, 0 }, { 33, 1, 0 } }, { { 512, 1, 0 }, { 64, 1, 0 } }, { 0.85, 0.15 }, 2, 0 } },
    { "ceiling", { { { 1, 1, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 } }, { 1 }, 1, 0 } },
    { "sample", { { { 5, 2, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 } }, { 1 }, 1, 0 } },
    { "topk", { { { 5, 2, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 } }, { 1 }, 1, 0 } },
    { NULL, { { { 9, 2, 0 }, { 1, 1, 0 } }, { { 512, 1, 0 }, { 1, 1, 0 } }, { 0.5, 0.5 }, 2, 0 } },
};

/* A card's steps are wide, and take no longer than a CPU's narrow ones. */
static const struct row card_table[] = {
    { "matvec", { { { 5, 2, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 }, { 4, 1, 0 }, { 8, 1, 0 } }, { 0.8, 0.1, 0.1 }, 3, 1 } },
    { "matmul", { { { 37, 2, 0 }, { 9, 1, 0 } }, { { 2048, 1, 0 }, { 512, 1, 0 }, { 64, 1, 0 } }, { 0.5, 0.3, 0.2 }, 3, 0 } },
    { "attn_decode", { { { 7, 3, 70 }, { 1, 1, 300 } }, { { 1, 1, 1024 }, { 1, 1, 32768 } }, { 0.5, 0.5 }, 2, 1 } },
    { "attn_prefill", { { { 40, 3, 300 }, { 65, 1, 0 } }, { { 2048, 1, 0 }, { 512, 1, 8192 } }, { 0.6, 0.4 }, 2, 0 } },
    { "attn_pick", { { { 200, 3, 700 }, { 64, 1, 500 } }, { { 2048, 1, 16384 }, { 2048, 1, 65536 } }, { 0.5, 0.5 }, 2, 0 } },
    { "gdn_step", { { { 7, 3, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 } }, { 1 }, 1, 1 } },
    { "gdn_chunk", { { { 70, 2, 0 }, { 33, 1, 0 } }, { { 2048, 1, 0 }, { 256, 1, 0 } }, { 0.8, 0.2 }, 2, 0 } },
    { "gdn_conv_prep", { { { 7, 3, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 }, { 8, 8, 0 } }, { 0.8, 0.2 }, 2, 0 } },
    { "gdn_step_norm", { { { 7, 3, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 }, { 8, 8, 0 } }, { 0.8, 0.2 }, 2, 1 } },
    { "ceiling", { { { 1, 1, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 } }, { 1 }, 1, 0 } },
    { "sample", { { { 5, 2, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 } }, { 1 }, 1, 0 } },
    { "topk", { { { 5, 2, 0 }, { 1, 1, 0 } }, { { 1, 1, 0 } }, { 1 }, 1, 0 } },
    { NULL, { { { 9, 2, 0 }, { 1, 1, 0 } }, { { 2048, 1, 0 }, { 1, 1, 0 } }, { 0.5, 0.5 }, 2, 0 } },
};

/* Halves the rows until the call costs at most `ops`, not below `least`. */
static int cut(struct measure_size *z, struct gen *g, const char *op, const char *shape, double most, int least, struct q_err *e)
{
    double bytes, ops;
    for (;;) {
        int rc = gen_cost(g, op, shape, z->rows, z->past, &bytes, &ops, e);
        if (rc || ops <= most || z->rows / 2 < least) return rc;
        z->rows /= 2;
        if (z->seqs > z->rows) z->seqs = z->rows;
    }
}

/* Attention of many rows: alone, and fewer of them behind a past that makes most of the work. */
static void of_attention(struct sizes *s, int rows)
{
    s->n = 2;
    s->time[0] = (struct measure_size){ rows, 1, rows > 512 ? 0 : 4096 };
    s->time[1] = (struct measure_size){ rows > 512 ? rows : rows / 4, 1, rows > 512 ? 8192 : 32768 };
    s->weight[0] = s->weight[1] = 0.5;
}

/* Those of a bucket. Attention over a past is timed behind half of it: the mean of what grows. */
static void of_bucket(struct sizes *s, const struct q_problem *p)
{
    if (!p->rows && !p->ctx) return;
    if (!strcmp(p->op, "attn_prefill")) return of_attention(s, p->rows);
    s->n = 0;
    for (int part = 1; part <= 4 && s->n < (p->rows > 1 ? 2 : 1); part *= 4)
        s->time[s->n++] = p->rows ? (struct measure_size){ p->rows / part ? p->rows / part : 1, 1, 0 } : (struct measure_size){ 1, 1, p->ctx / 2 };
    s->weight[0] = s->n == 1 ? 1 : 0.7;
    s->weight[1] = 0.3;
}

/* Products that are checked with few rows anyway are checked with matvec's: both ops then have the same truth, which is long in the making. */
static int check_sizes(struct sizes *s, struct gen *g, const char *op, const char *shape, struct q_err *e)
{
    int rc = Q_OK, product = !strcmp(op, "matmul");
    for (int i = 0; i < 2 && !rc; i++) rc = cut(&s->check[i], g, op, shape, CHECK_OPS, 2, e);
    if (rc || !product || s->check[0].rows > table[0].s.check[0].rows) return rc;
    memcpy(s->check, table[0].s.check, sizeof s->check);
    return check_sizes(s, g, table[0].op, shape, e);
}

int sizes_of(struct sizes *s, struct gen *g, const struct q_card *card, const struct q_problem *p, struct q_err *e)
{
    const char *op = p->op, *shape = p->shape;
    int gpu = card->kind == Q_CARD_CUDA;
    const struct row *r = gpu ? card_table : table;
    double bytes, ops;
    while (r->op && strcmp(r->op, op)) r++;
    *s = r->s;
    of_bucket(s, p);
    int rc = gen_cost(g, op, shape, 1, 0, &bytes, &ops, e);
    if (!rc && bytes > (gpu ? HEAD_BYTES : BIG_BYTES)) {
        /* the output head meets the few rows whose logits are wanted */
        if (gpu && !p->rows && !strcmp(op, "matmul")) s->time[0] = s->time[s->n - 1];
        s->n = 1;
        s->weight[0] = 1;
    }
    for (int i = 0; i < s->n && !rc && !gpu; i++) rc = cut(&s->time[i], g, op, shape, strstr(shape, "act=q8") ? TIME_INT8_OPS : TIME_OPS, 32, e);
    return rc ? rc : check_sizes(s, g, op, shape, e);
}
