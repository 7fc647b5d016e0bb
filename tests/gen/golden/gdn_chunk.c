/* gdn_chunk_k_heads16_v_heads16_dim128_tiled_avx2_hw_chunk32_rows4_vecs2: the gated delta rule by chunks of 32 rows.
 * Per value head h with key head h % 16, for the n <= 32 rows of a chunk,
 * D[i][j] = exp(g[j+1] + .. + g[i]) for j <= i, else 0, E[i] = exp(g[0] + .. + g[i]), S the state before the chunk:
 *     X[i] = b[i] (v[i] - E[i] S^T k[i]) - sum_{j<i} b[i] D[i][j] (k[i].k[j]) X[j]        rows top down: a unit triangular solve
 *     o[i] = E[i] S^T q[i] + sum_{j<=i} D[i][j] (q[i].k[j]) X[j]
 *     S   <- E[n-1] S + sum_i k[i] (D[n-1][i] X[i])^T
 *   c: [n_rows][6144] fp32, 16 heads of q, 16 of k, 16 of v, 128 each
 *   g, b: [n_rows][16]; o: [n_rows][16][128]
 *   state: [slots][16][128 k][128 v]; a unit of work is a key head of a sequence with some of the blocks
 *     of 16 value columns of its heads; part p of the team owns the p-th run of units
 *   k.k and q.k are computed once for all of them; S is packed in scratch, a block of columns after another
 *   D is a running product of exp(g) <= 1, so nothing overflows and a complete decay loses nothing after it
 *   sums: one chain of fma over ascending k, then ascending j, whatever the tile, width or team; chunks start where segments do
 *   about 114688 operations a row and value head: bound by fma
 *   caller: segments of a sequence are consecutive and have rows; no two sequences share a slot that is written
 * made by: quarry-gen gdn_chunk --shape k_heads=16,v_heads=16,dim=128,group=tiled --params isa=avx2,fma=hw,chunk=32,rows=4,vecs=2 */
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

/* Scratch of one part. */
struct scratch {
    f32 S[8][2048]; /* blocks of value columns, [128 k][16] */
    f32 k[4096], q[4096]; /* [row][128] */
    f32 kt[4096]; /* [128][row] */
    f32 kk[1024], qk[1024]; /* [row i][row j] k[i].k[j], q[i].k[j], right for j <= i */
    f32 A[1024], P[1024]; /* -b[i] D[i][j] kk for j < i;  D[i][j] qk, 0 for j > i */
    f32 D[32], E[32], b[32]; /* D: its row of the last token */
    f32 X[512], Y[512]; /* [row][16]; Y[i] = D[n-1][i] X[i] */
};
_Static_assert(sizeof(struct scratch) <= 1179648, "a part's share of gdn_work");

typedef f32 quad __attribute__((vector_size(16), aligned(4), may_alias));

/* kt[j][i] = k[i][j] for n rows i (a multiple of 4), four by four. */
static void transpose(f32 *kt, const f32 *k, int n)
{
    for (int i = 0; i < n; i += 4)
        for (int j = 0; j < 128; j += 4) {
            const f32 *p = k + i * 128 + j;
            f32 *o = kt + j * 32 + i;
            quad r0 = *(const quad *)p, r1 = *(const quad *)(p + 128), r2 = *(const quad *)(p + 256),
                 r3 = *(const quad *)(p + 384);
            quad lo0 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), hi0 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
            quad lo1 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), hi1 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
            *(quad *)o = __builtin_shufflevector(lo0, lo1, 0, 1, 4, 5);
            *(quad *)(o + 32) = __builtin_shufflevector(lo0, lo1, 2, 3, 6, 7);
            *(quad *)(o + 64) = __builtin_shufflevector(hi0, hi1, 0, 1, 4, 5);
            *(quad *)(o + 96) = __builtin_shufflevector(hi0, hi1, 2, 3, 6, 7);
        }
}

/* Rows of q and k side by side; zeros up to a whole tile. */
static void gather(struct scratch *w, const struct gdn_args *a, i64 row, int n, i64 kh)
{
    const f32 *q = a->c + row * 6144 + kh * 128, *k = q + 2048;
    for (int i = 0; i < n; i++, q += 6144, k += 6144)
        for (int j = 0; j < 128; j++) w->q[i * 128 + j] = q[j], w->k[i * 128 + j] = k[j];
    int whole = (n + 7) / 8 * 8;
    for (int i = n * 128; i < whole * 128; i++) w->q[i] = w->k[i] = 0;
    transpose(w->kt, w->k, whole);
}

/* 4 rows of x k^T, columns 0 up to the diagonal's block. */
static void dots(f32 *out, const f32 *x, const f32 *kt, int row)
{
    x += row * 128, out += row * 32;
    for (int j = 0; j < row + 4; j += 16) {
        const f32 *b = kt + j;
        vf x0_0 = {0}, x0_1 = {0};
        vf x1_0 = {0}, x1_1 = {0};
        vf x2_0 = {0}, x2_1 = {0};
        vf x3_0 = {0}, x3_1 = {0};
#pragma GCC unroll 4
        for (int i = 0; i < 128; i++) {
            vf b0 = vload(b + i * 32), b1 = vload(b + i * 32 + 8), a;
            a = vset(x[i]);
            x0_0 = vfma(a, b0, x0_0);
            x0_1 = vfma(a, b1, x0_1);
            a = vset(x[i + 128]);
            x1_0 = vfma(a, b0, x1_0);
            x1_1 = vfma(a, b1, x1_1);
            a = vset(x[i + 256]);
            x2_0 = vfma(a, b0, x2_0);
            x2_1 = vfma(a, b1, x2_1);
            a = vset(x[i + 384]);
            x3_0 = vfma(a, b0, x3_0);
            x3_1 = vfma(a, b1, x3_1);
        }
        vstore(out + j, x0_0);
        vstore(out + j + 8, x0_1);
        vstore(out + j + 32, x1_0);
        vstore(out + j + 40, x1_1);
        vstore(out + j + 64, x2_0);
        vstore(out + j + 72, x2_1);
        vstore(out + j + 96, x3_0);
        vstore(out + j + 104, x3_1);
    }
}

/* D row by row, and with it A, P, E of value head h. What is below 1e-30 counts as 0: subnormals are slow. */
static void decays(struct scratch *w, const struct gdn_args *a, i64 row, int n, i64 h)
{
    f32 from_start = 1;
    for (int i = 0; i < 32; i++) w->D[i] = 0;
    for (int i = 0; i < n; i++) {
        const f32 *kk = w->kk + i * 32, *qk = w->qk + i * 32;
        f32 *A = w->A + i * 32, *P = w->P + i * 32;
        f32 decay = sexp(a->g[(row + i) * 16 + h]), b = a->b[(row + i) * 16 + h];
        from_start *= decay;
        w->E[i] = from_start = from_start < 1e-30f ? 0 : from_start;
        w->b[i] = b;
        for (int j = 0; j < i; j += 8) {
            vf d = vload(w->D + j) * decay;
            vstore(w->D + j, vselect(vless(d, vset(1e-30f)), vset(0), d));
        }
        w->D[i] = 1;
        for (int j = 0; j <= i; j += 8) {
            vf d = vload(w->D + j);
            vstore(A + j, -b * d * vload(kk + j));
            vstore(P + j, d * vload(qk + j));
        }
        for (int j = (i / 8 + 1) * 8; j < (i / 4 + 1) * 4; j++) P[j] = 0;
    }
}

/* X and Y of 4 rows of a block; v is at the block's first row and column. */
static void solve_16(struct scratch *w, const f32 *S, const f32 *v, int row, int n)
{
    const f32 *k = w->k + row * 128, *A = w->A + row * 32;
    f32 *X = w->X, *Y = w->Y + row * 16;
    vf x0_0 = {0}, x0_1 = {0};
    vf x1_0 = {0}, x1_1 = {0};
    vf x2_0 = {0}, x2_1 = {0};
    vf x3_0 = {0}, x3_1 = {0};
#pragma GCC unroll 4
    for (int i = 0; i < 128; i++) {
        vf b0 = vload(S + i * 16), b1 = vload(S + i * 16 + 8), a;
        a = vset(k[i]);
        x0_0 = vfma(a, b0, x0_0);
        x0_1 = vfma(a, b1, x0_1);
        a = vset(k[i + 128]);
        x1_0 = vfma(a, b0, x1_0);
        x1_1 = vfma(a, b1, x1_1);
        a = vset(k[i + 256]);
        x2_0 = vfma(a, b0, x2_0);
        x2_1 = vfma(a, b1, x2_1);
        a = vset(k[i + 384]);
        x3_0 = vfma(a, b0, x3_0);
        x3_1 = vfma(a, b1, x3_1);
    }

    v += row * 6144;  /* rows past the end repeat the last, and are not used */
    x0_0 = w->b[row] * (vload(v) - w->E[row] * x0_0);
    x0_1 = w->b[row] * (vload(v + 8) - w->E[row] * x0_1);
    if (row + 1 < n) v += 6144;
    x1_0 = w->b[row + 1] * (vload(v) - w->E[row + 1] * x1_0);
    x1_1 = w->b[row + 1] * (vload(v + 8) - w->E[row + 1] * x1_1);
    if (row + 2 < n) v += 6144;
    x2_0 = w->b[row + 2] * (vload(v) - w->E[row + 2] * x2_0);
    x2_1 = w->b[row + 2] * (vload(v + 8) - w->E[row + 2] * x2_1);
    if (row + 3 < n) v += 6144;
    x3_0 = w->b[row + 3] * (vload(v) - w->E[row + 3] * x3_0);
    x3_1 = w->b[row + 3] * (vload(v + 8) - w->E[row + 3] * x3_1);
#pragma GCC unroll 4
    for (int i = 0; i < row; i++) {
        vf b0 = vload(X + i * 16), b1 = vload(X + i * 16 + 8), a;
        a = vset(A[i]);
        x0_0 = vfma(a, b0, x0_0);
        x0_1 = vfma(a, b1, x0_1);
        a = vset(A[i + 32]);
        x1_0 = vfma(a, b0, x1_0);
        x1_1 = vfma(a, b1, x1_1);
        a = vset(A[i + 64]);
        x2_0 = vfma(a, b0, x2_0);
        x2_1 = vfma(a, b1, x2_1);
        a = vset(A[i + 96]);
        x3_0 = vfma(a, b0, x3_0);
        x3_1 = vfma(a, b1, x3_1);
    }

    /* the triangle within the tile */
    X += row * 16, A += row;
    x1_0 = vfma(vset(A[32]), x0_0, x1_0);
    x1_1 = vfma(vset(A[32]), x0_1, x1_1);
    x2_0 = vfma(vset(A[64]), x0_0, x2_0);
    x2_1 = vfma(vset(A[64]), x0_1, x2_1);
    x2_0 = vfma(vset(A[65]), x1_0, x2_0);
    x2_1 = vfma(vset(A[65]), x1_1, x2_1);
    x3_0 = vfma(vset(A[96]), x0_0, x3_0);
    x3_1 = vfma(vset(A[96]), x0_1, x3_1);
    x3_0 = vfma(vset(A[97]), x1_0, x3_0);
    x3_1 = vfma(vset(A[97]), x1_1, x3_1);
    x3_0 = vfma(vset(A[98]), x2_0, x3_0);
    x3_1 = vfma(vset(A[98]), x2_1, x3_1);
    vstore(X, x0_0);
    vstore(Y, w->D[row] * x0_0);
    vstore(X + 8, x0_1);
    vstore(Y + 8, w->D[row] * x0_1);
    vstore(X + 16, x1_0);
    vstore(Y + 16, w->D[row + 1] * x1_0);
    vstore(X + 24, x1_1);
    vstore(Y + 24, w->D[row + 1] * x1_1);
    vstore(X + 32, x2_0);
    vstore(Y + 32, w->D[row + 2] * x2_0);
    vstore(X + 40, x2_1);
    vstore(Y + 40, w->D[row + 2] * x2_1);
    vstore(X + 48, x3_0);
    vstore(Y + 48, w->D[row + 3] * x3_0);
    vstore(X + 56, x3_1);
    vstore(Y + 56, w->D[row + 3] * x3_1);
}

/* Outputs of 4 rows; o is at the block's first row and column, n counts the chunk's rows. */
static void output_16(const struct scratch *w, const f32 *S, f32 *o, int row, int n)
{
    const f32 *q = w->q + row * 128, *P = w->P + row * 32, *X = w->X;
    const int upto = row + 4 < n ? row + 4 : n;
    vf x0_0 = {0}, x0_1 = {0};
    vf x1_0 = {0}, x1_1 = {0};
    vf x2_0 = {0}, x2_1 = {0};
    vf x3_0 = {0}, x3_1 = {0};
#pragma GCC unroll 4
    for (int i = 0; i < 128; i++) {
        vf b0 = vload(S + i * 16), b1 = vload(S + i * 16 + 8), a;
        a = vset(q[i]);
        x0_0 = vfma(a, b0, x0_0);
        x0_1 = vfma(a, b1, x0_1);
        a = vset(q[i + 128]);
        x1_0 = vfma(a, b0, x1_0);
        x1_1 = vfma(a, b1, x1_1);
        a = vset(q[i + 256]);
        x2_0 = vfma(a, b0, x2_0);
        x2_1 = vfma(a, b1, x2_1);
        a = vset(q[i + 384]);
        x3_0 = vfma(a, b0, x3_0);
        x3_1 = vfma(a, b1, x3_1);
    }
    x0_0 *= w->E[row];
    x0_1 *= w->E[row];
    x1_0 *= w->E[row + 1];
    x1_1 *= w->E[row + 1];
    x2_0 *= w->E[row + 2];
    x2_1 *= w->E[row + 2];
    x3_0 *= w->E[row + 3];
    x3_1 *= w->E[row + 3];
#pragma GCC unroll 4
    for (int i = 0; i < upto; i++) {
        vf b0 = vload(X + i * 16), b1 = vload(X + i * 16 + 8), a;
        a = vset(P[i]);
        x0_0 = vfma(a, b0, x0_0);
        x0_1 = vfma(a, b1, x0_1);
        a = vset(P[i + 32]);
        x1_0 = vfma(a, b0, x1_0);
        x1_1 = vfma(a, b1, x1_1);
        a = vset(P[i + 64]);
        x2_0 = vfma(a, b0, x2_0);
        x2_1 = vfma(a, b1, x2_1);
        a = vset(P[i + 96]);
        x3_0 = vfma(a, b0, x3_0);
        x3_1 = vfma(a, b1, x3_1);
    }
    o += row * 2048;
    vstore(o, x0_0);
    vstore(o + 8, x0_1);
    if (row + 1 >= n) return;
    vstore(o + 2048, x1_0);
    vstore(o + 2048 + 8, x1_1);
    if (row + 2 >= n) return;
    vstore(o + 4096, x2_0);
    vstore(o + 4096 + 8, x2_1);
    if (row + 3 >= n) return;
    vstore(o + 6144, x3_0);
    vstore(o + 6144 + 8, x3_1);
}

/* S <- decay S + k^T Y over n rows. */
static void update_16(const struct scratch *w, f32 *S, f32 decay, int n)
{
    for (int row = 0; row < 128; row += 4, S += 64) {
        const f32 *k = w->k + row, *Y = w->Y;
        vf x0_0 = vload(S) * decay, x0_1 = vload(S + 8) * decay;
        vf x1_0 = vload(S + 16) * decay, x1_1 = vload(S + 24) * decay;
        vf x2_0 = vload(S + 32) * decay, x2_1 = vload(S + 40) * decay;
        vf x3_0 = vload(S + 48) * decay, x3_1 = vload(S + 56) * decay;
#pragma GCC unroll 4
        for (int i = 0; i < n; i++) {
            vf b0 = vload(Y + i * 16), b1 = vload(Y + i * 16 + 8), a;
            a = vset(k[i * 128]);
            x0_0 = vfma(a, b0, x0_0);
            x0_1 = vfma(a, b1, x0_1);
            a = vset(k[i * 128 + 1]);
            x1_0 = vfma(a, b0, x1_0);
            x1_1 = vfma(a, b1, x1_1);
            a = vset(k[i * 128 + 2]);
            x2_0 = vfma(a, b0, x2_0);
            x2_1 = vfma(a, b1, x2_1);
            a = vset(k[i * 128 + 3]);
            x3_0 = vfma(a, b0, x3_0);
            x3_1 = vfma(a, b1, x3_1);
        }
        vstore(S, x0_0);
        vstore(S + 8, x0_1);
        vstore(S + 16, x1_0);
        vstore(S + 24, x1_1);
        vstore(S + 32, x2_0);
        vstore(S + 40, x2_1);
        vstore(S + 48, x3_0);
        vstore(S + 56, x3_1);
    }
}

/* One chunk of 16 value columns: v and o at its first row and column. */
static void block_16(struct scratch *w, f32 *S, const f32 *v, f32 *o, int n)
{
    for (int row = 0; row < n; row += 4) solve_16(w, S, v, row, n);
    for (int row = 0; row < n; row += 4) output_16(w, S, o, row, n);
    update_16(w, S, w->E[n - 1], n);
}

/* Columns between a packed block and a slot's state; state NULL: zeros. */
static void unpack_16(f32 *S, const f32 *state)
{
    for (int i = 0; i < 128; i++) {
        vstore(S + i * 16, state ? vload(state + i * 128) : vset(0));
        vstore(S + i * 16 + 8, state ? vload(state + i * 128 + 8) : vset(0));
    }
}

static void pack_16(f32 *state, const f32 *S)
{
    for (int i = 0; i < 128; i++) {
        vstore(state + i * 128, vload(S + i * 16));
        vstore(state + i * 128 + 8, vload(S + i * 16 + 8));
    }
}

/* Of the 8 blocks of a key head: which value head, which first column. */
static inline i64 item_head(i64 kh, i64 item) { return kh + item / 8 * 16; }
static inline i64 item_column(i64 item) { return item % 8 * 16; }

static void one_chunk(struct scratch *w, const struct gdn_args *a, i64 row, int n, i64 kh, i64 first, i64 last)
{
    gather(w, a, row, n, kh);
    for (int i = 0; i < n; i += 4) {
        dots(w->kk, w->k, w->kt, i);
        dots(w->qk, w->q, w->kt, i);
    }
    for (i64 item = first; item < last; item++) {
        i64 h = item_head(kh, item), j = item_column(item);
        const f32 *v = a->c + row * 6144 + 4096 + h * 128 + j;
        f32 *S = w->S[item - first], *o = a->o + (row * 16 + h) * 128 + j;
        if (item == first || j == 0) decays(w, a, row, n, h);
        block_16(w, S, v, o, n);
    }
}

static void state_in(struct scratch *w, const struct gdn_args *a, i64 slot, i64 kh, i64 first, i64 last)
{
    for (i64 item = first; item < last; item++) {
        i64 h = item_head(kh, item), j = item_column(item);
        const f32 *state = slot < 0 ? 0 : a->state + (slot * 16 + h) * 16384 + j;
        unpack_16(w->S[item - first], state);
    }
}

static void state_out(const struct scratch *w, const struct gdn_args *a, i64 slot, i64 kh, i64 first, i64 last)
{
    for (i64 item = first; item < last; item++) {
        i64 h = item_head(kh, item), j = item_column(item);
        f32 *state = a->state + (slot * 16 + h) * 16384 + j;
        pack_16(state, w->S[item - first]);
    }
}

static void one_segment(struct scratch *w, const struct gdn_args *a, const struct segment *g, i64 kh, i64 first, i64 last)
{
    state_in(w, a, g->load, kh, first, last);
    for (i64 i = 0; i < g->rows; i += 32)
        one_chunk(w, a, g->row + i, g->rows - i < 32 ? (int)(g->rows - i) : 32, kh, first, last);
    state_out(w, a, g->store, kh, first, last);
    if (g->copy >= 0) state_out(w, a, g->copy, kh, first, last);
}

void gdn_chunk_k_heads16_v_heads16_dim128_tiled_avx2_hw_chunk32_rows4_vecs2(const struct gdn_args *a, struct team *t)
{
    const struct step *step = a->step;
    struct scratch *w = (struct scratch *)((char *)a->work + (i64)t->part * 1179648);
    /* A key head's blocks are split only as far as parts would idle: each piece computes k.k and q.k again. */
    i64 pairs = (i64)step->n_seqs * 16, pieces = pairs > 0 ? (t->parts + pairs - 1) / pairs : 1, u, end;
    if (pieces > 8) pieces = 8;
    team_share(t, pairs * pieces, 1, &u, &end);
    for (; u < end; u++) {
        i64 seq = u / pieces / 16, kh = u / pieces % 16, piece = u % pieces;
        i64 first = 8 * piece / pieces, last = 8 * (piece + 1) / pieces;
        for (i64 g = step->seq_segment[seq]; g < step->seq_segment[seq + 1]; g++)
            one_segment(w, a, &step->segments[g], kh, first, last);
    }
}
