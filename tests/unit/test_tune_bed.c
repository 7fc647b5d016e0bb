/* Cases on a card, with a device of this test whose memory is the host's and whose kernels are C: what goes there, what comes back, which
 * addresses move along, what a kernel may not do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/bed.h"
#include "templates/kv_append/args.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE "kv_heads=2,head_dim=32,fk=f16,fv=f16"

static const struct op_ref *ref;
static struct q_shape shape;

/* What a launch does: the truth, or something that no kernel may do. */
enum deed { RIGHT, WRONG, NOTHING, BEFORE_BUFFER, INPUT, WEIGHTS_END, BREAKS };

struct card {
    struct q_device device;
    enum deed deed;
    unsigned char *base;       /* of the last block handed out */
    size_t bytes;
    int launches, blocks;
    struct q_extent extent;
};

static void *take(struct q_device *d, size_t bytes, struct q_err *e)
{
    struct card *c = (struct card *)d;
    c->base = aligned_alloc(256, (bytes + 255) / 256 * 256);
    c->bytes = bytes;
    c->blocks++;
    memset(c->base, 0, bytes);
    return c->base;
}

static void release(struct q_device *d, void *p)
{
    ((struct card *)d)->blocks--;
    free(p);
}

static int move(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e)
{
    memcpy(dst, src, bytes);
    return Q_OK;
}

static int on_card(const struct card *c, const void *p) { return (const unsigned char *)p >= c->base && (const unsigned char *)p < c->base + c->bytes; }

/* All that a kernel would follow must lie on the card. */
static void addresses_lie_there(const struct card *c, const struct kv_append_args *a)
{
    const struct step *s = a->step;
    assert_true(on_card(c, s) && on_card(c, a->k) && on_card(c, a->v) && on_card(c, a->pages_k) && on_card(c, a->pages_v));
    assert_true(on_card(c, s->token) && on_card(c, s->pos) && on_card(c, s->seq) && on_card(c, s->kv) && on_card(c, s->seq_row));
    assert_true(on_card(c, s->seq_rows) && on_card(c, s->pages) && on_card(c, s->seq_segment) && on_card(c, s->segments) && on_card(c, s->out));
    assert_null(s->embd);
}

static void act(const struct card *c, const struct kv_append_args *a)
{
    if (c->deed == NOTHING) return;
    ref->run(a, &shape);
    if (c->deed == WRONG) ((u16 *)a->pages_k)[(size_t)a->step->pages[0] * KV_PAGE * 64] ^= 0x4000;
    if (c->deed == BEFORE_BUFFER) ((u16 *)a->pages_v)[-1] = 7;
    if (c->deed == INPUT) ((f32 *)(uintptr_t)a->k)[0] += 1;
    if (c->deed == WEIGHTS_END) ((unsigned char *)(uintptr_t)a->step)[sizeof *a->step] = 1;
}

static int submit(struct q_device *d, const struct q_list *l, const struct q_extent *x, double *trace, struct q_err *e)
{
    struct card *c = (struct card *)d;
    if (c->deed == BREAKS) return q_fail(e, Q_EIO, "illegal address");
    c->extent = *x;
    for (int i = 0; i < l->n; i++, c->launches++) {
        if (!i) addresses_lie_there(c, l->launch[i].args);
        act(c, l->launch[i].args);
    }
    return Q_OK;
}

static int wait_all(struct q_device *d, struct q_err *e) { return Q_OK; }

static int time_list(struct q_device *d, const struct q_list *l, const struct q_extent *x, int times, double *us, struct q_err *e)
{
    struct card *c = (struct card *)d;
    c->launches += l->n * times;
    *us = 10.0 * l->n;
    return c->deed == BREAKS ? q_fail(e, Q_EIO, "illegal address") : Q_OK;
}

static const struct q_device_ops ops = { .name = "test", .object_kind = "cubin", .alloc = take, .release = release, .write = move, .read = move, .submit = submit,
                                         .wait = wait_all, .time = time_list };

static int setup(void **state)
{
    static struct card c;
    c = (struct card){ .device = { .ops = &ops, .parts = 4 } };
    *state = &c;
    ref = ref_find("kv_append");
    return !ref || shape_parse(&shape, SHAPE, NULL);
}

static const struct ref_size size = { 7, 3, 70, 4, 0 };

static struct bed bed_of(struct card *c) { return (struct bed){ .card = &c->device, .parts = 4 }; }

static int verdict(struct card *c, enum deed deed, int *fault, struct q_err *e)
{
    struct bed b = bed_of(c);
    struct bed_truth t;
    struct q_kernel k = { 0 };
    unsigned long long hash[2];
    c->deed = deed;
    *fault = 0;
    assert_int_equal(bed_truth_make(&b, &t, NULL, ref, &shape, &size, 5, NULL), 0);
    int rc = bed_truth_check(&b, &t, &k, "canonical", &hash[0], fault, e);
    if (!rc && !(rc = bed_truth_check(&b, &t, &k, "canonical", &hash[1], fault, e))) assert_true(hash[0] == hash[1]);
    bed_truth_free(&b, &t);
    assert_int_equal(c->blocks, 0);
    return rc;
}

static void the_truth_passes_there(void **state)
{
    struct card *c = *state;
    struct q_err e = { 0 };
    int fault;
    assert_int_equal(verdict(c, RIGHT, &fault, &e), Q_OK);
    assert_int_equal(c->launches, 2);
    assert_int_equal(c->extent.rows, 7);
    assert_int_equal(c->extent.seqs, 3);
    assert_int_equal(c->extent.ctx, 77);
}

static void what_no_kernel_may_do_shows(void **state)
{
    static const struct { enum deed deed; const char *says; } deeds[] = {
        { WRONG, "expected" }, { NOTHING, "expected" }, { BEFORE_BUFFER, "written outside" }, { INPUT, "an input was written" }, { WEIGHTS_END, "step: written outside" } };
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++) {
        struct q_err e = { 0 };
        int fault;
        assert_int_equal(verdict(*state, deeds[i].deed, &fault, &e), Q_EINTERNAL);
        if (!strstr(e.text, deeds[i].says)) fail_msg("'%s' lacks '%s'", e.text, deeds[i].says);
        assert_int_equal(fault, 0);
    }
}

static void a_broken_card_is_a_fault(void **state)
{
    struct q_err e = { 0 };
    int fault;
    assert_int_not_equal(verdict(*state, BREAKS, &fault, &e), Q_OK);
    assert_int_equal(fault, 1);
    assert_string_equal(e.text, "illegal address");
}

/* What one candidate spoiled is right again for the next. */
static void outputs_are_put_back(void **state)
{
    struct card *c = *state;
    struct bed b = bed_of(c);
    struct bed_truth t;
    struct q_kernel k = { 0 };
    unsigned long long hash;
    int fault = 0;
    assert_int_equal(bed_truth_make(&b, &t, NULL, ref, &shape, &size, 5, NULL), 0);
    for (int i = 0; i < 10; i++) {
        c->deed = i % 2 ? RIGHT : WRONG + i / 2;
        assert_int_equal(bed_truth_check(&b, &t, &k, "canonical", &hash, &fault, NULL), i % 2 ? Q_OK : Q_EINTERNAL);
    }
    bed_truth_free(&b, &t);
}

static void a_ring_is_larger_than_a_cache(void **state)
{
    struct card *c = *state;
    struct bed b = bed_of(c);
    struct bed_ring r;
    struct q_kernel k = { 0 };
    double us;
    int fault = 0, disturbed = 1;
    assert_int_equal(bed_ring_make(&b, &r, ref, &shape, &size, 1e6, NULL), 0);
    assert_true(r.n > 1 && (double)r.p[0].bytes * r.n >= 1e6 && (double)r.p[0].bytes * (r.n - 1) < 1e6);
    assert_int_equal(c->blocks, r.n);
    for (int i = 1; i < r.n; i++) assert_memory_not_equal(r.p[0].args, r.p[i].args, ref->args_bytes);
    assert_int_equal(bed_time(&b, &r, &k, r.n + 1, &us, &disturbed, &fault, NULL), 0);
    assert_int_equal(c->launches, 2 * r.n);
    assert_float_equal(us, 10, 1e-9);
    assert_false(disturbed);
    bed_ring_free(&b, &r);
    assert_int_equal(c->blocks, 0);
}

/* A large output of which little is written: its copies keep that alone, yet any byte elsewhere shows, and hashes are those of all bytes. */
static void a_large_output_is_kept_in_pieces(void **state)
{
    (void)state;
    enum { BYTES = 3 * 65536 + 5 };
    struct q_err e = { 0 };
    struct ref_case *c = ref_case_open();
    unsigned char *dst = ref_buf(c, "dst", REF_OUT, REF_BYTES, BYTES, 0);
    struct ref_case *begin = ref_case_copy(c);
    dst[70000] = 7;
    struct ref_case *want = ref_case_copy(c);
    assert_int_equal(ref_case_compare(want, c, "canonical", &e), Q_OK);
    assert_true(ref_case_hash(want) == ref_case_hash(c));
    assert_true(ref_case_hash(begin) != ref_case_hash(c));
    dst[BYTES - 1] = 8;
    assert_int_equal(ref_case_compare(want, c, "canonical", &e), Q_EINTERNAL);
    assert_non_null(strstr(e.text, "dst[196612] of 196613: expected 255"));
    assert_true(ref_case_hash(want) != ref_case_hash(c));
    ref_case_restore(c, begin);
    assert_true(dst[70000] == 0xFF && dst[BYTES - 1] == 0xFF && ref_case_hash(begin) == ref_case_hash(c));
    ref_case_close(begin);
    ref_case_close(want);
    ref_case_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_truth_passes_there, setup), cmocka_unit_test_setup(what_no_kernel_may_do_shows, setup),
        cmocka_unit_test_setup(a_broken_card_is_a_fault, setup), cmocka_unit_test_setup(outputs_are_put_back, setup),
        cmocka_unit_test(a_large_output_is_kept_in_pieces),
        cmocka_unit_test_setup(a_ring_is_larger_than_a_cache, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
