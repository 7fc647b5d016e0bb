/* Default params are legal for every problem of the known models, on cards of each kind and for each type of weights: the path that is left
 * when nothing was tuned must always be there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gen/gen.h"
#include "runtime/card.h"
#include "runtime/kset.h"
#include "runtime/model.h"
#include "runtime/presets.h"
#include <stdlib.h>
#include <string.h>

static const char *layout_for(void *card, const char *type, long n, long n_k)
{
    (void)n_k;
    if (strcmp(type, "q8_0")) return "rows";
    return ((const struct q_card *)card)->kind == Q_CARD_CUDA ? "planes" : n % 16 ? "rows" : "r16u";
}

/* Emits the default of each problem; those of a shape for several step sizes are one. */
static int emit_all(struct gen *g, struct q_problem_list *l, const char *key)
{
    int failed = 0;
    for (int i = 0; i < l->n; i++) {
        struct gen_kernel k;
        struct q_err e;
        const struct q_problem *p = &l->p[i];
        if (!strcmp(p->op, "layout") || (i && !strcmp(p->op, l->p[i - 1].op) && !strcmp(p->shape, l->p[i - 1].shape))) continue;
        if (gen_emit(g, p->op, p->shape, NULL, key, "pinned", &k, &e)) failed++, print_error("%s %s on %s: %s\n", p->op, p->shape, key, e.text);
        else gen_kernel_free(&k);
    }
    return failed;
}

static int check_model(struct gen *g, const char *preset, const char *type, const char *key)
{
    struct q_model *m;
    struct q_card card;
    struct q_problem_list l;
    struct q_err e;
    assert_int_equal(card_parse(&card, key, &e), Q_OK);
    assert_int_equal(model_open_preset(&m, preset, type, Q_MADE_LATER, &e), Q_OK);
    assert_int_equal(kset_problems(m, &card, Q_PINNED, "f16", "f16", 0, layout_for, &card, &l, &e), Q_OK);
    int failed = emit_all(g, &l, key);
    free(l.p);
    model_close(m);
    return failed;
}

static void test_of_every_model(void **state)
{
    static const char *const keys[] = { "cuda:sm_60,sms=56,l2=4096,bus=4096,smem=64", "cuda:sm_90,sms=132,l2=61440,bus=6016,smem=227",
                                        "cpu:amd-25-17,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=1024,l3=32768,t=2" };
    static const char *const types[] = { "q8_0", "f16" };
    struct gen *g;
    struct q_err e;
    int failed = 0;
    assert_int_equal(gen_open(&g, NULL, &e), Q_OK);
    for (int i = 0; i < q_n_presets; i++) {
        if (!strcmp(q_presets[i].name, "qwen3.6-27b")) continue;   /* the shape of qwen3.5-27b */
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) failed += check_model(g, q_presets[i].name, types[t], keys[k]);
    }
    gen_close(g);
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_of_every_model) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
