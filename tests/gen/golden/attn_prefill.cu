/* attn_prefill_heads16_kv_heads4_head_dim256_f16_f16_q8_mma_tile64_warps4_chunk32_terms1_stages2_split1:
 *     o[r][h] = sigmoid(gate[r][h]) * softmax(scale * q[r][h] . K) V over KV 0..kv[r] of the row's sequence,
 *     head h / 4 of K and V.
 *   q: [n_rows][16][256]; qg: [n_rows][16][512], the gate is the second half
 *   oq: int8 [n_rows][4096], d (scale) and s (sum): [n_rows][128], blocks of 32
 *   a page of K (f16) and V (f16): [4] pieces, 32768 and 32768 bytes, as kv_append has them
 *   blocks (j, i, s) own KV head j for the i-th 16 rows, counted from the last tile on, of sequence s: 64 query rows,
 *     row-major by (row, head); tiles that see most begin first
 *   over runs of 32 tokens a warp takes 16 query rows: scores, weights by exp2 of a running max, values, all in registers
 *   q, times a power of two a row, and the weights are rounded to halves; sums in fp32
 *   16384 operations a row and token that it sees on the matrix units
 *   caller: a grid of 4 by the tiles of the longest run of rows by at least n_seqs; rows of a sequence contiguous and ascending
 *     in kv
 * made by: quarry-gen attn_prefill --shape heads=16,kv_heads=4,head_dim=256,fk=f16,fv=f16,out=q8 --params path=mma,tile=64,warps=4,chunk=32,terms=1,stages=2,split=1 --card cuda:sm_90 */
#include "kernel.cuh"
#include "args.h"

/* A block of 32 as int8, scale and sum, as kernel.h defines them: 4 neighbouring lanes hold it, 8 values each, pairs 8 apart.
 * All lanes of the warp call;
 * on: this lane's block exists. at: the lane's first element in q; its block's d and s are at / 32. */
static inline void write_q8(const struct act_q8 *a, i64 at, const f32 *x, int on)
{
    i32 q[8], sum = 0;
    f32 most = 0;
    for (int i = 0; i < 8; i++) most = fmaxf(most, fabsf(x[i]));
    for (int m = 2; m; m >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, m));
    f32 inverse = most > 0x1p-120f ? 127.0f / most : 0.0f;
    for (int i = 0; i < 8; i++) {
        q[i] = round_i32(x[i] * inverse);
        sum += q[i];
    }
    for (int m = 2; m; m >>= 1) sum += __shfl_xor_sync(~0u, sum, m);
    if (!on) return;
    for (int i = 0; i < 8; i += 2) *(u16 *)(a->q + at + i * 4) = (u16)((q[i] & 255) | q[i + 1] << 8);
    if (threadIdx.x % 4) return;
    a->d[at / 32] = most > 0x1p-120f ? most / 127.0f : 0.0f;
    a->s[at / 32] = sum;
}

/* What a block works on: `count` query rows of one sequence for KV head j, query row m being head m % 4 of the group of row m /
 * 4. */
struct tile {
    const i32 *pages;      /* of the sequence */
    int row, j, count, tokens;   /* tokens: that the last row sees */
    int end;               /* of the tokens that this block reads */
    int within;            /* place of the first row in its block of ATTN_PICK_ROWS */
    const i32 *pick[2];    /* of the tile's first and last row: a count, then pages; NULL: all pages */
    int picked[2];         /* how many of those are behind */
    int run[4];            /* first tokens of runs i .. i + 3 in places i % 4 ..; bits 0 and 1: which of `pick` has them; -1 behind the last */
};

/* Past the last query row it is repeated. */
static inline i64 head_at(const struct tile *it, int m)
{
    int at = m < it->count ? m : it->count - 1;
    return (i64)(it->row + at / 4) * 16 + it->j * 4 + at % 4;
}

/* --- which tokens -------------------------------------------------------------------------------------------------------- */

/* Index, in step->seq's blocks of rows that attn_args.pick has lists for, of row `from` of sequence `seq`. */
static inline i64 block_of(const struct step *st, int seq, int from)
{
    i64 block = from / ATTN_PICK_ROWS;
    for (int s = 0; s < seq; s++) block += (st->seq_rows[s] + ATTN_PICK_ROWS - 1) / ATTN_PICK_ROWS;
    return block;
}

/* The first run at or behind token t, as tile.run has it. A run lies in one page. Of picked pages the lists of the tile's two
 * blocks of rows are
 * merged; `picked` goes on only when a page is left. By one thread. */
static inline int run_from(struct tile *it, int t)
{
    if (!it->pick[0]) return t < it->end ? t : -1;
    int least = it->end, of = 0;
    for (int i = 0; i < 2; i++) {
        const i32 *list = it->pick[i];
        while (it->picked[i] < list[0] && (list[1 + it->picked[i]] + 1) * KV_PAGE <= t) it->picked[i]++;
        int at = it->picked[i] < list[0] ? list[1 + it->picked[i]] * KV_PAGE : it->end;
        at = at > t ? at : t;
        if (at == least && at < it->end) of |= 1 << i;
        if (at < least) least = at, of = 1 << i;
    }
    return least < it->end ? least | of : -1;
}

static inline int token_of(int run) { return run & ~15; }

/* --- queries ------------------------------------------------------------------------------------------------------------- */

/* d += a b for 16 rows, 16 deep, 8 columns. */
static inline void mma(f32 d[4], const u32 a[4], const u32 b[2])
{
    mma_f16_16816(d, a, b);
}

/* A warp's 16 query rows as halves, each row times the power of two that brings its largest below 2^13, so that none overflows;
 * scale[m] undoes
 * it. In shared memory 16 bytes u of a row lie at place u ^ row % 8, so that the eight rows of a fragment lie in different banks. */
static inline void load_queries(const struct attn_args *a, const struct tile *it, u16 *high, f32 *scale)
{
    int lane = threadIdx.x % 32;
#pragma unroll 2
    for (int m = threadIdx.x / 32 * 16; m < threadIdx.x / 32 * 16 + 16; m++) {
        const f32 *q = a->q + head_at(it, m) * 256 + lane * 8;
        float4 l = *(const float4 *)q, r = *(const float4 *)(q + 4);
        f32 x[8] = { l.x, l.y, l.z, l.w, r.x, r.y, r.z, r.w }, most = 0;
        for (int i = 0; i < 8; i++) most = fmaxf(most, fabsf(x[i]));
        i32 exponent = as_i32(warp_max(most)) & 0x7F800000;
        if (exponent < 16 << 23) exponent = 16 << 23;
        f32 factor = as_f32((254 << 23) - (exponent - (12 << 23)));
        if (lane == 0) scale[m] = as_f32(exponent - (12 << 23)) * a->scale * 1.44269504f;
        u32 word[4];
        for (int i = 0; i < 4; i++) word[i] = f2h2(x[2 * i] * factor, x[2 * i + 1] * factor);
        *(int4 *)(high + (m) * 256 + ((lane) ^ (m) % 8) * 8) = make_int4((i32)word[0], (i32)word[1], (i32)word[2], (i32)word[3]);
    }
}

/* --- keys and values ----------------------------------------------------------------------------------------------------- */

/* The run of 32 tokens from t on, of pages of f16; zeros past the last token. */
static inline void copy_run(const struct tile *it, const void *pages, int t, u16 *to)
{
    const u16 *from = (const u16 *)pages + (((i64)it->pages[t / KV_PAGE] * 4 + it->j) * KV_PAGE + t % KV_PAGE) * 256;
    int left = it->tokens - t;
    from += threadIdx.x * 8;
    if (left >= 32) {
        int u = threadIdx.x % 32, first = threadIdx.x / 32;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            int row = first + i * 4, at = (row) * 256 + ((u) ^ (row) % 8) * 8;
            cp_async16(to + at, from + i * 1024);
        }
        return;
    }
    int u = threadIdx.x % 32, first = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int row = first + i * 4, at = (row) * 256 + ((u) ^ (row) % 8) * 8;
        cp_async16_or_zero(to + at, from + i * 1024, row < left);
    }
}

/* Everything copied so far is there for all threads, and what they read before may be overwritten. */
static inline void arrive()
{
    cp_async_wait<0>();
    __syncthreads();
}

/* --- a run --------------------------------------------------------------------------------------------------------------- */

/* s[n] = scores of this warp's query rows with tokens 8n .. 8n + 7 of the run, as the matrix instruction lays them out:
 * a lane has rows
 * lane / 4 (values 0, 1) and lane / 4 + 8 (2, 3), columns lane % 4 * 2 and the next. */
static inline void scores(const u16 *high, const u16 *keys, f32 (*s)[4])
{
    int lane = threadIdx.x % 32, query = (threadIdx.x / 32 * 16 + lane % 16) * 256, key = (lane / 16 * 8 + lane % 8) * 256;
    int left = ((lane / 16) ^ (lane) % 8) * 8, right = ((lane / 8 % 2) ^ (lane) % 8) * 8;
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 4; i++) s[n][i] = 0;
#pragma unroll 1
    for (int d = 0; d < 256; d += 64) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            u32 q[1][4];
            ldmatrix_x4(q[0], high + query + (left ^ 16 * (i)) + d);
            for (int n = 0; n < 2; n++) {
                u32 k[4];
                ldmatrix_x4(k, keys + key + (right ^ 16 * (i)) + d + n * 4096);
                for (int h = 0; h < 1; h++) {
                    mma(s[2 * n], q[h], k);
                    mma(s[2 * n + 1], q[h], k + 2);
                }
            }
        }
    }
}

/* Softmax of a query row so far; a lane has two of them, and of `sum` the part of its own columns. */
struct running {
    f32 max, sum, old;     /* old: the factor for o so far; max: of scores as they are, the row's scale makes powers of two of them */
};

/* Scores become weights. */
static inline void weights(f32 (*s)[4], const f32 *scale, struct running run[2])
{
    f32 max[2] = { run[0].max, run[1].max };
    for (int n = 0; n < 4; n++) {
        for (int i = 0; i < 4; i++) max[i / 2] = fmaxf(max[i / 2], s[n][i]);
    }
    for (int k = 0; k < 2; k++) {
        f32 top = fmaxf(max[k], __shfl_xor_sync(~0u, max[k], 1)), sum = 0;
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
        f32 factor = scale[8 * k];
        for (int n = 0; n < 4; n++)
            for (int i = 2 * k; i < 2 * k + 2; i++) {
                s[n][i] = exp2_fast((s[n][i] - top) * factor);
                sum += s[n][i];
            }
        run[k].old = exp2_fast((run[k].max - top) * factor);
        run[k].sum = run[k].sum * run[k].old + sum;
        run[k].max = top;
    }
}

/* o = old o + the weighed values of the run. */
static inline void add_values(const u16 *values, const f32 (*s)[4], const struct running run[2], f32 (*o)[4])
{
    int lane = threadIdx.x % 32;
    const u16 *value = values + lane % 16 * 256;
    int right = ((lane / 16) ^ (lane) % 8) * 8;
    u32 p[1][2][4];
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 2; i++)
            p[0][n / 2][n % 2 * 2 + i] = f2h2(s[n][2 * i], s[n][2 * i + 1]);
    if (__any_sync(~0u, run[0].old != 1 || run[1].old != 1)) {   /* once a sequence is long, most runs have no new max */
#pragma unroll
        for (int d = 0; d < 32; d++)
            for (int i = 0; i < 4; i++) o[d][i] *= run[i / 2].old;
    }
#pragma unroll
    for (int d = 0; d < 32; d += 2)
        for (int t = 0; t < 2; t++) {
            u32 v[4];
            ldmatrix_x4_trans(v, value + (right ^ 16 * (d / 2 % 4)) + d / 8 * 64 + t * 4096);
            mma(o[d], p[0][t], v);
            mma(o[d + 1], p[0][t], v + 2);
        }
}

/* --- results ------------------------------------------------------------------------------------------------------------- */

/* The sigmoid to some 2^-21. */
static inline f32 gate_of(f32 x) { return rcp_fast(1 + exp2_fast(x * -1.44269504f)); }

/* The lane's two query rows, divided by their sums and gated. */
static inline void store(const struct attn_args *a, const struct tile *it, int row, const struct running run[2],
                         const f32 (*o)[4])
{
#pragma unroll
    for (int k = 0; k < 2; k++) {
        f32 sum = run[k].sum + __shfl_xor_sync(~0u, run[k].sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        f32 inv = 1 / sum;
        i64 at = head_at(it, row + 8 * k) * 256;
        const f32 *gates = a->qg + 2 * at + 256;
        int on = row + 8 * k < it->count;   /* others help to quantise */
#pragma unroll
        for (int block = 0; block < 8; block++) {
            int d = block * 32 + threadIdx.x % 4 * 2;
            f32 y[8];
            for (int n = 0; n < 4; n++) {
                float2 gate = *(const float2 *)(gates + d + n * 8);
                y[2 * n] = o[block * 4 + n][2 * k] * inv * gate_of(gate.x);
                y[2 * n + 1] = o[block * 4 + n][2 * k + 1] * inv * gate_of(gate.y);
            }
            write_q8(&a->oq, at + d, y, on);
        }
    }
}

/* --- the kernel ---------------------------------------------------------------------------------------------------------- */

/* Tokens, rows and lists of this block. By one thread. */
static inline void begin(const struct attn_args *a, struct tile *it)
{
    const struct step *st = a->step;
    int seq = blockIdx.z, from = (gridDim.y - 1 - blockIdx.y) * 16, first = st->seq_row[seq] + from;
    int rows = st->seq_rows[seq] - from < 16 ? st->seq_rows[seq] - from : 16;
    it->pages = st->pages + (i64)seq * st->page_stride;
    it->row = first;
    it->j = blockIdx.x;
    it->count = rows * 4;
    it->tokens = it->end = st->kv[first] + rows;
    it->within = from % ATTN_PICK_ROWS;
    it->pick[0] = it->pick[1] = nullptr;
    it->picked[0] = it->picked[1] = 0;
    if (a->pick) {
        i64 list = 1 + st->page_stride;
        it->pick[0] = a->pick + (block_of(st, seq, from) * 4 + it->j) * list;
        it->pick[1] = it->pick[0] + (it->within + rows > ATTN_PICK_ROWS ? 4 * list : 0);
    }
    int t = 0;
    for (int i = 0; i < 3; i++) {
        it->run[i] = t < 0 ? -1 : run_from(it, t);
        t = it->run[i] < 0 ? -1 : token_of(it->run[i]) + 32;
    }
}

/* Run i + 2, where i is the one that begins; run i + 3 takes the place of run i - 1. */
static inline int run_after(struct tile *it, int i)
{
    int run = it->run[(i + 2) % 4];
    if (threadIdx.x == 0) it->run[(i + 3) % 4] = run < 0 ? -1 : run_from(it, token_of(run) + 32);
    return run;
}

/* Makes -inf of what the lane's query rows row and row + 8 do not see. */
static inline void hide_unseen(const struct tile *it, int run, int row, f32 (*s)[4])
{
    int t = token_of(run), before = it->tokens - it->count / 4, last = it->count - 1;
    if (t + 31 <= before + (row - row % 16) / 4 && run % 4 % 3 == 0) return;
    for (int k = 0; k < 2; k++) {
        int m = row + 8 * k < last ? row + 8 * k : last, seen = before + m / 4;
        if (run % 4 && !(run >> (it->within + m / 4 >= ATTN_PICK_ROWS) & 1)) seen = -1;
        int columns = seen - t - threadIdx.x % 4 * 2;
        for (int n = 0; n < 4; n++)
            for (int i = 0; i < 2; i++)
                if (n * 8 + i > columns) s[n][2 * k + i] = as_f32((i32)0xFF800000);
    }
}

extern "C" __global__ void __launch_bounds__(128)
attn_prefill_heads16_kv_heads4_head_dim256_f16_f16_q8_mma_tile64_warps4_chunk32_terms1_stages2_split1(const struct attn_args a)
{
    SHARED_DYNAMIC(memory);
    __shared__ struct tile it;   /* not in registers, which o needs */
    __shared__ f32 scale[64];
    u16 *high = (u16 *)memory, *keys = high + 16384, *values = keys + 16384;
    pdl_launch();
    pdl_wait();
    if ((int)blockIdx.z >= a.step->n_seqs || (int)(gridDim.y - 1 - blockIdx.y) * 16 >= a.step->seq_rows[blockIdx.z]) return;
    if (threadIdx.x == 0) begin(&a, &it);
    __syncthreads();
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, now = it.run[0], next = it.run[1];
    if (now >= 0) {
        copy_run(&it, a.pages_k, token_of(now), keys);
        copy_run(&it, a.pages_v, token_of(now), values);
    }
    cp_async_commit();
    load_queries(&a, &it, high, scale);
    __syncwarp();
    struct running run[2];
    for (int k = 0; k < 2; k++) run[k] = { -0x1p127f, 0, 0 };
    f32 o[32][4] = { { 0 } };
    for (int i = 0; now >= 0; i++) {
        int slot = i % 2, other = 1 - slot;
        arrive();
        int after = run_after(&it, i);
        if (next >= 0) {
            copy_run(&it, a.pages_k, token_of(next), keys + other * 8192);
            copy_run(&it, a.pages_v, token_of(next), values + other * 8192);
        }
        cp_async_commit();
        f32 s[4][4];
        scores(high, keys + slot * 8192, s);
        hide_unseen(&it, now, row, s);
        weights(s, scale + row, run);
        add_values(values + slot * 8192, s, run, o);
        now = next;
        next = after;
    }
    store(&a, &it, row, run, o);
}
