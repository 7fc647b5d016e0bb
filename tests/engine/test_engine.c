/* The engine on the trained test model. `strict` promises the same bits for any chunking, batch, team and re-use; here it is held to that. */
#include "engine_impl.h"
#include "model.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 90 };
static const char text[] = "<|im_start|>user\n대한민국의 수도는 어디인가요? Count from 3 to 20, then tell me a story about Mina and a blue star. "
                           "2026년 11월 30일, ===> ok!\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

struct fixture {
    struct q_engine *en;
    int ids[N], vocab;
    float *want;             /* [N][vocab] logits of every position, computed in one step */
};

static struct q_engine *open_with(enum q_numerics numerics, int threads)
{
    struct q_err e;
    struct q_engine *en;
    struct q_engine_opts o = {.model = TEST_MODEL, .program_dir = TEST_PROGRAMS, .numerics = numerics, .threads = threads, .ctx = 400,
                              .max_seqs = 3, .max_snaps = 2, .max_rows = 128, .max_out = 128};
    int rc = q_engine_open(&en, &o, &e);
    if (rc) fail_msg("%s", e.text);
    return en;
}

/* Feeds rows of one sequence, all logits wanted, and copies them out. */
static void feed(struct q_engine *en, struct q_seq *s, const int *ids, int n, float *out)
{
    struct q_row rows[128];
    struct q_result r;
    struct q_err e;
    q_ticket t;
    size_t vocab = (size_t)q_engine_model(en)->config.n_vocab;
    for (int i = 0; i < n; i++) rows[i] = (struct q_row){.seq = s, .token = ids[i], .pos = {-1, -1, -1}, .parent = -1, .want = Q_WANT_LOGITS};
    if (q_step_submit(en, &(struct q_step){.rows = rows, .n_rows = n}, &t, &e) || q_step_wait(en, t, &r, &e)) fail_msg("%s", e.text);
    assert_int_equal(r.n_out, n);
    memcpy(out, r.logits, (size_t)n * vocab * sizeof(float));
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct tok_ids ids = {0};
    struct q_err e;
    struct q_seq *s;
    f->en = open_with(Q_STRICT, 2);
    f->vocab = q_engine_model(f->en)->config.n_vocab;
    if (tok_encode(q_engine_tokenizer(f->en), text, strlen(text), TOK_PARSE_CONTROL, &ids, &e)) return -1;
    for (int i = 0; i < N; i++) f->ids[i] = ids.at[i % (int)ids.n];
    free(ids.at);
    f->want = malloc((size_t)N * (size_t)f->vocab * sizeof(float));
    if (q_seq_open(f->en, &s, &e)) return -1;
    feed(f->en, s, f->ids, N, f->want);
    q_seq_close(s);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    q_engine_close(f->en);
    free(f->want);
    free(f);
    return 0;
}

static void same_bits(const struct fixture *f, const float *got, int at, int n, const char *what)
{
    size_t bytes = (size_t)n * (size_t)f->vocab * sizeof(float);
    if (memcmp(got, f->want + (size_t)at * (size_t)f->vocab, bytes)) fail_msg("%s: logits from token %d on differ", what, at);
}

static void test_finite(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < (size_t)N * (size_t)f->vocab; i++) assert_true(isfinite(f->want[i]));
}

static void test_any_chunk(void **state)
{
    struct fixture *f = *state;
    static const int chunks[] = {1, 3, 8, 9, 16, 31, 64, 89};
    float *got = malloc((size_t)N * (size_t)f->vocab * sizeof(float));
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
        struct q_seq *s;
        struct q_err e;
        char what[40];
        snprintf(what, sizeof what, "chunks of %d", chunks[c]);
        assert_int_equal(q_seq_open(f->en, &s, &e), Q_OK);
        for (int at = 0, n; at < N; at += n) {
            n = N - at < chunks[c] ? N - at : chunks[c];
            feed(f->en, s, f->ids + at, n, got);
            same_bits(f, got, at, n, what);
        }
        q_seq_close(s);
    }
    free(got);
}

static void test_any_team(void **state)
{
    struct fixture *f = *state;
    float *got = malloc((size_t)N * (size_t)f->vocab * sizeof(float));
    for (int threads = 1; threads <= 5; threads += 2) {
        struct q_engine *en = open_with(Q_STRICT, threads);
        struct q_seq *s;
        struct q_err e;
        assert_int_equal(q_seq_open(en, &s, &e), Q_OK);
        feed(en, s, f->ids, 40, got);
        same_bits(f, got, 0, 40, "another number of threads");
        feed(en, s, f->ids + 40, 5, got);
        same_bits(f, got, 40, 5, "another number of threads");
        q_seq_close(s);
        q_engine_close(en);
    }
    free(got);
}

/* Two sequences of one step at different places of the text, beside a third that is noise. */
static void test_any_neighbours(void **state)
{
    struct fixture *f = *state;
    struct q_seq *s[3];
    struct q_row rows[128];
    struct q_result r;
    struct q_err e;
    q_ticket t;
    float *skip = malloc((size_t)N * (size_t)f->vocab * sizeof(float));
    for (int i = 0; i < 3; i++) assert_int_equal(q_seq_open(f->en, &s[i], &e), Q_OK);
    feed(f->en, s[0], f->ids, 20, skip);
    static const int from[] = {20, 0, 5}, count[] = {30, 17, 1};
    int n = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < count[i]; j++, n++)
            rows[n] = (struct q_row){.seq = s[i], .token = i == 2 ? 99 : f->ids[from[i] + j], .pos = {-1, -1, -1}, .parent = -1, .want = Q_WANT_LOGITS};
    assert_int_equal(q_step_submit(f->en, &(struct q_step){.rows = rows, .n_rows = n}, &t, &e), Q_OK);
    assert_int_equal(q_step_wait(f->en, t, &r, &e), Q_OK);
    same_bits(f, r.logits, 20, 30, "first of three sequences");
    same_bits(f, r.logits + (size_t)30 * (size_t)f->vocab, 0, 17, "second of three sequences");
    /* And all three decode together. */
    for (int i = 0; i < 3; i++) rows[i] = (struct q_row){.seq = s[i], .token = f->ids[q_seq_length(s[i])], .pos = {-1, -1, -1}, .parent = -1, .want = Q_WANT_LOGITS};
    assert_int_equal(q_step_submit(f->en, &(struct q_step){.rows = rows, .n_rows = 3}, &t, &e), Q_OK);
    assert_int_equal(q_step_wait(f->en, t, &r, &e), Q_OK);
    same_bits(f, r.logits, 50, 1, "decoding beside others");
    same_bits(f, r.logits + f->vocab, 17, 1, "decoding beside others");
    for (int i = 0; i < 3; i++) q_seq_close(s[i]);
    free(skip);
}

static void test_snapshots(void **state)
{
    struct fixture *f = *state;
    struct q_seq *s;
    struct q_snap *mid, *end;
    struct q_row rows[128];
    struct q_err e;
    q_ticket t;
    float *got = malloc((size_t)N * (size_t)f->vocab * sizeof(float));
    assert_int_equal(q_seq_open(f->en, &s, &e), Q_OK);
    for (int i = 0; i < 70; i++) rows[i] = (struct q_row){.seq = s, .token = f->ids[i], .pos = {-1, -1, -1}, .parent = -1};
    struct q_keep keep = {41, &mid};
    assert_int_equal(q_step_submit(f->en, &(struct q_step){.rows = rows, .n_rows = 70, .keeps = &keep, .n_keeps = 1}, &t, &e), Q_OK);
    assert_int_equal(q_step_wait(f->en, t, NULL, &e), Q_OK);
    assert_int_equal(q_seq_snapshot(s, &end, &e), Q_OK);
    feed(f->en, s, f->ids + 70, 10, got);
    same_bits(f, got, 70, 10, "after a step that kept a snapshot");
    for (int twice = 0; twice < 2; twice++) {
        static const int noise[] = {5, 6, 7, 8, 9, 10, 11, 12, 13};
        assert_int_equal(q_seq_restore(s, mid, &e), Q_OK);
        assert_int_equal(q_seq_length(s), 42);
        feed(f->en, s, f->ids + 42, 30, got);
        same_bits(f, got, 42, 30, "from a snapshot in the middle of a step");
        assert_int_equal(q_seq_restore(s, end, &e), Q_OK);
        feed(f->en, s, f->ids + 70, 20, got);
        same_bits(f, got, 70, 20, "from a snapshot at the end");
        q_seq_clear(s);
        feed(f->en, s, noise, 9, got);   /* dirties state and pages */
    }
    q_snap_close(mid);
    q_snap_close(end);
    q_seq_close(s);
    free(got);
}

/* Bytes taken out of one engine continue in another as if nothing had been. */
static void test_snapshots_as_bytes(void **state)
{
    struct fixture *f = *state;
    struct q_seq *s;
    struct q_snap *mid, *base;
    struct q_err e;
    float *got = malloc((size_t)N * (size_t)f->vocab * sizeof(float));
    assert_int_equal(q_seq_open(f->en, &s, &e), Q_OK);
    feed(f->en, s, f->ids, 80, got);
    assert_int_equal(q_seq_snapshot(s, &mid, &e), Q_OK);
    char *all = malloc(q_snap_bytes(mid, 0)), *tail = malloc(q_snap_bytes(mid, 64));
    assert_int_equal(q_snap_read_piece(mid, 0, 0, all, q_snap_bytes(mid, 0), &e), Q_OK);
    assert_int_equal(q_snap_read_piece(mid, 64, 0, tail, q_snap_bytes(mid, 64), &e), Q_OK);
    q_snap_close(mid);
    q_seq_close(s);

    struct q_engine *en = open_with(Q_STRICT, 1);
    assert_string_equal(q_engine_state_id(en), q_engine_state_id(f->en));
    assert_non_null(strstr(q_engine_state_id(en), " kv=f16+f16 numerics=strict"));
    assert_int_equal(q_seq_open(en, &s, &e), Q_OK);
    feed(en, s, f->ids, 70, got);
    assert_int_equal(q_seq_snapshot(s, &base, &e), Q_OK);
    for (int from = 0; from <= 64; from += 64) {
        assert_int_equal(q_snap_new(en, base, from, 80, &mid, &e), Q_OK);
        assert_int_equal(q_snap_write_piece(mid, from, 0, from ? tail : all, q_snap_bytes(mid, from), &e), Q_OK);
        assert_int_equal(q_seq_restore(s, mid, &e), Q_OK);
        q_snap_close(mid);
        assert_int_equal(q_seq_length(s), 80);
        feed(en, s, f->ids + 80, 10, got);
        same_bits(f, got, 80, 10, "from a snapshot that came as bytes");
    }
    q_snap_close(base);
    q_seq_close(s);
    q_engine_close(en);
    free(all);
    free(tail);
    free(got);
}

/* Residual rows after the last layer, normed here, are the post-norm rows; taps change nothing. */
static void test_taps(void **state)
{
    struct fixture *f = *state;
    const struct q_model *m = q_engine_model(f->en);
    int d = m->config.n_embd, last = m->config.n_layers - 1, n = 12;
    float *tap = malloc(2 * (size_t)n * (size_t)d * sizeof(float)), *hidden = malloc((size_t)n * (size_t)d * sizeof(float));
    const float *w = m->out_norm.data;
    struct q_row rows[12];
    struct q_result r;
    struct q_seq *s;
    struct q_err e;
    q_ticket t;
    assert_int_equal(q_seq_open(f->en, &s, &e), Q_OK);
    for (int i = 0; i < n; i++) rows[i] = (struct q_row){.seq = s, .token = f->ids[i], .pos = {-1, -1, -1}, .parent = -1, .want = Q_WANT_LOGITS};
    int taps[] = {0, last};
    struct q_step step = {.rows = rows, .n_rows = n, .taps = taps, .n_taps = 2, .tap_out = tap, .hidden_out = hidden};
    assert_int_equal(q_step_submit(f->en, &step, &t, &e), Q_OK);
    assert_int_equal(q_step_wait(f->en, t, &r, &e), Q_OK);
    same_bits(f, r.logits, 0, n, "with taps");
    for (int i = 0; i < n; i++) {
        const float *x = tap + ((size_t)n + (size_t)i) * (size_t)d, *h = hidden + (size_t)i * (size_t)d;
        double ss = 0;
        for (int j = 0; j < d; j++) ss += (double)x[j] * x[j];
        for (int j = 0; j < d; j++) assert_true(fabs(x[j] / sqrt(ss / d + 1e-6) * w[j] - h[j]) < 1e-4 * (1 + fabs((double)h[j])));
    }
    q_seq_close(s);
    free(tap);
    free(hidden);
}

/* A row given as its embedding is the row given as its token. */
static void test_embedding_rows(void **state)
{
    struct fixture *f = *state;
    const struct q_model *m = q_engine_model(f->en);
    int d = m->config.n_embd;
    float *x = malloc((size_t)d * sizeof(float));
    struct q_row rows[10];
    struct q_result r;
    struct q_seq *s;
    struct q_err e;
    q_ticket t;
    m->embd.format->dequantise(x, (const char *)m->embd.data + (size_t)f->ids[4] * (size_t)q_row_bytes(m->embd.format, d), d);
    assert_int_equal(q_seq_open(f->en, &s, &e), Q_OK);
    for (int i = 0; i < 10; i++) rows[i] = (struct q_row){.seq = s, .token = f->ids[i], .pos = {i, i, i}, .parent = i - 1, .want = Q_WANT_LOGITS};
    rows[4].token = -1;
    rows[4].embd = x;
    assert_int_equal(q_step_submit(f->en, &(struct q_step){.rows = rows, .n_rows = 10}, &t, &e), Q_OK);
    assert_int_equal(q_step_wait(f->en, t, &r, &e), Q_OK);
    same_bits(f, r.logits, 0, 10, "a row given as an embedding");
    q_seq_close(s);
    free(x);
}

static int draw(struct fixture *f, struct q_seq *s, const struct q_sampling *sampling)
{
    struct q_result r;
    struct q_err e;
    q_seq_clear(s);
    if (q_prefill(f->en, s, f->ids, 15, 0, Q_WANT_ID, sampling, &r, &e)) fail_msg("%s", e.text);
    assert_true(r.logprob[0] <= 0);
    return r.id[0];
}

static void test_sampling(void **state)
{
    struct fixture *f = *state;
    struct q_seq *s;
    struct q_err e;
    int changed = 0, greedy, first = -1;
    assert_int_equal(q_seq_open(f->en, &s, &e), Q_OK);
    greedy = draw(f, s, NULL);
    struct q_sampling p = {.p = q_sampling_default(), .position = 15};
    assert_int_equal(draw(f, s, &p), greedy);
    p.p.temp = 5;
    for (uint64_t seed = 0; seed < 20; seed++) {
        p.p.seed = seed;
        int id = draw(f, s, &p);
        assert_int_equal(draw(f, s, &p), id);    /* a seed is a draw */
        changed += first >= 0 && id != first;
        first = id;
    }
    assert_true(changed > 10);
    p.p.top_k = 1;
    assert_int_equal(draw(f, s, &p), greedy);
    p.p = q_sampling_default();
    int32_t id = 123;
    float bias = 1000;
    p.bias_id = &id;
    p.bias = &bias;
    p.n_bias = 1;
    assert_int_equal(draw(f, s, &p), 123);
    uint32_t *mask = calloc((size_t)f->vocab / 32 + 1, 4);
    mask[77 / 32] |= 1u << 77 % 32;
    p.mask = mask;
    assert_int_equal(draw(f, s, &p), 77);
    free(mask);
    q_seq_close(s);
}

static void test_limits(void **state)
{
    struct fixture *f = *state;
    struct q_seq *s[4];
    struct q_err e;
    struct q_result r;
    int many[500] = {0};
    for (int i = 0; i < 3; i++) assert_int_equal(q_seq_open(f->en, &s[i], &e), Q_OK);
    assert_int_equal(q_prefill(f->en, s[0], many, 401, 0, Q_WANT_ID, NULL, &r, &e), Q_ELIMIT);
    assert_non_null(strstr(e.text, "401"));
    assert_non_null(strstr(e.text, "400"));
    assert_int_equal(q_prefill(f->en, s[0], many, 400, 0, Q_WANT_ID, NULL, &r, &e), Q_OK);
    assert_int_equal(q_prefill(f->en, s[0], many, 1, 0, Q_WANT_ID, NULL, &r, &e), Q_ELIMIT);
    assert_int_equal(q_seq_length(s[0]), 400);
    for (int i = 0; i < 3; i++) q_seq_close(s[i]);
}

/* What the machine cannot hold is refused with the plan, before it is taken. */
static void test_plan(void **state)
{
    struct q_engine *en;
    struct q_err e;
    struct q_engine_opts o = {.model = TEST_MODEL, .program_dir = TEST_PROGRAMS, .threads = 1, .ctx = 32768, .max_seqs = 100000};
    assert_int_equal(q_engine_open(&en, &o, &e), Q_ELIMIT);
    assert_non_null(strstr(e.text, "are needed"));
    assert_non_null(strstr(e.text, "KV"));
    o.ctx = 32769;
    assert_int_equal(q_engine_open(&en, &o, &e), Q_ELIMIT);
    assert_non_null(strstr(e.text, "32769"));
    assert_non_null(strstr(e.text, "32768"));
}

/* What the engine took is what its plan says, part by part. */
static void test_plan_is_kept(void **state)
{
    const struct fixture *f = *state;
    const struct q_engine *en = f->en;
    const struct q_plan *p = q_engine_plan(en);
    size_t pages = (size_t)en->kv.n_pages * (size_t)en->kv.n_layers * (en->kv.k_bytes + en->kv.v_bytes);
    size_t slots = (size_t)en->states.n_slots * (size_t)en->states.n_layers * (en->states.s_bytes + en->states.conv_bytes);
    const struct q_plan_line *l = p->lines;
    assert_int_equal(l[Q_PLAN_KV].bytes + l[Q_PLAN_STATES].bytes + l[Q_PLAN_CHECKPOINTS].bytes, pages + slots);
    assert_int_equal(l[Q_PLAN_SCRATCH].bytes, en->scratch.bytes + step_table_bytes(&en->table.size));
    assert_int_equal(l[Q_PLAN_WEIGHTS].bytes, q_engine_model(en)->weight_bytes);
    size_t weights = en->weights.mapped_bytes + en->weights.packed_bytes, aligned = 64 * (size_t)en->weights.n;
    assert_true(weights >= l[Q_PLAN_WEIGHTS].bytes - aligned && weights <= l[Q_PLAN_WEIGHTS].bytes + aligned);
    size_t planned, taken;
    q_engine_memory(en, &planned, &taken);
    assert_true(planned == p->total && !taken);       /* a CPU does not tell */
}

/* pinned may run other classes, but the text stays. */
static void test_pinned_neighbours(void **state)
{
    struct fixture *f = *state;
    struct q_engine *en = open_with(Q_PINNED, 2);
    float *got = malloc((size_t)N * (size_t)f->vocab * sizeof(float));
    struct q_seq *s;
    struct q_err e;
    double worst = 0;
    assert_int_equal(q_seq_open(en, &s, &e), Q_OK);
    feed(en, s, f->ids, N, got);
    for (size_t i = 0; i < (size_t)N * (size_t)f->vocab; i++) worst = fmax(worst, fabs((double)got[i] - f->want[i]));
    assert_true(worst < 0.3);
    q_seq_close(s);
    q_engine_close(en);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_finite),         cmocka_unit_test(test_any_chunk),
                                       cmocka_unit_test(test_any_team),       cmocka_unit_test(test_any_neighbours),
                                       cmocka_unit_test(test_snapshots), cmocka_unit_test(test_snapshots_as_bytes),      cmocka_unit_test(test_taps),
                                       cmocka_unit_test(test_embedding_rows), cmocka_unit_test(test_sampling),
                                       cmocka_unit_test(test_limits),         cmocka_unit_test(test_plan), cmocka_unit_test(test_plan_is_kept),
                                       cmocka_unit_test(test_pinned_neighbours)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
