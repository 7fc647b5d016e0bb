/* Models opened from the test file and from shapes: every part is in place, made-up weights are the same everywhere. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "gguf.h"
#include "model.h"
#include "kv_format.h"
#include "model_parts.h"
#include "plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TINY TEST_SOURCE_DIR "/tests/models/tiny.gguf"

static int is_complete(void *user, const struct q_part *p, int layer, struct q_tensor *t)
{
    const struct q_config *c = user;
    char name[64];
    q_part_name(name, layer, p->name);
    assert_string_equal(t->name, name);
    assert_int_equal(t->n, q_dim_of(c, p->n));
    assert_int_equal(t->k, q_dim_of(c, p->k));
    assert_int_equal(t->bytes, t->n * q_row_bytes(t->format, t->k));
    assert_non_null(t->data);
    return 0;
}

static void the_file_is_bound(void **state)
{
    struct q_model *m;
    struct q_err e;
    assert_int_equal(model_open(&m, TINY, &e), Q_OK);
    q_each_part(m, is_complete, &m->config);
    assert_int_equal(model_check(m, &e), Q_OK);
    assert_non_null(strstr(m->notices, "next-n"));
    assert_null(strchr(m->notices, '\n'));
    assert_ptr_equal(m->head.data, m->embd.data);
    assert_ptr_equal(m->layers[3].wq.data, gguf_tensor_find(m->file, "blk.3.attn_q.weight")->data);
    assert_null(m->layers[3].qkv.data);
    assert_int_equal(m->weight_bytes, q_config_weight_bytes(&m->config, q_format_by_name("q8_0")));
    /* released pages come back as they were */
    unsigned char before = ((const unsigned char *)m->embd.data)[9000];
    model_release(m, &m->embd);
    assert_int_equal(((const unsigned char *)m->embd.data)[9000], before);
    model_close(m);
}

/* Sum of squares of a tensor's values, and its first value. */
static double power(const struct q_tensor *t, float *first)
{
    float *x = malloc((size_t)t->k * 4);
    double sum = 0;
    assert_non_null(x);
    for (int64_t r = 0; r < t->n; r++) {
        t->format->dequantise(x, (const char *)t->data + r * q_row_bytes(t->format, t->k), t->k);
        if (!r) *first = x[0];
        for (int64_t i = 0; i < t->k; i++) sum += (double)x[i] * x[i];
    }
    free(x);
    return sum;
}

static void made_weights_are_the_same_in_every_format(void **state)
{
    static const char *const formats[] = { "q8_0", "f32", "f16", "bf16" };
    static const double close[] = { 0, 0, 1e-3, 1e-2 };
    float first[4];
    for (int i = 0; i < 4; i++) {
        struct q_model *m;
        struct q_err e;
        assert_int_equal(model_open_preset(&m, "tiny", formats[i], Q_MADE_HERE, &e), Q_OK);
        q_each_part(m, is_complete, &m->config);
        assert_int_equal(model_check(m, &e), Q_OK);
        double p = power(&m->layers[2].ffn_down, first + i);
        assert_true(fabs(p / (double)m->layers[2].ffn_down.n - 1) < 0.05);
        assert_true(fabsf(first[i] - first[0]) <= (float)close[i] * fabsf(first[0]));
        assert_int_equal(m->weight_bytes, q_config_weight_bytes(&m->config, q_format_by_name(formats[i])));
        model_close(m);
    }
    assert_true(first[0] != 0);
}

static void made_weights_depend_on_names_alone(void **state)
{
    struct q_config c;
    struct q_model *a, *b;
    struct q_err e;
    assert_int_equal(config_from_preset(&c, "tiny", &e), Q_OK);
    assert_int_equal(model_open_config(&a, &c, "q8_0", Q_MADE_HERE, &e), Q_OK);
    c.n_layers = 4;
    assert_int_equal(model_open_config(&b, &c, "q8_0", Q_MADE_HERE, &e), Q_OK);
    const struct q_layer *x = a->layers + 3, *y = b->layers + 3;
    assert_memory_equal(x->wq.data, y->wq.data, x->wq.bytes);
    assert_memory_equal(x->q_norm.data, y->q_norm.data, x->q_norm.bytes);
    assert_memory_not_equal(x->ffn_gate.data, x->ffn_up.data, 34);
    assert_memory_not_equal(a->id, b->id, 32);
    for (int i = 0; i < c.n_v_heads; i++) {
        float v = ((const float *)a->layers[0].a.data)[i];
        assert_true(v <= -1 && v >= -16);
    }
    model_close(a);
    model_close(b);
}

/* Rows that blocks of 32 do not divide are F16, as converters write them. */
static void odd_rows_fall_back(void **state)
{
    struct q_config c;
    struct q_model *m;
    struct q_err e;
    assert_int_equal(config_from_preset(&c, "tiny", &e), Q_OK);
    c.n_ff = 40;
    c.tied = 0;
    assert_int_equal(model_open_config(&m, &c, "q8_0", Q_MADE_HERE, &e), Q_OK);
    assert_int_equal(m->layers[0].ffn_down.format->type, Q_TYPE_F16);
    assert_int_equal(m->layers[0].ffn_up.format->type, Q_TYPE_Q8_0);
    assert_ptr_not_equal(m->head.data, m->embd.data);
    model_close(m);
    assert_int_equal(model_open_config(&m, &c, "q4_k", Q_MADE_HERE, &e), Q_EUNSUP);
    assert_null(m);
    c.n_head_kv = 3;
    assert_int_equal(model_open_config(&m, &c, "q8_0", Q_MADE_HERE, &e), Q_EINPUT);
    assert_int_equal(model_open(&m, "/nonexistent", &e), Q_EIO);
    assert_null(m);
}

/* Heads of 256, by hand: 64 tokens of codes and scales; then sizes that some formats do not take. */
static void a_piece_has_codes_and_scales(void **state)
{
    assert_int_equal(kv_format_piece_bytes("f32", 256), 64 * 1024);
    assert_int_equal(kv_format_piece_bytes("f16", 256), 64 * 512);
    assert_int_equal(kv_format_piece_bytes("q8", 256), 64 * (256 + 8 * 2));
    assert_int_equal(kv_format_piece_bytes("r4", 256), 64 * (128 + 2));
    assert_int_equal(kv_format_piece_bytes("r3", 256), 64 * (96 + 2));
    assert_int_equal(kv_format_piece_bytes("r3", 512), 64 * (192 + 4));
    assert_int_equal(kv_format_piece_bytes("r4", 96), 64 * (48 + 3 * 2));
    assert_int_equal(kv_format_piece_bytes("f16", 40), 64 * 80);
    assert_int_equal(kv_format_piece_bytes("q8", 40), 0);
    assert_int_equal(kv_format_piece_bytes("r3", 48), 0);
    assert_int_equal(kv_format_piece_bytes("r5", 256), 0);
}

/* qwen3.5-9b by hand: 8 attention layers x 4 heads x 256 x (K + V) x 2 bytes; 24 layers of 32 x 128 x 128 states. */
static void the_plan_adds_up(void **state)
{
    struct q_config c;
    struct q_plan p;
    assert_int_equal(config_from_preset(&c, "qwen3.5-9b", NULL), Q_OK);
    struct q_plan_options o = plan_defaults(1000, 100, 2);
    plan_make(&p, &c, &o);
    assert_int_equal(p.n_pages, 2);
    assert_int_equal(p.page_bytes, 8 * 4 * 256 * 2 * 2 * 64);
    assert_int_equal(p.slot_bytes, 24 * 4 * (32 * 128 * 128 + 3 * 8192));
    assert_int_equal(p.lines[Q_PLAN_KV].bytes, 2 * p.page_bytes);
    assert_int_equal(p.lines[Q_PLAN_STATES].bytes, p.slot_bytes);
    assert_true(p.lines[Q_PLAN_SCRATCH].bytes > 512 * 4096 * 4);
    size_t total = 0;
    for (int i = 0; i < Q_PLAN_ITEMS; i++) total += p.lines[i].bytes;
    assert_int_equal(p.total, total);
    o.n_snaps = 3;
    plan_make(&p, &c, &o);
    assert_int_equal(p.n_pages, 2 + 6);
    assert_int_equal(p.lines[Q_PLAN_STATES].bytes, p.slot_bytes);
    assert_int_equal(p.lines[Q_PLAN_CHECKPOINTS].bytes, 3 * p.slot_bytes + 6 * p.page_bytes);
    o.ctx = 1 << 20;
    o.n_snaps = 0;
    o.n_seqs = INT32_MAX;
    plan_make(&p, &c, &o);
    assert_true(p.total > (size_t)INT32_MAX << 20);
}

/* However long the context is: KV pages, and page tables of 4 bytes a page. */
static void nothing_else_grows_with_the_context(void **state)
{
    struct q_config c;
    struct q_plan short_one, long_one;
    assert_int_equal(config_from_preset(&c, "qwen3.6-27b", NULL), Q_OK);
    for (int seqs = 1; seqs <= 8; seqs += 7)
        for (int gpu = 0; gpu < 2; gpu++) {
            struct q_plan_options o = {.weight_bytes = 1000, .ctx = 32768, .n_seqs = seqs, .n_snaps = 4, .max_rows = 2048, .max_out = seqs, .parts = 132,
                                       .kv_k = "r3", .kv_v = "r3", .gpu = gpu};
            plan_make(&short_one, &c, &o);
            o.ctx = 262144;
            plan_make(&long_one, &c, &o);
            size_t tables = (size_t)seqs * 4 * (262144 - 32768) / 64;
            assert_int_equal(long_one.lines[Q_PLAN_SCRATCH].bytes, short_one.lines[Q_PLAN_SCRATCH].bytes + tables);
            for (int i = 0; i < Q_PLAN_ITEMS; i++)
                if (i != Q_PLAN_KV && i != Q_PLAN_SCRATCH) assert_int_equal(long_one.lines[i].bytes, short_one.lines[i].bytes);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_bound), cmocka_unit_test(made_weights_are_the_same_in_every_format),
        cmocka_unit_test(made_weights_depend_on_names_alone), cmocka_unit_test(odd_rows_fall_back),
        cmocka_unit_test(a_piece_has_codes_and_scales), cmocka_unit_test(the_plan_adds_up),
        cmocka_unit_test(nothing_else_grows_with_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
