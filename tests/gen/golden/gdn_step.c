/* gdn_step_k_heads16_v_heads16_dim128_tiled_avx2_hw_vecs8: the gated delta rule, token by token.
 * Per value head h with key head h % 16:
 *     S <- exp(g) S;  d = b (v - S^T k);  S <- S + k d^T;  o = S^T q
 *   c: [n_rows][6144] fp32, 16 heads of q, 16 of k, 16 of v, 128 each
 *   g, b: [n_rows][16]; o: [n_rows][16][128]
 *   state: [slots][16][128 k][128 v]; columns of S do not depend on each other, so a unit of work is 64 columns
 *     of a head of a sequence along all its rows; part p of the team owns the p-th run of units
 *   between the first and last row of a segment the columns stay in scratch, packed (32768 bytes)
 *   sums: one chain of fma a column, over ascending k: the same bits for any width, team and cut into segments
 *   moves 2097152 bytes a segment (S in and out), 1835008 operations a row: decode is bound by memory, many rows by fma
 *   caller: segments of a sequence are consecutive and have rows; no two sequences share a slot that is written
 * made by: quarry-gen gdn_step --shape k_heads=16,v_heads=16,dim=128,group=tiled --params isa=avx2,fma=hw,vecs=8 */
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

/* One lane of vexp. */
static inline f32 sexp(f32 x) { return vexp(vset(x))[0]; }

/* Columns of a state: value of row k, column j at p[k * row + j]. */
struct columns {
    f32 *p;
    i64 row;
};

static const f32 nothing[64];  /* a row of a new sequence's state; its rows are 0 apart */

/* Head h of a slot, from column j on. */
static inline struct columns slot_columns(const struct gdn_args *a, i64 slot, i64 h, i64 j)
{
    return (struct columns){ a->state + (slot * 16 + h) * 16384 + j, 128 };
}

/* One token on 64 columns from j of head h: S is read from `from` and left in `to` (which may be the same). */
static void token_64(const struct gdn_args *a, i64 r, i64 h, i64 j, struct columns from, struct columns to)
{
    const f32 *c = a->c + r * 6144, *q = c + (h % 16) * 128, *k = q + 2048;
    const f32 *v = c + 4096 + h * 128 + j;
    f32 *o = a->o + (r * 16 + h) * 128 + j;
    const f32 decay = sexp(a->g[r * 16 + h]), b = a->b[r * 16 + h];
    const f32 *S = from.p;
    f32 *N = to.p;

    vf d0 = {0}, d1 = {0}, d2 = {0}, d3 = {0}, d4 = {0}, d5 = {0}, d6 = {0}, d7 = {0};
#pragma GCC unroll 4
    for (int i = 0; i < 128; i++, S += from.row) {
        d0 = vfma(vload(S) * decay, vset(k[i]), d0);
        d1 = vfma(vload(S + 8) * decay, vset(k[i]), d1);
        d2 = vfma(vload(S + 16) * decay, vset(k[i]), d2);
        d3 = vfma(vload(S + 24) * decay, vset(k[i]), d3);
        d4 = vfma(vload(S + 32) * decay, vset(k[i]), d4);
        d5 = vfma(vload(S + 40) * decay, vset(k[i]), d5);
        d6 = vfma(vload(S + 48) * decay, vset(k[i]), d6);
        d7 = vfma(vload(S + 56) * decay, vset(k[i]), d7);
    }
    d0 = b * (vload(v) - d0);
    d1 = b * (vload(v + 8) - d1);
    d2 = b * (vload(v + 16) - d2);
    d3 = b * (vload(v + 24) - d3);
    d4 = b * (vload(v + 32) - d4);
    d5 = b * (vload(v + 40) - d5);
    d6 = b * (vload(v + 48) - d6);
    d7 = b * (vload(v + 56) - d7);

    vf o0 = {0}, o1 = {0}, o2 = {0}, o3 = {0}, o4 = {0}, o5 = {0}, o6 = {0}, o7 = {0};
    S = from.p;
#pragma GCC unroll 4
    for (int i = 0; i < 128; i++, S += from.row, N += to.row) {
        vf n0 = vfma(d0, vset(k[i]), vload(S) * decay);
        o0 = vfma(n0, vset(q[i]), o0);
        vstore(N, n0);
        vf n1 = vfma(d1, vset(k[i]), vload(S + 8) * decay);
        o1 = vfma(n1, vset(q[i]), o1);
        vstore(N + 8, n1);
        vf n2 = vfma(d2, vset(k[i]), vload(S + 16) * decay);
        o2 = vfma(n2, vset(q[i]), o2);
        vstore(N + 16, n2);
        vf n3 = vfma(d3, vset(k[i]), vload(S + 24) * decay);
        o3 = vfma(n3, vset(q[i]), o3);
        vstore(N + 24, n3);
        vf n4 = vfma(d4, vset(k[i]), vload(S + 32) * decay);
        o4 = vfma(n4, vset(q[i]), o4);
        vstore(N + 32, n4);
        vf n5 = vfma(d5, vset(k[i]), vload(S + 40) * decay);
        o5 = vfma(n5, vset(q[i]), o5);
        vstore(N + 40, n5);
        vf n6 = vfma(d6, vset(k[i]), vload(S + 48) * decay);
        o6 = vfma(n6, vset(q[i]), o6);
        vstore(N + 48, n6);
        vf n7 = vfma(d7, vset(k[i]), vload(S + 56) * decay);
        o7 = vfma(n7, vset(q[i]), o7);
        vstore(N + 56, n7);
    }
    vstore(o, o0);
    vstore(o + 8, o1);
    vstore(o + 16, o2);
    vstore(o + 24, o3);
    vstore(o + 32, o4);
    vstore(o + 40, o5);
    vstore(o + 48, o6);
    vstore(o + 56, o7);
}

/* All rows of a segment. Between its first and last row the columns live in `block`. */
static void segment_64(const struct gdn_args *a, const struct segment *g, i64 h, i64 j, f32 *block)
{
    struct columns S = { (f32 *)nothing, 0 }, store = slot_columns(a, g->store, h, j);
    if (g->load >= 0) S = slot_columns(a, g->load, h, j);
    for (i64 i = 0; i < g->rows; i++) {
        struct columns to = i == g->rows - 1 ? store : (struct columns){ block, 64 };
        token_64(a, g->row + i, h, j, S, to);
        S = to;
    }
    if (g->copy < 0) return;
    f32 *copy = slot_columns(a, g->copy, h, j).p;
    for (int i = 0; i < 16384; i += 128) {
        for (int x = 0; x < 64; x += 8) vstore(copy + i + x, vload(store.p + i + x));
    }
}

void gdn_step_k_heads16_v_heads16_dim128_tiled_avx2_hw_vecs8(const struct gdn_args *a, struct team *t)
{
    const struct step *step = a->step;
    f32 *block = (f32 *)a->work + t->part * 16384;
    i64 u, end;
    team_share(t, (i64)step->n_seqs * 32, 1, &u, &end);
    for (; u < end; u++) {
        i64 seq = u / 32, h = u / 2 % 16, j = u % 2 * 64;
        for (i64 g = step->seq_segment[seq]; g < step->seq_segment[seq + 1]; g++)
            segment_64(a, &step->segments[g], h, j, block);
    }
}
