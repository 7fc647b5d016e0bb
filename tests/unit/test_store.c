/* The store: layers, damaged and foreign records, objects whose content changed, places that cannot be written, two writers. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "store.h"
#include "xdg.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define CARD "cpu:other-0-0,isa=avx2+sse42+scalar,l1=32,l2=256,l3=4096,t=4"

struct fixture {
    char home[Q_PATH];
    struct store *s;
    int lines;            /* what the store said */
    char last[1200];
};

static void count(void *arg, const char *line)
{
    struct fixture *f = arg;
    f->lines++;
    snprintf(f->last, sizeof f->last, "%s", line);
}

static void reopen(struct fixture *f, const char *tunes, const char *cache)
{
    struct store_opts o = { .tunes = tunes, .cache = cache, .say = count, .say_arg = f };
    store_close(f->s);
    assert_int_equal(store_open(&f->s, &o, NULL), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f || dir_temp(f->home, "/tmp/quarry-test-", NULL)) return -1;
    setenv("HOME", f->home, 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_CACHE_HOME");
    reopen(f, NULL, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->s);
    dir_remove(f->home);
    free(f);
    return 0;
}

static struct record sample(const char *origin)
{
    struct record r = { .op = "swiglu", .shape = "n=96,out=q8", .profile = "pinned", .card = CARD, .generator = HASH_A,
                        .params = "isa=avx2,rows=1", .kernel = "swiglu_n96_q8_avx2_rows1", .numerics = "canonical", .source = HASH_B,
                        .version = "0", .n_objects = 1 };
    strcpy(r.origin, origin);
    r.objects[0] = (struct record_object){ .kind = "so", .arch = "x86_64", .compiler = "cc 12", .flags = "-O3", .name = HASH_A, .content = HASH_B, .size = 7 };
    return r;
}

static void set_params(struct record *r, const char *params)
{
    snprintf(r->params, sizeof r->params, "%s", params);
    record_name(r->kernel, r);
}

static struct store_key key(void) { return (struct store_key){ "swiglu", "n=96,out=q8", 0, 0, "pinned", CARD, HASH_A }; }

static int find(struct fixture *f, struct record *r)
{
    struct store_key k = key();
    int layer = 0;
    return store_find(f->s, &k, &layer, r, NULL);
}

static int take_path(void *arg, const struct record *r, const char *path)
{
    (void)r;
    snprintf(arg, Q_PATH, "%s", path);
    return 1;
}

/* The file of the one record in the store. */
static void record_file(struct fixture *f, char path[Q_PATH])
{
    path[0] = 0;
    assert_int_equal(store_each(f->s, CARD, take_path, path, NULL), 0);
    assert_int_not_equal(path[0], 0);
}

static void put(struct fixture *f, const char *origin)
{
    struct record r = sample(origin);
    assert_int_equal(store_put(f->s, &r, NULL), 0);
}

/* --- records ----------------------------------------------------------------------------------------------------------- */

static void a_bucket_without_a_winner_takes_the_one_for_any_size(void **state)
{
    struct fixture *f = *state;
    struct record r, small = sample("tuned");
    struct store_key k = key();
    int layer = 0;
    put(f, "tuned");
    k.rows = 8;
    assert_int_equal(store_find(f->s, &k, &layer, &r, NULL), 0);
    assert_int_equal(r.rows, 0);
    small.rows = 8;
    set_params(&small, "isa=avx2,rows=2");
    assert_int_equal(store_put(f->s, &small, NULL), 0);
    layer = 0;
    assert_int_equal(store_find(f->s, &k, &layer, &r, NULL), 0);
    assert_string_equal(r.params, "isa=avx2,rows=2");
    k.rows = 64;                 /* another bucket's winner is not its */
    layer = 0;
    assert_int_equal(store_find(f->s, &k, &layer, &r, NULL), 0);
    assert_string_equal(r.params, "isa=avx2,rows=1");
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "isa=avx2,rows=1");
}

static void a_record_comes_back_whole(void **state)
{
    struct fixture *f = *state;
    struct record r, want = sample("default");
    assert_int_equal(find(f, &r), Q_EMISS);
    put(f, "default");
    assert_int_equal(find(f, &r), 0);
    assert_memory_equal(&r, &want, sizeof r);
    char path[Q_PATH];
    struct stat st;
    record_file(f, path);
    assert_non_null(strstr(path, "/.cache/quarry/"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    *strrchr(path, '/') = 0;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

static void tuned_lies_in_data_and_wins(void **state)
{
    struct fixture *f = *state;
    struct record r;
    char path[Q_PATH];
    put(f, "default");
    put(f, "tuned");
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.origin, "tuned");
    record_file(f, path);
    assert_non_null(strstr(path, "/.local/share/quarry/"));
}

static void tunes_dir_wins_over_the_users(void **state)
{
    struct fixture *f = *state;
    struct record r, other = sample("tuned");
    char dir[Q_PATH];
    put(f, "tuned");
    assert_int_equal(path_join(dir, NULL, f->home, "team", NULL), 0);
    reopen(f, dir, NULL);
    set_params(&other, "isa=avx2,rows=4");
    assert_int_equal(store_put(f->s, &other, NULL), 0);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "isa=avx2,rows=4");
    char path[Q_PATH];
    record_file(f, path);
    assert_int_equal(chmod(path, 0664), 0);   /* a team's directory is named on purpose */
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "isa=avx2,rows=4");
    reopen(f, NULL, NULL);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "isa=avx2,rows=1");
}

static void put_on(struct fixture *f, const char *card, const char *params)
{
    struct record r = sample("tuned");
    snprintf(r.card, sizeof r.card, "%s", card);
    set_params(&r, params);
    assert_int_equal(store_put(f->s, &r, NULL), 0);
}

#define OTHER_VENDOR "cpu:intel-6-85,isa=avx2+sse42+scalar,l1=32,l2=256,l3=4096,t=4"
#define OTHER_PATHS "cpu:intel-6-85,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=256,l3=4096,t=4"
#define FEW_THREADS "cpu:other-0-0,isa=avx2+sse42+scalar,l1=32,l2=256,l3=4096,t=3"
#define MANY_THREADS "cpu:other-0-0,isa=avx2+sse42+scalar,l1=32,l2=256,l3=4096,t=64"

static void the_nearest_other_cards_winner_is_borrowed(void **state)
{
    struct fixture *f = *state;
    struct record r;
    put_on(f, OTHER_PATHS, "isa=avx2,rows=9");          /* another vendor and another best path: not near */
    assert_int_equal(find(f, &r), Q_EMISS);
    put_on(f, OTHER_VENDOR, "isa=avx2,rows=2");
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "isa=avx2,rows=2");
    assert_string_equal(r.origin, "borrowed");
    assert_string_equal(r.card, CARD);
    put_on(f, MANY_THREADS, "isa=avx2,rows=3");
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "isa=avx2,rows=3");
    put_on(f, FEW_THREADS, "isa=avx2,rows=4");
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "isa=avx2,rows=4");
    put(f, "default");                                  /* default params are the ladder's last rung, */
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.origin, "borrowed");
    put(f, "tuned");                                    /* an own winner its first */
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.origin, "tuned");
    assert_int_equal(f->lines, 0);
}

static void a_path_that_is_not_here_is_not_borrowed(void **state)
{
    struct fixture *f = *state;
    struct record r;
    put_on(f, "cpu:other-0-0,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=256,l3=4096,t=4", "isa=avx512vnni,rows=1");
    assert_int_equal(find(f, &r), Q_EMISS);
    put_on(f, "cpu:other-0-0,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=256,l3=4096,t=4", "isa=avx2,rows=1");
    assert_int_equal(find(f, &r), 0);
}

/* Built with another compiler, a borrowed record is kept beside the default ones, for this card. */
static void what_was_borrowed_and_built_stays(void **state)
{
    struct fixture *f = *state;
    struct record r, built = sample("borrowed");
    put_on(f, FEW_THREADS, "isa=avx2,rows=4");
    set_params(&built, "isa=avx2,rows=4");
    strcpy(built.objects[0].compiler, "cc 99");
    assert_int_equal(store_put(f->s, &built, NULL), 0);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.origin, "borrowed");
    assert_string_equal(r.objects[0].compiler, "cc 99");
}

/* Measured evidence comes back, and a record without it is as good. */
static void evidence_is_kept(void **state)
{
    struct fixture *f = *state;
    struct record r, want = sample("tuned");
    double bytes, ops;
    strcpy(want.effort, "quick");
    strcpy(want.base_params, "isa=avx2,rows=2");
    strcpy(want.bound, "bytes");
    want.base_us = 12.5;
    want.gain = 0.125;
    want.roof_pct = 87.5;
    want.n_times = 2;
    want.time[1] = (struct record_time){ 512, 1024, 9, 10.25, 0.5 };
    want.cost = (struct record_cost){ { 100, 5210, 612, 5722 }, { 1, 512, 1, 512 }, 1 };
    assert_int_equal(store_put(f->s, &want, NULL), 0);
    assert_int_equal(find(f, &r), 0);
    assert_memory_equal(&r, &want, sizeof r);
    record_cost(&r.cost, 257, 512, &bytes, &ops);
    assert_float_equal(bytes, 100 + 10 * 256 + 512 / 2.0, 1e-6);
    assert_float_equal(ops, 257, 1e-9);
}

static void another_generator_is_another_key(void **state)
{
    struct fixture *f = *state;
    struct record r;
    put(f, "default");
    struct store_key k = key();
    int layer = 0;
    k.generator = HASH_B;
    assert_int_equal(store_find(f->s, &k, &layer, &r, NULL), Q_EMISS);
    assert_int_equal(f->lines, 0);
}

/* Writes `text` over the record: the look-up must miss, say one line that names the file, and not crash. */
static void expect_miss(struct fixture *f, const char *path, const char *text, size_t n)
{
    struct record r;
    int before = f->lines;
    assert_int_equal(file_write(path, text, n, NULL), 0);
    assert_int_equal(find(f, &r), Q_EMISS);
    assert_int_equal(find(f, &r), Q_EMISS);
    reopen(f, NULL, NULL);                              /* a store tells of a file once */
    assert_int_equal(f->lines, before + 1);
    assert_non_null(strstr(f->last, path));
}

static void every_cut_is_a_miss(void **state)
{
    struct fixture *f = *state;
    char path[Q_PATH], *text;
    size_t n;
    put(f, "default");
    record_file(f, path);
    assert_int_equal(file_read(path, RECORD_BYTES, &text, &n, NULL), 0);
    for (size_t cut = 0; cut + 2 < n; cut += 7) expect_miss(f, path, text, cut);
    free(text);
}

/* Replaces the first `from` in the stored record by `to`. */
static void expect_miss_with(struct fixture *f, const char *from, const char *to)
{
    char path[Q_PATH], changed[RECORD_BYTES], *text;
    size_t n;
    put(f, "default");
    record_file(f, path);
    assert_int_equal(file_read(path, RECORD_BYTES, &text, &n, NULL), 0);
    char *at = strstr(text, from);
    assert_non_null(at);
    int m = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    expect_miss(f, path, changed, (size_t)m);
}

static void damaged_and_foreign_records_are_misses(void **state)
{
    static const char *const change[][2] = {
        { "\"format\":1", "\"format\":2" },
        { "\"format\":1", "\"format\":\"1\"" },
        { "\"format\":1", "\"format\":1e300" },
        { "\"op\":\"swiglu\"", "\"op\":\"rmsnorm\"" },                 /* another problem's record in this place */
        { "\"op\":\"swiglu\"", "\"op\":7" },
        { "swiglu_n96_q8", "../../../etc" },
        { "\"objects\":[", "\"objects\":[7," },
        { "\"size\":7", "\"size\":-7" },
        { "\"size\":7", "\"size\":1e99" },
        { "\"name\":\"aaaa", "\"name\":\"../a" },
        { "isa=avx2,rows=1", "isa=avx2,rows" },
        { "n=96,out=q8", "n=97,out=q8" },
        { "}\n", "}\n{}" },
    };
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) expect_miss_with(*state, change[i][0], change[i][1]);
}

/* Put together by hand, of parts that are right by themselves: what it names is not what it is for. */
static void a_record_of_parts_of_others_is_a_miss(void **state)
{
    static const char *const change[][2] = {
        { "swiglu_n96_q8_avx2_rows1\"", "swiglu_n960_q8_avx2_rows1\"" },
        { "swiglu_n96_q8_avx2_rows1\"", "swiglu_n96_q8_avx2_rows1_\"" },
        { "swiglu_n96_q8_avx2_rows1\"", "rmsnorm_n96_q8_avx2_rows1\"" },
        { "\"params\":\"isa=avx2,rows=1\"", "\"params\":\"isa=avx2,rows=2\"" },
        { "\"params\":\"isa=avx2,rows=1\"", "\"params\":\"isa=avx2\"" },
        { "\"kernel\":\"swiglu_n96_q8_avx2_rows1\",\"layout\":\"\"", "\"kernel\":\"\",\"layout\":\"rows\"" },
    };
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) expect_miss_with(*state, change[i][0], change[i][1]);
}

static void kernels_are_named_as_the_generator_names_them(void **state)
{
    static const char *const of[][4] = {
        { "rope_table", "pairs=32,s0=11,s1=11,s2=10", "isa=avx512vnni", "rope_table_pairs32_s011_s111_s210_avx512vnni" },
        { "matvec", "type=q8_0,act=q8,layout=rows,n=6,k=256,epi=none", "isa=avx2,fma=hw,tm=1,prefetch=0", "matvec_q8_0_q8_rows_n6_k256_none_avx2_hw_tm1_prefetch0" },
        { "op", "a=Q4.K,b=07", "c=0", "op_q4_k_07_c0" },
        { "op", "a", "c=0", "" },
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct record r = { .rows = 0 };
        char name[160];
        strcpy(r.op, of[i][0]);
        strcpy(r.shape, of[i][1]);
        strcpy(r.params, of[i][2]);
        record_name(name, &r);
        assert_string_equal(name, of[i][3]);
    }
}

static void a_record_that_others_may_write_is_a_miss(void **state)
{
    struct fixture *f = *state;
    struct record r;
    char path[Q_PATH];
    put(f, "default");
    record_file(f, path);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(find(f, &r), Q_EMISS);
    store_tell(f->s);
    assert_int_equal(f->lines, 1);
}

/* --- objects ----------------------------------------------------------------------------------------------------------- */

static void publish(struct fixture *f, const char *name, const char *content)
{
    char dir[Q_PATH], built[Q_PATH], sum[65];
    long size;
    assert_int_equal(store_workdir(f->s, dir, NULL), 0);
    assert_int_equal(path_join(built, NULL, dir, "k.so", NULL), 0);
    assert_int_equal(file_write(built, content, strlen(content), NULL), 0);
    assert_int_equal(store_publish(f->s, built, name, sum, &size, NULL), 0);
    assert_int_equal(size, (long)strlen(content));
    dir_remove(dir);
}

static void a_changed_object_is_a_miss(void **state)
{
    struct fixture *f = *state;
    char path[Q_PATH], sum[Q_PATH];
    assert_int_equal(store_object(f->s, HASH_A, path, NULL), Q_EMISS);
    assert_int_equal(f->lines, 0);
    publish(f, HASH_A, "not really a shared object");
    assert_int_equal(store_object(f->s, HASH_A, path, NULL), 0);
    assert_int_equal(file_write(path, "not really", 10, NULL), 0);
    assert_int_equal(store_object(f->s, HASH_A, path, NULL), Q_EMISS);
    reopen(f, NULL, NULL);
    assert_int_equal(f->lines, 1);
    publish(f, HASH_A, "not really a shared object");
    assert_int_equal(store_object(f->s, HASH_A, path, NULL), 0);
    snprintf(sum, sizeof sum, "%.*s.sum", (int)strlen(path) - 3, path);
    assert_int_equal(unlink(sum), 0);
    assert_int_equal(store_object(f->s, HASH_A, path, NULL), Q_EMISS);
    store_tell(f->s);
    assert_int_equal(f->lines, 2);
}

/* --- work directories -------------------------------------------------------------------------------------------------- */

/* A process that takes a work directory, puts a file there and waits to be killed. */
static pid_t worker_of(struct fixture *f, char dir[Q_PATH])
{
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    if (!pid) {
        struct store_opts o = { .say = count, .say_arg = f };
        struct store *s;
        char file[Q_PATH];
        int bad = store_open(&s, &o, NULL) || store_workdir(s, dir, NULL) || path_join(file, NULL, dir, "half", NULL) || file_write(file, "x", 1, NULL);
        if (write(fd[1], bad ? "" : dir, bad ? 1 : strlen(dir) + 1) > 0) pause();
        _exit(0);
    }
    close(fd[1]);
    for (size_t n = 0; !n || dir[n - 1]; n++) assert_int_equal(read(fd[0], dir + n, 1), 1);
    close(fd[0]);
    return pid;
}

static void what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_not(void **state)
{
    struct fixture *f = *state;
    char killed[Q_PATH], living[Q_PATH], own[Q_PATH];
    pid_t first = worker_of(f, killed), second = worker_of(f, living);
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    assert_int_equal(access(killed, F_OK), 0);
    assert_int_equal(store_workdir(f->s, own, NULL), 0);
    assert_int_equal(access(killed, F_OK), -1);
    *strrchr(killed, '/') = 0;
    assert_int_equal(access(killed, F_OK), -1);
    assert_int_equal(access(living, F_OK), 0);
    kill(second, SIGKILL);
    waitpid(second, NULL, 0);
    reopen(f, NULL, NULL);                         /* the end of a store takes its own along */
    assert_int_equal(access(own, F_OK), -1);
    *strrchr(own, '/') = 0;
    assert_int_equal(access(own, F_OK), -1);
}

static void a_work_directory_is_had_again_after_the_cache_was_cleared(void **state)
{
    struct fixture *f = *state;
    char dir[Q_PATH];
    assert_int_equal(store_workdir(f->s, dir, NULL), 0);
    *strrchr(dir, '/') = 0;
    dir_remove(dir);
    assert_int_equal(store_workdir(f->s, dir, NULL), 0);
    assert_int_equal(access(dir, F_OK), 0);
}

/* --- places ------------------------------------------------------------------------------------------------------------ */

/* A directory below a file can never be made, not even by root. */
static void an_unwritable_cache_is_one_line_with_the_variable(void **state)
{
    struct fixture *f = *state;
    struct q_err e;
    char file[Q_PATH];
    assert_int_equal(path_join(file, NULL, f->home, "file", NULL), 0);
    assert_int_equal(file_write(file, "x", 1, NULL), 0);
    setenv("XDG_CACHE_HOME", file, 1);
    reopen(f, NULL, NULL);
    unsetenv("XDG_CACHE_HOME");
    assert_int_equal(store_can_write(f->s, Q_CARD_CPU, &e), Q_EIO);
    assert_non_null(strstr(e.text, "XDG_CACHE_HOME"));
    assert_non_null(strstr(e.text, file));
    struct record r = sample("default");
    assert_int_equal(store_put(f->s, &r, &e), Q_EIO);
    assert_int_equal(find(f, &r), Q_EMISS);
}

static void without_a_home_nothing_is_written(void **state)
{
    struct fixture *f = *state;
    struct q_err e;
    const char *dir;
    struct record r = sample("tuned");
    unsetenv("HOME");
    reopen(f, NULL, NULL);
    assert_int_equal(store_cache(f->s, &dir, &e), Q_EMISS);
    assert_non_null(strstr(e.text, "XDG_CACHE_HOME"));
    assert_int_not_equal(store_put(f->s, &r, &e), 0);
    assert_non_null(strstr(e.text, "XDG_DATA_HOME"));
    assert_int_equal(find(f, &r), Q_EMISS);
    char given[Q_PATH];
    assert_int_equal(path_join(given, NULL, f->home, "given", NULL), 0);
    reopen(f, NULL, given);
    assert_int_equal(store_can_write(f->s, Q_CARD_CUDA, &e), 0);
    put(f, "default");
    assert_int_equal(find(f, &r), 0);
}

/* --- two at once ------------------------------------------------------------------------------------------------------- */

struct writer {
    struct store *s;
    int n;
};

static void *write_many(void *arg)
{
    struct writer *w = arg;
    for (int i = 0; i < 40; i++) {
        struct record r = sample("default");
        snprintf(r.shape, sizeof r.shape, "n=%d,out=q8", 32 * (i + 1));
        record_name(r.kernel, &r);
        w->n += store_put(w->s, &r, NULL) == 0;
    }
    return NULL;
}

static int count_records(void *arg, const struct record *r, const char *path)
{
    (void)r, (void)path;
    ++*(int *)arg;
    return 0;
}

static void two_writers_lose_nothing(void **state)
{
    struct fixture *f = *state;
    struct store_opts o = { 0 };
    struct writer w[2] = { { 0 } };
    pthread_t t[2];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_open(&w[i].s, &o, NULL), 0);
        assert_int_equal(pthread_create(&t[i], NULL, write_many, &w[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(w[i].n, 40);
        store_close(w[i].s);
    }
    assert_int_equal(store_each(f->s, CARD, count_records, &n, NULL), 0);
    assert_int_equal(n, 40);
    assert_int_equal(f->lines, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_bucket_without_a_winner_takes_the_one_for_any_size), T(a_record_comes_back_whole), T(tuned_lies_in_data_and_wins), T(tunes_dir_wins_over_the_users), T(another_generator_is_another_key),
        T(the_nearest_other_cards_winner_is_borrowed), T(a_path_that_is_not_here_is_not_borrowed), T(what_was_borrowed_and_built_stays),
        T(evidence_is_kept),
        T(every_cut_is_a_miss), T(damaged_and_foreign_records_are_misses), T(a_record_that_others_may_write_is_a_miss),
        T(a_changed_object_is_a_miss), T(an_unwritable_cache_is_one_line_with_the_variable), T(without_a_home_nothing_is_written),
        T(what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_not), T(a_work_directory_is_had_again_after_the_cache_was_cleared),
        T(a_record_of_parts_of_others_is_a_miss), T(kernels_are_named_as_the_generator_names_them), T(two_writers_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
