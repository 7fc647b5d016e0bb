/* Which recorded winners spare a tune the measuring, which are looked at again, and which are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/recorded.h"
#include "autotune/tune.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARD "cuda:sm_70,sms=80,l2=6144,bus=4096,smem=96"
#define OBJECT "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct fixture {
    char home[Q_PATH];
    struct gen *g;
    struct store *s;
    struct target t;
    struct compiler compiler;
    struct recorded_query q;
    struct q_problem p;
    struct record r;           /* what a tune would have written */
};

static void publish(struct fixture *f)
{
    char dir[Q_PATH], path[Q_PATH], content[65];
    struct q_err e;
    long size;
    if (store_workdir(f->s, dir, &e) || path_join(path, &e, dir, "k.cubin", NULL) || file_write(path, "code", 4, &e)
        || store_publish(f->s, path, OBJECT, content, &size, &e))
        fail_msg("%s", e.text);
    dir_remove(dir);
    strcpy(f->r.objects[0].content, content);
    f->r.objects[0].size = size;
}

static void fill_record(struct fixture *f)
{
    struct gen_kernel gk;
    struct store_key k;
    char generator[65];
    struct q_err e;
    if (target_key(&f->t, f->g, &f->p, generator, &k, &e) || target_emit(&f->t, f->g, &f->p, NULL, &gk, &e)) fail_msg("%s", e.text);
    target_record(&f->r, f->g, &k, &f->p, &gk);
    gen_kernel_free(&gk);
    strcpy(f->r.origin, "tuned");
    strcpy(f->r.effort, "normal");
    strcpy(f->r.driver, "550.54.14");
    strcpy(f->r.base_params, f->r.params);
    f->r.n_objects = 1;
    f->r.objects[0] = (struct record_object){ .kind = "cubin", .arch = "sm_70", .compiler = "NVRTC 12.9", .name = OBJECT, .regs = 32 };
    publish(f);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct store_opts o = { .shipped = "" };
    struct q_err e;
    if (!f || dir_temp(f->home, "/tmp/quarry-test-", NULL)) return -1;
    setenv("HOME", f->home, 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_CACHE_HOME");
    if (gen_open(&f->g, NULL, &e) || store_open(&f->s, &o, &e) || card_parse(&f->t.card, CARD, &e)) fail_msg("%s", e.text);
    f->t.numerics = Q_PINNED;
    f->p = (struct q_problem){ .op = "rmsnorm", .shape = "n=1024,out=q8" };
    f->q = (struct recorded_query){ .t = &f->t, .g = f->g, .store = f->s, .effort = effort_find("normal"), .compiler = &f->compiler, .driver = "550.54.14" };
    strcpy(f->compiler.version, "NVRTC 12.9");
    fill_record(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->s);
    gen_close(f->g);
    dir_remove(f->home);
    free(f);
    return 0;
}

static enum recorded find(struct fixture *f, char why[200])
{
    struct record r;
    struct q_err e;
    enum recorded state;
    if (recorded_find(&f->q, &f->p, &r, &state, why, &e)) fail_msg("%s", e.text);
    if (state != RECORDED_NONE) assert_string_equal(r.params, f->r.params);
    return state;
}

/* With the record as the test has changed it. */
static void expect(struct fixture *f, enum recorded want, const char *want_why)
{
    char why[200];
    struct q_err e;
    if (store_put(f->s, &f->r, &e)) fail_msg("%s", e.text);
    assert_int_equal(find(f, why), want);
    if (!strstr(why, want_why) || !*want_why != !*why) fail_msg("expected '%s', found '%s'", want_why, why);
}

static void what_is_as_it_was_stays(void **state)
{
    struct fixture *f = *state;
    char why[200];
    assert_int_equal(find(f, why), RECORDED_NONE);
    expect(f, RECORDED_GOOD, "");
    f->q.effort = effort_find("quick");
    expect(f, RECORDED_GOOD, "");
}

static void another_driver_or_compiler_is_looked_at_again(void **state)
{
    struct fixture *f = *state;
    strcpy(f->q.driver, "580.159.03");
    expect(f, RECORDED_AGAIN, "measured under driver 550.54.14, here is 580.159.03");
    strcpy(f->compiler.version, "NVRTC 13.0");
    expect(f, RECORDED_AGAIN, "compiled by NVRTC 12.9, here is NVRTC 13.0");
}

static void what_is_not_known_did_not_change(void **state)
{
    struct fixture *f = *state;
    f->compiler.version[0] = f->q.driver[0] = 0;
    expect(f, RECORDED_GOOD, "");
    strcpy(f->q.driver, "580.159.03");
    f->r.driver[0] = 0;                                   /* a record from before drivers were written down */
    expect(f, RECORDED_GOOD, "");
}

static void without_its_object_it_is_built_again(void **state)
{
    struct fixture *f = *state;
    memset(f->r.objects[0].name, 'b', 64);
    expect(f, RECORDED_AGAIN, "its object is gone");
}

static void less_effort_other_steps_and_other_origins_are_none(void **state)
{
    struct fixture *f = *state;
    strcpy(f->r.effort, "quick");
    expect(f, RECORDED_NONE, "");
    strcpy(f->r.effort, "normal");
    strcpy(f->r.origin, "borrowed");
    expect(f, RECORDED_NONE, "");
    strcpy(f->r.origin, "tuned");
    expect(f, RECORDED_GOOD, "");
    f->p.rows = 8;                                        /* it is for steps of any size: these want their own */
    expect(f, RECORDED_NONE, "");
}

/* A tune with more effort measures anew, and what less effort found holds its place. */
static void what_is_tuned_anew_is_held_by_what_is_recorded(void **state)
{
    struct fixture *f = *state;
    struct record r;
    assert_false(recorded_holds(&f->q, &f->p, &r));
    strcpy(f->r.origin, "borrowed");
    expect(f, RECORDED_NONE, "");
    assert_false(recorded_holds(&f->q, &f->p, &r));
    strcpy(f->r.origin, "tuned");
    strcpy(f->r.effort, "quick");
    expect(f, RECORDED_NONE, "");
    assert_true(recorded_holds(&f->q, &f->p, &r));
    assert_string_equal(r.params, f->r.params);
    memset(f->r.source, 'c', 64);                         /* not what this version would make of it */
    expect(f, RECORDED_NONE, "");
    assert_false(recorded_holds(&f->q, &f->p, &r));
}

static void what_somebody_wrote_in_it_is_not_believed(void **state)
{
    struct fixture *f = *state;
    struct record good = f->r;
    snprintf(f->r.params, sizeof f->r.params, "threads=77");
    record_name(f->r.kernel, &f->r);
    expect(f, RECORDED_NONE, "what is recorded is not believed: ");
    f->r = good;
    f->r.launch.phase[0].threads *= 2;
    expect(f, RECORDED_NONE, "what is recorded is not believed: ");
    f->r = good;
    memset(f->r.source, 'c', 64);
    expect(f, RECORDED_NONE, "what is recorded is not believed: ");
    f->r = good;
    strcpy(f->r.kernel, "another");
    expect(f, RECORDED_NONE, "");                         /* the store does not give it out */
    f->r = good;
    expect(f, RECORDED_GOOD, "");
}

static void a_winner_set_aside_is_kept_but_not_read(void **state)
{
    struct fixture *f = *state;
    char path[Q_PATH], why[200], *text;
    struct store_key k = { f->r.op, f->r.shape, 0, 0, f->r.profile, CARD, f->r.generator };
    struct q_err e;
    size_t n;
    assert_int_equal(store_set_aside(f->s, &k, path, &e), Q_EMISS);
    expect(f, RECORDED_GOOD, "");
    assert_int_equal(store_set_aside(f->s, &k, path, &e), Q_OK);
    assert_int_equal(find(f, why), RECORDED_NONE);
    assert_int_equal(file_read(path, RECORD_BYTES, &text, &n, &e), Q_OK);
    free(text);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_is_as_it_was_stays), T(another_driver_or_compiler_is_looked_at_again), T(what_is_not_known_did_not_change),
        T(without_its_object_it_is_built_again), T(less_effort_other_steps_and_other_origins_are_none),
        T(what_is_tuned_anew_is_held_by_what_is_recorded), T(what_somebody_wrote_in_it_is_not_believed),
        T(a_winner_set_aside_is_kept_but_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
