/* conv_silu_channels6144_taps4_avx2_hw_vecs1: y[r][c] = silu(sum_j w[c][j] * u[r-3+j][c]) along each sequence, j = 0..3.
 *   u, y [n_rows][6144]; w [6144][4]; state [slots][3][6144], oldest row first
 *   part p of the team owns the p-th run of channels, 8 at a time down all rows
 *   the 3 rows before stay in registers, and when a segment ends they are its new state, however short it was
 *   sum: the product of tap 0, then fma over ascending taps
 *   moves 8 bytes a row and channel: memory bandwidth is the roof
 *   caller: a sequence's rows and segments are consecutive; u and y do not overlap; no two sequences share a slot
 * made by: quarry-gen conv_silu --shape channels=6144,taps=4 --params isa=avx2,fma=hw,vecs=1 */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(32)));
typedef i32 vi __attribute__((vector_size(32)));
typedef f32 vf_mem __attribute__((vector_size(32), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }
static inline void vstore(f32 *p, vf v) { *(vf_mem *)p = v; }

/* x in every lane: a scalar meets a vector lane by lane, and x - 0 is x, -0 included. */
static inline vf vset(f32 x) { return x - (vf){0}; }

/* The same bits as integers and back. */
static inline vi vbits(vf v) { union { vf f; vi i; } u = {.f = v}; return u.i; }
static inline vf vfloat(vi v) { union { vi i; vf f; } u = {.i = v}; return u.f; }

/* Masks: all bits of a lane set where true. */
static inline vi vless(vf a, vf b) { return a < b; }
static inline vf vselect(vi mask, vf yes, vf no) { return vfloat((mask & vbits(yes)) | (~mask & vbits(no))); }

static inline vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps256(a, b, c); }

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

/* What a new sequence has seen: nothing. Its rows are 0 apart. */
static const f32 nothing[8];

/* One segment of channels c .. c+7; wt is w, transposed. */
static void segment_8(const struct conv_silu_args *a, const struct segment *g, i64 c, f32 (*wt)[8])
{
    const f32 *old = g->load < 0 ? nothing : a->state + (i64)g->load * 18432 + c;
    const i64 old_row = g->load < 0 ? 0 : 6144;
    const f32 *u = a->u + (i64)g->row * 6144 + c;
    f32 *y = a->y + (i64)g->row * 6144 + c;
    const vf w0_0 = vload(wt[0]);
    const vf w1_0 = vload(wt[1]);
    const vf w2_0 = vload(wt[2]);
    const vf w3_0 = vload(wt[3]);
    vf x0_0 = vload(old);
    vf x1_0 = vload(old + old_row);
    vf x2_0 = vload(old + 2 * old_row);

    for (i64 r = 0; r < g->rows; r++, u += 6144, y += 6144) {
        vf x3_0 = vload(u), sum0 = x0_0 * w0_0;
        sum0 = vfma(x1_0, w1_0, sum0);
        sum0 = vfma(x2_0, w2_0, sum0);
        sum0 = vfma(x3_0, w3_0, sum0);
        vstore(y, vsilu(sum0));
        x0_0 = x1_0, x1_0 = x2_0, x2_0 = x3_0;
    }

    f32 *now = a->state + (i64)g->store * 18432 + c;
    vstore(now, x0_0);
    vstore(now + 6144, x1_0);
    vstore(now + 12288, x2_0);
    if (g->copy < 0) return;
    now = a->state + (i64)g->copy * 18432 + c;
    vstore(now, x0_0);
    vstore(now + 6144, x1_0);
    vstore(now + 12288, x2_0);
}

/* Channels c .. c+7 of all sequences. */
static void channels_8(const struct conv_silu_args *a, i64 c)
{
    f32 wt[4][8] = { 0 };
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) wt[j][i] = a->w[(c + i) * 4 + j];
    for (i64 g = 0; g < a->step->n_segments; g++) segment_8(a, &a->step->segments[g], c, wt);
}

void conv_silu_channels6144_taps4_avx2_hw_vecs1(const struct conv_silu_args *a, struct team *t)
{
    i64 c, end;
    team_share(t, 6144, 8, &c, &end);
    for (; end - c >= 8; c += 8) channels_8(a, c);
}
