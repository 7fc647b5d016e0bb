/* Session files over engines: what one saved another continues bit for bit, and refuses what it cannot continue. */
#include "files.h"
#include "model.h"
#include "session_snap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N = 150, MID = 100 };
static int32_t ids[N];
static char dir[Q_PATH], path[Q_PATH];

static struct q_engine *open_with(const char *kv, enum q_numerics numerics, int ctx)
{
    struct q_err e;
    struct q_engine *en;
    struct q_engine_opts o = {.model = TEST_MODEL, .program_dir = TEST_PROGRAMS, .numerics = numerics, .threads = 2, .ctx = ctx, .kv_k = kv,
                              .max_seqs = 2, .max_snaps = 3, .max_rows = 160};
    if (q_engine_open(&en, &o, &e)) fail_msg("%s", e.text);
    return en;
}

/* Logits after the last of ids[from, to), [vocab], owned by the caller. */
static float *feed(struct q_engine *en, struct q_seq *s, int from, int to)
{
    struct q_result r;
    struct q_err e;
    if (q_prefill(en, s, ids + from, to - from, 0, Q_WANT_LOGITS, NULL, &r, &e)) fail_msg("%s", e.text);
    float *out = malloc((size_t)r.n_vocab * sizeof *out);
    memcpy(out, r.logits, (size_t)r.n_vocab * sizeof *out);
    return out;
}

static int read_part(void *arg, int part, size_t at, void *dst, size_t n, struct q_err *e)
{
    struct q_snap *const *snaps = arg;
    return q_snap_read_piece(snaps[part], part ? MID / 64 * 64 : 0, at, dst, n, e);
}

/* A file with checkpoints at MID and N - 10. */
static void save(struct q_engine *en)
{
    struct q_seq *s;
    struct q_snap *a, *b;
    struct q_err e;
    size_t written;
    assert_int_equal(q_seq_open(en, &s, &e), Q_OK);
    free(feed(en, s, 0, MID));
    assert_int_equal(q_seq_snapshot(s, &a, &e), Q_OK);
    free(feed(en, s, MID, N - 10));
    assert_int_equal(q_seq_snapshot(s, &b, &e), Q_OK);
    struct q_snap *snaps[] = {a, b};
    struct session_source src = {.h = {.n_ids = N - 10, .n_text = 6, .n_parts = 2, .part = {{0, MID}, {MID / 64 * 64, N - 10}}},
                                 .ids = ids, .text = "a text", .read = read_part, .arg = snaps};
    session_head_of(en, &src.h);
    assert_int_equal(src.h.page_tokens, 64);
    if (session_write(path, &src, NULL, &written, &e)) fail_msg("%s", e.text);
    assert_true(written > q_snap_bytes(a, 0) + q_snap_bytes(b, 64) && written < q_snap_bytes(a, 0) + q_snap_bytes(b, 64) + 2000);
    q_snap_close(a);
    q_snap_close(b);
    q_seq_close(s);
}

static int setup(void **state)
{
    struct q_err e;
    for (int i = 0; i < N; i++) ids[i] = 5 + i * 7 % 200;
    if (dir_temp(dir, "/tmp/test-session-", &e)) return -1;
    return path_join(path, &e, dir, "a.session", NULL);
}

static int teardown(void **state)
{
    dir_remove(dir);
    return 0;
}

static void test_continues(void **state)
{
    struct q_engine *en = open_with(NULL, Q_STRICT, 400);
    struct q_seq *s;
    struct q_err e;
    struct q_snap *snap;
    struct session *f;
    save(en);
    assert_int_equal(q_seq_open(en, &s, &e), Q_OK);
    float *want = feed(en, s, 0, N), *got;
    size_t bytes = (size_t)q_engine_model(en)->config.n_vocab * sizeof *want;
    q_engine_close((q_seq_close(s), en));

    en = open_with(NULL, Q_STRICT, 200);                       /* another process may have another context */
    assert_int_equal(q_seq_open(en, &s, &e), Q_OK);
    free(feed(en, s, 3, 120));                                 /* dirties pages */
    if (session_open(&f, path, &e)) fail_msg("%s", e.text);
    assert_int_equal(session_find(f, ids, N, 200), 1);
    assert_string_equal(session_text(f), "a text");
    assert_int_equal(session_find(f, ids, N - 10, 200), 0);    /* one token must be left to read */
    assert_int_equal(session_find(f, ids, N, 120), 0);
    assert_int_equal(session_find(f, ids + 1, N - 1, 200), -1);
    for (int part = 0; part < 2; part++) {
        if (session_load_seq(f, en, part, s, &e)) fail_msg("%s", e.text);
        assert_int_equal(q_seq_length(s), part ? N - 10 : MID);
        if (part) assert_int_equal(q_seq_snap_new(s, 64, MID, &snap, &e), Q_OK);   /* the other, which shares a page with it */
        got = feed(en, s, part ? N - 10 : MID, N);
        assert_memory_equal(got, want, bytes);
        free(got);
        if (!part) continue;
        assert_int_equal(session_fill(f, 0, snap, 64, &e), Q_OK);
        assert_int_equal(q_seq_restore(s, snap, &e), Q_OK);
        q_snap_close(snap);
        got = feed(en, s, MID, N);
        assert_memory_equal(got, want, bytes);
        free(got);
    }
    session_close(f);
    free(want);
    q_seq_close(s);
    q_engine_close(en);
}

/* A byte of a state that is not what was written: nothing of it stays in the engine. */
static void test_damage_leaves_nothing(void **state)
{
    struct q_engine *en = open_with(NULL, Q_STRICT, 400);
    struct q_err e;
    struct q_seq *s;
    struct session *f;
    char *data;
    size_t n;
    save(en);
    assert_int_equal(file_read(path, 1 << 28, &data, &n, &e), Q_OK);
    data[n / 2] ^= 4;
    assert_int_equal(file_write(path, data, n, &e), Q_OK);
    free(data);
    assert_int_equal(q_seq_open(en, &s, &e), Q_OK);
    for (int i = 0; i < 9; i++) {                              /* more often than there is room */
        assert_int_equal(session_open(&f, path, &e), Q_OK);
        assert_int_equal(session_load_seq(f, en, 1, s, &e), Q_EINPUT);
        assert_int_equal(q_seq_length(s), 0);
        assert_non_null(strstr(e.text, "damaged"));
        session_close(f);
    }
    q_seq_close(s);
    q_engine_close(en);
}

static void refused(struct q_engine *en, int code, const char *line)
{
    struct q_err e;
    struct q_seq *s;
    struct session *f;
    assert_int_equal(session_open(&f, path, &e), Q_OK);
    assert_int_equal(q_seq_open(en, &s, &e), Q_OK);
    assert_int_equal(session_load_seq(f, en, 0, s, &e), code);
    if (!strstr(e.text, line)) fail_msg("%s", e.text);
    session_close(f);
    q_seq_close(s);
    q_engine_close(en);
}

static void test_other_engines(void **state)
{
    struct q_engine *en = open_with(NULL, Q_STRICT, 400);
    save(en);
    q_engine_close(en);
    refused(open_with("f32", Q_STRICT, 400), Q_EINPUT, "KV is f16+f16; this engine's is f32+f16");
    refused(open_with(NULL, Q_PINNED, 400), Q_EINPUT, "numerics strict; this engine computes with pinned-");
    refused(open_with(NULL, Q_STRICT, 64), Q_ELIMIT, "the session has 100 tokens and the context is 64; -c raises it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_continues), cmocka_unit_test(test_damage_leaves_nothing),
                                       cmocka_unit_test(test_other_engines)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
