/* swiglu_n77_f32_scalar_none: y = silu(gate) * up, silu(x) = x / (1 + e^-x).
 *   gate, up, y: [n_rows][77] fp32
 *   all rows are one array; part p of the team owns the p-th run of it
 *   moves 924 bytes a row, about 25 operations a value: bound by the exponential within the caches, by memory beyond
 *   caller: n_rows >= 0; y may be gate or up
 * made by: quarry-gen swiglu --shape n=77,out=f32 --params isa=scalar,fma=none */
#include "kernel.h"
#include "args.h"

typedef f32 vf;
typedef i32 vi;

static inline vf vset(f32 x) { return x; }
static inline vf vload(const f32 *p) { return *p; }
static inline void vstore(f32 *p, vf v) { *p = v; }

/* The same bits as integers and back. */
static inline vi vbits(vf v) { union { vf f; vi i; } u = {.f = v}; return u.i; }
static inline vf vfloat(vi v) { union { vi i; vf f; } u = {.i = v}; return u.f; }

/* Masks: all bits of a lane set where true. */
static inline vi vless(vf a, vf b) { return -(a < b); }
static inline vf vselect(vi mask, vf yes, vf no) { return vfloat((mask & vbits(yes)) | (~mask & vbits(no))); }

/* This path has no fused multiply-add: rounds twice. */
static inline vf vfma(vf a, vf b, vf c) { return a * b + c; }

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

static inline vf vsilu(vf x) { return x / (1.0f + vexp(-x)); }

void swiglu_n77_f32_scalar_none(const struct swiglu_args *a, struct team *t)
{
    i64 begin, end;
    team_share(t, (i64)*a->n_rows * 77, 128, &begin, &end);
    for (i64 i = begin; i < end; i += 1) vstore(a->y + i, vsilu(vload(a->gate + i)) * vload(a->up + i));
}
