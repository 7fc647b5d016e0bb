/* swiglu_n77_f32_threads64_each1: y = silu(gate) * up, silu(x) = x / (1 + e^-x).
 *   gate, up, y: [n_rows][77] fp32
 *   block (b, r) owns values [64 b, 64 (b + 1)) of row r, its thread t every 64th from t
 *   moves 924 bytes a row, about 25 operations a value: bound by memory, one row by latency
 *   caller: at least n_rows rows of blocks; y may be gate or up; all of it 16-byte aligned
 * made by: quarry-gen swiglu --shape n=77,out=f32 --params threads=64,each=1 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

extern "C" __global__ void __launch_bounds__(64) swiglu_n77_f32_threads64_each1(const struct swiglu_args a)
{
    int at = blockIdx.x * 64 + threadIdx.x, r = blockIdx.y;
    f32 gate[1], up[1];
    pdl_launch();
    int rows = load_early(a.n_rows);
    pdl_wait();
    if (r >= rows) return;
    const f32 *gates = (const f32 *)(a.gate + (i64)r * 77), *ups = (const f32 *)(a.up + (i64)r * 77);
    #pragma unroll
    for (int i = 0; i < 1; i++) {
        int from = at + i * 64 < 77 ? at + i * 64 : 76;
        gate[i] = gates[from], up[i] = ups[from];
    }
    #pragma unroll
    for (int i = 0; i < 1; i++, at += 64) {
        f32 v = silu_f32(gate[i]) * up[i];
        if (at < 77) ((f32 *)(a.y + (i64)r * 77))[at] = v;
    }
}
