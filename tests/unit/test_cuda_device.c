/* A card as a device, over a driver without one: what is launched in which order and form, what comes of graphs, and what of faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "device_cuda.h"
#include "device_open.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKE(age) TEST_BUILD_DIR "/tests/fake_cuda/" age "/libcuda.so.1"

static const char *library = FAKE("now");
static char object[] = "/tmp/quarry-test-cubin-XXXXXX";

static struct q_device *open_card(const char *fake)
{
    struct q_device *d = NULL;
    struct q_err e = {0};
    setenv("FAKE_CUDA", fake, 1);
    if (device_cuda_open_with(&d, 0, library, &e)) fail_msg("%s", e.text);
    return d;
}

/* What the fake has launched since the last call. */
static void launched(const char *expected)
{
    void *fake = dlopen(library, RTLD_NOW);
    const char *(*log)(void) = (const char *(*)(void))dlsym(fake, "fake_cuda_log");
    void (*clear)(void) = (void (*)(void))dlsym(fake, "fake_cuda_log_clear");
    assert_string_equal(log(), expected);
    clear();
    dlclose(fake);
}

static void write_object(const char *text)
{
    FILE *f = fopen(object, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static const struct q_phases one = {1, {{64, 0, {{1, 4, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}}}}};

static struct q_kernel load(struct q_device *d, const char *symbol, const struct q_phases *phases)
{
    struct q_kernel k;
    struct q_err e = {0};
    if (d->ops->load(d, object, symbol, phases, &k, &e)) fail_msg("%s", e.text);
    return k;
}

static void push(struct q_list *l, const struct q_kernel *k, const char *op)
{
    int args[4] = {1, 2, 3, 4};
    assert_int_equal(list_push(l, k, op, args, sizeof args, NULL), 0);
}

/* --- the card and its memory ------------------------------------------------------------------------------------------ */

static void the_card_is_what_the_driver_says(void **state)
{
    struct q_device *d = open_card("cc=70,version=12090");
    assert_string_equal(d->card.key, "cuda:sm_70,sms=68,l2=6144,bus=4096,smem=96");
    assert_int_equal(d->parts, 68);
    assert_int_equal(d->host_memory, 0);
    assert_non_null(strstr(d->about, "Fake Card 0 (sm_70)"));
    assert_non_null(strstr(d->about, "CUDA 12.9"));
    d->ops->close(d);
}

static void what_cannot_be_opened(void **state)
{
    static const struct { const char *fake; int index; const char *line; } cases[] = {
        {"cards=2", 2, "cuda:2 is not there: the driver shows 2 cards, cuda:0 and up; `quarry doctor` tells of them"},
        {"cards=1", 7, "cuda:7 is not there: the driver shows 1 card, cuda:0; `quarry doctor` tells of them"},
        {"cards=0", 0, "cuDeviceGetCount: CUDA_ERROR_NO_DEVICE (100): the driver shows no card; look at nvidia-smi, CUDA_VISIBLE_DEVICES and, in a "
                       "container, whether the card was passed in"},
        {"cc=52", 0, "Fake Card 0 has compute capability 5.2; quarry needs 6.0 or more"},
        {"retain=46", 0, "cuDevicePrimaryCtxRetain: CUDA_ERROR_DEVICE_UNAVAILABLE (46): another process has the card to itself (compute mode "
                         "exclusive); end it, or nvidia-smi -c 0"},
        {"retain=2", 0, "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2): the card's memory is full; a smaller -c, or end what else uses the "
                        "card (nvidia-smi lists it)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct q_device *d = NULL;
        struct q_err e;
        setenv("FAKE_CUDA", cases[i].fake, 1);
        assert_int_not_equal(device_cuda_open_with(&d, cases[i].index, library, &e), 0);
        assert_string_equal(e.text, cases[i].line);
        assert_null(d);
    }
}

static void memory_is_zeroed_counted_and_limited(void **state)
{
    struct q_device *d = open_card("memory=512");
    struct q_err e;
    size_t before = d->ops->available(d);
    assert_int_equal(before, (size_t)(512 - 64) << 20);
    unsigned char *p = d->ops->alloc(d, 1 << 20, &e), got[64], zero[64] = {0};
    assert_non_null(p);
    assert_int_equal(d->ops->read(d, got, p + 12345, sizeof got, &e), 0);
    assert_memory_equal(got, zero, sizeof got);
    assert_int_equal(d->ops->available(d), before - (1 << 20));
    assert_null(d->ops->alloc(d, (size_t)600 << 20, &e));
    assert_int_equal(e.code, Q_ELIMIT);
    assert_non_null(strstr(e.text, "cuMemAlloc of 600.0 MiB: CUDA_ERROR_OUT_OF_MEMORY (2)"));
    d->ops->release(d, p);
    assert_int_equal(d->ops->available(d), before);
    d->ops->close(d);
}

/* Larger than both stages together, so that each is used again; and small ones that fill a stage by and by. */
static void send_and_read_back(const char *fake)
{
    struct q_device *d = open_card(fake);
    size_t n = ((size_t)70 << 20) + 13;
    unsigned char *from = malloc(n), *back = malloc(n), *p = d->ops->alloc(d, n, NULL), *q = d->ops->alloc(d, n, NULL);
    for (size_t i = 0; i < n; i++) from[i] = (unsigned char)(i * 2654435761u >> 13);
    assert_int_equal(d->ops->write(d, p, from, n, NULL), 0);
    for (size_t at = 0; at < n; at += 1 << 20) {
        unsigned char small[100];
        memcpy(small, from + at, n - at < sizeof small ? n - at : sizeof small);
        assert_int_equal(d->ops->write(d, p + at, small, n - at < sizeof small ? n - at : sizeof small, NULL), 0);
        memset(small, 0, sizeof small);   /* the source may change at once */
    }
    assert_int_equal(d->ops->copy(d, q, p, n, NULL), 0);
    assert_int_equal(d->ops->read(d, back, q, n, NULL), 0);
    assert_memory_equal(back, from, n);
    /* Runs of all sizes, from the end to the beginning of what lies there: small ones land together, large ones in pieces. */
    struct q_run runs[200];
    size_t sum = 0, end = n;
    for (int i = 0; i < 200; i++) {
        runs[i].bytes = i % 50 == 49 ? ((size_t)5 << 20) + 3 : (size_t)(i * 997 % 60000);
        runs[i].at = q + (end -= runs[i].bytes);
    }
    memset(back, 0, n);
    assert_int_equal(device_gather(d, back, runs, 200, NULL), 0);
    for (int i = 0; i < 200; sum += runs[i++].bytes) assert_memory_equal(back + sum, from + ((unsigned char *)runs[i].at - q), runs[i].bytes);
    assert_int_equal(back[sum], 0);
    free(from);
    free(back);
    d->ops->release(d, p);
    d->ops->release(d, q);
    d->ops->close(d);
}

/* Whenever a card makes its copies: at once, or when they are waited for and not before. */
static void bytes_arrive_whole(void **state)
{
    send_and_read_back("");
    send_and_read_back("late");
}

/* --- kernels ---------------------------------------------------------------------------------------------------------- */

static void what_does_not_load(void **state)
{
    static const struct { const char *text, *symbol; struct q_phase phase; const char *line; } cases[] = {
        {"garbage", "f", {64, 0, {{1, 0, 0, 0}}}, "CUDA_ERROR_INVALID_IMAGE (200): the kernel's object is newer than the driver, or damaged; "
                                                  "line 1: not a module"},
        {"FAKE\nf\n", "g", {64, 0, {{1, 0, 0, 0}}}, "cuModuleGetFunction of g: CUDA_ERROR_NOT_FOUND (500)"},
        {"FAKE\nf threads=256\n", "f", {512, 0, {{1, 0, 0, 0}}}, "f: 512 threads a block, and its 64 registers allow 256 on this card"},
        {"FAKE\nf shared=1024\n", "f", {64, 98304, {{1, 0, 0, 0}}}, "f: 99328 bytes of shared memory a block, and this card has 98304"},
    };
    struct q_device *d = open_card("");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct q_phases phases = {1, {cases[i].phase}};
        struct q_kernel k;
        struct q_err e;
        write_object(cases[i].text);
        assert_int_equal(d->ops->load(d, object, cases[i].symbol, &phases, &k, &e) != 0, 1);
        if (!strstr(e.text, cases[i].line)) fail_msg("%s", e.text);
        assert_null(strchr(e.text, '\n'));
        assert_null(k.library);
    }
    struct q_kernel k;
    assert_int_equal(d->ops->load(d, "/nowhere/x.cubin", "f", &one, &k, NULL), Q_EMISS);
    assert_int_equal(d->ops->load(d, object, "f", &(struct q_phases){0}, &k, NULL), Q_EINPUT);
    d->ops->close(d);
}

/* Phases in order, grids by bucket, shared memory beyond 48 KiB asked for. */
static void a_launch_is_its_phases(void **state)
{
    struct q_device *d = open_card("cc=70");
    struct q_phases two = {2, {{128, 65536, {{3, 8, 0, 0}, {1, 0, 1, 0}, {1, 0, 0, 256}}}, {32, 0, {{1, 1, 0, 0}, {2, 0, 0, 0}, {1, 0, 0, 0}}}}};
    write_object("FAKE\nattn threads=256\nattn_2\n");
    struct q_kernel k = load(d, "attn", &two);
    struct q_list l = {0};
    push(&l, &k, "attn_decode");
    assert_int_equal(d->ops->submit(d, &l, &(struct q_extent){9, 3, 1500}, NULL, NULL), 0);
    assert_int_equal(d->ops->wait(d, NULL), 0);
    launched("attn 6,4,16 x 128 shared 65536\nattn_2 16,2,1 x 32 shared 0\n");
    struct q_err e;
    assert_int_equal(d->ops->submit(d, &l, &(struct q_extent){1, 70000, 1}, NULL, &e), Q_ELIMIT);
    assert_non_null(strstr(e.text, "attn_decode (kernel attn): "));
    assert_non_null(strstr(e.text, "131072 blocks along axis 1"));
    list_free(&l);
    d->ops->unload(d, &k);
    d->ops->close(d);
}

/* --- lists and graphs ------------------------------------------------------------------------------------------------- */

struct chain {
    struct q_device *d;
    struct q_kernel a, b;
    struct q_list list;
};

static struct chain open_chain(const char *fake)
{
    struct chain c = {.d = open_card(fake)};
    write_object("FAKE\nfirst\nsecond\n");
    c.a = load(c.d, "first", &one);
    c.b = load(c.d, "second", &one);
    return c;
}

static void fill_chain(struct chain *c)
{
    push(&c->list, &c->a, "embed");
    push(&c->list, &c->b, "matmul");
    c->list.launch[1].shape = "type=q8_0,n=64,k=64";
    c->list.stable = 1;
}

static void close_chain(struct chain *c)
{
    c->d->ops->forget(c->d, &c->list);
    list_free(&c->list);
    c->d->ops->unload(c->d, &c->a);
    c->d->ops->unload(c->d, &c->b);
    c->d->ops->close(c->d);
}

static void submit(struct chain *c, int rows)
{
    struct q_err e = {0};
    if (c->d->ops->submit(c->d, &c->list, &(struct q_extent){rows, 1, 100}, NULL, &e)) fail_msg("%s", e.text);
}

static void wait(struct chain *c) { assert_int_equal(c->d->ops->wait(c->d, NULL), 0); }

static void a_list_becomes_a_graph_of_its_bucket(void **state)
{
    struct chain c = open_chain("");
    fill_chain(&c);
    submit(&c, 3);
    launched("first 1,1,1 x 64 shared 0\nsecond 1,1,1 x 64 shared 0\n");
    submit(&c, 4);
    launched("first 1,1,1 x 64 shared 0 graph\nsecond 1,1,1 x 64 shared 0 early graph\n");
    submit(&c, 5);
    launched("first 2,1,1 x 64 shared 0\nsecond 2,1,1 x 64 shared 0\n");
    submit(&c, 3);
    launched("first 1,1,1 x 64 shared 0 graph\nsecond 1,1,1 x 64 shared 0 early graph\n");
    wait(&c);
    close_chain(&c);
}

static void more_buckets_than_graphs_are_kept(void **state)
{
    struct chain c = open_chain("");
    fill_chain(&c);
    struct q_list *more = calloc(200, sizeof *more);
    for (int i = 0; i < 200; i++) {
        push(&more[i], &c.a, "embed");
        more[i].stable = 1;
        for (int j = 0; j < 2; j++) assert_int_equal(c.d->ops->submit(c.d, &more[i], &(struct q_extent){1, 1, 1}, NULL, NULL), 0);
    }
    submit(&c, 1);
    wait(&c);
    for (int i = 0; i < 200; i++) {
        c.d->ops->forget(c.d, &more[i]);
        list_free(&more[i]);
    }
    free(more);
    close_chain(&c);
}

/* Kernels compiled for less than sm_90 do not wait by themselves, whatever card runs them. */
static void only_kernels_that_wait_begin_early(void **state)
{
    struct q_device *d = open_card("cc=90");
    write_object("FAKE\nfirst\nsecond ptx=70\nthird\n");
    struct q_kernel k[] = {load(d, "first", &one), load(d, "second", &one), load(d, "third", &one)};
    struct q_list l = {0};
    for (int i = 0; i < 3; i++) push(&l, &k[i], "op");
    assert_int_equal(d->ops->submit(d, &l, &(struct q_extent){1, 1, 1}, NULL, NULL), 0);
    launched("first 1,1,1 x 64 shared 0\nsecond 1,1,1 x 64 shared 0\nthird 1,1,1 x 64 shared 0 early\n");
    for (int i = 0; i < 3; i++) d->ops->unload(d, &k[i]);
    list_free(&l);
    d->ops->close(d);
}

/* The same work however much the driver can do. */
static void without_graphs_and_without_early_launches(void **state)
{
    static const struct { const char *library, *fake, *second; } cases[] = {
        {FAKE("now"), "no_early_graph", "first 1,1,1 x 64 shared 0 graph\nsecond 1,1,1 x 64 shared 0 graph\n"},
        {FAKE("now"), "no_graph", "first 1,1,1 x 64 shared 0\nsecond 1,1,1 x 64 shared 0 early\n"},
        {FAKE("now"), "cc=75", "first 1,1,1 x 64 shared 0 graph\nsecond 1,1,1 x 64 shared 0 graph\n"},
        {FAKE("old"), "version=11040,cc=70", "first 1,1,1 x 64 shared 0 graph\nsecond 1,1,1 x 64 shared 0 graph\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        library = cases[i].library;
        struct chain c = open_chain(cases[i].fake);
        fill_chain(&c);
        submit(&c, 1);
        launched("first 1,1,1 x 64 shared 0\nsecond 1,1,1 x 64 shared 0\n");
        for (int j = 0; j < 2; j++) {
            submit(&c, 1);
            launched(cases[i].second);
        }
        close_chain(&c);
        library = FAKE("now");
    }
}

static void times(const char *lib, const char *fake)
{
    library = lib;
    struct chain c = open_chain(fake);
    double us = 0, trace[2] = {100, 0};
    fill_chain(&c);
    assert_int_equal(c.d->ops->time(c.d, &c.list, &(struct q_extent){1, 1, 1}, 7, &us, NULL), 0);
    assert_true(us > 19.99 && us < 20.01);   /* two kernels of 10 us */
    assert_int_equal(c.d->ops->time(c.d, &c.list, &(struct q_extent){1, 1, 1}, 3000, &us, NULL), 0);
    assert_true(us > 19.99 && us < 20.01);
    for (int i = 0; i < 3; i++) assert_int_equal(c.d->ops->submit(c.d, &c.list, &(struct q_extent){1, 1, 1}, trace, NULL), 0);
    wait(&c);
    assert_true(trace[0] > 129.9 && trace[0] < 130.1 && trace[1] > 29.9 && trace[1] < 30.1);
    c.list.stable = 0;
    assert_int_equal(c.d->ops->submit(c.d, &c.list, &(struct q_extent){1, 1, 1}, trace, NULL), 0);
    assert_true(trace[0] > 139.9 && trace[0] < 140.1);
    close_chain(&c);
    library = FAKE("now");
}

static void times_and_traces(void **state)
{
    times(FAKE("now"), "");
    times(FAKE("now"), "no_graph");
    times(FAKE("old"), "version=11040,cc=61");
}

/* --- faults ----------------------------------------------------------------------------------------------------------- */

/* Every call after a fault fails with the line that told of it, and closing does not hang. */
static void all_fail_with(struct chain *c, const char *line)
{
    struct q_err e;
    int word = 0;
    double us;
    const struct q_device_ops *ops = c->d->ops;
    struct q_extent x = {1, 1, 1};
    assert_null(ops->alloc(c->d, 64, &e));
    assert_string_equal(e.text, line);
    assert_int_equal(ops->wait(c->d, &e), Q_EINTERNAL);
    assert_string_equal(e.text, line);
    assert_int_equal(ops->submit(c->d, &c->list, &x, NULL, &e), Q_EINTERNAL);
    assert_string_equal(e.text, line);
    assert_int_equal(ops->read(c->d, &word, (void *)64, sizeof word, &e), Q_EINTERNAL);
    assert_int_equal(ops->write(c->d, (void *)64, &word, sizeof word, &e), Q_EINTERNAL);
    assert_int_equal(ops->time(c->d, &c->list, &x, 1, &us, &e), Q_EINTERNAL);
    assert_string_equal(e.text, line);
    assert_int_equal(ops->available(c->d), 0);
}

static void the_first_run_names_the_kernel_that_faults(void **state)
{
    struct chain c = open_chain("fault=2:700");
    struct q_err e;
    fill_chain(&c);
    assert_int_equal(c.d->ops->submit(c.d, &c.list, &(struct q_extent){1, 1, 1}, NULL, &e), Q_EINTERNAL);
    assert_string_equal(e.text, "matmul type=q8_0,n=64,k=64 (kernel second): cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): "
                                "a kernel touched memory that is not its own");
    all_fail_with(&c, e.text);
    close_chain(&c);
}

static void later_runs_name_what_was_on_its_way(void **state)
{
    struct chain c = open_chain("fault=6:715");
    struct q_err e;
    fill_chain(&c);
    submit(&c, 1);
    submit(&c, 1);
    wait(&c);
    submit(&c, 1);
    assert_int_equal(c.d->ops->wait(c.d, &e), Q_EINTERNAL);
    assert_string_equal(e.text, "one of 2 kernels, embed to matmul: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_INSTRUCTION (715): a kernel met an "
                                "instruction that the card does not have (--debug=launch tells which)");
    all_fail_with(&c, e.text);
    close_chain(&c);
}

static void careful_names_it_in_any_run(void **state)
{
    struct chain c = open_chain("fault=6:719");
    struct q_err e;
    fill_chain(&c);
    c.d->careful = 1;
    submit(&c, 1);
    submit(&c, 1);
    assert_int_equal(c.d->ops->submit(c.d, &c.list, &(struct q_extent){1, 1, 1}, NULL, &e), Q_EINTERNAL);
    assert_non_null(strstr(e.text, "(kernel second): cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (719)"));
    close_chain(&c);
}

static void the_untimed_pass_names_it(void **state)
{
    struct chain c = open_chain("fault=1:716");
    struct q_err e;
    double us;
    fill_chain(&c);
    assert_int_equal(c.d->ops->time(c.d, &c.list, &(struct q_extent){1, 1, 1}, 5, &us, &e), Q_EINTERNAL);
    assert_non_null(strstr(e.text, "embed (kernel first): cuStreamSynchronize: CUDA_ERROR_MISALIGNED_ADDRESS (716)"));
    close_chain(&c);
}

static int make_object(void **state)
{
    int fd = mkstemp(object);
    return fd < 0 ? -1 : close(fd);
}

static int remove_object(void **state) { return unlink(object); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_card_is_what_the_driver_says),
        cmocka_unit_test(what_cannot_be_opened),
        cmocka_unit_test(memory_is_zeroed_counted_and_limited),
        cmocka_unit_test(bytes_arrive_whole),
        cmocka_unit_test(what_does_not_load),
        cmocka_unit_test(a_launch_is_its_phases),
        cmocka_unit_test(a_list_becomes_a_graph_of_its_bucket),
        cmocka_unit_test(more_buckets_than_graphs_are_kept),
        cmocka_unit_test(only_kernels_that_wait_begin_early),
        cmocka_unit_test(without_graphs_and_without_early_launches),
        cmocka_unit_test(times_and_traces),
        cmocka_unit_test(the_first_run_names_the_kernel_that_faults),
        cmocka_unit_test(later_runs_name_what_was_on_its_way),
        cmocka_unit_test(careful_names_it_in_any_run),
        cmocka_unit_test(the_untimed_pass_names_it),
    };
    return cmocka_run_group_tests(tests, make_object, remove_object);
}
