/* The store of a card: launches checked number by number, cubins, ceilings, who may borrow from whom, records shipped with the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ceilings.h"
#include "store.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define CARD "cuda:sm_80,sms=70,l2=4096,bus=4096,smem=163"
#define HOPPER "cuda:sm_90,sms=132,l2=61440,bus=6016,smem=227"
#define HEALTHY "cuda:sm_80,sms=108,l2=40960,bus=5120,smem=163"
#define SMALLER "cuda:sm_86,sms=28,l2=3072,bus=192,smem=99"
#define VOLTA "cuda:sm_70,sms=80,l2=6144,bus=4096,smem=96"
#define SHAPE "type=q8_0,act=q8,layout=planes,n=64,k=64,epi=none"

struct fixture {
    char home[Q_PATH], shipped[Q_PATH];
    struct store *s;
    int lines;
    char last[1200];
};

static void count(void *arg, const char *line)
{
    struct fixture *f = arg;
    f->lines++;
    snprintf(f->last, sizeof f->last, "%s", line);
}

static void reopen(struct fixture *f)
{
    struct store_opts o = { .shipped = f->shipped, .say = count, .say_arg = f };
    store_close(f->s);
    assert_int_equal(store_open(&f->s, &o, NULL), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f || dir_temp(f->home, "/tmp/quarry-test-", NULL) || path_join(f->shipped, NULL, f->home, "tuned", NULL) || dir_make(f->shipped, NULL)) return -1;
    setenv("HOME", f->home, 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_CACHE_HOME");
    reopen(f);
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

static struct record base(const char *op, const char *shape, const char *card, const char *params)
{
    struct record r = { .profile = "pinned", .generator = HASH_A, .numerics = "canonical", .origin = "tuned", .effort = "quick", .source = HASH_B, .version = "0",
                        .n_objects = 1, .n_times = 1 };
    snprintf(r.op, sizeof r.op, "%s", op);
    snprintf(r.shape, sizeof r.shape, "%s", shape);
    snprintf(r.card, sizeof r.card, "%s", card);
    snprintf(r.params, sizeof r.params, "%s", params);
    record_name(r.kernel, &r);
    r.objects[0] = (struct record_object){ .kind = "cubin", .arch = "sm_80", .compiler = "NVRTC 12.9", .name = HASH_A, .content = HASH_B, .size = 7, .regs = 168, .spill = 8 };
    r.launch = (struct q_phases){ .n = 2, .phase = { { 128, 65536, { { 4, 0, 0, 0 }, { 1, 16, 0, 0 }, { 1, 0, 1, 256 } } }, { 32, 0, { { 1, 1, 0, 0 }, { 1, 0, 0, 0 }, { 1, 0, 0, 0 } } } } };
    r.time[0] = (struct record_time){ .rows = 1, .n = 9, .median_us = 100 };
    return r;
}

static void put(struct fixture *f, const struct record *r) { assert_int_equal(store_put(f->s, r, NULL), 0); }

/* A winner on a card where its path does `rate` operations for `read` bytes. */
static void put_winner(struct fixture *f, const char *card, const char *path, double rate, double read)
{
    char params[40];
    snprintf(params, sizeof params, "path=%s,tile=64", path);
    struct record r = base("matmul", SHAPE, card, params);
    snprintf(r.ceiling, sizeof r.ceiling, "%s", path);
    r.path_rate = rate;
    r.read_rate = read;
    put(f, &r);
}

/* What this card measured: a call of 100 us at `rate`. */
static void put_ceiling(struct fixture *f, const char *what, double rate)
{
    char shape[40];
    snprintf(shape, sizeof shape, "what=%s", what);
    struct record r = base("ceiling", shape, CARD, "chains=8");
    double per_call = rate * 100e-6;
    r.cost.known = 1;
    for (int i = 0; i < 4; i++) *(strcmp(what, "read") ? &r.cost.ops[i] : &r.cost.bytes[i]) = per_call;
    put(f, &r);
}

static int find(struct fixture *f, struct record *r)
{
    struct store_key k = { "matmul", SHAPE, 0, 0, "pinned", CARD, HASH_A };
    int layer = 0;
    return store_find(f->s, &k, &layer, r, NULL);
}

/* --- records ----------------------------------------------------------------------------------------------------------- */

static void a_launch_comes_back_whole(void **state)
{
    struct record r, want = base("matmul", SHAPE, CARD, "path=dp4a");
    snprintf(want.ceiling, sizeof want.ceiling, "dp4a");
    want.path_rate = 133e12;
    want.read_rate = 4.66e12;
    strcpy(want.bound, "bytes");
    want.roof_doubtful = 1;
    put(*state, &want);
    assert_int_equal(find(*state, &r), 0);
    assert_memory_equal(&r, &want, sizeof r);
}

static int parse_with(const char *from, const char *to, struct q_err *e)
{
    struct record r = base("matmul", SHAPE, CARD, "path=dp4a");
    char *text = record_print(&r), changed[8192], *at;
    assert_non_null(text);
    at = strstr(text, from);
    assert_non_null(at);
    int n = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    return record_parse(&r, changed, (size_t)n, "test", e);
}

static void launches_that_no_card_takes_are_refused(void **state)
{
    static const char *const change[][2] = {
        { "\"threads\":128", "\"threads\":0" },          { "\"threads\":128", "\"threads\":1056" },      { "\"threads\":128", "\"threads\":100" },
        { "\"threads\":128", "\"threads\":-32" },        { "\"threads\":128", "\"threads\":\"128\"" },   { "\"smem\":65536", "\"smem\":233473" },
        { "\"smem\":65536", "\"smem\":-1" },             { "[4,0,0,0]", "[0,0,0,0]" },                   { "[4,0,0,0]", "[4,0,0]" },
        { "[4,0,0,0]", "[4,0,0,0,0]" },                  { "[4,0,0,0]", "[2147483648,0,0,0]" },          { "[1,16,0,0]", "[1,-16,0,0]" },
        { "[1,16,0,0]", "[1,0.5,0,0]" },                 { "[1,16,0,0]", "7" },                          { "\"grid\":[[4,0,0,0],", "\"grid\":[" },
        { "\"launch\":[", "\"launch\":7,\"was\":[" },    { "\"launch\":[", "\"launch\":[],\"was\":[" },  { "\"launch\":[", "\"was\":[" },
        { "\"launch\":[", "\"launch\":[{},{},{}," },     { "\"regs\":168", "\"regs\":-1" },              { "\"spill\":8", "\"spill\":\"8\"" },
    };
    struct q_err e;
    assert_int_equal(parse_with("\"smem\":65536", "\"smem\":233472", &e), 0);
    for (size_t i = 0; i < sizeof change / sizeof *change; i++)
        if (parse_with(change[i][0], change[i][1], &e) != Q_EINPUT) fail_msg("%s is taken", change[i][1]);
}

static void a_cubin_lies_beside_shared_objects(void **state)
{
    struct fixture *f = *state;
    char dir[Q_PATH], built[Q_PATH], path[Q_PATH], sum[65];
    long size;
    static const char *const file[] = { "k.cubin", "k.so" }, *const name[] = { HASH_A, HASH_B };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_workdir(f->s, dir, NULL), 0);
        assert_int_equal(path_join(built, NULL, dir, file[i], NULL), 0);
        assert_int_equal(file_write(built, "code", 4, NULL), 0);
        assert_int_equal(store_publish(f->s, built, name[i], sum, &size, NULL), 0);
        dir_remove(dir);
        assert_int_equal(store_object(f->s, name[i], path, NULL), 0);
        assert_non_null(strstr(path, file[i] + 1));
    }
}

/* A quiet card's samples are alike, and its power limit is its own; what others or heat did is not. */
static void ceilings_of_a_busy_card_are_doubtful(void **state)
{
    struct fixture *f = *state;
    static const struct { double mad; const char *slowed; int doubtful; } rows[] = {
        { 0.2, "", 0 }, { 2.9, "power", 0 }, { 3.1, "", 1 }, { 40, "power", 1 }, { 0.2, "heat", 1 }, { 0.2, "power,brake", 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct record r = base("ceiling", "what=read", CARD, "chains=8");
        r.time[0].mad_us = rows[i].mad;
        snprintf(r.clocks.slowed, sizeof r.clocks.slowed, "%s", rows[i].slowed);
        assert_int_equal(ceiling_is_doubtful(&r), rows[i].doubtful);
    }
    struct q_roofs r;
    struct record one = base("ceiling", "what=read", CARD, "chains=8");
    one.cost = (struct record_cost){ { 1e8, 1e8, 1e8, 1e8 }, { 0 }, 1 };
    one.time[0].mad_us = 30;
    put(f, &one);
    put_ceiling(f, "dp4a", 40e12);
    assert_int_equal(ceilings_read(f->s, CARD, &r), 2);
    assert_int_equal(r.doubtful, 1);
}

/* --- ceilings ---------------------------------------------------------------------------------------------------------- */

static void ceilings_are_read_from_records(void **state)
{
    struct fixture *f = *state;
    struct q_roofs r;
    assert_int_equal(ceilings_read(f->s, CARD, &r), 0);
    put_ceiling(f, "read", 1.5e12);
    put_ceiling(f, "dp4a", 40e12);
    put_ceiling(f, "mma_i8", 600e12);
    reopen(f);
    assert_int_equal(ceilings_read(f->s, CARD, &r), 3);
    assert_float_equal(r.read, 1.5e12, 1e6);
    assert_float_equal(ceiling_rate(&r, "dp4a"), 40e12, 1e6);
    assert_float_equal(ceiling_rate(&r, "mma_i8"), 600e12, 1e6);
    assert_float_equal(ceiling_rate(&r, "split"), 0, 0);
    assert_float_equal(r.int8, 600e12, 1e6);
    assert_string_equal(ceiling_of_path("split"), "ffma");
    assert_string_equal(ceiling_of_path("hfma2"), "hfma2");
    assert_int_equal(ceilings_read(f->s, HEALTHY, &r), 0);
}

/* --- borrowing --------------------------------------------------------------------------------------------------------- */

/* The card of the project's reason: silicon with tensor cores that do a 64th of what they could. */
static void put_fused_down(struct fixture *f)
{
    put_ceiling(f, "read", 1e12);
    put_ceiling(f, "dp4a", 40e12);
    put_ceiling(f, "mma_i8", 624e12 / 64);
    reopen(f);
}

static void fused_down_cores_take_no_healthy_winner(void **state)
{
    struct fixture *f = *state;
    struct record r;
    put_winner(f, HEALTHY, "mma_i8", 624e12, 1.5e12);
    put_fused_down(f);
    assert_int_equal(find(f, &r), Q_EMISS);
    put_winner(f, SMALLER, "dp4a", 20e12, 0.36e12);      /* farther away, by a path that does here what it did there */
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "path=dp4a,tile=64");
    assert_string_equal(r.origin, "borrowed");
    assert_string_equal(r.card, CARD);
    assert_int_equal(r.n_objects, 0);                    /* its cubin is the other card's */
}

static void healthy_cores_take_it(void **state)
{
    struct fixture *f = *state;
    struct record r;
    put_winner(f, HEALTHY, "mma_i8", 624e12, 1.5e12);
    put_ceiling(f, "read", 1e12);
    put_ceiling(f, "mma_i8", 220e12);                     /* 220 a byte against 416: more than half */
    reopen(f);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "path=mma_i8,tile=64");
    put_ceiling(f, "mma_i8", 200e12);
    reopen(f);
    assert_int_equal(find(f, &r), Q_EMISS);
}

static void nothing_measured_no_tensor_cores(void **state)
{
    struct fixture *f = *state;
    struct record r;
    put_winner(f, HEALTHY, "mma_i8", 624e12, 1.5e12);
    assert_int_equal(find(f, &r), Q_EMISS);
    put_winner(f, HEALTHY, "dp4a", 78e12, 1.5e12);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "path=dp4a,tile=64");
}

static void nearest_is_the_same_capability_then_multiprocessors(void **state)
{
    struct fixture *f = *state;
    struct record r;
    put_winner(f, VOLTA, "dp4a", 30e12, 0.8e12);          /* another generation: never */
    assert_int_equal(find(f, &r), Q_EMISS);
    put_winner(f, SMALLER, "dp4a", 20e12, 0.36e12);
    assert_int_equal(find(f, &r), 0);
    struct record other = base("matmul", SHAPE, HEALTHY, "path=dp4a,tile=128");
    put(f, &other);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "path=dp4a,tile=128");
    other = base("matmul", SHAPE, "cuda:sm_80,sms=72,l2=40960,bus=5120,smem=163", "path=dp4a,tile=32");
    put(f, &other);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "path=dp4a,tile=32");
}

static void a_card_taken_without_its_cores_borrows_none(void **state)
{
    struct fixture *f = *state;
    struct record r;
    struct store_key k = { "matmul", SHAPE, 0, 0, "pinned", CARD ",without=mma", HASH_A };
    int layer = 0;
    put_winner(f, CARD, "mma_i8", 624e12, 1.5e12);
    assert_int_equal(store_find(f->s, &k, &layer, &r, NULL), Q_EMISS);
}

/* wgmma is of the tensor cores, though its name begins otherwise. */
static void wgmma_is_not_borrowed_without_them(void **state)
{
    struct fixture *f = *state;
    struct record r;
    struct store_key k = { "matmul", SHAPE, 0, 0, "pinned", HOPPER ",without=mma", HASH_A };
    int layer = 0;
    assert_string_equal(ceiling_of_path("wgmma"), "mma_f16");
    put_winner(f, HOPPER, "wgmma", 600e12, 4e12);
    assert_int_equal(store_find(f->s, &k, &layer, &r, NULL), Q_EMISS);
    put_winner(f, HOPPER, "hfma2", 130e12, 4e12);
    assert_int_equal(store_find(f->s, &k, (layer = 0, &layer), &r, NULL), 0);
}

static void put_tile(struct fixture *f, const char *card, const char *origin, int rows, const char *params)
{
    struct record r = base("matmul", SHAPE, card, params);
    r.rows = rows;
    strcpy(r.origin, origin);
    put(f, &r);
}

/* Default params, another card of the generation, the same capability, the nearest number of multiprocessors, the card itself: each rung is
 * taken as soon as it is there, and tells where it came from. */
static void the_ladder_from_its_last_rung_to_its_first(void **state)
{
    static const struct { const char *card, *params, *origin, *from; } rungs[] = {
        { CARD, "path=dp4a,tile=1", "default", "" },
        { SMALLER, "path=dp4a,tile=2", "borrowed", SMALLER },
        { HEALTHY, "path=dp4a,tile=3", "borrowed", HEALTHY },
        { "cuda:sm_80,sms=72,l2=40960,bus=5120,smem=163", "path=dp4a,tile=4", "borrowed", "cuda:sm_80,sms=72,l2=40960,bus=5120,smem=163" },
        { "cuda:sm_80,sms=70,l2=8192,bus=4096,smem=163", "path=dp4a,tile=5", "borrowed", "cuda:sm_80,sms=70,l2=8192,bus=4096,smem=163" },
        { CARD, "path=dp4a,tile=6", "tuned", "" },
    };
    struct fixture *f = *state;
    struct record r;
    for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++) {
        put_tile(f, rungs[i].card, strcmp(rungs[i].origin, "borrowed") ? rungs[i].origin : "tuned", 0, rungs[i].params);
        put_tile(f, VOLTA, "tuned", 0, "path=dp4a,tile=9");       /* never */
        assert_int_equal(find(f, &r), 0);
        assert_string_equal(r.params, rungs[i].params);
        assert_string_equal(r.origin, rungs[i].origin);
        assert_string_equal(r.from, rungs[i].from);
        assert_string_equal(r.card, CARD);
    }
    assert_int_equal(f->lines, 0);
}

/* A card's own winner for steps of any size goes before another card's for just these; another card's for these before its for any. */
static void buckets_on_the_ladder(void **state)
{
    struct fixture *f = *state;
    struct record r;
    struct store_key k = { "matmul", SHAPE, 64, 0, "pinned", CARD, HASH_A };
    int layer = 0;
    put_tile(f, HEALTHY, "tuned", 0, "path=dp4a,tile=1");
    put_tile(f, HEALTHY, "tuned", 64, "path=dp4a,tile=2");
    assert_int_equal(store_find(f->s, &k, &layer, &r, NULL), 0);
    assert_string_equal(r.params, "path=dp4a,tile=2");
    put_tile(f, CARD, "tuned", 0, "path=dp4a,tile=3");
    layer = 0;
    assert_int_equal(store_find(f->s, &k, &layer, &r, NULL), 0);
    assert_string_equal(r.params, "path=dp4a,tile=3");
}

/* Whatever part of the problem or the generator is another one, the winner is none of it; whatever part of the card, it is borrowed at most. */
static void every_part_of_a_key_counts(void **state)
{
    static const struct store_key other[] = {
        { "matvec", SHAPE, 0, 0, "pinned", CARD, HASH_A },
        { "matmul", "type=f16,act=f32,layout=planes,n=64,k=64,epi=none", 0, 0, "pinned", CARD, HASH_A },
        { "matmul", "type=q8_0,act=q8,layout=rows,n=64,k=64,epi=none", 0, 0, "pinned", CARD, HASH_A },
        { "matmul", "type=q8_0,act=q8,layout=planes,n=65,k=64,epi=none", 0, 0, "pinned", CARD, HASH_A },
        { "matmul", "type=q8_0,act=q8,layout=planes,n=64,k=64,epi=add", 0, 0, "pinned", CARD, HASH_A },
        { "matmul", SHAPE, 0, 0, "strict", CARD, HASH_A },
        { "matmul", SHAPE, 0, 0, "pinned", CARD, HASH_B },
    };
    static const char *const near[] = { "cuda:sm_80,sms=71,l2=4096,bus=4096,smem=163", "cuda:sm_80,sms=70,l2=4097,bus=4096,smem=163",
                                        "cuda:sm_80,sms=70,l2=4096,bus=5120,smem=163", "cuda:sm_80,sms=70,l2=4096,bus=4096,smem=99",
                                        "cuda:sm_86,sms=70,l2=4096,bus=4096,smem=163", CARD ",without=mma" };
    static const char *const far[] = { "cuda:sm_70,sms=70,l2=4096,bus=4096,smem=163", "cpu:avx2" };
    struct fixture *f = *state;
    struct record r;
    int layer;
    put_tile(f, CARD, "tuned", 0, "path=dp4a,tile=1");
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.origin, "tuned");
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) assert_int_equal(store_find(f->s, &other[i], (layer = 0, &layer), &r, NULL), Q_EMISS);
    struct store_key k = { "matmul", SHAPE, 0, 0, "pinned", NULL, HASH_A };
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        k.card = near[i];
        assert_int_equal(store_find(f->s, &k, (layer = 0, &layer), &r, NULL), 0);
        assert_string_equal(r.origin, "borrowed");
        assert_int_equal(r.n_objects, 0);          /* its cubin is built anew */
    }
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        k.card = far[i];
        assert_int_equal(store_find(f->s, &k, (layer = 0, &layer), &r, NULL), Q_EMISS);
    }
}

/* --- shipped ----------------------------------------------------------------------------------------------------------- */

static void ship(struct fixture *f, const char *name, const char *text)
{
    char path[Q_PATH];
    assert_int_equal(path_join(path, NULL, f->shipped, name, NULL), 0);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
}

static void ship_records(struct fixture *f, const char *name, const struct record *r, int n, const char *behind)
{
    char text[16384] = "";
    for (int i = 0; i < n; i++) {
        char *line = record_print(&r[i]);
        strcat(text, line);
        free(line);
    }
    strcat(text, behind);
    ship(f, name, text);
}

#define FILE_OF_CARD "cuda_sm_80_sms_70_l2_4096_bus_4096_smem_163.jsonl"

static void shipped_records_are_the_last_of_winners(void **state)
{
    struct fixture *f = *state;
    struct record r, two[2] = { base("rmsnorm", "n=64,out=q8", CARD, "threads=256"), base("matmul", SHAPE, CARD, "path=dp4a,tile=8") };
    ship_records(f, FILE_OF_CARD, two, 2, "");
    reopen(f);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.origin, "shipped");
    assert_string_equal(r.params, two[1].params);
    assert_int_equal(r.n_objects, 0);
    struct record built = two[1];                         /* its object was built here */
    strcpy(built.origin, "shipped");
    put(f, &built);
    assert_int_equal(find(f, &r), 0);
    assert_memory_equal(&r, &built, sizeof r);
    strcpy(two[1].params, "path=dp4a,tile=9");            /* the program was updated */
    record_name(two[1].kernel, &two[1]);
    ship_records(f, FILE_OF_CARD, two, 2, "");
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "path=dp4a,tile=9");
    assert_int_equal(r.n_objects, 0);
    put_winner(f, CARD, "dp4a", 1, 1);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.params, "path=dp4a,tile=64");
    assert_int_equal(f->lines, 0);
}

/* The same key, but this card measured what is left of its tensor cores. */
static void a_fused_down_card_takes_no_shipped_winner(void **state)
{
    struct fixture *f = *state;
    struct record r, one = base("matmul", SHAPE, CARD, "path=mma_i8,tile=8");
    strcpy(one.ceiling, "mma_i8");
    one.path_rate = 624e12;
    one.read_rate = 1.5e12;
    ship_records(f, FILE_OF_CARD, &one, 1, "");
    reopen(f);
    assert_int_equal(find(f, &r), 0);
    put_fused_down(f);
    assert_int_equal(find(f, &r), Q_EMISS);
}

static void shipped_records_of_another_card_are_borrowed(void **state)
{
    struct fixture *f = *state;
    struct record r, one = base("matmul", SHAPE, HEALTHY, "path=dp4a,tile=8");
    ship_records(f, "any-name.jsonl", &one, 1, "");
    reopen(f);
    assert_int_equal(find(f, &r), 0);
    assert_string_equal(r.origin, "borrowed");
}

static void a_damaged_line_costs_itself_alone(void **state)
{
    struct fixture *f = *state;
    struct record r, one = base("matmul", SHAPE, CARD, "path=dp4a,tile=8");
    ship_records(f, FILE_OF_CARD, &one, 1, "{\"op\":\"matmul\"\n");
    reopen(f);
    assert_int_equal(find(f, &r), 0);
    strcpy(one.shape, "type=q8_0,act=q8,layout=planes,n=32,k=64,epi=none");
    record_name(one.kernel, &one);
    ship_records(f, FILE_OF_CARD, &one, 1, "{\"op\":\"matmul\"\n");
    reopen(f);
    assert_int_equal(find(f, &r), Q_EMISS);
    store_tell(f->s);
    assert_int_equal(f->lines, 1);
    assert_non_null(strstr(f->last, FILE_OF_CARD ":2: damaged record"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_launch_comes_back_whole), T(launches_that_no_card_takes_are_refused), T(a_cubin_lies_beside_shared_objects), T(ceilings_are_read_from_records),
        T(ceilings_of_a_busy_card_are_doubtful),
        T(fused_down_cores_take_no_healthy_winner), T(healthy_cores_take_it), T(nothing_measured_no_tensor_cores),
        T(nearest_is_the_same_capability_then_multiprocessors), T(a_card_taken_without_its_cores_borrows_none),
        T(wgmma_is_not_borrowed_without_them),
        T(the_ladder_from_its_last_rung_to_its_first), T(buckets_on_the_ladder), T(every_part_of_a_key_counts), T(shipped_records_are_the_last_of_winners),
        T(a_fused_down_card_takes_no_shipped_winner), T(shipped_records_of_another_card_are_borrowed), T(a_damaged_line_costs_itself_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
