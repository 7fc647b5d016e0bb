/* Which candidates a tune tries: from real spaces, for a card that is written down here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/sizes.h"
#include "autotune/space.h"
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#define CARD "cpu:amd-25-17,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=1024,l3=32768,t=2"
#define SHAPE "type=q8_0,act=q8,layout=r16u,n=2048,k=1024,epi=none"

static struct gen *g;

static int open_generator(void **state)
{
    struct q_err e;
    return gen_open(&g, NULL, &e);
}

static int close_generator(void **state)
{
    gen_close(g);
    return 0;
}

static struct space open_space(const char *op, const char *shape)
{
    struct space s;
    struct q_err e = { 0 };
    assert_int_equal(space_open(&s, g, op, shape, CARD, "pinned", &e), Q_OK);
    return s;
}

static void default_params(const char *op, const char *shape, char params[256])
{
    struct gen_kernel k;
    struct q_err e;
    assert_int_equal(gen_emit(g, op, shape, NULL, CARD, "pinned", &k, &e), Q_OK);
    strcpy(params, k.params);
    gen_kernel_free(&k);
}

static void test_what_is_pruned_has_a_reason(void **state)
{
    struct space s = open_space("matmul", SHAPE);
    int pruned = 0, isa = 0;
    for (int i = 0; i < s.n_reasons; i++) {
        pruned += s.reason[i].n;
        isa |= !strcmp(s.reason[i].text, "the card has the instruction path");
    }
    assert_true(s.n > 20 && s.n < s.total);
    assert_int_equal(pruned, s.total - s.n);
    assert_true(isa);
    space_close(&s);
}

static void test_default_first_and_winners_of_others_beside_what_is_drawn(void **state)
{
    struct space s = open_space("matmul", SHAPE);
    char first[256], seeds[2][256] = { "", "isa=none,tm=1" };
    int picked[24], again[24];
    default_params("matmul", SHAPE, first);
    int at = 0;
    assert_int_equal(space_pick(&s, first, &(struct space_plan){ 0, 0, 12 }, NULL, 0, 7, again), 12);
    assert_int_equal(again[0], space_find(&s, first));
    for (int i = 0; i < 12; i++) at += again[i] == at;      /* one that is not drawn */
    strcpy(seeds[0], s.params[at]);
    int n = space_pick(&s, first, &(struct space_plan){ 0, 0, 12 }, (const char (*)[256])seeds, 2, 7, picked);
    assert_int_equal(n, 13);
    assert_memory_equal(picked, again, 12 * sizeof *picked);      /* what won before changes nothing about what is drawn */
    assert_int_equal(picked[12], at);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) assert_int_not_equal(picked[i], picked[j]);
    space_pick(&s, first, &(struct space_plan){ 0, 0, 12 }, (const char (*)[256])seeds, 2, 8, again);
    assert_memory_not_equal(picked, again, 12 * sizeof *picked);
    space_close(&s);
}

static int on_path(const struct space *s, const int *picked, int n, const char *path)
{
    int k = 0;
    for (int i = 0; i < n; i++) k += strstr(s->params[picked[i]], path) != NULL;
    return k;
}

static void test_the_best_path_gets_most(void **state)
{
    struct space s = open_space("matvec", SHAPE);
    char first[256];
    int picked[24];
    default_params("matvec", SHAPE, first);
    assert_int_equal(space_pick(&s, first, &(struct space_plan){ 0, 0, 24 }, NULL, 0, 1, picked), 24);
    assert_int_equal(on_path(&s, picked, 24, "isa=avx512vnni"), 20);
    assert_int_equal(space_pick(&s, first, &(struct space_plan){ 0, 0, 6 }, NULL, 0, 1, picked), 6);
    assert_int_equal(on_path(&s, picked, 6, "isa=avx512vnni"), 6);
    space_close(&s);
}

static void test_neighbours_of_the_default_come_before_the_draw(void **state)
{
    struct space s = open_space("matvec", SHAPE);
    char first[256];
    int picked[24], steps[32];
    default_params("matvec", SHAPE, first);
    int n = space_near(&s, space_find(&s, first), 1, steps, 32), beside = 0;
    assert_true(n >= 3);
    assert_int_equal(space_pick(&s, first, &(struct space_plan){ 0, 3, 8 }, NULL, 0, 1, picked), 11);
    for (int i = 1; i < 4; i++)
        for (int j = 0; j < n; j++) beside += steps[j] == picked[i];
    assert_int_equal(beside, 3);
    assert_int_equal(on_path(&s, picked, 11, "isa=avx512vnni"), 9);
    space_close(&s);
}

static void test_a_path_with_few_is_tried_whole(void **state)
{
    struct space s = open_space("matmul", SHAPE);
    char first[256];
    int picked[128], all = 0;
    default_params("matmul", SHAPE, first);
    for (int i = 0; i < s.n; i++) all += strstr(s.params[i], "isa=avx512vnni") != NULL;
    assert_int_equal(space_pick(&s, first, &(struct space_plan){ all, 4, 8 }, NULL, 0, 1, picked), all + 2);
    assert_int_equal(on_path(&s, picked, all + 2, "isa=avx512vnni"), all);
    assert_string_equal(s.params[picked[0]], first);
    assert_int_equal(space_pick(&s, first, &(struct space_plan){ all - 1, 4, 8 }, NULL, 0, 1, picked), 12);
    space_close(&s);
}

static void test_a_default_outside_the_space_picks_nothing(void **state)
{
    struct space s = open_space("rmsnorm", "n=256,out=q8");
    int picked[4];
    assert_int_equal(space_pick(&s, "isa=abacus", &(struct space_plan){ 0, 4, 4 }, NULL, 0, 1, picked), 0);
    assert_int_equal(space_find(&s, "isa=abacus"), -1);
    space_close(&s);
}

static void test_steps_are_one_value_of_one_param(void **state)
{
    struct space s = open_space("matmul", SHAPE);
    int at = space_find(&s, "isa=avx512vnni,fma=hw,tm=2,tn=4,chain=chunk"), steps[32], seen = 0;
    assert_true(at >= 0);
    int n = space_near(&s, at, 1, steps, 32);
    for (int i = 0; i < n; i++) {
        const char *p = s.params[steps[i]];
        assert_int_not_equal(steps[i], at);
        seen |= 1 * !strcmp(p, "isa=avx512vnni,fma=hw,tm=1,tn=4,chain=chunk") | 2 * !strcmp(p, "isa=avx512vnni,fma=hw,tm=3,tn=4,chain=chunk")
                | 4 * !strcmp(p, "isa=avx512vnni,fma=hw,tm=2,tn=3,chain=chunk") | 8 * !strcmp(p, "isa=avx512vnni,fma=hw,tm=2,tn=5,chain=chunk");
        assert_null(strstr(p, "tm=4"));
        assert_null(strstr(p, "tn=8"));
    }
    assert_int_equal(seen, 15);
    assert_true(space_near(&s, at, 1, steps, 2) == 2);
    space_close(&s);
}

static const struct q_problem *problem(const char *op, const char *shape)
{
    static struct q_problem p;
    p = (struct q_problem){ .rows = 0 };
    snprintf(p.op, sizeof p.op, "%s", op);
    snprintf(p.shape, sizeof p.shape, "%s", shape);
    return &p;
}

static void test_sizes_of_a_bucket_lie_in_it(void **state)
{
    struct q_card card;
    struct sizes s;
    struct q_err e;
    struct q_problem p = *problem("matmul", SHAPE);
    assert_int_equal(card_parse(&card, "cpu:avx2", &e), Q_OK);
    p.rows = 64;
    assert_int_equal(sizes_of(&s, g, &card, &p, &e), Q_OK);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.time[0].rows, 64);
    assert_int_equal(s.time[1].rows, 16);
    assert_float_equal(s.weight[0] + s.weight[1], 1, 1e-9);
    p = *problem("matvec", SHAPE);
    p.rows = 1;
    assert_int_equal(sizes_of(&s, g, &card, &p, &e), Q_OK);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.time[0].rows, 1);
    p = *problem("attn_decode", "heads=8,kv_heads=2,head_dim=256,fk=f16,fv=f16,out=q8");
    p.ctx = 65536;
    assert_int_equal(sizes_of(&s, g, &card, &p, &e), Q_OK);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.time[0].past, 32768);
}

static void test_large_products_are_checked_alike(void **state)
{
    static const char *const shapes[] = { SHAPE, "type=q8_0,act=q8,layout=r16u,n=4096,k=4096,epi=add" };
    struct q_card cpu;
    struct sizes v, m;
    assert_int_equal(card_parse(&cpu, "cpu:avx2", NULL), Q_OK);
    for (int large = 0; large < 2; large++) {
        assert_int_equal(sizes_of(&v, g, &cpu, problem("matvec", shapes[large]), NULL), Q_OK);
        assert_int_equal(sizes_of(&m, g, &cpu, problem("matmul", shapes[large]), NULL), Q_OK);
        assert_int_equal(!memcmp(v.check, m.check, sizeof v.check), large);
        assert_true(v.check[0].rows <= 8);
    }
}

static void test_sizes_stand_for_use_and_are_cut(void **state)
{
    struct q_card cpu, card;
    struct sizes s;
    struct q_err e;
    assert_int_equal(card_parse(&cpu, "cpu:avx2", &e), Q_OK);
    assert_int_equal(card_parse(&card, "cuda:sm_70", &e), Q_OK);
    assert_int_equal(sizes_of(&s, g, &cpu, problem("matvec", SHAPE), &e), Q_OK);
    assert_int_equal(s.time[0].rows, 1);
    assert_true(s.cold && s.weight[0] > 0.5);
    assert_int_equal(sizes_of(&s, g, &cpu, problem("matmul", SHAPE), &e), Q_OK);
    assert_int_equal(s.time[0].rows, 512);
    assert_int_equal(sizes_of(&s, g, &cpu, problem("matmul", "type=q8_0,act=q8,layout=r16u,n=248320,k=1024,epi=none"), &e), Q_OK);
    assert_int_equal(s.time[0].rows, 32);
    double sum = 0;
    for (int i = 0; i < s.n; i++) sum += s.weight[i];
    assert_float_equal(sum, 1, 1e-9);
    /* a card's: wide, but of the output head only few rows */
    assert_int_equal(sizes_of(&s, g, &card, problem("matmul", "type=q8_0,act=q8,layout=planes,n=4096,k=1024,epi=none"), &e), Q_OK);
    assert_int_equal(s.time[0].rows, 2048);
    assert_int_equal(sizes_of(&s, g, &card, problem("matmul", "type=q8_0,act=q8,layout=planes,n=248320,k=4096,epi=none"), &e), Q_OK);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.time[0].rows, 64);
    assert_int_equal(sizes_of(&s, g, &cpu, problem("no_such_op", "n=1"), &e) != Q_OK, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_pruned_has_a_reason),
        cmocka_unit_test(test_default_first_and_winners_of_others_beside_what_is_drawn),
        cmocka_unit_test(test_the_best_path_gets_most),
        cmocka_unit_test(test_neighbours_of_the_default_come_before_the_draw),
        cmocka_unit_test(test_a_path_with_few_is_tried_whole),
        cmocka_unit_test(test_a_default_outside_the_space_picks_nothing),
        cmocka_unit_test(test_steps_are_one_value_of_one_param),
        cmocka_unit_test(test_sizes_of_a_bucket_lie_in_it),
        cmocka_unit_test(test_large_products_are_checked_alike), cmocka_unit_test(test_sizes_stand_for_use_and_are_cut),
    };
    return cmocka_run_group_tests(tests, open_generator, close_generator);
}
