/* matmul_q8_0_q8_planes_n3584_k1024_add_dp4a_128x128_8x8_step128_stages2_registers_unroll4_chunk_split1:
 *     y[r][j] += sum_k w[j][k] x[row][k], row = list[r], or r without a list.
 *   w: int8 [3584][1024], then half scales [3584][32]; x: int8 [.][1024] and fp32 scales [.][32]; y: fp32 [n_rows][3584],
 *     y_stride apart
 *   a block owns 128 rows of x by 128 of w, a thread 8 by 8; 128 of k at a time lie in shared memory, 2 stages
 *   7340032 operations a row, bound by arithmetic (dp4a) from a few hundred rows
 *   caller: a grid for at least n_rows rows; w, x and w_offset in multiples of 16 bytes; y overlaps nothing
 * made by: quarry-gen matmul --shape type=q8_0,act=q8,layout=planes,n=3584,k=1024,epi=add --params path=dp4a,tile=128x128_8x8,step=128,stages=2,load=registers,unroll=4,chain=chunk,split=1 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

enum { N = 3584, K = 1024 };                        /* rows of w, length of all rows */
enum { X = 128, W = 128 };                    /* rows of x and of w a block */
enum { STEP = 128, STEPS = 8 };        /* of k a stage, stages of all k */

/* Bytes: the first stage in shared memory; a stage is the tile of x, of w, scales of x, scales of w. */
enum { FIRST = 512, AT_W = 16384, AT_DX = 32768, AT_DW = 34816, STAGE = 38912 };

/* A warp is 4 threads along x by 8 along w. */
static inline int thread_x(u32 t) { return t / 64 * 4 + t / 8 % 4; }
static inline int thread_w(u32 t) { return t / 32 % 2 * 8 + t % 8; }
static inline int row_of(u32 t, int i) { return thread_x(t) + i * 16; }
static inline int column_of(u32 t, int j) { return thread_w(t) + j * 16; }

/* Where the scale of a row lies: four of a thread's rows in one 16-byte word. */
static inline int place_x(int r) { return (r / 64 * 16 + r % 16) * 4 + r / 16 % 4; }
static inline int place_w(int r) { return (r / 64 * 16 + r % 16) * 4 + r / 16 % 4; }

/* Where row r of a tile lies; its chunk c of 16 bytes is at row_at(r) ^ c << 4. Neighbouring rows have their chunks exchanged,
 * so that
 * eight rows read at one c meet all banks. */
static inline int row_at(int r) { return r * STEP + ((r & 7) << 4); }

/* The row of x for row r of y; past the last it is taken again, and not stored. */
static inline i32 x_row(const struct matmul_args *a, int r)
{
    r = r < *a->n_rows ? r : *a->n_rows - 1;
    return a->list ? a->list[r] : r;
}

static inline int w_row(int j0, int r) { return j0 + r; }

enum { PARTS_X = 1, PARTS = 2 };    /* chunks that a thread brings a 32-block: of x, of both */

static inline int4 load_x(const struct matmul_args *a, i32 row, int at)
{
    return *(const int4 *)(a->a.q + (i64)row * K + at);
}

static inline int4 load_w(const u8 *w, int row, int at)
{
    return *(const int4 *)(w + (i64)row * K + at);
}

/* The b-th share of stage i; on its way while block b of the stage before is multiplied. */
static inline void load_part(int4 part[PARTS], const struct matmul_args *a, const i32 *rows, const u8 *w, int j0, u32 t, int b,
                             int i)
{
    int c = t % 8, r = t / 8, at = i * STEP + c * 16;
#pragma unroll
    for (int p = 0; p < PARTS_X; p++) part[p] = load_x(a, rows[r + (b * PARTS_X + p) * 32], at);
#pragma unroll
    for (int p = 0; p < PARTS - PARTS_X; p++) part[PARTS_X + p] = load_w(w, w_row(j0, r + (b * (PARTS - PARTS_X) + p) * 32), at);
}

static inline void store_part(u8 *stage, u32 t, int b, const int4 part[PARTS])
{
    u8 *x = stage + (row_at(t / 8) ^ t % 8 << 4), *w = x + AT_W;
#pragma unroll
    for (int p = 0; p < PARTS_X; p++) *(int4 *)(x + (b * PARTS_X + p) * 32 * STEP) = part[p];
#pragma unroll
    for (int p = 0; p < PARTS - PARTS_X; p++) *(int4 *)(w + (b * (PARTS - PARTS_X) + p) * 32 * STEP) = part[PARTS_X + p];
}

/* The scales of row t of x for stage i; later to their places. */
static inline void load_dx(f32 dx[4], const struct matmul_args *a, const i32 *rows, u32 t, int i)
{
    if (t >= X) return;
    const f32 *d = a->a.d + (i64)rows[t] * (K / 32) + i * 4;
    float4 v = *(const float4 *)d;
    dx[0] = v.x, dx[1] = v.y, dx[2] = v.z, dx[3] = v.w;
}

static inline void store_dx(u8 *stage, u32 t, const f32 dx[4])
{
    if (t >= X) return;
    f32 *d = (f32 *)(stage + AT_DX) + place_x(t);
#pragma unroll
    for (int b = 0; b < 4; b++) d[b * X] = dx[b];
}

/* The scales of row t of w for stage i: halves, two a word. */
static inline void load_dw(u32 dw[2], const u8 *w, int j0, u32 t, int i)
{
    if (t >= W) return;
    int j = w_row(j0, t);
    uint2 v = *(const uint2 *)(w + (i64)N * K + ((i64)j * (K / 32) + i * 4) * 2);
    dw[0] = v.x, dw[1] = v.y;
}

static inline void store_dw(u8 *stage, u32 t, const u32 dw[2])
{
    if (t >= W) return;
    f32 *d = (f32 *)(stage + AT_DW) + place_w(t);
#pragma unroll
    for (int b = 0; b < 4; b += 2) {
        float2 v = h2f2(dw[b / 2]);
        d[b * W] = v.x, d[(b + 1) * W] = v.y;
        d[(4 + b) * W] = -12582912.0f * v.x, d[(4 + b + 1) * W] = -12582912.0f * v.y;
    }
}

static inline void load4(f32 v[4], const f32 *p)
{
    float4 q = *(const float4 *)p;
    v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
}

/* Block b of the stage: each sum takes the product of 32 bytes by 32, times both scales. An integer sum that starts at 0x4B400000
 * is,
 * read as a float, 12582912 + dot; fma with -12582912 dw (exact, as dw is a half) leaves dot * dw, rounded once. */
static inline void multiply(const u8 *shared, int stage, int b, u32 t, f32 sum[8][8])
{
    const int x_at = (stage + row_at(thread_x(t))) ^ b << 5, w_at = (stage + AT_W + row_at(thread_w(t))) ^ b << 5;
    const f32 *dx = (const f32 *)(shared + stage + AT_DX) + b * X + thread_x(t) * 4;
    const f32 *dw = (const f32 *)(shared + stage + AT_DW) + b * W + thread_w(t) * 4;
    int4 x[8][2];
    f32 sx[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        x[i][0] = *(const int4 *)(shared + x_at + i * 16 * STEP);
        x[i][1] = *(const int4 *)(shared + (x_at ^ 16) + i * 16 * STEP);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 4) load4(sx + i, dx + i * 16);
    f32 scale[4], bias[4];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        if (j % 4 == 0) load4(scale, dw + j * 16), load4(bias, dw + j * 16 + 4 * W);
        int4 lo = *(const int4 *)(shared + w_at + j * 16 * STEP);
        int4 hi = *(const int4 *)(shared + (w_at ^ 16) + j * 16 * STEP);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            i32 dot = 0x4B400000;
            dot = dp4a(x[i][0].x, lo.x, dot), dot = dp4a(x[i][0].y, lo.y, dot);
            dot = dp4a(x[i][0].z, lo.z, dot), dot = dp4a(x[i][0].w, lo.w, dot);
            dot = dp4a(x[i][1].x, hi.x, dot), dot = dp4a(x[i][1].y, hi.y, dot);
            dot = dp4a(x[i][1].z, hi.z, dot), dot = dp4a(x[i][1].w, hi.w, dot);
            sum[i][j] = fmaf(fmaf(as_f32(dot), scale[j % 4], bias[j % 4]), sx[i], sum[i][j]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 1) matmul_q8_0_q8_planes_n3584_k1024_add_dp4a_128x128_8x8_step128_stages2_registers_unroll4_chunk_split1(const struct matmul_args a)
{
    SHARED_DYNAMIC(shared);
    i32 *rows = (i32 *)shared;                      /* [X] row of x for each row of the tile */
    u32 t = threadIdx.x;
    int r0 = blockIdx.x * X, j0 = blockIdx.y * W;
    const int first = 0, last = STEPS;
    pdl_launch();
    pdl_wait();
    if (r0 >= *a.n_rows) return;
    if (t < X) rows[t] = x_row(&a, r0 + t);
    const u8 *w = (const u8 *)a.w + (a.w_offset ? *a.w_offset : 0);
    __syncthreads();

    f32 sum[8][8] = {};
    u32 dw[2];
    f32 dx[4];
    int4 part[PARTS];
#pragma unroll
    for (int b = 0; b < 4; b++) {
        load_part(part, &a, rows, w, j0, t, b, first);
        store_part(shared + FIRST, t, b, part);
    }
    load_dx(dx, &a, rows, t, first), load_dw(dw, w, j0, t, first);
    store_dx(shared + FIRST, t, dx), store_dw(shared + FIRST, t, dw);
    int now = FIRST;                                /* the stage in use; the other is filled */
    for (int i = first; i < last; i++) {
        int then = 2 * FIRST + STAGE - now;
        int next = i + 1 < last ? i + 1 : i;        /* the last stage is brought once more, so that no step branches */
        __syncthreads();
        load_dx(dx, &a, rows, t, next), load_dw(dw, w, j0, t, next);
#pragma unroll 4
        for (int b = 0; b < 4; b++) {
            load_part(part, &a, rows, w, j0, t, b, next);
            multiply(shared, now, b, t, sum);
            store_part(shared + then, t, b, part);
        }
        store_dx(shared + then, t, dx), store_dw(shared + then, t, dw);
        now = then;
    }
    int n_rows = *a.n_rows;
#pragma unroll
    for (int x = 0; x < 8; x++) {
        int r = r0 + row_of(t, x);
        if (r < n_rows) {
            f32 *y = a.y + (i64)r * a.y_stride + j0;
#pragma unroll
            for (int j = 0; j < 8; j++) y[column_of(t, j)] += sum[x][j];
        }
    }
}
