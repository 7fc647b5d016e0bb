#include "cmd_bench_impl.h"
#include "kv.h"
#include "model_parts.h"
#include <stdint.h>

/* Of a decode step: all matrices but the embedding (unless it is the head too). */
static double weight_bytes(const struct q_model *m) { return (double)m->weight_bytes - (m->config.tied ? 0 : (double)m->embd.bytes); }

static int in_cache(const struct q_engine *en)
{
    const struct q_card *c = q_engine_card(en);
    int cache_kib = c->kind == Q_CARD_CUDA ? c->l2 : c->l3_kib ? c->l3_kib : c->l2_kib;
    return weight_bytes(q_engine_model(en)) <= 1024.0 * cache_kib;
}

static int count_layer_matrix(void *user, const struct q_part *p, int layer, struct q_tensor *t)
{
    if (layer >= 0 && p->role == ROLE_MATRIX) *(double *)user += 2.0 * (double)t->n * (double)t->k;
    return 0;
}

/* Operations that one token of a prompt must do in the layers' matrices; the delta net's are not counted. */
static double prefill_ops(const struct q_engine *en)
{
    double ops = 0;
    q_each_part((struct q_model *)(uintptr_t)q_engine_model(en), count_layer_matrix, &ops);
    return ops;
}

/* And in attention: a score and a sum for each number of each head and token before. */
static double attention_ops(const struct q_engine *en, double past)
{
    const struct q_config *c = &q_engine_model(en)->config;
    return 4 * past * c->n_head * c->head_dim * q_count_layers(c, Q_LAYER_ATTN);
}

/* The fastest products of half precision or better. */
static double attention_rate(const struct q_roofs *r)
{
    double best = r->mma_f16 > r->hfma2 ? r->mma_f16 : r->hfma2;
    return best > r->fp32 ? best : r->fp32;
}

/* Tokens a second: of n tokens behind `depth` others the middle one. */
static double prefill_roof(const struct bench *b, const struct q_engine *en, int depth, long n)
{
    return 1 / (prefill_ops(en) / b->roofs.int8 + attention_ops(en, depth + 0.5 * (double)n) / attention_rate(&b->roofs));
}

/* Bytes that one decode step must read or write: weights, and of each stream KV and states twice. */
static double decode_bytes(const struct q_engine *en, int past, int streams)
{
    const struct q_model *m = q_engine_model(en);
    const char *k, *v;
    q_engine_kv_formats(en, &k, &v);
    double kv = (double)past * (double)kv_page_bytes(&m->config, k, v) / KV_PAGE, states = (double)states_slot_bytes(&m->config);
    return weight_bytes(m) + streams * (kv + 2.0 * states);
}

double bench_roof(const struct bench *b, const struct q_engine *en, const struct bench_test *t)
{
    if (!t->decode) return prefill_roof(b, en, t->depth, t->tokens);
    return in_cache(en) ? -1 : t->streams * b->roofs.read / decode_bytes(en, t->depth + (int)t->tokens / 2, t->streams);
}
