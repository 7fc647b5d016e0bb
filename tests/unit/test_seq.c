/* Sequences, snapshots and the step's tables, without a model: pages are shared and copied on write, segments are cut at kept rows,
 * and a step that cannot run changes nothing. */
#include "seq.h"
#include "step_table.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CTX = 300, SEQS = 3, SNAPS = 2, ROWS = 200, OUTS = 4, VOCAB = 50, EMBD = 6 };

struct q_engine {
    struct q_memory memory;
    struct q_kv kv;
    struct q_states states;
    struct q_device *device;
    struct q_step_table table;
};

static void open_engine(struct q_engine *en)
{
    struct q_err e;
    struct q_config c = {.n_layers = 3, .n_head = 2, .n_head_kv = 1, .head_dim = 4, .conv_taps = 4, .state_dim = 8, .n_k_heads = 1, .n_v_heads = 2};
    c.kind[2] = Q_LAYER_ATTN;
    memset(en, 0, sizeof *en);
    assert_int_equal(device_cpu_open(&en->device, 1, &e), Q_OK);
    assert_int_equal(kv_open(&en->kv, en->device, &c, SEQS * 5 + 2 * SNAPS, "f16", "f32", &e), Q_OK);
    assert_int_equal(states_open(&en->states, en->device, &c, SEQS + SNAPS, &e), Q_OK);
    struct q_step_size size = {ROWS, OUTS, SEQS, SNAPS, CTX, EMBD, VOCAB};
    assert_int_equal(step_table_open(&en->table, en->device, &size, &e), Q_OK);
    en->memory = (struct q_memory){&en->kv, &en->states, CTX, SNAPS};
}

static void close_engine(struct q_engine *en)
{
    assert_int_equal(en->kv.n_free, en->kv.n_pages);          /* nothing leaks */
    assert_int_equal(en->states.n_free, en->states.n_slots);
    step_table_close(&en->table);
    states_close(&en->states);
    kv_close(&en->kv);
    en->device->ops->close(en->device);
}

static int step(struct q_engine *en, struct q_row *rows, int n, struct q_keep *keeps, int n_keeps, struct q_err *e)
{
    struct q_step s = {.rows = rows, .n_rows = n, .keeps = keeps, .n_keeps = n_keeps};
    int rc = step_table_check(&en->table, &s, e);
    return rc ? rc : step_table_fill(&en->table, &s, e);
}

static void fill_rows(struct q_row *rows, int n, struct q_seq *s, int token)
{
    for (int i = 0; i < n; i++) rows[i] = (struct q_row){.seq = s, .token = token, .pos = {-1, -1, -1}, .parent = -1};
}

static void test_tables(void **state)
{
    struct q_engine en;
    struct q_seq *a, *b;
    struct q_row rows[ROWS];
    struct q_err e;
    open_engine(&en);
    assert_int_equal(seq_open(&en.memory, &a, &e), Q_OK);
    assert_int_equal(seq_open(&en.memory, &b, &e), Q_OK);
    fill_rows(rows, 70, a, 7);
    fill_rows(rows + 70, 3, b, 9);
    rows[72].want = Q_WANT_ID;
    assert_int_equal(step(&en, rows, 73, NULL, 0, &e), Q_OK);
    const struct step *d = en.table.step;
    assert_int_equal(d->n_rows, 73);
    assert_int_equal(d->n_seqs, 2);
    assert_int_equal(d->n_segments, 2);
    assert_int_equal(d->n_out, 1);
    assert_int_equal(d->out[0], 72);
    assert_int_equal(d->kv[69], 69);
    assert_int_equal(d->kv[72], 2);
    assert_int_equal(d->pos[72 * 3 + 1], 2);
    assert_int_equal(d->segments[0].load, -1);
    assert_int_equal(d->segments[1].row, 70);
    assert_int_equal(q_seq_length(a), 70);
    assert_int_equal(a->n_pages, 2);
    fill_rows(rows, 1, a, 7);
    assert_int_equal(step(&en, rows, 1, NULL, 0, &e), Q_OK);
    assert_int_equal(d->segments[0].load, d->segments[0].store);
    assert_int_equal(d->kv[0], 70);
    q_seq_close(a);
    q_seq_close(b);
    close_engine(&en);
}

static void test_keeps_cut_segments(void **state)
{
    struct q_engine en;
    struct q_seq *a;
    struct q_snap *s1, *s2;
    struct q_row rows[ROWS];
    struct q_err e;
    open_engine(&en);
    assert_int_equal(seq_open(&en.memory, &a, &e), Q_OK);
    fill_rows(rows, 100, a, 1);
    struct q_keep keeps[] = {{9, &s1}, {99, &s2}};
    assert_int_equal(step(&en, rows, 100, keeps, 2, &e), Q_OK);
    const struct step *d = en.table.step;
    assert_int_equal(d->n_segments, 2);
    assert_int_equal(d->segments[0].rows, 10);
    assert_int_equal(d->segments[0].copy, s1->slot);
    assert_int_equal(d->segments[1].rows, 90);
    assert_int_equal(d->segments[1].load, d->segments[0].store);
    assert_int_equal(d->segments[1].copy, s2->slot);
    assert_int_equal(q_snap_length(s1), 10);
    assert_int_equal(q_snap_length(s2), 100);
    struct q_snap *none;
    assert_int_equal(q_seq_snapshot(a, &none, &e), Q_ELIMIT);
    q_snap_close(s1);
    q_snap_close(s2);
    q_seq_close(a);
    close_engine(&en);
}

/* What a snapshot holds must survive whatever its sequence does next. */
static void test_copy_on_write(void **state)
{
    struct q_engine en;
    struct q_seq *a;
    struct q_snap *snap;
    struct q_row rows[ROWS];
    struct q_err e;
    open_engine(&en);
    assert_int_equal(seq_open(&en.memory, &a, &e), Q_OK);
    fill_rows(rows, 80, a, 1);
    assert_int_equal(step(&en, rows, 80, NULL, 0, &e), Q_OK);
    char *pages = en.kv.k[0];
    memset(pages + (size_t)a->page[1] * en.kv.k_bytes, 0x55, en.kv.k_bytes);
    en.states.s[0][(size_t)a->slot * en.states.s_bytes / 4] = 42;
    assert_int_equal(q_seq_snapshot(a, &snap, &e), Q_OK);
    int shared = a->page[1];
    assert_int_equal(step(&en, rows, 1, NULL, 0, &e), Q_OK);
    assert_int_not_equal(a->page[1], shared);          /* the half-filled page was copied */
    assert_int_equal(a->page[0], snap->page[0]);       /* the full one is still shared */
    assert_int_equal(pages[(size_t)a->page[1] * en.kv.k_bytes + 5], 0x55);
    en.states.s[0][(size_t)a->slot * en.states.s_bytes / 4] = 7;
    assert_int_equal(q_seq_restore(a, snap, &e), Q_OK);
    assert_int_equal(q_seq_length(a), 80);
    assert_int_equal(a->page[1], shared);
    assert_true(en.states.s[0][(size_t)a->slot * en.states.s_bytes / 4] == 42);
    q_seq_close(a);                                    /* the snapshot outlives it */
    assert_true(en.kv.n_free < en.kv.n_pages);
    q_snap_close(snap);
    close_engine(&en);
}

/* Bytes of a snapshot make another one with the same bytes, in pieces or whole, sharing what is there. */
static void test_snapshot_bytes(void **state)
{
    struct q_engine en;
    struct q_seq *a;
    struct q_snap *snap, *copy;
    struct q_row rows[ROWS];
    struct q_err e;
    open_engine(&en);
    assert_int_equal(seq_open(&en.memory, &a, &e), Q_OK);
    fill_rows(rows, 150, a, 1);
    assert_int_equal(step(&en, rows, 150, NULL, 0, &e), Q_OK);
    for (int i = 0; i < a->n_pages; i++) {
        memset((char *)en.kv.k[0] + (size_t)a->page[i] * en.kv.k_bytes, 10 + i, en.kv.k_bytes);
        memset((char *)en.kv.v[0] + (size_t)a->page[i] * en.kv.v_bytes, 20 + i, en.kv.v_bytes);
    }
    for (int i = 0; i < en.states.n_layers; i++) {
        memset((char *)en.states.s[i] + (size_t)a->slot * en.states.s_bytes, 30 + i, en.states.s_bytes);
        memset((char *)en.states.conv[i] + (size_t)a->slot * en.states.conv_bytes, 40 + i, en.states.conv_bytes);
    }
    assert_int_equal(q_seq_snapshot(a, &snap, &e), Q_OK);
    size_t states = 2 * (en.states.s_bytes + en.states.conv_bytes), page = en.kv.k_bytes + en.kv.v_bytes;
    assert_int_equal(q_snap_bytes(snap, 0), states + 3 * page);
    assert_int_equal(q_snap_bytes(snap, 128), states + page);
    for (int from = 0; from <= 128; from += 64) {
        size_t n = q_snap_bytes(snap, from);
        char *whole = malloc(n), *again = malloc(n);
        int free_before = en.kv.n_free;
        assert_int_equal(q_snap_read_piece(snap, from, 0, whole, n, &e), Q_OK);
        assert_int_equal(whole[0], 30);
        assert_int_equal(whole[states], 10 + from / 64);
        assert_int_equal(whole[n - 1], 22);
        assert_int_equal(snap_new(&en.memory, from ? snap : NULL, from, 150, &copy, &e), Q_OK);
        assert_int_equal(free_before - en.kv.n_free, 3 - from / 64);     /* the pages before are shared */
        memset(again, 0, n);
        for (size_t at = 0; at < n; at += 41) assert_int_equal(q_snap_write_piece(copy, from, at, whole + at, n - at < 41 ? n - at : 41, &e), Q_OK);
        for (size_t at = 0; at < n; at += 37) assert_int_equal(q_snap_read_piece(copy, from, at, again + at, n - at < 37 ? n - at : 37, &e), Q_OK);
        assert_memory_equal(whole, again, n);
        memset(again, 0, n);
        assert_int_equal(q_snap_write_piece(copy, from, 0, whole, n, &e), Q_OK);
        assert_int_equal(q_snap_read_piece(copy, from, 0, again, n, &e), Q_OK);
        assert_memory_equal(whole, again, n);
        assert_int_equal(q_snap_read_piece(copy, from, n - 3, again, 4, &e), Q_EINPUT);
        q_snap_close(copy);
        assert_int_equal(en.kv.n_free, free_before);
        free(whole);
        free(again);
    }
    q_snap_close(snap);
    q_seq_close(a);
    close_engine(&en);
}

static void test_bad_snapshot_bytes(void **state)
{
    struct q_engine en, other;
    struct q_seq *a;
    struct q_snap *snap, *copy = (struct q_snap *)1, *more;
    struct q_row rows[ROWS];
    struct q_err e;
    open_engine(&en);
    open_engine(&other);
    assert_int_equal(seq_open(&en.memory, &a, &e), Q_OK);
    fill_rows(rows, 100, a, 1);
    assert_int_equal(step(&en, rows, 100, NULL, 0, &e), Q_OK);
    assert_int_equal(q_seq_snapshot(a, &snap, &e), Q_OK);
    size_t all = q_snap_bytes(snap, 0);
    char *bytes = malloc(all);
    int free_before = en.kv.n_free, slots_before = en.states.n_free;
    assert_int_equal(q_snap_read_piece(snap, 32, 0, bytes, all, &e), Q_EINPUT);
    assert_int_equal(q_snap_read_piece(snap, 128, 0, bytes, all, &e), Q_EINPUT);
    assert_int_equal(q_snap_read_piece(snap, -64, 0, bytes, all, &e), Q_EINPUT);
    assert_int_equal(q_snap_read_piece(snap, 0, 0, bytes, all, &e), Q_OK);
    assert_int_equal(snap_new(&en.memory, NULL, 0, CTX + 1, &copy, &e), Q_ELIMIT);
    assert_null(copy);
    assert_non_null(strstr(e.text, "301"));
    assert_int_equal(snap_new(&en.memory, NULL, 0, 0, &copy, &e), Q_ELIMIT);
    assert_int_equal(snap_new(&en.memory, NULL, 64, 100, &copy, &e), Q_EINPUT);
    assert_int_equal(snap_new(&en.memory, snap, 63, 100, &copy, &e), Q_EINPUT);
    assert_int_equal(snap_new(&en.memory, snap, 128, 150, &copy, &e), Q_EINPUT);
    assert_int_equal(snap_new(&other.memory, snap, 64, 100, &copy, &e), Q_EINPUT);
    assert_int_equal(snap_new(&en.memory, NULL, 0, 100, &more, &e), Q_OK);     /* the second of two */
    assert_int_equal(snap_new(&en.memory, NULL, 0, 100, &copy, &e), Q_ELIMIT);
    q_snap_close(more);
    int taken[64], n = 0;
    while ((taken[n] = kv_take(&en.kv)) >= 0) n++;
    kv_drop(&en.kv, taken[--n]);
    assert_int_equal(snap_new(&en.memory, NULL, 0, 100, &copy, &e), Q_ELIMIT);  /* two pages are needed, one is free */
    while (n) kv_drop(&en.kv, taken[--n]);
    assert_int_equal(en.kv.n_free, free_before);
    assert_int_equal(en.states.n_free, slots_before);
    free(bytes);
    q_snap_close(snap);
    q_seq_close(a);
    close_engine(&other);
    close_engine(&en);
}

static void test_refusals_change_nothing(void **state)
{
    struct q_engine en;
    struct q_seq *a, *b;
    struct q_snap *snap;
    struct q_row rows[ROWS];
    struct q_err e;
    struct q_sampling bad = {.p = q_sampling_default()};
    open_engine(&en);
    assert_int_equal(seq_open(&en.memory, &a, &e), Q_OK);
    assert_int_equal(seq_open(&en.memory, &b, &e), Q_OK);
    int free_before = en.kv.n_free;
    fill_rows(rows, ROWS, a, 1);
    rows[5].token = VOCAB;
    assert_int_equal(step(&en, rows, 10, NULL, 0, &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "token 50"));
    rows[5].token = -1;
    assert_int_equal(step(&en, rows, 10, NULL, 0, &e), Q_EINPUT);      /* no embedding either */
    fill_rows(rows, ROWS, a, 1);
    rows[5].seq = b;
    assert_int_equal(step(&en, rows, 10, NULL, 0, &e), Q_EINPUT);      /* a's rows are not contiguous */
    fill_rows(rows, ROWS, a, 1);
    rows[3].parent = 1;
    assert_int_equal(step(&en, rows, 10, NULL, 0, &e), Q_EUNSUP);
    fill_rows(rows, ROWS, a, 1);
    for (int i = 0; i < 5; i++) rows[i].want = Q_WANT_ID;
    assert_int_equal(step(&en, rows, 10, NULL, 0, &e), Q_ELIMIT);      /* five of at most four outputs */
    fill_rows(rows, ROWS, a, 1);
    rows[0].want = Q_WANT_ID;
    rows[0].sampling = &bad;
    bad.p.top_p = 2;
    assert_int_equal(step(&en, rows, 1, NULL, 0, &e), Q_EINPUT);
    fill_rows(rows, ROWS, a, 1);
    assert_int_equal(step(&en, rows, 0, NULL, 0, &e), Q_ELIMIT);
    struct q_keep keeps[] = {{4, &snap}, {4, &snap}};
    assert_int_equal(step(&en, rows, 10, keeps, 2, &e), Q_EINPUT);
    assert_int_equal(en.kv.n_free, free_before);
    assert_int_equal(q_seq_length(a), 0);
    assert_int_equal(step(&en, rows, ROWS, NULL, 0, &e), Q_OK);
    assert_int_equal(step(&en, rows, 101, NULL, 0, &e), Q_ELIMIT);     /* 200 + 101 > 300 */
    assert_non_null(strstr(e.text, "300"));
    assert_int_equal(q_seq_length(a), ROWS);
    q_seq_close(a);
    q_seq_close(b);
    close_engine(&en);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables), cmocka_unit_test(test_keeps_cut_segments),
                                       cmocka_unit_test(test_copy_on_write), cmocka_unit_test(test_snapshot_bytes),
                                       cmocka_unit_test(test_bad_snapshot_bytes), cmocka_unit_test(test_refusals_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
