#include "scratch.h"
#include "carve.h"
#include "rope.h"
#include "templates/attn_pick/args.h"
#include "templates/attn_prefill/args.h"
#include "templates/gdn_step/args.h"
#include "templates/matmul/args.h"
#include "templates/sample/args.h"
#include "templates/topk/args.h"
#include <string.h>

static void *take(struct carve *c, size_t count, size_t size) { return carve_take(c, count * size); }
static float *take_f32(struct carve *c, int rows, int width) { return take(c, (size_t)rows * (size_t)width, sizeof(float)); }

static struct act_q8 take_q8(struct carve *c, int rows, int width)
{
    size_t n = (size_t)rows * (size_t)width, blocks = (size_t)rows * (size_t)((width + Q8_BLOCK - 1) / Q8_BLOCK);
    return (struct act_q8){take(c, n, 1), take(c, blocks, sizeof(f32)), take(c, blocks, sizeof(i32))};
}

static int max_of(int a, int b) { return a > b ? a : b; }

static i64 context_pages(const struct q_scratch_size *s) { return ((i64)s->ctx + KV_PAGE - 1) / KV_PAGE; }

static i64 max_of64(i64 a, i64 b) { return a > b ? a : b; }

static i64 pick_work(const struct q_config *c, const struct q_scratch_size *s)
{
    return s->sparse_seqs ? attn_pick_work(s->max_rows, s->sparse_seqs, c->n_head, c->n_head_kv, context_pages(s)) : 0;
}

static size_t work_bytes(const struct q_config *c, const struct q_scratch_size *s)
{
    i64 attn = attn_work(s->max_rows, c->n_head, c->head_dim, s->ctx, s->parts), gdn;
    gdn = s->gpu ? gdn_work_cuda(s->max_rows, c->n_v_heads) : gdn_work(c->state_dim, s->parts);
    i64 product = s->gpu ? matmul_work(s->max_rows) : 0, topk = s->gpu ? topk_work(s->max_out) : 0;
    i64 sample = s->gpu ? sample_work_cuda(c->n_vocab, s->max_out) : sample_work(c->n_vocab, s->parts);
    i64 most = attn > gdn ? attn : gdn;
    most = most > sample ? most : sample;
    most = most > topk ? most : topk;
    most = max_of64(most, pick_work(c, s));
    return (size_t)(most > product ? most : product);
}

static void carve_all(struct q_scratch *s, struct carve *c, const struct q_config *cf, const struct q_scratch_size *z)
{
    int R = z->max_rows, O = z->max_out, heads_dim = cf->n_head * cf->head_dim, v_dim = q_v_dim(cf);
    int wide = max_of(max_of(2 * heads_dim, q_conv_dim(cf)), cf->n_ff), out = max_of(heads_dim, v_dim);
    s->x = take_f32(c, R, cf->n_embd);
    s->h = take_f32(c, R, cf->n_embd);
    s->hq = take_q8(c, R, cf->n_embd);
    s->wide = take_f32(c, R, wide);
    s->mid = take_f32(c, R, wide);
    s->k = take_f32(c, R, cf->n_head_kv * cf->head_dim);
    s->v = take_f32(c, R, cf->n_head_kv * cf->head_dim);
    s->z = take_f32(c, R, v_dim);
    s->alpha = take_f32(c, R, cf->n_v_heads);
    s->beta = take_f32(c, R, cf->n_v_heads);
    s->g = take_f32(c, R, cf->n_v_heads);
    s->b = take_f32(c, R, cf->n_v_heads);
    s->o = take_f32(c, R, out);
    s->m = take_f32(c, R, max_of(out, cf->n_ff));
    s->mq = take_q8(c, R, max_of(out, cf->n_ff));
    s->freq = take_f32(c, 1, cf->rope_dims / 2);
    s->cs = take_f32(c, R, cf->rope_dims);
    s->hn = take_f32(c, O, cf->n_embd);
    s->hnq = take_q8(c, O, cf->n_embd);
    s->logits = take_f32(c, O, cf->n_vocab);
    s->id = take(c, (size_t)O, sizeof *s->id);
    s->logprob = take_f32(c, O, 1);
    s->top_id = take(c, (size_t)O * (size_t)z->top, sizeof *s->top_id);
    s->top_value = take_f32(c, O, z->top);
    s->lse = take_f32(c, O, 1);
    size_t lists = z->sparse_seqs ? (size_t)pick_blocks(R, z->sparse_seqs) * (size_t)cf->n_head_kv : 0;
    s->pick = lists ? take(c, lists * (size_t)(1 + context_pages(z)), sizeof *s->pick) : NULL;
    s->work = take(c, work_bytes(cf, z), 1);
}

size_t scratch_bytes(const struct q_config *c, const struct q_scratch_size *size)
{
    struct q_scratch s;
    struct carve count = {0};
    carve_all(&s, &count, c, size);
    return count.at;
}

static int fill_freq(struct q_scratch *s, const struct q_config *c, struct q_err *e)
{
    float freq[256];               /* of at most 512 dimensions (config_check) */
    rope_frequencies(c, freq);
    return s->device->ops->write(s->device, s->freq, freq, (size_t)(c->rope_dims / 2) * sizeof *freq, e);
}

int scratch_open(struct q_scratch *s, struct q_device *d, const struct q_config *c, const struct q_scratch_size *size, struct q_err *e)
{
    memset(s, 0, sizeof *s);
    size_t bytes = scratch_bytes(c, size);
    struct carve carve = {d->ops->alloc(d, bytes, e), 0};
    if (!carve.base) return e ? e->code : Q_EMEM;
    s->device = d;
    s->bytes = bytes;
    carve_all(s, &carve, c, size);
    int rc = fill_freq(s, c, e);
    if (rc) scratch_close(s);
    return rc;
}

void scratch_close(struct q_scratch *s)
{
    if (s->device) s->device->ops->release(s->device, s->x);   /* the first buffer is the block's start */
    memset(s, 0, sizeof *s);
}
