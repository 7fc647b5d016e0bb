/* The prefix tree on a made-up engine, disk and clock.
 *
 * A snapshot is its tokens; its state is a hash of them, its pages are the tokens themselves. So a checkpoint that went through host memory
 * or a file proves, when it is written back, that state and pages are those of the same tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "prefix_tree.h"
#include "prompt_marks.h"

enum { PAGE = 4, MOST = 400, FILES = 64 };

struct state {
    uint64_t hash;
    int n;
};
struct q_snap {
    int n, ids[MOST];
    struct state state;   /* of one that was written; else zeros */
};
struct file {
    int n, ids[MOST], shared, torn;
    struct state state;
    char name[16];
};

static double now;
static int snaps, pages_left, read_fails;
static struct file files[FILES];
static int next_name;

static double seconds(void) { return now += 1e-6; }

static uint64_t hash(const int32_t *ids, int n)
{
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < n; i++) h = (h ^ (uint64_t)ids[i]) * 1099511628211u;
    return h;
}

static struct q_snap *snap(const int32_t *ids, int n)
{
    struct q_snap *s = calloc(1, sizeof *s);
    s->n = n;
    memcpy(s->ids, ids, (size_t)n * sizeof *ids);
    snaps++;
    return s;
}

static int length(const struct q_snap *s) { return s->n; }
static void close_snap(struct q_snap *s)
{
    snaps--;
    free(s);
}

static int read_state(const struct q_tree_engine *en, const struct q_snap *s, size_t at, size_t n, void *to, struct q_err *e)
{
    if (read_fails) return q_fail(e, Q_EIO, "the card is gone");
    struct state st = {hash(s->ids, s->n), s->n};
    memcpy(to, (const char *)&st + at, n);
    return Q_OK;
}

static int read_page(const struct q_tree_engine *en, const struct q_snap *s, int page, void *to, struct q_err *e)
{
    assert_in_range(page, 0, (s->n - 1) / PAGE);
    memcpy(to, s->ids + page * PAGE, PAGE * sizeof(int32_t));
    return Q_OK;
}

static int make(const struct q_tree_engine *en, const struct q_snap *base, int shared, int n, struct q_snap **out, struct q_err *e)
{
    if (!pages_left) return q_fail(e, Q_ELIMIT, "no pages");
    assert_true(!shared || base->n >= shared * PAGE);
    struct q_snap *s = calloc(1, sizeof *s);
    s->n = n;
    if (shared) memcpy(s->ids, base->ids, (size_t)shared * PAGE * sizeof(int32_t));
    snaps++;
    *out = s;
    return Q_OK;
}

static int write_state(const struct q_tree_engine *en, struct q_snap *s, size_t at, size_t n, const void *from, struct q_err *e)
{
    memcpy((char *)&s->state + at, from, n);
    return Q_OK;
}

static int write_page(const struct q_tree_engine *en, struct q_snap *s, int page, const void *from, struct q_err *e)
{
    memcpy(s->ids + page * PAGE, from, PAGE * sizeof(int32_t));
    return Q_OK;
}

/* What came back from a lower tier has the state of its tokens. */
static void sound(const struct q_snap *s)
{
    if (!s->state.n) return;
    assert_int_equal(s->state.n, s->n);
    assert_true(s->state.hash == hash(s->ids, s->n));
}

static const struct q_tree_engine engine = {.page_tokens = PAGE, .state_bytes = sizeof(struct state), .page_bytes = PAGE * sizeof(int32_t),
    .length = length, .close = close_snap, .read_state = read_state, .read_page = read_page,
    .make = make, .write_state = write_state, .write_page = write_page, .seconds = seconds};

/* ---- a disk ---- */

static int disk_full;

static int save(void *arg, const int32_t *ids, int n, const void *state, const void *const *page, struct q_tree_file *f, struct q_err *e)
{
    struct file *to = disk_full ? files + FILES : files;
    while (to < files + FILES && to->n) to++;
    if (to == files + FILES) return q_fail(e, Q_EIO, "the disk is full");
    *to = (struct file){.n = n, .shared = f->shared, .state = *(const struct state *)state};
    for (int i = f->shared; i < (n + PAGE - 1) / PAGE; i++) memcpy(to->ids + i * PAGE, page[i], PAGE * sizeof(int32_t));
    memcpy(to->ids, ids, (size_t)n * sizeof *ids);
    snprintf(to->name, sizeof to->name, "%d", next_name++);
    strcpy(f->name, to->name);
    f->bytes = sizeof(struct state) + (size_t)((n + PAGE - 1) / PAGE - f->shared) * PAGE * sizeof(int32_t);
    return Q_OK;
}

static struct file *file_of(const char *name)
{
    for (int i = 0; i < FILES; i++)
        if (files[i].n && !strcmp(files[i].name, name)) return &files[i];
    return NULL;
}

static int load(void *arg, const struct q_tree_file *f, const int32_t *ids, int n, void *state, void *const *page, struct q_err *e)
{
    const struct file *from = file_of(f->name);
    if (!from || from->torn) return q_fail(e, Q_EINPUT, "%s: is torn", f->name);
    assert_int_equal(from->n, n);
    assert_memory_equal(from->ids, ids, (size_t)n * sizeof *ids);
    *(struct state *)state = from->state;
    for (int i = from->shared; i < (n + PAGE - 1) / PAGE; i++)
        if (page[i]) memcpy(page[i], from->ids + i * PAGE, PAGE * sizeof(int32_t));
    return Q_OK;
}

static void drop(void *arg, const char *name)
{
    struct file *f = file_of(name);
    if (f) f->n = 0;
}

static void touch(void *arg, const char *name) { assert_non_null(file_of(name)); }

static int list(void *arg, void (*put)(void *to, const int32_t *ids, int n, const struct q_tree_file *f), void *to, struct q_err *e)
{
    for (int n = 1; n < MOST; n++)
        for (int i = 0; i < FILES; i++) {
            struct q_tree_file f = {.shared = files[i].shared, .bytes = 100, .age_s = 5};
            strcpy(f.name, files[i].name);
            if (files[i].n == n) put(to, files[i].ids, n, &f);
        }
    return Q_OK;
}

static const struct q_tree_disk disk = {.save = save, .load = load, .drop = drop, .touch = touch, .list = list};

/* ---- helpers ---- */

static char said[200];
static int n_said;
static void say(void *arg, const char *line) { n_said++, snprintf(said, sizeof said, "%s", line); }

static struct q_tree *open_tree(int max_snaps, size_t host, size_t on_disk)
{
    struct q_tree *t;
    const struct q_tree_opts o = {.max_snaps = max_snaps, .device_bytes = SIZE_MAX, .host_bytes = host, .disk_bytes = on_disk, .disk = &disk,
                                  .flush_s = 10, .say = say};
    said[0] = 0;
    n_said = disk_full = 0;
    pages_left = 1;
    read_fails = 0;
    assert_int_equal(q_tree_open(&t, &engine, &o, NULL), Q_OK);
    return t;
}

static void close_tree(struct q_tree *t)
{
    q_tree_close(t);
    assert_int_equal(snaps, 0);
}

static struct q_tree *fresh(int max_snaps, size_t host, size_t on_disk)
{
    memset(files, 0, sizeof files);
    now = 1000;
    return open_tree(max_snaps, host, on_disk);
}

static void settle(struct q_tree *t, int idle)
{
    for (int i = 0; q_tree_work(t, 0.001, idle); i++) assert_in_range(i, 0, 1000000);
}

/* Tokens of a made-up text: those of one seed are alike up to `fork`, from there on they are `way`'s. */
static const int32_t *text(int seed, int fork, int way)
{
    static int32_t ids[4][MOST];
    static int turn;
    int32_t *to = ids[turn++ % 4];
    for (int i = 0; i < MOST; i++)
        to[i] = (int32_t)(((unsigned)i * 2654435761u ^ (unsigned)(i < fork ? seed : seed * 77 + way) * 40503u) >> 8) % 50000;
    return to;
}

static int put(struct q_tree *t, const int32_t *ids, int n, int must)
{
    if (!q_tree_room(t, ids, n, must ? Q_TREE_MUST : Q_TREE_MARK, 0)) return 0;
    assert_int_equal(q_tree_put(t, ids, n, Q_TREE_MARK, snap(ids, n), 0.001, NULL), Q_OK);
    return 1;
}

static struct q_tree_found get(struct q_tree *t, const int32_t *ids, int n)
{
    const struct q_snap *s;
    struct q_tree_found f;
    struct q_err e;
    if (q_tree_get(t, ids, n, &s, &f, &e)) fail_msg("%s", e.text);
    assert_int_equal(s != NULL, f.n > 0);
    if (s) assert_int_equal(s->n, f.n);
    if (s) sound(s);
    if (s) assert_memory_equal(s->ids, ids, (size_t)f.n * sizeof *ids);
    q_tree_done(t);
    return f;
}

/* ---- tests ---- */

static void test_the_longest_beginning_is_found(void **state)
{
    struct q_tree *t = fresh(8, 0, 0);
    const int32_t *a = text(1, 100, 0), *b = text(1, 100, 1), *other = text(2, 0, 0);
    assert_int_equal(q_tree_find(t, a, 300).any, 0);
    assert_int_equal(put(t, a, 60, 1), 1);
    assert_int_equal(put(t, a, 200, 1), 1);
    assert_int_equal(put(t, a, 200, 1), 0); /* it is there */
    struct q_tree_found f = get(t, a, 300);
    assert_int_equal(f.n, 200);
    assert_int_equal(f.tier, Q_TIER_DEVICE);
    f = get(t, a, 199);
    assert_int_equal(f.n, 60);
    f = q_tree_find(t, b, 300);
    assert_int_equal(f.n, 60);
    assert_int_equal(f.shared, 100);
    assert_int_equal(f.other, a[100]);
    assert_int_equal(put(t, b, 90, 1), 1); /* inside a run */
    assert_int_equal(put(t, b, 150, 1), 1);
    assert_int_equal(get(t, b, 300).n, 150);
    assert_int_equal(get(t, a, 120).n, 90);
    f = q_tree_find(t, other, 50);
    assert_int_equal(f.n + f.shared, 0);
    assert_int_equal(f.any, 1);
    assert_int_equal(q_tree_counts(t).tier[Q_TIER_DEVICE].n, 4);
    close_tree(t);
}

static void test_lengths_must_agree(void **state)
{
    struct q_tree *t = fresh(4, 0, 0);
    struct q_err e;
    assert_int_equal(q_tree_put(t, text(1, 0, 0), 30, Q_TREE_MARK, snap(text(1, 0, 0), 29), 0.001, &e), Q_EINTERNAL);
    assert_non_null(strstr(e.text, "30 tokens holds 29"));
    assert_int_equal(get(t, text(1, 0, 0), 100).n, 0);
    close_tree(t);
}

static void test_none_is_none(void **state)
{
    struct q_tree *t = fresh(0, 1 << 20, 1 << 20);
    assert_int_equal(put(t, text(1, 0, 0), 30, 1), 0);
    assert_int_equal(q_tree_work(t, 1, 1), 0);
    struct q_tree_counts c = q_tree_counts(t);
    assert_int_equal(c.tier[Q_TIER_HOST].budget + c.tier[Q_TIER_DISK].budget + (size_t)c.nodes, 0);
    close_tree(t);
}

static void test_what_costs_least_goes_first(void **state)
{
    struct q_tree *t = fresh(2, 0, 0);
    put(t, text(1, 0, 0), 300, 0);
    put(t, text(2, 0, 0), 20, 0);
    assert_int_equal(put(t, text(3, 0, 0), 10, 0), 0); /* worth less than both */
    assert_int_equal(put(t, text(3, 0, 0), 200, 0), 1);
    assert_int_equal(get(t, text(1, 0, 0), 350).n, 300);
    struct q_tree_found f = get(t, text(2, 0, 0), 350);
    assert_int_equal(f.n, 0);
    assert_int_equal(f.gone, 20);
    assert_int_equal(put(t, text(4, 0, 0), 10, 1), 1); /* it must */
    now += 100000; /* what is long unused is worth little */
    assert_int_equal(put(t, text(5, 0, 0), 30, 0), 1);
    assert_int_equal(put(t, text(6, 0, 0), 30, 0), 1);
    assert_int_equal(get(t, text(1, 0, 0), 350).n, 0);
    assert_int_equal((int)q_tree_counts(t).lost, 4);
    close_tree(t);
}

static void test_what_is_in_use_stays(void **state)
{
    struct q_tree *t = fresh(2, 0, 0);
    const struct q_snap *s;
    struct q_tree_found f;
    put(t, text(1, 0, 0), 20, 0);
    put(t, text(2, 0, 0), 300, 0);
    assert_int_equal(q_tree_get(t, text(1, 0, 0), 100, &s, &f, NULL), Q_OK);
    put(t, text(3, 0, 0), 200, 1);
    assert_int_equal(q_tree_give(t) + q_tree_give(t), 1);
    assert_int_equal(s->n, 20);
    q_tree_done(t);
    assert_int_equal(q_tree_give(t), 1);
    close_tree(t);
}

static void test_a_device_budget_in_bytes(void **state)
{
    struct q_tree *t;
    const size_t most = 3 * engine.state_bytes + 100 / PAGE * engine.page_bytes;
    const struct q_tree_opts o = {.max_snaps = 50, .device_bytes = most};
    assert_int_equal(q_tree_open(&t, &engine, &o, NULL), Q_OK);
    for (int i = 0; i < 30; i++) {
        put(t, text(i % 3, 40, i), 20 + i, 1);
        assert_in_range(q_tree_counts(t).tier[Q_TIER_DEVICE].bytes, 1, most);
    }
    close_tree(t);
}

static void test_through_the_host_and_back(void **state)
{
    struct q_tree *t = fresh(4, 1 << 20, 0);
    for (int i = 0; i < 12; i++) {
        put(t, text(1, 100, i), i ? 201 + i : 98, 1);
        settle(t, 0);
    }
    struct q_tree_counts c = q_tree_counts(t);
    assert_int_equal(c.tier[Q_TIER_DEVICE].n, 4);
    assert_int_equal((int)c.lost, 0); /* copies were made before slots ran out */
    /* 12 states, 24 pages that all share, and about 26 of each. */
    assert_in_range(c.tier[Q_TIER_HOST].bytes, 8 * sizeof(struct state) + 24 * 16, 12 * (sizeof(struct state) + 30 * 16) + 24 * 16);
    int from_host = 0;
    for (int i = 0; i < 12; i++) from_host += get(t, text(1, 100, i), 300).tier == Q_TIER_HOST;
    assert_in_range(from_host, 8, 12);
    close_tree(t);
}

static void test_a_small_host_keeps_what_is_worth_most(void **state)
{
    const size_t budget = 3 * (sizeof(struct state) + 50 * 16);
    struct q_tree *t = fresh(3, budget, 0);
    for (int i = 1; i < 20; i++) {
        put(t, text(i, 0, 0), i == 5 ? 200 : 20 + i, 1);
        settle(t, i % 2);
        assert_in_range(q_tree_counts(t).tier[Q_TIER_HOST].bytes, 0, budget);
    }
    assert_int_equal(get(t, text(5, 0, 0), 300).n, 200);
    assert_int_equal(get(t, text(1, 0, 0), 300).n, 0);
    close_tree(t);
}

static void test_a_copy_that_fails_is_given_up(void **state)
{
    struct q_tree *t = fresh(2, 1 << 20, 0);
    read_fails = 1;
    for (int i = 1; i < 5; i++) {
        put(t, text(i, 0, 0), 50, 1);
        for (int k = 0; k < 10; k++) q_tree_work(t, 0, 0);
    }
    assert_int_equal(q_tree_counts(t).tier[Q_TIER_HOST].bytes, 0);
    assert_int_equal(get(t, text(4, 0, 0), 300).n, 50);
    close_tree(t);
}

static void test_it_comes_back_in_pieces(void **state)
{
    struct q_tree *t = fresh(2, 1 << 20, 0);
    for (int i = 1; i < 5; i++) {
        put(t, text(i, 0, 0), 300, 1);
        settle(t, 1);
    }
    assert_int_equal(q_tree_bring(t, text(9, 0, 0), 350, 0), 0);
    assert_int_equal(q_tree_bring(t, text(4, 0, 0), 350, 0), 0); /* it is there */
    int pieces = 1;
    while (q_tree_bring(t, text(1, 0, 0), 350, 0)) pieces++;
    assert_in_range(pieces, 2, 100);
    assert_int_equal(q_tree_find(t, text(1, 0, 0), 350).tier, Q_TIER_DEVICE);
    assert_int_equal(get(t, text(1, 0, 0), 350).tier, Q_TIER_HOST); /* where it came from */
    assert_int_equal(get(t, text(1, 0, 0), 350).tier, Q_TIER_DEVICE);
    /* Another one first; one that is not wanted any more; pages that are needed elsewhere. */
    assert_int_equal(q_tree_bring(t, text(2, 0, 0), 350, 0), 1);
    assert_int_equal(get(t, text(3, 0, 0), 350).n, 300);
    assert_int_equal(q_tree_bring(t, text(2, 0, 0), 350, 0), 1);
    while (q_tree_give(t)) continue;
    assert_int_equal(snaps, 0);
    assert_int_equal(get(t, text(2, 0, 0), 350).n, 300);
    assert_int_equal(q_tree_bring(t, text(1, 0, 0), 350, 0), 1);
    close_tree(t);
}

static void test_no_room_to_come_back_is_a_miss(void **state)
{
    struct q_tree *t = fresh(2, 1 << 20, 0);
    for (int i = 1; i < 4; i++) {
        put(t, text(i, 0, 0), 50 * i, 1);
        settle(t, 1);
    }
    pages_left = 0;
    assert_int_equal(get(t, text(1, 0, 0), 300).n, 0);
    assert_int_equal(q_tree_counts(t).tier[Q_TIER_DEVICE].n, 0);
    pages_left = 1;
    assert_int_equal(get(t, text(1, 0, 0), 300).n, 50);
    close_tree(t);
}

static void test_the_disk_survives(void **state)
{
    for (int host = 0; host < 2; host++) {
        struct q_tree *t = fresh(4, host ? 1 << 20 : 0, 1 << 20);
        for (int i = 0; i < 8; i++) {
            put(t, text(1, 100, i), i ? 201 + i : 98, 1);
            settle(t, i % 2);
        }
        settle(t, 1);
        assert_in_range(q_tree_counts(t).tier[Q_TIER_DISK].n, host ? 8 : 4, 8);
        put(t, text(9, 0, 0), 77, 1); /* written as it closes */
        close_tree(t);
        t = open_tree(4, host ? 1 << 20 : 0, 1 << 20);
        struct q_tree_found f = get(t, text(9, 0, 0), 300);
        assert_int_equal(f.n, 77);
        assert_int_equal(f.tier, Q_TIER_DISK);
        for (int i = host ? 1 : 6; i < 8; i++) assert_int_equal(get(t, text(1, 100, i), 300).n, 201 + i);
        assert_int_equal(get(t, text(1, 100, 1000), 300).n, host ? 98 : q_tree_find(t, text(1, 100, 1000), 300).n);
        assert_in_range(q_tree_counts(t).tier[Q_TIER_HOST].bytes, 0, host ? 1 << 20 : 0);
        assert_string_equal(said, "");
        close_tree(t);
    }
}

static void test_a_torn_file_is_a_miss(void **state)
{
    struct q_tree *t = fresh(4, 0, 1 << 20);
    put(t, text(1, 0, 0), 60, 1);
    settle(t, 1);
    put(t, text(1, 0, 0), 200, 1);
    close_tree(t);
    for (int i = 0; i < FILES; i++) files[i].torn = files[i].n == 200;
    t = open_tree(4, 0, 1 << 20);
    assert_int_equal(get(t, text(1, 0, 0), 300).n, 60);
    assert_non_null(strstr(said, "torn"));
    for (int i = 0; i < FILES; i++) assert_true(files[i].n != 200);
    close_tree(t);
    /* What a torn file is built on by goes with it. */
    t = fresh(4, 0, 1 << 20);
    put(t, text(1, 0, 0), 60, 1);
    settle(t, 1);
    put(t, text(1, 0, 0), 200, 1);
    close_tree(t);
    for (int i = 0; i < FILES; i++) files[i].torn = files[i].n == 60;
    t = open_tree(4, 0, 1 << 20);
    assert_int_equal(get(t, text(1, 0, 0), 300).n, 0);
    assert_int_equal(q_tree_counts(t).tier[Q_TIER_DISK].n, 0);
    close_tree(t);
}

static void test_a_disk_budget(void **state)
{
    struct q_tree *t = fresh(3, 1 << 16, 3000);
    for (int i = 1; i < 30; i++) {
        put(t, text(i % 7, 50, i), 60 + i, 1);
        settle(t, 1);
        assert_in_range(q_tree_counts(t).tier[Q_TIER_DISK].bytes, 1, 3000);
    }
    close_tree(t);
}

/* What a disk refuses is said once, until it took something again. */
static void test_a_full_disk_is_said_once(void **state)
{
    struct q_tree *t = fresh(4, 1 << 16, 1 << 16);
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < 4; i++) {
            disk_full = i < 3;
            put(t, text(10 * round + i, 0, 0), 100, 1);
            settle(t, 1);
            assert_int_equal(n_said, round);
        }
        assert_string_equal(said, "the disk is full");
    }
    close_tree(t);
}

static void test_a_budget_below_a_checkpoint_is_said_once(void **state)
{
    struct q_tree *t = fresh(4, 1 << 16, sizeof(struct state));    /* not even the shortest */
    assert_int_equal(n_said, 1);
    assert_non_null(strstr(said, "a checkpoint on disk takes"));
    for (int i = 0; i < 3; i++) put(t, text(i, 0, 0), 100, 1), settle(t, 1);
    assert_int_equal(n_said, 1);
    close_tree(t);
    t = fresh(4, 1 << 16, sizeof(struct state) + 3 * PAGE * sizeof(int32_t));   /* short ones, but not this one */
    assert_int_equal(n_said, 0);
    for (int i = 0; i < 3; i++) put(t, text(i, 0, 0), 20 * PAGE < MOST ? 20 * PAGE : MOST - 1, 1), settle(t, 1);
    assert_int_equal(n_said, 1);
    close_tree(t);
}

/* Anything in any order: whatever is got is a beginning of what was asked for, whichever way it went. */
static void test_random_interleavings(void **state)
{
    for (unsigned seed = 1; seed <= 1000; seed++) {
        srand(seed);
        size_t host = (size_t)(rand() % 3) * 1500, on_disk = (size_t)(rand() % 3) * 2000;
        struct q_tree *t = fresh(1 + rand() % 6, host, on_disk);
        for (int i = 0; i < 60; i++) {
            const int32_t *ids = text(rand() % 3, 20 + rand() % 3 * 50, rand() % 4);
            int n = 1 + rand() % 250;
            now += rand() % 60;
            switch (rand() % 9) {
            case 0: q_tree_give(t); break;
            case 1: q_tree_work(t, 0.0001, rand() % 2); break;
            case 2: settle(t, 1); break;
            case 3: pages_left = rand() % 4 > 0; break;
            case 4: read_fails = rand() % 4 == 0; break;
            case 5: q_tree_bring(t, ids, n, 0); break;
            case 6: get(t, ids, n); break;
            default: put(t, ids, n, rand() % 2);
            }
            struct q_tree_counts c = q_tree_counts(t);
            assert_in_range(snaps, c.tier[Q_TIER_DEVICE].n, c.tier[Q_TIER_DEVICE].n + 1); /* one may be on its way */
            if (on_disk == 0) assert_in_range(c.tier[Q_TIER_HOST].bytes, 0, host + 2000 * (snaps > c.tier[Q_TIER_DEVICE].n));
            if (rand() % 25 == 0) {
                close_tree(t);
                t = open_tree(1 + rand() % 6, host, on_disk);
            }
        }
        close_tree(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_beginning_is_found),
        cmocka_unit_test(test_lengths_must_agree),
        cmocka_unit_test(test_none_is_none),
        cmocka_unit_test(test_what_costs_least_goes_first),
        cmocka_unit_test(test_what_is_in_use_stays),
        cmocka_unit_test(test_a_device_budget_in_bytes),
        cmocka_unit_test(test_through_the_host_and_back),
        cmocka_unit_test(test_a_small_host_keeps_what_is_worth_most),
        cmocka_unit_test(test_a_copy_that_fails_is_given_up),
        cmocka_unit_test(test_it_comes_back_in_pieces),
        cmocka_unit_test(test_no_room_to_come_back_is_a_miss),
        cmocka_unit_test(test_the_disk_survives),
        cmocka_unit_test(test_a_torn_file_is_a_miss),
        cmocka_unit_test(test_a_disk_budget),
        cmocka_unit_test(test_a_full_disk_is_said_once),
        cmocka_unit_test(test_a_budget_below_a_checkpoint_is_said_once),
        cmocka_unit_test(test_random_interleavings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
