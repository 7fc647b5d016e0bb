/* YaRN against the published formula written down once more, and what is good for how long a context. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "rope.h"
#include <math.h>
#include <string.h>

static struct q_config shape(void)
{
    struct q_config c;
    struct q_err e;
    assert_int_equal(config_from_preset(&c, "qwen3.5-9b", &e), Q_OK);
    return c;
}

/* Without YaRN: base^(-2i/d), to the bit what it always was. */
static void plain_frequencies(void **state)
{
    struct q_config c = shape();
    float f[256];
    rope_frequencies(&c, f);
    for (int i = 0; i < c.rope_dims / 2; i++) assert_true(f[i] == (float)(1.0 / pow((double)c.rope_base, 2.0 * i / c.rope_dims)));
    assert_true(rope_attention(&c) == 1);
    assert_int_equal(rope_limit(&c), 262144);
}

/* The paper's inverse: how often a pair turns in L tokens is L / (2 pi base^(2i/d)); solved for i where that is beta. Between the two pairs,
 * rounded outwards, lies the ramp. Loops and logs of another base than rope.c's, so that one slip does not hide in both. */
static void published(const struct q_config *c, double s, double L, double fast, double slow, double *freq)
{
    double d = c->rope_dims, b = c->rope_base;
    double first = floor(d / 2 * log2(L / (2 * 3.14159265358979323846 * fast)) / log2(b)), last = ceil(d / 2 * log2(L / (2 * 3.14159265358979323846 * slow)) / log2(b));
    if (first < 0) first = 0;
    if (last > d - 1) last = d - 1;
    for (int i = 0; i < c->rope_dims / 2; i++) {
        double theta = exp2(-2.0 * i / d * log2(b)), ramp = first < last ? (i - first) / (last - first) : i < first ? 0 : 1;
        if (ramp < 0) ramp = 0;
        if (ramp > 1) ramp = 1;
        freq[i] = theta / s * ramp + theta * (1 - ramp);
    }
}

static void yarn_is_as_published(void **state)
{
    const struct { float factor; int original; float fast, slow, base; int dims; } rows[] = {
        {4, 262144, 32, 1, 1e7f, 64}, {1.25f, 262144, 32, 1, 1e7f, 64}, {16, 4096, 32, 1, 1e4f, 128}, {32, 512, 8, 2, 1e6f, 32}, {2, 64, 32, 1, 1e7f, 8}, {8, 1000000, 32, 1, 1e4f, 256},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct q_config c = shape();
        float f[256];
        double want[256];
        c.rope_base = rows[k].base;
        c.rope_dims = rows[k].dims;
        c.yarn = (struct q_yarn){.factor = rows[k].factor, .original = rows[k].original, .beta_fast = rows[k].fast, .beta_slow = rows[k].slow};
        rope_frequencies(&c, f);
        published(&c, (double)rows[k].factor, rows[k].original, (double)rows[k].fast, (double)rows[k].slow, want);
        for (int i = 0; i < c.rope_dims / 2; i++) assert_true(fabs((double)f[i] - want[i]) <= 1e-7 * want[i]);
        assert_true(fabs((double)rope_attention(&c) - (0.1 * log((double)rows[k].factor) + 1)) < 1e-7);
        c.yarn.attention = 0.5f;
        assert_true(fabs((double)rope_attention(&c) - 0.5 * (0.1 * log((double)rows[k].factor) + 1)) < 1e-7);
    }
}

/* Qwen3.5 by hand: of 32 pairs the first 15 keep their frequency, those from 22 on turn four times slower. */
static void fast_pairs_are_kept_and_slow_ones_stretched(void **state)
{
    struct q_config c = shape();
    float plain[256], f[256];
    rope_frequencies(&c, plain);
    c.yarn = (struct q_yarn){.factor = 4, .original = 262144, .beta_fast = 32, .beta_slow = 1};
    rope_frequencies(&c, f);
    for (int i = 0; i < 32; i++) {
        if (i <= 14) assert_true(f[i] == plain[i]);
        else if (i >= 22) assert_true(fabsf(f[i] * 4 / plain[i] - 1) < 1e-6f);
        else assert_true(f[i] < plain[i] && f[i] * 4 > plain[i]);
    }
}

static void only_when_asked(void **state)
{
    struct q_config c = shape();
    struct q_err e;
    struct q_rope_ask ask = {0};
    assert_int_equal(rope_choose(&c, &ask, 300000, "m", &e), Q_OK);
    assert_int_equal(rope_check(&c, 300000, "m", &e), Q_ELIMIT);
    assert_non_null(strstr(e.text, "300000"));
    assert_non_null(strstr(e.text, "262144"));
    ask.scaling = Q_ROPE_YARN;
    assert_int_equal(rope_choose(&c, &ask, 0, "m", &e), Q_EINPUT);            /* nothing to stretch to */
    for (int ctx = 262145; ctx < 1 << 24; ctx = ctx * 3 / 2 + 7) {            /* the factor gives the context back */
        c = shape();
        assert_int_equal(rope_choose(&c, &ask, ctx, "m", &e), Q_OK);
        assert_int_equal(rope_limit(&c), ctx);
        assert_int_equal(rope_check(&c, ctx, "m", &e), Q_OK);
    }
    c = shape();
    assert_int_equal(rope_choose(&c, &ask, 1000, "m", &e), Q_OK);             /* within: nothing changes */
    assert_true(rope_attention(&c) == 1);
    ask.factor = 2;
    assert_int_equal(rope_choose(&c, &ask, 600000, "m", &e), Q_OK);
    assert_int_equal(rope_check(&c, 600000, "m", &e), Q_ELIMIT);
    assert_non_null(strstr(e.text, "524288"));
    c = shape();
    ask = (struct q_rope_ask){Q_ROPE_YARN, 4, 100000};
    assert_int_equal(rope_choose(&c, &ask, 0, "m", &e), Q_OK);
    assert_int_equal(rope_limit(&c), 400000);
    assert_int_equal(c.yarn.original, 100000);
}

/* Beyond what positions can be, the words are of that, not of a factor that would reach. */
static void no_further_than_positions_go(void **state)
{
    struct q_config c = shape();
    struct q_err e;
    c.n_ctx_train = 32768;
    struct q_rope_ask ask = {.scaling = Q_ROPE_YARN};
    assert_int_equal(rope_choose(&c, &ask, ROPE_MOST + 1, "m", &e), Q_OK);
    assert_int_equal(rope_check(&c, ROPE_MOST + 1, "m", &e), Q_ELIMIT);
    assert_non_null(strstr(e.text, "16777216"));
    assert_non_null(strstr(e.text, "positions go to 16777215"));
    assert_null(strstr(e.text, "factor"));
    c.n_ctx_train = 1 << 25;
    assert_int_equal(rope_limit(&c), ROPE_MOST);
}

/* A file with YaRN in it: as it says, or none, and then only as far as the model was trained before. */
static void a_file_may_ask(void **state)
{
    struct q_config c = shape();
    struct q_err e;
    c.n_ctx_train = 1048576;
    c.yarn = (struct q_yarn){.factor = 4, .original = 262144, .beta_fast = 32, .beta_slow = 1, .attention = 1};
    struct q_config d = c;
    struct q_rope_ask ask = {0};
    assert_int_equal(rope_choose(&d, &ask, 0, "m", &e), Q_OK);
    assert_int_equal(rope_limit(&d), 1048576);
    ask.scaling = Q_ROPE_YARN;
    assert_int_equal(rope_choose(&d, &ask, 500000, "m", &e), Q_OK);
    assert_true(d.yarn.factor == 4);
    ask.scaling = Q_ROPE_NONE;
    assert_int_equal(rope_choose(&d, &ask, 0, "m", &e), Q_OK);
    assert_int_equal(rope_limit(&d), 262144);
    assert_true(rope_attention(&d) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_frequencies), cmocka_unit_test(yarn_is_as_published), cmocka_unit_test(fast_pairs_are_kept_and_slow_ones_stretched),
        cmocka_unit_test(only_when_asked),   cmocka_unit_test(no_further_than_positions_go), cmocka_unit_test(a_file_may_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
