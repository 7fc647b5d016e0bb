/* topk_n1000_k8_scalar_none_block64: the 8 largest of each row, descending, lower id first on a tie, and the row's logsumexp.
 *     NaN counts as -inf.
 *   logits: [n_rows][1000] fp32; id, value: [n_rows][8]; lse: [n_rows]
 *   part p of the team owns the p-th run of rows
 *   first pass: the list, entered only from blocks of 64 whose maximum beats the last of the list;
 *   second pass: exp in fp32, 32 at a time folded by halves, blocks summed in fp64
 *   moves 4000 bytes a row twice (the second time from cache): bound by exp
 *   caller: n_rows >= 0
 * made by: quarry-gen topk --shape n=1000,k=8 --params isa=scalar,fma=none,block=64 */
#include "kernel.h"
#include "args.h"

typedef f32 vf;
typedef i32 vi;

static inline vf vset(f32 x) { return x; }
static inline vf vload(const f32 *p) { return *p; }

/* The same bits as integers and back. */
static inline vi vbits(vf v) { union { vf f; vi i; } u = {.f = v}; return u.i; }
static inline vf vfloat(vi v) { union { vi i; vf f; } u = {.i = v}; return u.f; }

/* Masks: all bits of a lane set where true. */
static inline vi vless(vf a, vf b) { return -(a < b); }
static inline vf vselect(vi mask, vf yes, vf no) { return vfloat((mask & vbits(yes)) | (~mask & vbits(no))); }
static inline vf vmaxf(vf a, vf b) { return a > b ? a : b; }

/* This path has no fused multiply-add: rounds twice. */
static inline vf vfma(vf a, vf b, vf c) { return a * b + c; }

static inline f32 vsum(vf v)
{
    return v;
}

static inline f32 vhmax(vf v)
{
    return v;
}

/* e^x = 2^k e^r, k = round(x / ln 2), |r| <= ln(2) / 2; ln 2 in two parts, so that r is exact to its last bits; e^r by a
 * polynomial of degree 6 (error 3e-9). Below -87.33 the result is 0, above 88.72 infinite; NaN stays NaN. */
static inline vf vexp(vf x)
{
    vf t = vfma(x, vset(1.44269502f), vset(12582912.0f));
    vf k = t - 12582912.0f;
    vf r = vfma(k, vset(-0.693359375f), x);
    r = vfma(k, vset(0.000212194442f), r);
    vf p = vset(0.00138143206f);
    p = vfma(p, r, vset(0.00836885069f));
    p = vfma(p, r, vset(0.0416684002f));
    p = vfma(p, r, vset(0.166665196f));
    p = vfma(p, r, vset(0.49999994f));
    p = vfma(p * r, r, r) + 1.0f;
    vf y = vfloat(vbits(p) + (vbits(t) << 23));
    y = vselect(vless(x, vset(-87.33f)), vset(0), y);
    return vselect(vless(vset(88.72f), x), vset(__builtin_inff()), y);
}

/* One lane of vexp. */
static inline f32 sexp(f32 x) { return vexp(vset(x)); }

/* x, or -inf for NaN, the one value that differs from itself. */
static inline f32 number(f32 x) { return x == x ? x : -__builtin_inff(); }

/* Puts (x, i) into the first `count` of a descending list, below its equals; what was last at `count` falls out. */
static void insert(f32 *value, i32 *id, int count, f32 x, i32 i)
{
    for (; count > 0 && value[count - 1] < x; count--) {
        value[count] = value[count - 1];
        id[count] = id[count - 1];
    }
    value[count] = x;
    id[count] = i;
}

/* Elements [begin, end) that beat the last of a full list. */
static void offer(f32 *value, i32 *id, const f32 *x, i64 begin, i64 end)
{
    for (i64 i = begin; i < end; i++)
        if (x[i] > value[7]) insert(value, id, 7, x[i], (i32)i);
}

static inline f32 block_max(const f32 *x)
{
    vf m = vload(x);
    m = number(m);
    for (int i = 1; i < 64; i += 1) m = vmaxf(vload(x + i), m);   /* a NaN gives way to the second operand */
    return vhmax(m);
}

static void largest(f32 *value, i32 *id, const f32 *x)
{
    for (int i = 0; i < 8; i++) insert(value, id, i, number(x[i]), i);
    offer(value, id, x, 8, 64);
    for (i64 i = 64; i < 960; i += 64)
        if (block_max(x + i) > value[7]) offer(value, id, x, i, i + 64);
    offer(value, id, x, 960, 1000);
}

static f32 logsumexp(const f32 *x, f32 max)
{
    f64 sum = 0;
    if (max - max != 0) return max;                  /* all -inf, or an infinite logit */
    for (i64 i = 0; i < 992; i += 32) {
        vf e[32];
        for (int j = 0; j < 32; j++) e[j] = vexp(vmaxf(vload(x + i + j), vset(-__builtin_inff())) - max);
        for (int half = 16; half > 0; half /= 2)
            for (int j = 0; j < half; j++) e[j] += e[j + half];
        sum += vsum(e[0]);
    }
    for (i64 i = 992; i < 1000; i++) sum += sexp(number(x[i]) - max);
    return (f32)(max + __builtin_log(sum));
}

void topk_n1000_k8_scalar_none_block64(const struct topk_args *a, struct team *t)
{
    i64 begin, end;
    team_share(t, *a->n_rows, 1, &begin, &end);
    for (i64 r = begin; r < end; r++) {
        const f32 *x = a->logits + r * 1000;
        largest(a->value + r * 8, a->id + r * 8, x);
        a->lse[r] = logsumexp(x, a->value[r * 8]);
    }
}
