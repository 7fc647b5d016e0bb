/* kv_append_kv_heads4_head_dim256_f16_f16_threads128: writes each row's K (f16) and V (f16) into its sequence's pages at kv[r].
 *   k, v: [n_rows][4][256] fp32; page p of K at byte 131072 * p, of V at 131072 * p
 *   a page in f16: [4][KV_PAGE][256]
 *   blocks (b, r, 0) own row r of K, (b, r, 1) of V; thread t the 4 values from 4 * (b * 128 + t) on
 *   moves 12288 bytes a row; bound by latency, many rows by memory
 *   fp16 is rounded to nearest, ties to even
 *   caller: a grid of 2 by at least n_rows by 2 blocks; no two rows have the same place
 * made by: quarry-gen kv_append --shape kv_heads=4,head_dim=256,fk=f16,fv=f16 --params threads=128 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

static inline void put_f16(u8 *piece, int at, const f32 *x)
{
    float4 v = *(const float4 *)x;
    *(int2 *)((u16 *)piece + at) = make_int2((i32)f2h2(v.x, v.y), (i32)f2h2(v.z, v.w));
}

extern "C" __global__ void __launch_bounds__(128)
kv_append_kv_heads4_head_dim256_f16_f16_threads128(const struct kv_append_args a)
{
    pdl_launch();
    const struct step *st = a.step;
    int rows = load_early(&st->n_rows), stride = load_early(&st->page_stride);
    int r = (int)blockIdx.y < rows ? blockIdx.y : 0;
    int kv = load_early(st->kv + r), seq = load_early(st->seq + r);
    i64 page = load_early(st->pages + (i64)seq * stride + kv / KV_PAGE);
    pdl_wait();
    if ((int)blockIdx.y >= rows) return;
    if (blockIdx.z == 0) {
        int at = (blockIdx.x * 128 + threadIdx.x) * 4, j = at / 256;
        if (at < 1024) put_f16((u8 *)a.pages_k + (page * 4 + j) * 32768, kv % KV_PAGE * 256 + at % 256, a.k + (i64)r * 1024 + at);
    } else {
        int at = (blockIdx.x * 128 + threadIdx.x) * 4, j = at / 256;
        if (at < 1024) put_f16((u8 *)a.pages_v + (page * 4 + j) * 32768, kv % KV_PAGE * 256 + at % 256, a.v + (i64)r * 1024 + at);
    }
}
