/* The list of problems of a model: what must be in it, once each, and what must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "kset_shapes.h"
#include "launch.h"
#include <stdlib.h>
#include <string.h>

static struct q_tensor tensor(const char *format, long n, long k)
{
    return (struct q_tensor){ .format = q_format_by_name(format), .n = n, .k = k };
}

static void fill_ffn(struct q_layer *l, const struct q_config *c)
{
    l->ffn_gate = l->ffn_up = tensor("q8_0", c->n_ff, c->n_embd);
    l->ffn_down = tensor("q8_0", c->n_embd, c->n_ff);
}

static void fill_attn(struct q_layer *l, const struct q_config *c)
{
    l->kind = Q_LAYER_ATTN;
    l->wq = tensor("q8_0", c->n_head * 2 * c->head_dim, c->n_embd);
    l->wk = l->wv = tensor("q8_0", c->n_head_kv * c->head_dim, c->n_embd);
    l->wo = tensor("f16", c->n_embd, c->n_head * c->head_dim);
    fill_ffn(l, c);
}

static void fill_gdn(struct q_layer *l, const struct q_config *c)
{
    l->kind = Q_LAYER_GDN;
    l->qkv = tensor("q8_0", q_conv_dim(c), c->n_embd);
    l->z = tensor("q8_0", q_v_dim(c), c->n_embd);
    l->alpha = l->beta = tensor("f32", c->n_v_heads, c->n_embd);
    l->ssm_out = tensor("q8_0", c->n_embd, q_v_dim(c));
    fill_ffn(l, c);
}

/* Two delta-net layers (with fp32 alpha and beta), one attention layer with an fp16 output matrix, a tied head. */
struct fixture {
    struct q_model m;
    struct q_layer layers[3];
    struct q_card card;
    int asked;                   /* calls of layout_of */
    struct q_problem_list list;
};

static const char *r16_where_it_fits(void *arg, const char *type, long n, long k)
{
    (void)k;
    ((struct fixture *)arg)->asked++;
    return !strcmp(type, "q8_0") && n % 16 == 0 ? "r16" : "rows";
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    struct q_config *c = &f->m.config;
    *c = (struct q_config){ .n_layers = 3, .n_embd = 64, .n_ff = 96, .n_vocab = 320, .n_head = 4, .n_head_kv = 2, .head_dim = 32, .rope_dims = 16,
                            .rope_sections = { 3, 3, 2, 0 }, .conv_taps = 4, .state_dim = 16, .n_k_heads = 2, .n_v_heads = 4, .tied = 1 };
    f->m.layers = f->layers;
    fill_gdn(&f->layers[0], c);
    fill_gdn(&f->layers[1], c);
    fill_attn(&f->layers[2], c);
    for (int i = 0; i < 3; i++) c->kind[i] = (unsigned char)f->layers[i].kind;
    f->m.embd = f->m.head = tensor("q8_0", c->n_vocab, c->n_embd);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    free(f->list.p);
    free(f);
    return 0;
}

static void list(struct fixture *f, enum q_numerics n)
{
    free(f->list.p);
    f->asked = 0;
    assert_int_equal(kset_problems(&f->m, &f->card, n, "f16", "f16", 0, r16_where_it_fits, f, &f->list, NULL), 0);
}

static int is_same_but_buckets(const struct q_problem *a, const struct q_problem *b) { return !strcmp(a->op, b->op) && !strcmp(a->shape, b->shape); }

/* How often an op and shape are there; its buckets, which stand together, count as one. */
static int count(const struct fixture *f, const char *op, const char *shape)
{
    const struct q_problem *p = f->list.p;
    int n = 0;
    for (int i = 0; i < f->list.n; i++)
        n += !strcmp(p[i].op, op) && (!shape || !strcmp(p[i].shape, shape)) && !(i && is_same_but_buckets(&p[i], &p[i - 1]));
    return n;
}

static void buckets_stand_together_smallest_first(void **state)
{
    struct fixture *f = *state;
    int sized = 0;
    list(f, Q_PINNED);
    for (int i = 1; i < f->list.n; i++) {
        const struct q_problem *a = &f->list.p[i - 1], *b = &f->list.p[i];
        if (!is_same_but_buckets(a, b)) continue;
        sized++;
        assert_true(b->rows > a->rows || b->ctx > a->ctx);
        assert_true(a->rows || a->ctx);
    }
    assert_true(sized > 3);
    list(f, Q_REFERENCE);
    for (int i = 0; i < f->list.n; i++) assert_true(!f->list.p[i].rows && !f->list.p[i].ctx);
}

static void a_chain_serves_each_step_by_its_size(void **state)
{
    (void)state;
    struct q_kernel large = { .most_rows = 512 }, middle = { .most_rows = 64, .larger = &large }, small = { .most_rows = 8, .larger = &middle },
                    deep = { .most_ctx = 65536 }, near = { .most_ctx = 4096, .larger = &deep }, any = { .most_rows = 0 };
    assert_ptr_equal(q_kernel_for(&small, &(struct q_extent){ 1, 1, 1 << 20 }), &small);
    assert_ptr_equal(q_kernel_for(&small, &(struct q_extent){ 8, 1, 1 }), &small);
    assert_ptr_equal(q_kernel_for(&small, &(struct q_extent){ 9, 1, 1 }), &middle);
    assert_ptr_equal(q_kernel_for(&small, &(struct q_extent){ 65, 1, 1 }), &large);
    assert_ptr_equal(q_kernel_for(&small, &(struct q_extent){ 4096, 1, 1 }), &large);
    assert_ptr_equal(q_kernel_for(&near, &(struct q_extent){ 99, 1, 4096 }), &near);
    assert_ptr_equal(q_kernel_for(&near, &(struct q_extent){ 1, 1, 4097 }), &deep);
    assert_ptr_equal(q_kernel_for(&any, &(struct q_extent){ 1 << 20, 1, 1 << 20 }), &any);
}

static void shapes_are_there_once(void **state)
{
    static const char *const want[][2] = {
        { "layout", "type=q8_0,n=320,k=64" },
        { "embed", "type=q8_0,layout=r16,n=64,vocab=320" },
        { "rmsnorm", "n=64,out=both" },               /* before the delta net: int8 for qkv and z, fp32 for alpha and beta */
        { "rmsnorm", "n=64,out=q8" },
        { "matvec", "type=q8_0,act=q8,layout=r16,n=128,k=64,epi=none" },
        { "matmul", "type=q8_0,act=q8,layout=r16,n=64,k=96,epi=add" },
        { "matmul", "type=f32,act=f32,layout=rows,n=4,k=64,epi=none" },
        { "matvec", "type=f16,act=f32,layout=rows,n=64,k=128,epi=add" },
        { "matvec", "type=q8_0,act=q8,layout=r16,n=320,k=64,epi=none" },
        { "quantize", "n=64" },
        { "swiglu", "n=96,out=q8" },
        { "rope_table", "pairs=8,s0=3,s1=3,s2=2" },
        { "qk_rope", "heads=4,kv_heads=2,head_dim=32,pairs=8" },
        { "kv_append", "kv_heads=2,head_dim=32,fk=f16,fv=f16" },
        { "attn_prefill", "heads=4,kv_heads=2,head_dim=32,fk=f16,fv=f16,out=f32" },
        { "attn_decode", "heads=4,kv_heads=2,head_dim=32,fk=f16,fv=f16,out=f32" },
        { "conv_silu", "channels=128,taps=4" },
        { "gdn_prep", "k_heads=2,v_heads=4,dim=16" },
        { "gdn_step", "k_heads=2,v_heads=4,dim=16,group=tiled" },
        { "gdn_chunk", "k_heads=2,v_heads=4,dim=16,group=tiled" },
        { "gated_norm", "heads=4,dim=16,out=f32" },
        { "topk", "n=320,k=16" },
        { "sample", "n=320" },
    };
    struct fixture *f = *state;
    list(f, Q_PINNED);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        if (count(f, want[i][0], want[i][1]) != 1) print_error("%s %s\n", want[i][0], want[i][1]);
        assert_int_equal(count(f, want[i][0], want[i][1]), 1);
    }
    assert_int_equal(count(f, "quantize", NULL), 1);   /* the fp16 output matrix of attention takes fp32 */
    assert_int_equal(count(f, "rmsnorm", NULL), 2);
}

static void nothing_is_there_twice(void **state)
{
    struct fixture *f = *state;
    list(f, Q_PINNED);
    for (int i = 0; i < f->list.n; i++) assert_int_equal(count(f, f->list.p[i].op, f->list.p[i].shape), 1);
    assert_int_equal(f->asked, count(f, "layout", NULL));
    assert_string_equal(f->list.p[0].op, "layout");
}

static void reference_takes_fp32_of_all(void **state)
{
    struct fixture *f = *state;
    list(f, Q_REFERENCE);
    assert_int_equal(f->asked, 0);
    assert_int_equal(count(f, "layout", NULL), 0);
    assert_int_equal(count(f, "quantize", NULL), 0);
    assert_int_equal(count(f, "gdn_chunk", NULL), 0);
    assert_int_equal(count(f, "rmsnorm", "n=64,out=f32"), 1);
    assert_int_equal(count(f, "rmsnorm", NULL), 1);
    assert_int_equal(count(f, "kv_append", "kv_heads=2,head_dim=32,fk=f32,fv=f32"), 1);
    assert_int_equal(count(f, "matmul", "type=q8_0,act=f32,layout=rows,n=64,k=96,epi=add"), 1);
}

static void strict_leaves_the_chunked_delta_net_out(void **state)
{
    struct fixture *f = *state;
    list(f, Q_STRICT);
    assert_int_equal(count(f, "gdn_step", NULL), 1);
    assert_int_equal(count(f, "gdn_chunk", NULL), 0);
}

static void a_model_of_one_kind_lacks_the_other(void **state)
{
    struct fixture *f = *state;
    f->m.config.n_layers = 2;
    list(f, Q_PINNED);
    assert_int_equal(count(f, "attn_decode", NULL), 0);
    assert_int_equal(count(f, "rope_table", NULL), 0);
    f->layers[0] = f->layers[2];
    f->m.config.kind[0] = Q_LAYER_ATTN;
    f->m.config.n_layers = 1;
    list(f, Q_PINNED);
    assert_int_equal(count(f, "attn_decode", NULL), 1);
    assert_int_equal(count(f, "conv_silu", NULL), 0);
    assert_int_equal(count(f, "quantize", NULL), 0);
}

/* Only where sparse prefill is asked for. */
static void sparse_prefill_picks_pages(void **state)
{
    struct fixture *f = *state;
    list(f, Q_PINNED);
    assert_int_equal(count(f, "attn_pick", NULL), 0);
    free(f->list.p);
    assert_int_equal(kset_problems(&f->m, &f->card, Q_PINNED, "f16", "f16", 1, r16_where_it_fits, f, &f->list, NULL), 0);
    assert_int_equal(count(f, "attn_pick", "heads=4,kv_heads=2,head_dim=32,fk=f16"), 1);
}

static const char *none(void *arg, const char *type, long n, long k)
{
    (void)arg, (void)type, (void)n, (void)k;
    return NULL;
}

static void a_layout_not_chosen_is_a_miss(void **state)
{
    struct fixture *f = *state;
    struct q_err e;
    assert_int_equal(kset_problems(&f->m, &f->card, Q_PINNED, "f16", "f16", 0, none, NULL, &f->list, &e), Q_EMISS);
    assert_non_null(strstr(e.text, "type=q8_0,n=320,k=64"));
    assert_null(f->list.p);
}

static void numerics_have_names(void **state)
{
    for (int i = 0; i <= Q_REFERENCE; i++) assert_int_equal(q_numerics_parse(q_numerics_name((enum q_numerics)i)), i);
    assert_int_equal(q_numerics_parse("exact"), -1);
}

/* Blocks of 32 must end where heads do. */
static void a_delta_net_norm_quantises_whole_heads(void **state)
{
    struct fixture *f = *state;
    const struct q_layer *l = &f->layers[0];
    assert_int_equal(kset_out_gated_norm(l, &f->m.config, Q_PINNED), Q_OUT_F32);
    f->m.config.state_dim = 64;
    assert_int_equal(kset_out_gated_norm(l, &f->m.config, Q_PINNED), Q_OUT_Q8);
    assert_int_equal(kset_out_gated_norm(l, &f->m.config, Q_REFERENCE), Q_OUT_F32);
}

/* So does attention for wo, and nothing is left to quantise then. */
static void attention_quantises_whole_heads(void **state)
{
    struct fixture *f = *state;
    struct q_layer *l = &f->layers[2];
    l->wo = tensor("q8_0", f->m.config.n_embd, f->m.config.n_head * f->m.config.head_dim);
    list(f, Q_PINNED);
    assert_int_equal(count(f, "attn_decode", "heads=4,kv_heads=2,head_dim=32,fk=f16,fv=f16,out=q8"), 1);
    assert_int_equal(count(f, "attn_prefill", "heads=4,kv_heads=2,head_dim=32,fk=f16,fv=f16,out=q8"), 1);
    assert_int_equal(count(f, "quantize", "n=128"), 0);
    assert_int_equal(kset_out_attn(l, &f->m.config, Q_REFERENCE), Q_OUT_F32);
    f->m.config.head_dim = 48;
    assert_int_equal(kset_out_attn(l, &f->m.config, Q_PINNED), Q_OUT_F32);
}

/* A set that is made for a preset and must start a file of that shape on a card. */
static void what_stands_for_a_file_brings_weights_both_ways(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(card_parse(&f->card, "cuda:sm_70", NULL), 0);
    list(f, Q_PINNED);
    int synth = count(f, "synth", NULL);
    assert_true(synth > 0);
    assert_int_equal(count(f, "repack", NULL), 0);
    f->m.stands_for_file = 1;
    list(f, Q_PINNED);
    int repack = count(f, "repack", NULL);
    assert_int_equal(count(f, "synth", NULL), synth);
    assert_true(repack > 0);
    f->m.file = (struct gguf *)f;      /* only asked for */
    list(f, Q_PINNED);
    assert_int_equal(count(f, "repack", NULL), repack);
    assert_int_equal(count(f, "synth", NULL), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(buckets_stand_together_smallest_first), cmocka_unit_test(a_chain_serves_each_step_by_its_size),
        T(shapes_are_there_once), T(nothing_is_there_twice), T(reference_takes_fp32_of_all), T(strict_leaves_the_chunked_delta_net_out),
        T(a_model_of_one_kind_lacks_the_other), T(a_layout_not_chosen_is_a_miss), T(a_delta_net_norm_quantises_whole_heads),
        T(attention_quantises_whole_heads), T(sparse_prefill_picks_pages), T(what_stands_for_a_file_brings_weights_both_ways),
        cmocka_unit_test(numerics_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
