/* conv_silu_channels8192_taps4_threads128_rows8: y[r][c] = silu(sum_j w[c][j] * u[r-3+j][c]) along each sequence, j = 0..3.
 *   u, y [n_rows][8192]; w [8192][4]; state [slots][3][8192], oldest row first
 *   a tile is 8 rows of a sequence from its first row on; block (i, j) owns channels from 128 * i on, a thread each, and of all
 *     sequences' tiles, in order, every gridDim.y-th from the j-th on
 *   a sequence's first tile alone reads the old state, and the same thread then writes the new one, of every segment
 *   sum: the product of tap 0, then fma over ascending taps
 *   moves 8 bytes a row and channel, 3 rows of a tile's 11 a second time: bound by memory, few rows by latency
 *   caller: a sequence's rows and segments are consecutive, a segment loads what the one before it stored; no two sequences
 *     share a slot; u and y do not overlap
 * made by: quarry-gen conv_silu --shape channels=8192,taps=4 --params threads=128,rows=8 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

/* What channel c's filter remembers after each segment of sequence q: the last 3 rows. x: 3 old rows, then its first. */
static inline void keep(const struct conv_silu_args &a, int q, int c, const f32 (&x)[11])
{
    const struct step *step = a.step;
    int first = step->seq_row[q];
    for (int g = step->seq_segment[q]; g < step->seq_segment[q + 1]; g++) {
        const struct segment s = step->segments[g];
        int end = s.row + s.rows - first;
        f32 now[3];
        if (end >= 3) {
            for (int j = 0; j < 3; j++) now[j] = a.u[(i64)(first + end - 3 + j) * 8192 + c];
        }
        for (int e = 1; e < 3; e++) {  /* unrolled, so that x stays in registers */
            if (e != end) continue;
            for (int j = 0; j < 3; j++) now[j] = x[e + j];
        }
        for (int j = 0; j < 3; j++) a.state[((i64)s.store * 3 + j) * 8192 + c] = now[j];
        for (int j = 0; j < 3 && s.copy >= 0; j++) a.state[((i64)s.copy * 3 + j) * 8192 + c] = now[j];
    }
}

/* Rows from `row` on of sequence q, which has `rows` of them, in channel c. */
static inline void tile(const struct conv_silu_args &a, int q, int row, int rows, int c, const f32 (&w)[4])
{
    i64 first = a.step->seq_row[q];
    f32 x[11];
    for (int i = 0; i < 11; i++) {
        int r = row + i - 3;
        x[i] = r >= 0 && r < rows ? a.u[(first + r) * 8192 + c] : 0;
    }
    int load = row == 0 ? a.step->segments[a.step->seq_segment[q]].load : -1;
    for (int i = 0; i < 3 && load >= 0; i++) x[i] = a.state[((i64)load * 3 + i) * 8192 + c];
    for (int i = 0; i < 8; i++) {
        f32 sum = x[i] * w[0];
        for (int j = 1; j < 4; j++) sum = fmaf(x[i + j], w[j], sum);
        if (row + i < rows) a.y[(first + row + i) * 8192 + c] = silu_f32(sum);
    }
    if (row == 0) keep(a, q, c, x);
}

extern "C" __global__ void __launch_bounds__(128) conv_silu_channels8192_taps4_threads128_rows8(const struct conv_silu_args a)
{
    int c = blockIdx.x * 128 + threadIdx.x;
    f32 w[4];
    for (int j = 0; j < 4; j++) w[j] = a.w[(i64)c * 4 + j];
    pdl_launch();
    pdl_wait();
    int left = blockIdx.y;
    for (int q = 0; q < a.step->n_seqs; q++) {
        int rows = a.step->seq_rows[q], tiles = (rows + 7) / 8;
        for (; left < tiles; left += gridDim.y) tile(a, q, left * 8, rows, c, w);
        left -= tiles;
    }
}
