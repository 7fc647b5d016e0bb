/* Shapes: presets by name, and config_check against one broken invariant at a time. Keys: tests/py/test_gguf.py. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "config.h"
#include "gguf.h"
#include "presets.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct q_config tiny(void)
{
    struct q_config c;
    struct q_err e;
    assert_int_equal(config_from_preset(&c, "tiny", &e), Q_OK);
    return c;
}

static void every_preset_is_legal(void **state)
{
    struct q_config c;
    struct q_err e;
    assert_true(q_n_presets >= 7);
    for (int i = 0; i < q_n_presets; i++) {
        assert_int_equal(config_from_preset(&c, q_presets[i].name, &e), Q_OK);
        assert_string_equal(c.name, q_presets[i].name);
        assert_int_equal(q_count_layers(&c, Q_LAYER_ATTN) * 4, c.n_layers);
    }
    assert_int_equal(config_from_preset(&c, "qwen9", &e), Q_EMISS);
    assert_non_null(strstr(e.text, "qwen3.5-9b"));
}

/* The test model's file and its preset are one shape. */
static void tiny_file_has_the_presets_shape(void **state)
{
    struct q_config c = tiny(), f;
    struct gguf *g;
    struct q_err e;
    assert_int_equal(gguf_open(&g, TEST_SOURCE_DIR "/tests/models/tiny.gguf", &e), Q_OK);
    assert_int_equal(config_from_gguf(&f, g, &e), Q_OK);
    gguf_close(g);
    assert_int_equal(f.n_nextn, 1);
    f.n_nextn = 0;
    memset(f.name, 0, sizeof f.name);
    memset(c.name, 0, sizeof c.name);
    assert_memory_equal(&c, &f, sizeof c);
}

static void one_broken_invariant_at_a_time(void **state)
{
    static const struct { size_t at; int v; const char *word; } rows[] = {
#define ROW(field, v, word) { offsetof(struct q_config, field), v, word }
        ROW(n_layers, 0, "n_layers"), ROW(n_layers, Q_MAX_LAYERS + 1, "n_layers"), ROW(n_embd, 0, "n_embd"),
        ROW(n_ff, -1, "n_ff"), ROW(n_vocab, 0, "n_vocab"), ROW(n_ctx_train, 0, "n_ctx_train"), ROW(n_head, 0, "n_head"),
        ROW(n_head_kv, 0, "n_head_kv"), ROW(n_head_kv, 3, "KV heads"), ROW(head_dim, 255, "rope"), ROW(head_dim, 0, "head_dim"),
        ROW(rope_dims, 0, "rope_dims"), ROW(rope_dims, 258, "rope"), ROW(rope_dims, 62, "rope sections"),
        ROW(rope_sections[1], -1, "rope section 1"), ROW(rope_sections[3], 1, "rope sections"), ROW(conv_taps, 0, "conv_taps"),
        ROW(state_dim, 4, "state_dim"), ROW(state_dim, 257, "state_dim"), ROW(state_dim, 12, "multiples of 8"),
        ROW(n_k_heads, 0, "n_k_heads"), ROW(n_v_heads, 5, "key heads"), ROW(tied, 2, "tied"), ROW(v_grouped, -1, "v_grouped"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct q_config c = tiny();
        struct q_err e = { 0 };
        memcpy((char *)&c + rows[i].at, &rows[i].v, sizeof(int));
        assert_int_not_equal(config_check(&c, "here", &e), Q_OK);
        assert_non_null(strstr(e.text, "here: "));
        assert_non_null(strstr(e.text, rows[i].word));
    }
}

static void floats_must_be_numbers(void **state)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY, 0, -1 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct q_config a = tiny(), b = tiny(), c = tiny();
        a.rms_eps = b.rope_base = c.attn_scale = bad[i];
        assert_int_not_equal(config_check(&a, "here", NULL), Q_OK);
        assert_int_not_equal(config_check(&b, "here", NULL), Q_OK);
        assert_int_not_equal(config_check(&c, "here", NULL), Q_OK);
    }
}

static void odd_but_legal(void **state)
{
    struct q_config c = tiny();
    c.n_v_heads = 10, c.n_head = 12, c.n_head_kv = 2, c.head_dim = 6, c.rope_dims = 6, c.n_embd = 352, c.n_ff = 32;
    memcpy(c.rope_sections, (int[4]){ 1, 1, 1, 0 }, sizeof c.rope_sections);
    assert_int_equal(config_check(&c, "here", NULL), Q_OK);
    memset(c.kind, Q_LAYER_GDN, sizeof c.kind);
    assert_int_equal(config_check(&c, "here", NULL), Q_OK);
    c.kind[1] = 2;
    assert_int_not_equal(config_check(&c, "here", NULL), Q_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preset_is_legal), cmocka_unit_test(tiny_file_has_the_presets_shape),
        cmocka_unit_test(one_broken_invariant_at_a_time), cmocka_unit_test(floats_must_be_numbers),
        cmocka_unit_test(odd_but_legal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
