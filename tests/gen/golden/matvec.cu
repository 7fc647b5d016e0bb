/* matvec_q8_0_q8_planes_n3584_k1024_add_dp4a_lanes_hold4_split1_groups4_tn2_prefetch1: y[r][j] += sum over k of w[j][k] *
 *     x[row][k], row = list[r] or r; few rows.
 *   w: [3584][1024] int8, behind it [3584][32] half scales; x: int8 [.][1024], scales [.][32] fp32; y: [n_rows][3584] fp32,
 *     rows y_stride apart
 *   a warp owns 4 rows; 4 such groups make a thread block
 *   a warp's part of w stays in its registers, fetched while earlier kernels still run, and meets the rows of x: the first alone,
 *     then 2 at a time
 *   class lanes: a lane sums its blocks, lanes are folded by halves
 *   moves 3899392 bytes of w, 7340032 operations a row: bound by memory up to some 8 rows
 *   caller: 224 thread blocks; row 0 of x and of y is readable even when there is no row; y overlaps nothing
 * made by: quarry-gen matvec --shape type=q8_0,act=q8,layout=planes,n=3584,k=1024,epi=add --params path=dp4a,chain=lanes,hold=4,split=1,groups=4,tn=2,prefetch=1 --card cuda:sm_90 */
#include "kernel.cuh"
#include "args.h"

/* A lane's part of its warp's rows: of K_CHUNK c the bytes 16 lane .. of either half, and the scale of one block. */
struct part {
    int4 w[4][1][2];
    u16 d[4][1];  /* halves until they are used: a conversion would wait for its load */
};

/* Bytes 16 i .. of row j of w, and the scale of its block b. */
static inline int4 weights(const u8 *w, i64 j, int i) { return load_stream16(w + j * 1024 + i * 16); }
static inline u16 scale(const u8 *w, i64 j, int b) { return ((const u16 *)(w + 3670016ll))[j * 32 + b]; }

static inline i32 dot16(int4 w, int4 x)
{
    return dp4a(w.w, x.w, dp4a(w.z, x.z, dp4a(w.y, x.y, dp4a(w.x, x.x, 0))));
}

/* Halves of a block lie with lanes 2i and 2i + 1. The even lane gets the sum of block i, the odd one that of block 16 + i. */
static inline f32 whole_block(i32 first, i32 second, int lane)
{
    i32 mine = lane % 2 ? second : first, other = lane % 2 ? first : second;
    return (f32)(mine + __shfl_xor_sync(~0u, other, 1));
}

/* Sums of V values over a warp, folded by halves 16, .. 1; lane l gets that of value l / (32 / V). */
template <int V> static inline f32 fold(f32 *v, int lane)
{
    int m = 16;
#pragma unroll
    for (int n = V / 2; n; n /= 2, m /= 2)
#pragma unroll
        for (int i = 0; i < n; i++) {
            f32 mine = lane & m ? v[i + n] : v[i], other = lane & m ? v[i] : v[i + n];
            v[i] = mine + __shfl_xor_sync(~0u, other, m);
        }
    for (; m; m /= 2) v[0] = v[0] + __shfl_xor_sync(~0u, v[0], m);
    return v[0];
}

/* Rows r .. r + T of x, the first of all being first_row, by this warp's part of w; rows beyond the last are not stored. */
template <int T> static inline void multiply(const struct matmul_args *a, const struct part *p, i64 j0, i64 first_row, int r,
                                             int rows)
{
    int lane = threadIdx.x % 32;
    int block = lane % 2 * 16 + lane / 2, piece = lane;
    const int4 *x[T];
    const f32 *dx[T];
    for (int t = 0; t < T; t++) {
        int at = min(r + t, rows - 1);
        i64 row = r == 0 ? first_row : a->list ? a->list[at] : at;
        x[t] = (const int4 *)(a->a.q + row * 1024);
        dx[t] = a->a.d + row * 32;
    }
    int i = lane / (32 / (4 * T)), to = r + i % T;  /* its fold is row j0 + i / T of w by row `to` of x */
    bool stores = lane % (32 / (4 * T)) == 0 && to < rows;
    f32 *y = a->y + to * a->y_stride + j0 + i / T;
    f32 before = i < 4 * T && (T == 1 || to < rows) ? *y : 0.0f;
    f32 acc[4 * T];
    for (int i = 0; i < 4 * T; i++) acc[i] = 0;
#pragma unroll
    for (int c = 0; c < 1; c++)
#pragma unroll
        for (int t = 0; t < T; t++) {
            int4 x0 = x[t][piece + c * 64], x1 = x[t][piece + c * 64 + 32];
            f32 d = dx[t][block + c * 32];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                f32 sum = whole_block(dot16(p->w[j][c][0], x0), dot16(p->w[j][c][1], x1), lane) * h2f(p->d[j][c]);
                acc[j * T + t] = fmaf(sum, d, acc[j * T + t]);
            }
        }
    f32 sum = fold<4 * T>(acc, lane);
    if (!stores) return;
    *y = before + sum;
}

extern "C" __global__ void __launch_bounds__(128) matvec_q8_0_q8_planes_n3584_k1024_add_dp4a_lanes_hold4_split1_groups4_tn2_prefetch1(const struct matmul_args a)
{
    struct part p;
    int lane = threadIdx.x % 32;
    i64 j0 = ((i64)blockIdx.x * 4 + threadIdx.x / 32) * 4;
    if (a.w_offset) pdl_wait();
    const u8 *w = (const u8 *)a.w + (a.w_offset ? *a.w_offset : 0);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        i64 row = j0 + j;
#pragma unroll
        for (int c = 0; c < 1; c++) {
            int chunk = c, at = chunk * 64 + lane, b = chunk * 32 + lane % 2 * 16 + lane / 2;
            p.w[j][c][0] = weights(w, row, at);
            p.w[j][c][1] = weights(w, row, at + 32);
            p.d[j][c] = scale(w, row, b);
        }
    }
    pdl_launch();
    pdl_wait();
    /* The first row of x is found without waiting for n_rows, but through a list that may be empty. */
    i64 first_row = 0;
    if (a.list && *(const volatile i32 *)a.n_rows > 0) first_row = a.list[0];
    int rows = *a.n_rows;
    multiply<1>(&a, &p, j0, first_row, 0, rows);
    for (int r = 1; r < rows; r += 2) multiply<2>(&a, &p, j0, first_row, r, rows);
}
