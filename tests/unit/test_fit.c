/* Placing a model on cards: every layer once and in order, no card too full, and one card's plan is the engine's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "fit.h"
#include "kernel.h"
#include "model_parts.h"
#include <string.h>

#define GIB ((size_t)1 << 30)

static struct q_config config;
static struct q_fit_weights weights;

static void take_shape(const char *preset)
{
    struct q_err e;
    assert_int_equal(config_from_preset(&config, preset, &e), Q_OK);
    fit_weights_of_shape(&weights, &config, q_format_by_name("q8_0"));
}

static struct q_fit_options ask(const char *cards, int ctx, int n_seqs, const char *kv)
{
    struct q_fit_options o = {.ctx = ctx, .n_seqs = n_seqs, .kv_k = kv, .kv_v = kv};
    assert_null(fit_read_cards(&o, cards));
    return o;
}

static size_t sum_of_weights(void)
{
    size_t bytes = weights.embd + weights.head;
    for (int i = 0; i < config.n_layers; i++) bytes += weights.layer[i];
    return bytes;
}

/* Stages follow one another from the first layer to the last, and each is within its card. */
static void check_stages(const struct q_fit *f, const struct q_fit_options *o)
{
    int at = 0;
    for (int i = 0; i < f->n_stages; i++) {
        const struct q_fit_stage *s = f->stage + i;
        size_t parts = FIT_DRIVER;
        for (int k = 0; k < Q_PLAN_ITEMS; k++) parts += s->plan.lines[k].bytes;
        assert_int_equal(s->first, at);
        assert_true(s->last > s->first);
        assert_int_equal(s->total, parts);
        assert_int_equal(s->total + s->left, o->card[s->card]);
        if (i) assert_true(s->card > f->stage[i - 1].card);
        at = s->last;
    }
    assert_int_equal(at, config.n_layers);
}

/* The numbers: 27B as q8_0 at 262 144 tokens with K and V of three bits. */
static void the_large_one_goes_on_three_cards(void **state)
{
    struct q_fit f;
    take_shape("qwen3.6-27b");
    struct q_fit_options o = ask("3x16GiB", 262144, 1, "r3");
    assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
    assert_int_equal(f.n_stages, 3);
    check_stages(&f, &o);
    assert_true(f.whole.total <= 34 * GIB);
    assert_true(f.whole.lines[Q_PLAN_KV].bytes <= 3500000000u);
    for (int i = 0; i < 3; i++) assert_true(f.stage[i].left > GIB);   /* balanced: no card is brimful while another is empty */
    o = ask("2x16GiB", 262144, 1, "r3");
    assert_int_equal(fit_place(&f, &config, &weights, &o), 0);
    assert_int_equal(f.n_stages, 0);
    assert_true(f.needed > f.there);
}

static void weights_are_counted_once(void **state)
{
    struct q_fit f;
    take_shape("qwen3.6-27b");
    assert_int_equal(sum_of_weights(), q_config_weight_bytes(&config, q_format_by_name("q8_0")));
    struct q_fit_options o = ask("16GiB,12GiB,16GiB", 32768, 2, "q8");
    assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
    check_stages(&f, &o);
    size_t sum = 0, granule = 2 << 20;
    for (int i = 0; i < f.n_stages; i++) sum += f.stage[i].plan.lines[Q_PLAN_WEIGHTS].bytes;
    assert_true(sum >= sum_of_weights() && sum < sum_of_weights() + 3 * granule);

    take_shape("qwen3.5-0.8b");      /* tied: where the head is not with the embedding, it lies there once more */
    assert_true(config.tied);
    assert_int_equal(sum_of_weights(), q_config_weight_bytes(&config, q_format_by_name("q8_0")));
    o = ask("2x1800MiB", 16384, 1, "f16");
    assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
    assert_int_equal(f.n_stages, 2);
    sum = f.stage[0].plan.lines[Q_PLAN_WEIGHTS].bytes + f.stage[1].plan.lines[Q_PLAN_WEIGHTS].bytes;
    assert_true(sum >= sum_of_weights() + weights.embd && sum < sum_of_weights() + weights.embd + 3 * granule);
}

/* One card holds what the engine takes: the same call of plan_make. */
static void one_card_is_the_engines_plan(void **state)
{
    struct q_fit f;
    struct q_plan p;
    take_shape("qwen3.5-9b");
    struct q_fit_options o = ask("24GiB", 65536, 3, "f16");
    assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
    assert_int_equal(f.n_stages, 1);
    struct q_plan_options po = {.weight_bytes = sum_of_weights(), .ctx = 65536, .n_seqs = 3, .n_snaps = plan_max_snaps(3), .max_out = 3, .parts = 132,
                                .max_rows = plan_max_rows(1, 24 * GIB - FIT_DRIVER), .kv_k = "f16", .kv_v = "f16", .gpu = 1};
    plan_make(&p, &config, &po);
    assert_memory_equal(&p, &f.stage[0].plan, sizeof p);
}

static void the_longest_is_the_longest(void **state)
{
    struct q_fit f;
    take_shape("qwen3.5-9b");
    struct q_fit_options o = ask("12GiB,4GiB", 0, 1, "f16");
    o.ctx = fit_longest(&config, &weights, &o, 262144);
    assert_true(o.ctx > 1024 && o.ctx < 262144);
    assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
    check_stages(&f, &o);
    o.ctx += KV_PAGE;
    assert_int_equal(fit_place(&f, &config, &weights, &o), 0);
    o = ask("24GiB", 32768, 1, "f16");
    o.n_seqs = fit_most_seqs(&config, &weights, &o, 64);
    assert_true(o.n_seqs > 1 && o.n_seqs < 64);
    assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
    o.n_seqs++;
    assert_int_equal(fit_place(&f, &config, &weights, &o), 0);
    o = ask("100MiB", 1024, 1, "r3");
    assert_int_equal(fit_longest(&config, &weights, &o, 262144), 0);
}

/* A card too small for a layer is passed over. */
static void a_card_may_stay_empty(void **state)
{
    struct q_fit f;
    take_shape("qwen3.5-9b");
    struct q_fit_options o = ask("512MiB,24GiB", 4096, 1, "f16");
    assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
    assert_int_equal(f.n_stages, 1);
    assert_int_equal(f.stage[0].card, 1);
    check_stages(&f, &o);
}

/* What one card holds is not spread, whatever else is there, and a card that stays empty does not narrow its steps. */
static void one_card_that_holds_it_gets_it(void **state)
{
    static const struct { const char *cards; int card; } rows[] = {
        {"2x80GiB", 0}, {"32GiB,700MiB", 0}, {"700MiB,32GiB", 1}, {"24GiB,32GiB,24GiB", 1}, {"8GiB,3x80GiB", 1}, {"80GiB,8GiB", 0},
    };
    struct q_fit f, alone;
    take_shape("qwen3.5-27b");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct q_fit_options o = ask(rows[i].cards, 32768, 1, "f16"), one = o;
        one.card[0] = o.card[rows[i].card];
        one.n_cards = 1;
        assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
        assert_int_equal(fit_place(&alone, &config, &weights, &one), 1);
        assert_int_equal(f.n_stages, 1);
        assert_int_equal(f.stage[0].card, rows[i].card);
        assert_int_equal(f.max_rows, 2048);
        assert_memory_equal(&f.stage[0].plan, &alone.stage[0].plan, sizeof alone.whole);
        assert_memory_equal(&f.whole, &alone.whole, sizeof alone.whole);
        check_stages(&f, &o);
    }
}

/* A card for which it is a little too much, beside one of no use: as if that one was not there. */
static void a_useless_card_changes_nothing(void **state)
{
    struct q_fit f;
    take_shape("qwen3.5-27b");
    static const char *const cards[] = {"30.8GiB", "30.8GiB,700MiB", "700MiB,30.8GiB"};
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        struct q_fit_options o = ask(cards[i], 32768, 1, "f16");
        assert_int_equal(fit_place(&f, &config, &weights, &o), 0);
        assert_int_equal(f.max_rows, 2048);
        assert_int_equal(fit_longest(&config, &weights, &o, 32768), fit_longest(&config, &weights, &(struct q_fit_options){
            .card = {(size_t)(30.8 * 0x1p30)}, .n_cards = 1, .n_seqs = 1, .kv_k = "f16", .kv_v = "f16"}, 32768));
    }
    struct q_fit_options o = ask("30.8GiB,4GiB", 32768, 1, "f16");     /* of use: it is spread, in the steps of the small one */
    assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
    assert_int_equal(f.n_stages, 2);
    assert_int_equal(f.max_rows, 512);
    check_stages(&f, &o);
    o = ask("2x20GiB,700MiB", 32768, 1, "f16");
    assert_int_equal(fit_place(&f, &config, &weights, &o), 1);
    assert_int_equal(f.n_stages, 2);
    assert_int_equal(f.max_rows, 2048);
    check_stages(&f, &o);
}

static void sparse_prefill_is_counted(void **state)
{
    struct q_fit dense, sparse;
    take_shape("qwen3.5-9b");
    struct q_fit_options o = ask("24GiB", 65536, 2, "f16");
    assert_int_equal(fit_place(&dense, &config, &weights, &o), 1);
    o.sparse = 1;
    assert_int_equal(fit_place(&sparse, &config, &weights, &o), 1);
    assert_true(sparse.whole.lines[Q_PLAN_SCRATCH].bytes > dense.whole.lines[Q_PLAN_SCRATCH].bytes);
    assert_int_equal(sparse.whole.total - dense.whole.total, sparse.whole.lines[Q_PLAN_SCRATCH].bytes - dense.whole.lines[Q_PLAN_SCRATCH].bytes);
}

static void a_context_of_less_than_a_page(void **state)
{
    take_shape("qwen3.5-0.8b");
    struct q_fit_options o = ask("24GiB", 40, 1, "f16");
    assert_int_equal(fit_longest(&config, &weights, &o, 40), 40);
    assert_int_equal(fit_longest(&config, &weights, &o, 100), 100);
    o = ask("100MiB", 40, 1, "f16");
    assert_int_equal(fit_longest(&config, &weights, &o, 40), 0);
}

static void sizes_are_read(void **state)
{
    static const struct { const char *text; size_t bytes; } good[] = {{"0", 0}, {"1048576", 1048576}, {"1KiB", 1024}, {"16GiB", (size_t)16 << 30}, {"1.5MB", 1500000}};
    static const char *const bad[] = {"", "x", "1", "8", "1048575", "1.5", "-1", "16GiB,", "16 GiB", "1e99GiB", "99999999999999999999"};
    size_t bytes;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(fit_read_bytes(good[i].text, &bytes), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!fit_read_bytes(bad[i], &bytes)) fail_msg("'%s' is %zu bytes", bad[i], bytes);
}

static void cards_are_read(void **state)
{
    struct q_fit_options o;
    assert_null(fit_read_cards(&o, "3x16GiB"));
    assert_int_equal(o.n_cards, 3);
    assert_int_equal(o.card[2], 16 * GIB);
    assert_null(fit_read_cards(&o, "24GB,2x11.5GiB,800MiB"));
    assert_int_equal(o.n_cards, 4);
    assert_int_equal(o.card[0], 24000000000);
    assert_int_equal(o.card[1], 23 * GIB / 2);
    assert_int_equal(o.card[3], 800 << 20);
    static const char *const bad[] = {"", "16", "GiB", "16GiB,", ",16GiB", "0GiB", "-1GiB", "0x16GiB", "65x1GiB", "3x", "16GiBs", "16 GiB", "1e99GiB", "nanGiB", "99999999999999999999x1GiB"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_non_null(fit_read_cards(&o, bad[i]));
}

static void tokens_are_read(void **state)
{
    static const struct { const char *text; long n; } good[] = {{"0", 0}, {"262144", 262144}, {"256K", 262144}, {"1k", 1024}, {"10M", 10 << 20}, {"2m", 2 << 20}, {"-2", -2}};
    static const char *const bad[] = {"", "K", "M", "8x", "8KK", "8KM", "8G", "8KiB", "1.5K", "99999999999999999999", "9223372036854775807K", "9223372036854775807M"};
    long n = 7;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(fit_read_tokens(good[i].text, &n), 0);
        assert_int_equal(n, good[i].n);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(fit_read_tokens(bad[i], &n), -1);
    assert_int_equal(n, -2);   /* as it was */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_large_one_goes_on_three_cards), cmocka_unit_test(weights_are_counted_once),
        cmocka_unit_test(one_card_is_the_engines_plan),      cmocka_unit_test(the_longest_is_the_longest),
        cmocka_unit_test(a_card_may_stay_empty),             cmocka_unit_test(one_card_that_holds_it_gets_it),
        cmocka_unit_test(a_useless_card_changes_nothing),    cmocka_unit_test(sparse_prefill_is_counted),
        cmocka_unit_test(tokens_are_read),
        cmocka_unit_test(a_context_of_less_than_a_page),     cmocka_unit_test(cards_are_read),
        cmocka_unit_test(sizes_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
