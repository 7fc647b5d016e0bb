/* A card's key is read twice: runtime/card.c by all programs, gen/card.lua by the generator. Both give the same verdict on each of these, and
 * see the same card. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gen/gen.h"
#include "runtime/card.h"
#include <string.h>

static const char *const good[] = {
    "cuda:sm_60", "cuda:sm_70", "cuda:sm_070", "cuda:sm_88", "cuda:sm_90", "cuda:sm_107", "cuda:sm_121", "cuda:sm_999", "cuda:sm_70,sms=3", "cuda:sm_70,sms=1", "cuda:sm_70,sms=1024", "cuda:sm_70,sms=003",
    "cuda:sm_70,l2=5", "cuda:sm_70,l2=1048576", "cuda:sm_70,bus=16384", "cuda:sm_70,smem=16", "cuda:sm_70,smem=1024", "cuda:sm_70,sms=3,smem=64",
    "cuda:sm_70,without=mma", "cuda:sm_90,sms=3,without=mma+dp4a", "cuda:sm_60,without=mma+dp4a", "cuda:sm_70,bus=32,without=mma", "cuda:sm_90,sms=132,l2=61440,bus=6144,smem=227",
    "cuda:sm_80,sms=72,l2=40960,bus=5120,smem=163,without=mma", "cpu:scalar", "cpu:avx2", "cpu:avxvnni", "cpu:avx512vnni", "cpu:avx2,l1=0",
    "cpu:avx2,l2=512,t=2", "cpu:avx2,l3=16777216", "cpu:avx2,t=4096", "cpu:amd-25-17,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=1024,l3=32768,t=2",
    "cpu:other-0-0,isa=scalar,l1=32,l2=512,l3=0,t=1", "cpu:other-65535-65535,isa=scalar+scalar,l1=32,l2=512,l3=0,t=1",
};

static const char *const bad[] = {
    "", ":", "cuda:", "cpu:", "gpu:sm_70", "CUDA:sm_70", " cuda:sm_70", "cuda:sm_70 ", "cuda:sm_", "cuda:sm_5", "cuda:sm_59", "cuda:sm_1000", "cuda:sm_63", "cuda:sm_71", "cuda:sm_73", "cuda:sm_74", "cuda:sm_77", "cuda:sm_91", "cuda:sm_99",
    "cuda:sm_-70", "cuda:sm_+70", "cuda:sm_99999999999999999999", "cuda:sm_70,", "cuda:sm_70,,sms=3", "cuda:sm_70sms=3", "cuda:sm_70,sms",
    "cuda:sm_70,sms=", "cuda:sm_70,sms=x", "cuda:sm_70,sms=-3", "cuda:sm_70,sms=3x", "cuda:sm_70,sms=3,", "cuda:sm_70,sms=3,sms=4",
    "cuda:sm_70,l2=5,sms=3", "cuda:sm_70,sms=0", "cuda:sm_70,sms=1025", "cuda:sm_70,sms=9999999", "cuda:sm_70,sms=18446744073709551617",
    "cuda:sm_70,l2=0", "cuda:sm_70,l2=1048577", "cuda:sm_70,bus=0", "cuda:sm_70,bus=16385", "cuda:sm_70,smem=15", "cuda:sm_70,smem=1025",
    "cuda:sm_70,t=3", "cuda:sm_70without=mma", "cuda:sm_70,without=", "cuda:sm_70,without=dp4a", "cuda:sm_70,without=dp4a+mma", "cuda:sm_70,without=mma+", "cuda:sm_70,without=mma+dp4a+mma",
    "cuda:sm_70,without=mma+dp4", "cuda:sm_70,without=mma+dp4ax", "cuda:sm_70,without=mma,sms=3",
    "cuda:sm_70,without=mma,", "cuda:sm_70,without=mma,without=mma", "cpu:z80", "cpu:avx", "cpu:avx2,", "cpu:avx2,t=0", "cpu:avx2,t=4097",
    "cpu:avx2,l1=16777217", "cpu:avx2,t=2,l1=32", "cpu:avx2,isa=scalar", "cpu:avx2,l1=32,l1=32", "cpu:avx2+scalar", "cpu:amd-25", "cpu:amd-25-17",
    "cpu:amd-25-17,l1=32", "cpu:amd-25-17,isa=avx3+scalar,l1=32,l2=1,l3=1,t=1", "cpu:amd-25-17,isa=avx2,l1=32,l2=1,l3=1,t=1",
    "cpu:amd-25-17,isa=+scalar,l1=32,l2=1,l3=1,t=1", "cpu:amd-25-17,isa=scalar+,l1=32,l2=1,l3=1,t=1", "cpu:amd-25-17,isa=scalar",
    "cpu:amd-25-17,isa=scalar,l1=32,l2=1,l3=1", "cpu:amd-25-17,isa=scalar,l1=32,l3=1,t=1", "cpu:amd-25-17,isa=scalar,l1=32,l2=1,l3=1,t=1,",
    "cpu:amd-65536-1,isa=scalar,l1=32,l2=1,l3=1,t=1", "cpu:amd-99999999999999999999-1,isa=scalar,l1=32,l2=1,l3=1,t=1",
    "cpu:amd-99999999999999999999-1,isa=scalar", "cpu:AMD-25-17,isa=scalar,l1=32,l2=1,l3=1,t=1",
    "cpu:amdamdamdamdamdamd-25-17,isa=scalar,l1=1,l2=1,l3=1,t=2",
};

static int lua_verdict(struct gen *g, const char *key, struct q_err *e)
{
    struct gen_kernel k;
    int rc = gen_emit(g, "rmsnorm", "n=64,out=f32", "", key, "pinned", &k, e);
    if (!rc) gen_kernel_free(&k);
    return rc;
}

static void both_accept(void **state)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct q_card c;
        struct q_err e = { 0 };
        if (card_parse(&c, good[i], &e) || lua_verdict(*state, good[i], &e)) fail_msg("'%s' is a card, but: %s", good[i], e.text);
    }
}

static void both_refuse(void **state)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct q_card c;
        struct q_err e;
        if (card_parse(&c, bad[i], &e) != Q_EINPUT) fail_msg("card.c takes '%s'", bad[i]);
        if (lua_verdict(*state, bad[i], &e) != Q_EINPUT) fail_msg("card.lua takes '%s'", bad[i]);
        if (!strstr(e.text, bad[i])) fail_msg("the line does not name '%s': %s", bad[i], e.text);
    }
}

/* What was left out is the same on both sides: candidates of a short key are those of the full key that card.c makes of it. */
static int note(void *arg, const char *params, int legal, const char *reason)
{
    unsigned *hash = arg;
    *hash = *hash * 31 + (unsigned)legal;
    for (const char *p = params; *p; p++) *hash = *hash * 31 + (unsigned char)*p;
    for (const char *p = reason; *p; p++) *hash = *hash * 31 + (unsigned char)*p;
    return 0;
}

static void both_see_one_card(void **state)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct q_card c;
        struct q_err e = { 0 };
        struct gen_kernel a, b;
        unsigned typed = 0, full = 0;
        assert_int_equal(card_parse(&c, good[i], &e), 0);
        const char *op = c.kind == Q_CARD_CUDA ? "attn_prefill" : "matvec";
        const char *shape = c.kind == Q_CARD_CUDA ? "heads=16,kv_heads=4,head_dim=256,fk=f16,fv=f16,out=q8"
                                                  : "type=q8_0,act=q8,layout=rows,n=64,k=64,epi=none";
        if (gen_space(*state, op, shape, good[i], "pinned", note, &typed, &e)) fail_msg("%s", e.text);
        if (gen_space(*state, op, shape, c.key, "pinned", note, &full, &e)) fail_msg("%s", e.text);
        if (typed != full) fail_msg("'%s' has other candidates than '%s'", good[i], c.key);
        if (c.kind != Q_CARD_CUDA) continue;
        assert_int_equal(gen_emit(*state, "ceiling", "what=ffma", "", good[i], "pinned", &a, &e), 0);
        assert_int_equal(gen_emit(*state, "ceiling", "what=ffma", "", c.key, "pinned", &b, &e), 0);
        assert_memory_equal(&a.launch, &b.launch, sizeof a.launch);
        assert_int_equal(a.launch.phase[0].grid[0].mul % c.sms, 0);
        gen_kernel_free(&a);
        gen_kernel_free(&b);
    }
}

static int open_gen(void **state)
{
    struct q_err e;
    return gen_open((struct gen **)state, NULL, &e);
}

static int close_gen(void **state)
{
    gen_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(both_accept), cmocka_unit_test(both_refuse), cmocka_unit_test(both_see_one_card) };
    return cmocka_run_group_tests(tests, open_gen, close_gen);
}
