/* gdn_chunk_k_heads16_v_heads32_dim128_tiled_chunk32_cols32_threads128_stages2: the gated delta rule by chunks of 32 rows,
 *     in two kernels.
 * Per value head h with key head h % 16, for the n <= 32 rows of a chunk, S the state before it,
 * D[i][j] = exp(g[j+1] + .. + g[i]) for j <= i, else 0, E[i] = exp(g[0] + .. + g[i]):
 *     A[i][j] = b[i] D[i][j] (k[i].k[j]) for j < i;  T = (1 + A)^-1 diag(b);  P[i][j] = D[i][j] (q[i].k[j])     the first kernel
 *     X[i] = sum_{j<=i} T[i][j] (v[j] - E[j] S^T k[j])                                                        the second
 *     o[i] = E[i] S^T q[i] + sum_{j<=i} P[i][j] X[j]
 *     S   <- E[n-1] S + sum_i k[i] (D[n-1][i] X[i])^T
 *   c: [n_rows][8192] fp32, 16 heads of q, 16 of k, 32 of v, 128 each
 *   g, b: [n_rows][32]; o: [n_rows][32][128]; state: [slots][32][128 k][128 v]
 *   work: [n_rows][32][68]: a row of T, of P, E, D[n-1], two unused
 *   chunks begin where segments do; D is a running product of exp(g) <= 1: nothing overflows, a complete decay loses nothing
 *   all fp32; sums: chains of fma over ascending k or j, whatever the tile
 *   about 131072 operations a row and value head: bound by fma
 *   caller: at least n_seqs blocks of the second kernel along y; segments of a sequence are consecutive and have rows; no two
 *     sequences share a slot that is written
 * made by: quarry-gen gdn_chunk --shape k_heads=16,v_heads=32,dim=128,group=tiled --params chunk=32,cols=32,threads=128,stages=2 --card cuda:sm_80 */
#include "kernel.cuh"
#include "args.h"

static inline float4 madd(float4 v, f32 s, float4 sum)
{
    return make_float4(fmaf(v.x, s, sum.x), fmaf(v.y, s, sum.y), fmaf(v.z, s, sum.z), fmaf(v.w, s, sum.w));
}

static inline float4 times(float4 v, f32 s) { return make_float4(v.x * s, v.y * s, v.z * s, v.w * s); }

/* Dot products of a chunk: dot[i][j] = k[i].k[j], dot[32 + i][j] = q[i].k[j], zeros for rows from n on. A thread has 4 x 4 of
 * them; 32 values of every row at a time lie in the memory that the products take afterwards. */
static inline void products(f32 *dot, const struct gdn_args &a, int row, int n, int kh)
{
    int t = threadIdx.x, i0 = t / 8, j0 = t % 8;
    f32 sum[4][4] = {};
    for (int from = 0; from < 128; from += 32) {
        for (int e = t; e < 512; e += 128) {
            int i = e / 8, d = e % 8 * 4, r = i % 32;
            const f32 *c = a.c + (i64)(row + r) * 8192 + kh * 128 + (i < 32 ? 2048 : 0) + from + d;
            float4 v = make_float4(0, 0, 0, 0);
            if (r < n) v = *(const float4 *)c;
            *(float4 *)(dot + i * 36 + d) = v;
        }
        __syncthreads();
#pragma unroll 2
        for (int d = 0; d < 32; d += 4) {
            float4 y[4];
            for (int j = 0; j < 4; j++) y[j] = *(const float4 *)(dot + (j0 + j * 8) * 36 + d);
            for (int i = 0; i < 4; i++) {
                float4 x = *(const float4 *)(dot + (i0 + i * 16) * 36 + d);
                for (int j = 0; j < 4; j++) {
                    sum[i][j] = fmaf(x.x, y[j].x, sum[i][j]);
                    sum[i][j] = fmaf(x.y, y[j].y, sum[i][j]);
                    sum[i][j] = fmaf(x.z, y[j].z, sum[i][j]);
                    sum[i][j] = fmaf(x.w, y[j].w, sum[i][j]);
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) dot[(i0 + i * 16) * 32 + j0 + j * 8] = sum[i][j];
    __syncthreads();
}

/* Column j of a value head's D downwards, and with it column j of A into A[j][..], of P, and row j's E and D[n-1].
 * out: the head's records from the chunk's first row on. */
static inline void decays(f32 *A, f32 *out, const f32 *dot, const f32 *decay, const f32 *b, int n, int j)
{
    f32 d = 0, from_start = 1, e = 0, last = 0;
#pragma unroll 4
    for (int i = 0; i < 32; i++) {
        from_start *= decay[i];
        d = i == j ? 1.0f : d * decay[i];
        A[j * 36 + i] = i > j ? b[i] * d * dot[i * 32 + j] : 0;
        if (i < n) out[(i64)i * 2176 + 32 + j] = d * dot[(32 + i) * 32 + j];
        e = i == j ? from_start : e;
        last = i == n - 1 ? d : last;
    }
    if (j >= n) return;
    out[(i64)j * 2176 + 64] = e;
    out[(i64)j * 2176 + 65] = last;
}

/* Column j of T: the unit triangular system solved for a unit vector, row by row from above. */
static inline void invert(const f32 *A, f32 *out, f32 b, int n, int j)
{
    f32 x[32];
#pragma unroll
    for (int i = 0; i < 32; i++) x[i] = i == j ? 1.0f : 0;
#pragma unroll
    for (int m = 0; m < 31; m++) {
#pragma unroll
        for (int i = (m + 1) / 4 * 4; i < 32; i += 4) {
            float4 w = *(const float4 *)(A + m * 36 + i);
            x[i] = fmaf(-w.x, x[m], x[i]);
            x[i + 1] = fmaf(-w.y, x[m], x[i + 1]);
            x[i + 2] = fmaf(-w.z, x[m], x[i + 2]);
            x[i + 3] = fmaf(-w.w, x[m], x[i + 3]);
        }
    }
#pragma unroll
    for (int i = 0; i < 32; i++)
        if (i < n) out[(i64)i * 2176 + j] = x[i] * b;
}

/* T and P of the value heads of a key head for the n rows from `row` on; 32 threads a head, 2 heads at once. */
static inline void one_chunk(f32 *memory, const struct gdn_args &a, int row, int n, int kh)
{
    int team = threadIdx.x / 32, j = threadIdx.x % 32;
    f32 *dot = memory, *A = dot + 2304 + team * 1216, *decay = A + 1152, *b = decay + 32;
    products(dot, a, row, n, kh);
    int nth = team, h = kh + nth * 16;
    bool mine = team < 2;
    f32 *out = (f32 *)a.work + ((i64)row * 32 + h) * 68;
    if (mine) {
        decay[j] = j < n ? exp_f32(a.g[(i64)(row + j) * 32 + h]) : 1.0f;
        b[j] = j < n ? a.b[(i64)(row + j) * 32 + h] : 0;
    }
    __syncthreads();
    if (mine) decays(A, out, dot, decay, b, n, j);
    __syncthreads();
    if (mine) invert(A, out, b[j], n, j);
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(128, 4) gdn_chunk_k_heads16_v_heads32_dim128_tiled_chunk32_cols32_threads128_stages2(const struct gdn_args a)
{
    SHARED_DYNAMIC(memory);
    pdl_launch();
    pdl_wait();
    const struct step *step = a.step;
    int left = blockIdx.y;
    for (int g = 0; g < step->n_segments; g++) {
        const struct segment s = step->segments[g];
        int chunks = (s.rows + 31) / 32;
        for (; left < chunks; left += gridDim.y) {
            int from = left * 32, n = s.rows - from;
            one_chunk((f32 *)memory, a, s.row + from, n < 32 ? n : 32, blockIdx.x);
        }
        left -= chunks;
    }
}

/* What a chunk's rows bring besides v, zeros for rows from n on: k and q [32][132], T and P [32][36], E and D[n-1] [32]. */
struct stage {
    f32 *k, *q, *T, *P, *E, *last;
};

static inline struct stage stage_at(f32 *p)
{
    return { p, p + 4224, p + 8448, p + 9600, p + 10752, p + 10784 };
}

static inline void fetch(const struct stage &to, const struct gdn_args &a, int row, int n, int h)
{
    int t = threadIdx.x;
    for (int e = t; e < 1024; e += 128) {
        int r = e / 32, d = e % 32 * 4;
        bool valid = r < n;
        const f32 *c = a.c + (i64)(row + (valid ? r : 0)) * 8192 + (h % 16) * 128 + d;
        cp_async16_or_zero(to.q + r * 132 + d, c, valid);
        cp_async16_or_zero(to.k + r * 132 + d, c + 2048, valid);
    }
    for (int e = t; e < 256; e += 128) {
        int r = e / 8, j = e % 8 * 4;
        bool valid = r < n;
        const f32 *w = (const f32 *)a.work + ((i64)(row + (valid ? r : 0)) * 32 + h) * 68 + j;
        cp_async16_or_zero(to.T + r * 36 + j, w, valid);
        cp_async16_or_zero(to.P + r * 36 + j, w + 32, valid);
    }
    for (int r = t; r < 32; r += 128) {
        bool valid = r < n;
        const f32 *w = (const f32 *)a.work + ((i64)(row + (valid ? r : 0)) * 32 + h) * 68 + 64;
        cp_async4_or_zero(to.E + r, w, valid);
        cp_async4_or_zero(to.last + r, w + 1, valid);
    }
    cp_async_commit();
}

/* sum[m] += row 16 * m of x times y, four columns of y: x has rows of LD words, y N rows of 32. */
template <int M, int N, int LD> static inline void product(float4 *sum, const f32 *x, const f32 *y)
{
#pragma unroll 2
    for (int k = 0; k < N; k += 4) {
        float4 y0 = *(const float4 *)(y + k * 32), y1 = *(const float4 *)(y + (k + 1) * 32);
        float4 y2 = *(const float4 *)(y + (k + 2) * 32), y3 = *(const float4 *)(y + (k + 3) * 32);
#pragma unroll
        for (int m = 0; m < M; m++) {
            float4 w = *(const float4 *)(x + m * 16 * LD + k);
            sum[m] = madd(y0, w.x, sum[m]);
            sum[m] = madd(y1, w.y, sum[m]);
            sum[m] = madd(y2, w.z, sum[m]);
            sum[m] = madd(y3, w.w, sum[m]);
        }
    }
}

/* Block (x, seq) owns 32 columns of head x / 4 of sequence seq, from its first chunk to its last. A thread has
 * four of them: of S the rows 4 (i + 16 m) + 0 .. 3 for its i, of a chunk the rows i + 16 m. */
extern "C" __global__ void __launch_bounds__(128, 2) gdn_chunk_k_heads16_v_heads32_dim128_tiled_chunk32_cols32_threads128_stages2_2(const struct gdn_args a)
{
    SHARED_DYNAMIC(memory);
    f32 *shared_S = (f32 *)memory, *X = shared_S + 4096, *Y = X + 1024, *stages = Y + 1024;
    int t = threadIdx.x, h = blockIdx.x / 4, i = t / 8, j = t % 8 * 4;
    int column = blockIdx.x % 4 * 32 + j;
    pdl_launch();
    pdl_wait();
    const struct step *step = a.step;
    int seq = blockIdx.y, turn = 0;
    if (seq >= step->n_seqs) return;
    for (int g = step->seq_segment[seq]; g < step->seq_segment[seq + 1]; g++) {
        const struct segment s = step->segments[g];
        float4 S[8];
        for (int m = 0; m < 8; m++) {
            int d = 4 * (i + m / 4 * 16) + m % 4;
            bool stored = s.load >= 0;
            S[m] = make_float4(0, 0, 0, 0);
            if (stored) S[m] = *(const float4 *)(a.state + ((i64)s.load * 32 + h) * 16384 + d * 128 + column);
            *(float4 *)(shared_S + d * 32 + j) = S[m];
        }
        fetch(stage_at(stages + turn * 10816), a, s.row, s.rows < 32 ? s.rows : 32, h);

        for (int from = 0; from < s.rows; from += 32) {
            int row = s.row + from, n = s.rows - from < 32 ? s.rows - from : 32;
            float4 v[2];
            for (int m = 0; m < 2; m++) {
                int r = i + m * 16;
                v[m] = make_float4(0, 0, 0, 0);
                const f32 *from_v = a.c + (i64)(row + r) * 8192 + 4096 + h * 128 + column;
                if (r < n) v[m] = *(const float4 *)from_v;
            }
            const struct stage w = stage_at(stages + turn * 10816);
            cp_async_wait<0>();
            __syncthreads();
            turn = 1 - turn;
            int rest = s.rows - from - 32;
            if (rest > 0) fetch(stage_at(stages + turn * 10816), a, row + 32, rest < 32 ? rest : 32, h);

            float4 sum[4] = {};  /* of k S, then of q S, whose rows lie behind those of k */
            product<4, 128, 132>(sum, w.k + i * 132, shared_S + j);
            for (int m = 0; m < 2; m++) {
                int r = i + m * 16;
                *(float4 *)(Y + r * 32 + j) = madd(sum[m], -w.E[r], v[m]);
            }
            __syncthreads();
            float4 x[2] = {};
            product<2, 32, 36>(x, w.T + i * 36, Y + j);
            __syncthreads();
            for (int m = 0; m < 2; m++) {
                int r = i + m * 16;
                *(float4 *)(X + r * 32 + j) = x[m];
                *(float4 *)(Y + r * 32 + j) = times(x[m], w.last[r]);
                x[m] = times(sum[2 + m], w.E[r]);
            }
            __syncthreads();

            product<2, 32, 36>(x, w.P + i * 36, X + j);
            for (int m = 0; m < 2; m++) {
                int r = i + m * 16;
                if (r < n) *(float4 *)(a.o + ((i64)(row + r) * 32 + h) * 128 + column) = x[m];
            }

            f32 decay = w.E[n - 1];
            for (int m = 0; m < 8; m++) S[m] = times(S[m], decay);
#pragma unroll 4
            for (int r = 0; r < 32; r++) {
                float4 y = *(const float4 *)(Y + r * 32 + j);
                for (int m = 0; m < 2; m++) {
                    float4 k = *(const float4 *)(w.k + r * 132 + 4 * (i + m * 16));
                    S[4 * m] = madd(y, k.x, S[4 * m]);
                    S[4 * m + 1] = madd(y, k.y, S[4 * m + 1]);
                    S[4 * m + 2] = madd(y, k.z, S[4 * m + 2]);
                    S[4 * m + 3] = madd(y, k.w, S[4 * m + 3]);
                }
            }
            for (int m = 0; m < 8; m++) *(float4 *)(shared_S + (4 * (i + m / 4 * 16) + m % 4) * 32 + j) = S[m];
        }

        for (int copy = 0; copy < 2; copy++) {
            int slot = copy ? s.copy : s.store;
            if (slot < 0) continue;
            for (int m = 0; m < 8; m++) {
                int d = 4 * (i + m / 4 * 16) + m % 4;
                *(float4 *)(a.state + ((i64)slot * 32 + h) * 16384 + d * 128 + column) = S[m];
            }
        }
    }
}
