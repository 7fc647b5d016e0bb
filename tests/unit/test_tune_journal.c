/* The journal: what a tune that ended anyhow leaves to the next one; damaged, foreign and full files; two tunes; compaction. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/journal.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CARD "cpu:other-0-0,isa=avx2+sse42+scalar,l1=32,l2=256,l3=4096,t=4"
#define GENERATOR "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OBJECT "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define OTHER "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

struct fixture {
    char state[Q_PATH], dir[Q_PATH];
    int lines;            /* what the journal said */
    char last[Q_PATH + 400];
};

static const struct store_key key = { "matvec", "n=64,k=64", 1, 0, "pinned", CARD, GENERATOR };
static const struct journal_candidate candidate = { &key, "tm=2,tn=4", OBJECT };
static const struct journal_candidate other = { &key, "tm=4,tn=4", OTHER };

static void count(void *arg, const char *line)
{
    struct fixture *f = arg;
    f->lines++;
    snprintf(f->last, sizeof f->last, "%s", line);
}

static struct journal_opts opts(struct fixture *f)
{
    return (struct journal_opts){ .state = f->state, .card = CARD, .signal_fd = -1, .say = count, .say_arg = f };
}

static struct journal *begin(struct fixture *f)
{
    struct journal_opts o = opts(f);
    struct journal *j;
    struct q_err e;
    int waited;
    if (journal_open(&j, &o, &waited, &e)) fail_msg("%s", e.text);
    assert_false(waited);
    return j;
}

static struct journal_book *read_book(struct fixture *f)
{
    struct journal_book *b;
    struct q_err e;
    if (book_open(&b, f->dir, CARD, &e)) fail_msg("%s", e.text);
    return b;
}

static struct journal_won *winner(const char *params)
{
    struct journal_won *w = calloc(1, sizeof *w);
    assert_non_null(w);
    struct record *r = &w->record;
    strcpy(r->op, key.op);
    strcpy(r->shape, key.shape);
    r->rows = key.rows;
    strcpy(r->profile, key.profile);
    strcpy(r->card, CARD);
    strcpy(r->generator, GENERATOR);
    snprintf(r->params, sizeof r->params, "%s", params);
    strcpy(r->numerics, "canonical");
    strcpy(r->origin, "tuned");
    strcpy(r->effort, "normal");
    strcpy(r->source, OTHER);
    r->clocks = (struct record_clocks){ 1455, 877, 150, 71, "power,heat" };
    w->base = *r;
    w->gain = 0.25;
    w->band = 0.02;
    w->accepted = 1;
    return w;
}

static void put_won(struct journal *j, const char *params)
{
    struct journal_won *w = winner(params);
    journal_won(j, w, (const char *const[]){ params }, 1);
    free(w);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f || dir_temp(f->state, "/tmp/quarry-test-", NULL) || journal_dir(f->dir, f->state, CARD, NULL)) return -1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    dir_remove(f->state);
    free(f);
    return 0;
}

/* --- what a tune leaves ------------------------------------------------------------------------------------------------ */

static void test_an_unfinished_tune_is_found(void **state)
{
    struct fixture *f = *state;
    struct journal *j = begin(f);
    journal_start(j, &candidate, "check");
    journal_checked(j, &candidate, "0123");
    journal_start(j, &other, "check");
    journal_bad(j, &other, "hang", "did not end within 20 s");
    journal_time(j, &candidate, (const int[]){ 1, 1, 0 }, (const double[]){ 1.5, 2 }, 2);
    put_won(j, "tm=2,tn=4");
    journal_close(j, 7);
    struct journal_book *b = read_book(f);
    const struct journal_won *w = book_won(b, &key);
    assert_non_null(w);
    assert_string_equal(w->record.params, "tm=2,tn=4");
    assert_string_equal(w->base.params, "tm=2,tn=4");
    assert_int_equal(w->record.clocks.sm_mhz + w->record.clocks.mem_mhz + w->record.clocks.watts + w->record.clocks.celsius, 1455 + 877 + 150 + 71);
    assert_string_equal(w->record.clocks.slowed, "power,heat");
    assert_float_equal(w->gain, 0.25, 0);
    assert_true(w->accepted);
    assert_string_equal(book_bad(b, OTHER, 0), "hang: did not end within 20 s");
    assert_null(book_bad(b, OBJECT, 0));
    struct store_key elsewhere = key;
    elsewhere.rows = 2;
    assert_null(book_won(b, &elsewhere));
    assert_int_equal(book_foreign(b)->files + book_foreign(b)->lines, 0);
    book_close(b);
    assert_int_equal(f->lines, 0);
}

/* What was recorded is the store's to answer; who removed it there wants it measured. But what is bad stays bad. */
static void test_a_finished_tune_gives_no_winners(void **state)
{
    struct fixture *f = *state;
    struct journal *j = begin(f);
    put_won(j, "tm=2,tn=4");
    journal_bad(j, &other, "wrong", "row 3 differs");
    journal_close(j, 0);
    struct journal_book *b = read_book(f);
    assert_null(book_won(b, &key));
    assert_non_null(book_bad(b, OTHER, 0));
    book_close(b);
}

/* Nor does one whose set the gate refused. */
static void test_a_refused_set_gives_no_winners(void **state)
{
    struct fixture *f = *state;
    struct journal *j = begin(f);
    put_won(j, "tm=2,tn=4");
    journal_gate(j, 0, "refused");
    journal_close(j, 1);
    struct journal_book *b = read_book(f);
    assert_null(book_won(b, &key));
    book_close(b);
}

static void test_the_newest_counts(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        char params[40];
        struct journal *j = begin(f);
        snprintf(params, sizeof params, "tm=%d", i);
        put_won(j, params);
        journal_close(j, 1);
    }
    struct journal_book *b = read_book(f);
    assert_string_equal(book_won(b, &key)->record.params, "tm=2");
    book_close(b);
}

/* --- ends that nobody chose -------------------------------------------------------------------------------------------- */

/* A tune that is killed in the middle of `c`. */
static void killed_at(struct fixture *f, const struct journal_candidate *c)
{
    pid_t pid = fork();
    if (!pid) {
        struct journal_opts o = opts(f);
        struct journal *j;
        int waited;
        if (journal_open(&j, &o, &waited, NULL)) _exit(1);
        journal_start(j, c, "check");
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

static void test_a_killed_tune_is_suspicion_three_are_proof(void **state)
{
    struct fixture *f = *state;
    for (int i = 1; i <= JOURNAL_DEATHS; i++) {
        killed_at(f, &candidate);
        struct journal_book *b = read_book(f);
        assert_int_equal(book_bad(b, OBJECT, 0) != NULL, i == JOURNAL_DEATHS);
        assert_null(book_bad(b, OBJECT, 1));
        assert_null(book_bad(b, OTHER, 0));
        book_close(b);
    }
}

static void test_a_good_run_ends_suspicion(void **state)
{
    struct fixture *f = *state;
    for (int i = 1; i < JOURNAL_DEATHS; i++) killed_at(f, &candidate);
    struct journal *j = begin(f);
    journal_start(j, &candidate, "check");
    journal_checked(j, &candidate, "0123");
    journal_close(j, 1);
    killed_at(f, &candidate);
    struct journal_book *b = read_book(f);
    assert_null(book_bad(b, OBJECT, 0));
    book_close(b);
}

static void write_session(struct fixture *f, const char *name, const char *text)
{
    char path[Q_PATH];
    struct q_err e;
    assert_int_equal(dir_make(f->dir, &e), 0);
    assert_int_equal(path_join(path, &e, f->dir, name, NULL), 0);
    if (file_write(path, text, strlen(text), &e)) fail_msg("%s", e.text);
}

#define OPEN(boot) "{\"boot\":\"" boot "\",\"card\":\"" CARD "\",\"ev\":\"open\",\"format\":1,\"pid\":1}\n"
#define ABOUT \
    "\"ctx\":0,\"generator\":\"" GENERATOR "\",\"object\":\"" OBJECT "\"," \
    "\"op\":\"matvec\",\"params\":\"tm=2\",\"profile\":\"pinned\",\"rows\":1,\"shape\":\"n=64,k=64\""
#define START "{\"ev\":\"start\",\"what\":\"check\"," ABOUT "}\n"
#define CHECKED "{\"ev\":\"checked\",\"hash\":\"00\"," ABOUT "}\n"
#define BAD "{\"ev\":\"bad\",\"kind\":\"crash\",\"why\":\"signal 11\"," ABOUT "}\n"

static void test_a_machine_that_went_down_is_proof(void **state)
{
    struct fixture *f = *state;
    write_session(f, "00000001.jsonl", OPEN("another-boot") START);
    struct journal_book *b = read_book(f);
    assert_non_null(strstr(book_bad(b, OBJECT, 1), "died"));
    book_close(b);
    write_session(f, "00000001.jsonl", OPEN("another-boot") START CHECKED);
    b = read_book(f);
    assert_null(book_bad(b, OBJECT, 0));
    book_close(b);
    write_session(f, "00000001.jsonl", OPEN("another-boot") START "{\"ev\":\"close\",\"left\":3}\n");
    b = read_book(f);
    assert_null(book_bad(b, OBJECT, 0));
    book_close(b);
}

/* --- files that are not what they should be ---------------------------------------------------------------------------- */

static void expect_foreign(struct fixture *f, const char *text, int files, int lines, int bad)
{
    write_session(f, "00000001.jsonl", text);
    struct journal_book *b = read_book(f);
    const struct journal_foreign *n = book_foreign(b);
    if (n->files != files || n->lines != lines) fail_msg("%d files, %d lines left out of: %s", n->files, n->lines, text);
    assert_int_equal(book_bad(b, OBJECT, 0) != NULL, bad);
    if (files || lines) assert_non_null(strstr(n->first, "00000001.jsonl"));
    book_close(b);
}

static void test_damage_is_left_out_and_counted(void **state)
{
    struct fixture *f = *state;
    expect_foreign(f, "", 0, 0, 0);
    expect_foreign(f, OPEN("x") BAD "{\"ev\":\"won\",\"rec", 0, 0, 1);                   /* torn */
    expect_foreign(f, OPEN("x") "not json\n\n[1]\n{\"no\":1}\n" BAD, 0, 4, 1);
    expect_foreign(f, OPEN("x") "{\"ev\":\"of a later version\"}\n" BAD, 0, 0, 1);
    expect_foreign(f, OPEN("x") OPEN("x") BAD, 0, 1, 1);
    expect_foreign(f, BAD, 1, 0, 0);
    expect_foreign(f, "{\"card\":\"" CARD "\",\"ev\":\"open\",\"format\":2}\n" BAD, 1, 0, 0);
    expect_foreign(f, "{\"card\":\"cpu:avx2\",\"ev\":\"open\",\"format\":1}\n" BAD, 1, 0, 0);
    expect_foreign(f, OPEN("x") "{\"ev\":\"bad\",\"object\":7}\n{\"ev\":\"won\",\"record\":{}}\n{\"ev\":\"close\",\"left\":\"x\"}\n" BAD, 0, 0, 1);
}

static void test_what_others_can_write_is_not_read(void **state)
{
    struct fixture *f = *state;
    char path[Q_PATH];
    write_session(f, "00000001.jsonl", OPEN("x") BAD);
    assert_int_equal(path_join(path, NULL, f->dir, "00000001.jsonl", NULL), 0);
    assert_int_equal(chmod(path, 0666), 0);
    struct journal_book *b = read_book(f);
    assert_int_equal(book_foreign(b)->files, 1);
    assert_null(book_bad(b, OBJECT, 0));
    book_close(b);
}

static void test_a_fifo_among_sessions_keeps_nobody_waiting(void **state)
{
    struct fixture *f = *state;
    char path[Q_PATH];
    write_session(f, "00000001.jsonl", OPEN("x") BAD);
    assert_int_equal(path_join(path, NULL, f->dir, "00000002.jsonl", NULL), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(10);
    struct journal_book *b = read_book(f);
    alarm(0);
    assert_non_null(book_bad(b, OBJECT, 0));
    assert_int_equal(book_foreign(b)->files, 1);
    book_close(b);
}

static void test_no_place_is_one_clear_line(void **state)
{
    struct fixture *f = *state;
    struct journal_opts o = opts(f);
    struct journal *j;
    struct q_err e;
    char file[Q_PATH];
    int waited;
    assert_int_equal(path_join(file, NULL, f->state, "file", NULL), 0);
    assert_int_equal(file_write(file, "", 0, NULL), 0);
    o.state = file;
    assert_int_equal(journal_open(&j, &o, &waited, &e), Q_EIO);
    assert_null(j);
    assert_non_null(strstr(e.text, file));
    journal_start(NULL, &candidate, "check");      /* a tune without a journal goes on */
    journal_close(NULL, 0);
}

/* A disk that is full in the middle of a line: one line is said, those before it stay whole. */
static void test_a_full_disk_is_said_once(void **state)
{
    struct fixture *f = *state;
    struct rlimit old, small;
    struct journal *j = begin(f);
    journal_bad(j, &other, "wrong", "row 3 differs");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){ 1000, old.rlim_max };
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 10; i++) journal_bad(j, &candidate, "wrong", "row 4 differs");
    put_won(j, "tm=2");
    setrlimit(RLIMIT_FSIZE, &old);
    journal_close(j, 3);
    assert_int_equal(f->lines, 1);
    assert_non_null(strstr(f->last, "the tune goes on"));
    struct journal_book *b = read_book(f);
    assert_non_null(book_bad(b, OTHER, 0));
    assert_int_equal(book_foreign(b)->lines + book_foreign(b)->files, 0);
    book_close(b);
}

/* --- mutations --------------------------------------------------------------------------------------------------------- */

static char *sample_text(struct fixture *f, size_t *n)
{
    char path[Q_PATH], *text;
    struct journal *j = begin(f);
    journal_start(j, &candidate, "check");
    journal_checked(j, &candidate, "0123");
    journal_bad(j, &other, "hang", "did not end within 20 s");
    put_won(j, "tm=2,tn=4");
    journal_gate(j, 1, "passed");
    journal_close(j, 2);
    assert_int_equal(path_join(path, NULL, f->dir, "00000001.jsonl", NULL), 0);
    assert_int_equal(file_read(path, 1 << 20, &text, n, NULL), 0);
    return text;
}

static unsigned roll(unsigned long long *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(*seed >> 33);
}

/* Some bytes changed, a piece cut out, repeated or moved, the end torn off. */
static size_t mutate(char *dst, const char *src, size_t n, unsigned long long *seed)
{
    static const char spice[] = "\"{}[]:,\\\n0e-\xff\x80u9";
    memcpy(dst, src, n);
    for (unsigned k = roll(seed) % 4; k; k--) dst[roll(seed) % n] = roll(seed) % 2 ? spice[roll(seed) % (sizeof spice)] : (char)roll(seed);
    size_t from = roll(seed) % n, len = roll(seed) % (n - from), to = roll(seed) % n;
    if (len > 200) len = 200;
    switch (roll(seed) % 4) {
        case 0: memmove(dst + from, dst + from + len, n - from - len); return n - len;
        case 1: memmove(dst + to, src + from, len > n - to ? n - to : len); return n;
        case 2: return from;
        default: return n;
    }
}

static void test_ten_thousand_mutated_files(void **state)
{
    struct fixture *f = *state;
    size_t n;
    char *text = sample_text(f, &n), *changed = malloc(n), path[Q_PATH];
    unsigned long long seed = 6;
    int still_bad = 0, still_won = 0;
    assert_non_null(changed);
    assert_int_equal(path_join(path, NULL, f->dir, "00000001.jsonl", NULL), 0);
    for (int i = 0; i < 10000; i++) {
        size_t m = mutate(changed, text, n, &seed);
        unlink(path);     /* some file systems flush a file that is written over */
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fwrite(changed, 1, m, file);
        fclose(file);
        struct journal_book *b = read_book(f);
        const struct journal_won *w = book_won(b, &key);
        still_bad += book_bad(b, OTHER, 0) != NULL;
        still_won += w != NULL;
        if (w) assert_string_equal(w->record.card, CARD);
        book_close(b);
    }
    assert_in_range(still_bad, 2000, 9999);     /* one bad line does not take the others with it */
    assert_in_range(still_won, 2000, 9999);
    free(text);
    free(changed);
}

/* --- two tunes --------------------------------------------------------------------------------------------------------- */

static void test_the_second_tune_waits(void **state)
{
    struct fixture *f = *state;
    int ready[2];
    char pid_text[40];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (!pid) {
        struct journal_opts o = opts(f);
        struct journal *j;
        int waited;
        if (journal_open(&j, &o, &waited, NULL) || write(ready[1], "x", 1) != 1) _exit(1);
        usleep(300000);
        journal_bad(j, &other, "hang", "late news");
        journal_close(j, 0);
        _exit(0);
    }
    char x;
    assert_int_equal(read(ready[0], &x, 1), 1);
    struct journal_book *b = read_book(f);      /* a session that runs blames nobody */
    assert_null(book_bad(b, OTHER, 0));
    book_close(b);
    struct journal_opts o = opts(f);
    struct journal *j;
    int waited;
    assert_int_equal(journal_open(&j, &o, &waited, NULL), 0);
    assert_true(waited);
    assert_int_equal(f->lines, 1);
    snprintf(pid_text, sizeof pid_text, "process %d)", (int)pid);
    assert_non_null(strstr(f->last, pid_text));
    b = read_book(f);
    assert_non_null(book_bad(b, OTHER, 0));
    book_close(b);
    journal_close(j, 0);
    waitpid(pid, NULL, 0);
}

static void test_waiting_can_be_interrupted(void **state)
{
    struct fixture *f = *state;
    struct journal *first = begin(f), *second;
    struct journal_opts o = opts(f);
    struct q_err e;
    int stop[2], waited;
    assert_int_equal(pipe(stop), 0);
    assert_int_equal(write(stop[1], "x", 1), 1);
    o.signal_fd = stop[0];
    assert_int_equal(journal_open(&second, &o, &waited, &e), Q_EIO);
    assert_string_equal(e.text, "interrupted");
    journal_close(first, 0);
}

/* --- compaction -------------------------------------------------------------------------------------------------------- */

static int count_sessions(struct fixture *f)
{
    int n = 0;
    DIR *d = opendir(f->dir);
    assert_non_null(d);
    for (struct dirent *x; (x = readdir(d));) n += strstr(x->d_name, ".jsonl") != NULL;
    closedir(d);
    return n;
}

/* A tune of one problem of its own, and of one that all have. */
static void tune_number(struct fixture *f, int i, int left)
{
    char shape[40], object[65], params[40];
    struct journal *j = begin(f);
    struct journal_won *own = winner("tm=1");
    snprintf(shape, sizeof shape, "n=64,k=%d", 64 * (i + 2));
    snprintf(object, sizeof object, "%064d", i);
    snprintf(params, sizeof params, "tm=%d", i);
    strcpy(own->record.shape, shape);
    journal_won(j, own, NULL, 0);
    put_won(j, params);
    journal_bad(j, &(struct journal_candidate){ &key, params, object }, "crash", "signal 11");
    journal_close(j, left);
    free(own);
}

static void test_old_sessions_become_one(void **state)
{
    struct fixture *f = *state;
    struct q_err e;
    write_session(f, "00000001.jsonl", "{\"card\":\"" CARD "\",\"ev\":\"open\",\"format\":2}\n");      /* a later version's: not ours to touch */
    for (int i = 0; i < 20; i++) tune_number(f, i, i == 5 ? 0 : 1);
    for (int i = 0; i < 2; i++) killed_at(f, &candidate);
    for (int i = 0; i < 20; i++) {
        char object[65], shape[40];
        struct journal_book *b = read_book(f);
        struct store_key k = key;
        snprintf(object, sizeof object, "%064d", i);
        snprintf(shape, sizeof shape, "n=64,k=%d", 64 * (i + 2));
        k.shape = shape;
        assert_non_null(book_bad(b, object, 0));
        assert_int_equal(book_won(b, &k) != NULL, i != 5);
        assert_string_equal(book_won(b, &key)->record.params, "tm=19");
        assert_null(book_bad(b, OBJECT, 0));
        book_close(b);
    }
    if (count_sessions(f) > 16) fail_msg("%d sessions are left", count_sessions(f));
    struct stat st;
    char path[Q_PATH];
    assert_int_equal(path_join(path, &e, f->dir, "00000001.jsonl", NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    killed_at(f, &candidate);      /* the third: suspicions outlive compaction */
    for (int i = 0; i < 12; i++) tune_number(f, 50 + i, 1);
    struct journal_book *b = read_book(f);
    assert_non_null(book_bad(b, OBJECT, 0));
    book_close(b);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_an_unfinished_tune_is_found), T(test_a_finished_tune_gives_no_winners), T(test_a_refused_set_gives_no_winners),
        T(test_the_newest_counts),
        T(test_a_killed_tune_is_suspicion_three_are_proof), T(test_a_good_run_ends_suspicion), T(test_a_machine_that_went_down_is_proof),
        T(test_damage_is_left_out_and_counted), T(test_what_others_can_write_is_not_read), T(test_a_fifo_among_sessions_keeps_nobody_waiting),
        T(test_no_place_is_one_clear_line),
        T(test_a_full_disk_is_said_once), T(test_ten_thousand_mutated_files), T(test_the_second_tune_waits), T(test_waiting_can_be_interrupted),
        T(test_old_sessions_become_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
