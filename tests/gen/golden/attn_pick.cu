/* attn_pick_heads16_kv_heads4_head_dim256_f16_mma_warps8_stages2: the pages of KV that each block of 64 rows reads,
 *     a list a KV head: the fewest that hold the share `mass` of attention, as
 * four probe rows of the block judge it (args.h has the rules).
 *   q: [n_rows][16][256]; a page of K (f16): 4 pieces of 32768 bytes
 *   pick: [blocks][4][1 + page_stride]; work: a record a block and KV head
 *   first kernel: blocks (j and 64 pages, 8 blocks of rows, sequence); a warp has 16 probe rows in registers, as halves,
 *     and meets page
 *     after page of keys in shared memory
 *   second kernel: a block takes a KV head, block of rows and sequence: masses, steps, the step that suffices by halving,
 *     the list
 *   8192 operations a probe and token that it sees, a sixteenth of the rows being probes; second kernel: bound by L2
 *   caller: grids of 4 by 4096 tokens, and of 4, by the blocks of the longest run of rows by at least n_seqs
 * made by: quarry-gen attn_pick --shape heads=16,kv_heads=4,head_dim=256,fk=f16 --params path=mma,warps=8,stages=2 --card cuda:sm_90 */
#include "kernel.cuh"
#include "args.h"

/* ln x for x >= 1: x = 2^k m, m within [0.7, 1.42]; ln m = 2 atanh(t), t = (m - 1) / (m + 1), by its series to t^9. */
static inline f32 log_of(f32 x)
{
    i32 bits = as_i32(x), k = (bits >> 23) - 127;
    f32 m = as_f32((bits & 0x7FFFFF) | 0x3F800000);
    if (m > 1.41421356f) {
        m *= 0.5f;
        k++;
    }
    f32 t = (m - 1) / (m + 1), z = t * t, p = fmaf(0.111111111f, z, 0.142857143f);
    p = fmaf(p, z, 0.2f);
    p = fmaf(p, z, 0.333333333f);
    return fmaf((f32)k, 0.693147182f, 2 * fmaf(p * z, t, t));
}

/* The piece of KV head j in the sequence's page. */
static inline const u8 *piece_of(const struct attn_pick_args *a, int seq, int page, int j)
{
    i64 id = a->step->pages[(i64)seq * a->step->page_stride + page];
    return (const u8 *)a->pages_k + (id * 4 + j) * 32768;
}

/* The record of a block and KV head. */
static inline u8 *record_of(const struct attn_pick_args *a, int block, int j)
{
    return (u8 *)a->work + ((i64)block * 4 + j) * pick_record(4, a->step->page_stride);
}

/* d += a b for 16 rows, 16 deep, 8 columns. */
static inline void mma(f32 d[4], const u32 a[4], const u32 b[2])
{
    mma_f16_16816(d, a, b);
}

/* The block's rows: row[b] is the first of block b of rows, -1 where it has no probes; pages: what the last of them sees. */
struct work {
    int row[8], seq, j, block, pages;
};

/* Probe row m of the thread block's 128 as a row of the step; -1: there is none. */
static inline int probe_of(const struct work *w, int m)
{
    int row = m < 128 ? w->row[m / 16] : -1;
    return row < 0 ? -1 : pick_probe(row, m % 16 / 4);
}

/* A warp's 16 probe rows as halves, in the places of the matrix instruction; they pass through `stage`, rows 528 bytes apart. */
static inline void load_queries(const struct attn_pick_args *a, const struct work *w, u16 *stage, u32 (*q)[4])
{
    int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16;
#pragma unroll 1
    for (int k = 0; k < 16; k++) {
        int r = probe_of(w, first + k);
        const f32 *from = a->q + ((i64)(r < 0 ? 0 : r) * 16 + w->j * 4 + (first + k) % 4) * 256;
        f32 x[8] = { 0 };
        for (int i = 0; i < 8; i++) x[i] = r < 0 ? 0 : from[lane + 32 * i];
        for (int i = 0; i < 8; i++) stage[(first + k) * 264 + lane + 32 * i] = f2h(x[i]);
    }
    __syncwarp();
    for (int d = 0; d < 16; d++) ldmatrix_x4(q[d], stage + (first + lane % 16) * 264 + lane / 16 * 8 + d * 16);
    __syncthreads();
}

/* The 64 keys of a page as halves. */
static inline void load_keys(const u8 *piece, u16 *to)
{
#pragma unroll 4
    for (int i = threadIdx.x; i < 2048; i += 256) {
        int t = i / 32, d = i % 32 * 8;
        cp_async16(to + t * 264 + d, piece + i * 16);
    }
    cp_async_commit();
}

/* s[n] = scores of the warp's probe rows with tokens 8n .. 8n + 7: a lane has rows lane / 4 (values 0, 1) and lane / 4 + 8
 * (2, 3). */
static inline void scores(const u32 (*q)[4], const u16 *keys, f32 (*s)[4])
{
    int lane = threadIdx.x % 32;
    const u16 *key = keys + (lane / 16 * 8 + lane % 8) * 264 + lane / 8 % 2 * 8;
    for (int n = 0; n < 8; n++)
        for (int i = 0; i < 4; i++) s[n][i] = 0;
#pragma unroll
    for (int d = 0; d < 16; d++)
        for (int n = 0; n < 4; n++) {
            u32 k[4];
            ldmatrix_x4(k, key + n * 4224 + d * 16);
            mma(s[2 * n], q[d], k);
            mma(s[2 * n + 1], q[d], k + 2);
        }
}

/* A lane's probe row: where its logsumexps go and the last token that it sees, -1 if there is none. */
struct probe {
    f32 *p;
    int last;
};

static inline struct probe probe_at(const struct attn_pick_args *a, const struct work *w, int m)
{
    int r = probe_of(w, m);
    if (r < 0) return { 0, -1 };
    f32 *p = (f32 *)record_of(a, w->block + m / 16, w->j);
    return { p + (i64)(m % 16) * pick_pitch(a->step->page_stride), a->step->kv[r] };
}

/* The logsumexp of a page for one of the lane's rows: scores in places i and i + 1 of every n. */
static inline void put_page(const struct probe *it, int page, f32 scale, const f32 (*s)[4], int i)
{
    int t = page * KV_PAGE + threadIdx.x % 4 * 2;
    f32 max = as_f32((i32)0xFF800000), sum = 0;
    for (int n = 0; n < 8; n++)
        for (int k = 0; k < 2; k++)
            if (t + n * 8 + k <= it->last) max = fmaxf(max, s[n][i + k]);
    max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
    max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
    for (int n = 0; n < 8; n++)
        for (int k = 0; k < 2; k++)
            if (t + n * 8 + k <= it->last) sum += exp2_fast((s[n][i + k] - max) * scale * 1.44269504f);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    if (threadIdx.x % 4 == 0 && it->last >= page * KV_PAGE) it->p[page] = max * scale + log_of(sum);
}

extern "C" __global__ void __launch_bounds__(256)
attn_pick_heads16_kv_heads4_head_dim256_f16_mma_warps8_stages2(const struct attn_pick_args a)
{
    SHARED_DYNAMIC(memory);
    __shared__ struct work w;
    u16 *keys = (u16 *)memory;
    pdl_launch();
    pdl_wait();
    const struct step *st = a.step;
    int seq = blockIdx.z, from = blockIdx.y * 512, first = blockIdx.x / 4 * 64;
    if (seq >= st->n_seqs || from >= st->seq_rows[seq]) return;
    if (threadIdx.x == 0) {
        int row = st->seq_row[seq], end = row + st->seq_rows[seq];
        w.seq = seq, w.j = blockIdx.x % 4, w.block = pick_first_block(st, seq) + from / PICK_ROWS, w.pages = 0;
        for (int b = 0; b < 8; b++) {
            int at = row + from + b * PICK_ROWS;
            w.row[b] = at >= end || pick_is_dense(st, at, end, a.dense) ? -1 : at;
            if (w.row[b] >= 0) w.pages = st->kv[at + PICK_ROWS - 1] / KV_PAGE + 1;
        }
    }
    __syncthreads();
    int end = w.pages < first + 64 ? w.pages : first + 64, m = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    if (first >= end) return;
    u32 q[16][4];
    load_queries(&a, &w, keys, q);
    struct probe it[2] = { probe_at(&a, &w, m), probe_at(&a, &w, m + 8) };
    load_keys(piece_of(&a, seq, first, w.j), keys);
    for (int page = first; page < end; page++) {
        f32 s[8][4];
        u16 *now = keys + (page - first) % 2 * 16896, *next = keys + (page - first + 1) % 2 * 16896;
        cp_async_wait<0>();
        __syncthreads();
        if (page + 1 < end) load_keys(piece_of(&a, seq, page + 1, w.j), next);
        scores(q, now, s);
        put_page(&it[0], page, a.scale, s, 0);
        put_page(&it[1], page, a.scale, s, 2);
    }
}

/* A block of rows and a KV head. */
struct list {
    const struct attn_pick_args *a;
    int block, first, count, pitch;   /* first: KV index of its first row; count: pages that the last row sees */
    f32 *p;                /* [16][pitch] */
    u8 *step;              /* [2][pitch] */
};

/* Logsumexps of a probe row become masses; pages that it does not see have none. A warp's. last: the last KV index that it sees. */
static inline void normalise(f32 *p, int count, int last)
{
    int lane = threadIdx.x % 32, seen = last / KV_PAGE + 1;
    f32 max = as_f32((i32)0xFF800000), sum = 0;
    for (int i = lane; i < seen; i += 32) max = fmaxf(max, p[i]);
    max = warp_max(max);
    for (int i = lane; i < seen; i += 32) sum += exp_f32(p[i] - max);
    f32 z = max + log_of(warp_sum(sum));
    for (int i = lane; i < count; i += 32) p[i] = i < seen ? exp_f32(p[i] - z) : 0;
}

/* The mass of page i for head g of the group: half 0 by probes 0 and 2, half 1 by 1 and 3. */
static inline f32 weight(const struct list *l, int half, int g, int i)
{
    const f32 *p = l->p + (i64)(half * 4 + g) * l->pitch + i;
    return (p[0] + p[8 * (i64)l->pitch]) * 0.5f;
}

static inline int step_of(const struct list *l, int half, int i)
{
    f32 most = 0;
    for (int g = 0; g < 4; g++) {
        f32 x = weight(l, half, g, i);
        if (x > most) most = x;
    }
    return pick_step(as_i32(most));
}

/* What the pages that one half keeps at `step` hold of head g's mass in the other half. A warp's. */
static inline f32 held(const struct list *l, int half, int g, int step)
{
    const u8 *chosen = l->step + half * l->pitch;
    f32 sum = 0;
    for (int i = threadIdx.x % 32; i < l->count; i += 32)
        if (chosen[i] >= step || pick_is_kept(i, l->first)) sum += weight(l, 1 - half, g, i);
    return warp_sum(sum);
}

/* The largest step at which no head has less than the mass that is asked for; 0, which all pages have, if there is none. */
static inline int find_step(const struct list *l, f32 *sums)
{
    int low = 0, high = 256;
    while (high - low > 1) {
        int middle = (low + high) / 2, enough = 1;
        for (int k = threadIdx.x / 32; k < 8; k += 8) {
            f32 sum = held(l, k / 4, k % 4, middle);
            if (threadIdx.x % 32 == 0) sums[k] = sum;
        }
        __syncthreads();
        for (int g = 0; g < 4; g++)
            if (!((sums[g] + sums[g + 4]) * 0.5f >= l->a->mass)) enough = 0;
        __syncthreads();
        if (enough) low = middle;
        else high = middle;
    }
    return low;
}

/* By the first warp. step 0: all. */
static inline void write_list(const struct list *l, int step, i32 *out)
{
    int lane = threadIdx.x, n = 0;
    f32 share = l->a->share;
    if (lane >= 32) return;
    for (int first = 0; first < l->count; first += 32) {
        int i = first + lane, in = 0;
        if (i < l->count) {
            int most = 0;
            if (step && share > 0) most = pick_by_chance(share, l->block, i) ? 255 : 0;
            else if (step) most = l->step[i] > l->step[l->pitch + i] ? l->step[i] : l->step[l->pitch + i];
            in = most >= step || pick_is_kept(i, l->first);
        }
        u32 all = __ballot_sync(~0u, in);
        if (in) out[1 + n + __popc(all & ((1u << lane) - 1))] = i;
        n += __popc(all);
    }
    if (lane == 0) out[0] = n;
}

extern "C" __global__ void __launch_bounds__(256)
attn_pick_heads16_kv_heads4_head_dim256_f16_mma_warps8_stages2_2(const struct attn_pick_args a)
{
    __shared__ f32 sums[8];
    pdl_launch();
    pdl_wait();
    const struct step *st = a.step;
    int j = blockIdx.x, seq = blockIdx.z, from = blockIdx.y * PICK_ROWS, step = 0;
    if (seq >= st->n_seqs || from >= st->seq_rows[seq]) return;
    int row = st->seq_row[seq] + from, end = st->seq_row[seq] + st->seq_rows[seq],
        last = row + PICK_ROWS < end ? row + PICK_ROWS : end;
    int block = pick_first_block(st, seq) + from / PICK_ROWS, pitch = (int)pick_pitch(st->page_stride);
    u8 *record = record_of(&a, block, j);
    struct list l = { &a, block, st->kv[row], st->kv[last - 1] / KV_PAGE + 1, pitch, (f32 *)record, record + (i64)pitch * 64 };
    if (!pick_is_dense(st, row, end, a.dense)) {
        for (int m = threadIdx.x / 32; m < 16; m += 8) normalise(l.p + (i64)m * pitch, l.count, st->kv[pick_probe(row, m / 4)]);
        __syncthreads();
        for (int k = threadIdx.x; k < 2 * l.count; k += 256) {
            int half = k >= l.count, i = k - half * l.count;
            l.step[half * pitch + i] = (u8)step_of(&l, half, i);
        }
        __syncthreads();
        step = find_step(&l, sums);
        if (a.share > 0) step = 1;
    }
    write_list(&l, step, a.pick + ((i64)block * 4 + j) * (1 + st->page_stride));
}
