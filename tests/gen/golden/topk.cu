/* topk_n1000_k8_parts32_held8: the 8 largest of each row, descending, lower id first on a tie, and the row's logsumexp.
 *     NaN counts as -inf.
 *   logits: [n_rows][1000] fp32; id, value: [n_rows][8]; lse: [n_rows]; work: struct found [n_rows]
 *   three kernels: a warp of the first owns a part (32 logits) of a row and finds the part's 8 largest; a warp of the second
 *   sums e^(x - max) of the part; a block of the third owns a row and merges what the 32 parts found
 *   the largest so far lie in the lanes of a warp, rank by rank; a logit that beats the last of them is put in its place
 *   sums: 32 logits folded by halves in fp32, these in double
 *   reads 4000 bytes a row twice, the second time from L2: bound by latency
 *   caller: at least n_rows rows of blocks
 * made by: quarry-gen topk --shape n=1000,k=8 --params parts=32,held=8 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

/* What the parts of a row found. */
struct found {
    u64 key[256];   /* 8 a part, descending; 0: the part has fewer logits */
    f64 sum[32];
};

/* A logit and its id as one number: larger for a larger logit, then for a lower id. Never 0; -0 counts as 0; x is no NaN. */
static inline u64 key_of(f32 x, i32 id)
{
    i32 bits = as_i32(x + 0.0f);
    u32 order = bits < 0 ? ~(u32)bits : (u32)bits | 0x80000000;
    return (u64)order << 32 | (u32)~id;
}

static inline i32 id_of(u64 key) { return ~(i32)(u32)key; }

static inline f32 logit_of(u64 key)
{
    u32 order = (u32)(key >> 32);
    return as_f32((i32)(order & 0x80000000 ? order ^ 0x80000000 : ~order));
}

/* The largest of the lanes' keys, in every lane. */
static inline u64 warp_largest(u64 key)
{
    for (int m = 16; m; m >>= 1) {
        u64 other = __shfl_xor_sync(~0u, key, m);
        key = other > key ? other : key;
    }
    return key;
}

/* x, or -inf for NaN, the one value that differs from itself. */
static inline f32 number(f32 x) { return x == x ? x : as_f32((i32)0xFF800000); }

/* The largest keys that a warp has seen: lane l has rank l. */
struct top {
    u64 low, last;   /* last: rank 7 */
};

/* Puts a key that all lanes name in its place; lower ranks move down by one. */
static inline void insert(struct top *t, u64 key)
{
    int lane = threadIdx.x % 32;
    u64 above = __shfl_up_sync(~0u, t->low, 1);
    if (t->low < key) t->low = lane == 0 || above > key ? key : above;
    t->last = __shfl_sync(~0u, t->low, 7);
}

/* Offers the 8 keys of every lane. */
static inline void offer(struct top *t, u64 key[8])
{
    u64 most = 0;
    #pragma unroll
    for (int i = 0; i < 8; i++) most = key[i] > most ? key[i] : most;
    for (u64 first; (first = warp_largest(most)) > t->last;) {
        insert(t, first);
        if (most != first) continue;
        most = 0;
        #pragma unroll
        for (int i = 0; i < 8; i++) {
            key[i] = key[i] == first ? 0 : key[i];
            most = key[i] > most ? key[i] : most;
        }
    }
}

static inline void store(const struct top *t, u64 *key)
{
    int lane = threadIdx.x % 32;
    if (lane < 8) key[lane] = t->low;
}

static inline struct found *found_of(const struct topk_args *a, int row) { return (struct found *)a->work + row; }

extern "C" __global__ void __launch_bounds__(128) topk_n1000_k8_parts32_held8(const struct topk_args a)
{
    int lane = threadIdx.x % 32, p = blockIdx.x * 4 + threadIdx.x / 32, r = blockIdx.y;
    pdl_launch();
    pdl_wait();
    if (r >= *a.n_rows) return;
    const f32 *x = a.logits + (i64)r * 1000;
    i64 begin = (i64)p * 32, end = begin + 32 < 1000 ? begin + 32 : 1000;
    struct top top = {0};
    for (i64 at = begin; at < end; at += 256) {
        u64 key[8];
        #pragma unroll
        for (int i = 0; i < 8; i++) {
            i64 id = at + 32 * i + lane;
            key[i] = id < end ? key_of(number(x[id]), (i32)id) : 0;
        }
        offer(&top, key);
    }
    store(&top, found_of(&a, r)->key + p * 8);
}

extern "C" __global__ void __launch_bounds__(128) topk_n1000_k8_parts32_held8_2(const struct topk_args a)
{
    int lane = threadIdx.x % 32, p = blockIdx.x * 4 + threadIdx.x / 32, r = blockIdx.y;
    pdl_launch();
    pdl_wait();
    if (r >= *a.n_rows) return;
    const f32 *x = a.logits + (i64)r * 1000;
    struct found *found = found_of(&a, r);
    u64 most = 0;
    #pragma unroll
    for (int i = 0; i < 32; i += 32) {
        u64 key = found->key[(i + lane) * 8];
        most = key > most ? key : most;
    }
    f32 max = logit_of(warp_largest(most));
    f64 sum = 0;
    i64 begin = (i64)p * 32, end = begin + 32 < 992 ? begin + 32 : 992;
    #pragma unroll 4
    for (i64 at = begin; at < end; at += 32) sum += warp_sum(exp_f32(number(x[at + lane]) - max));
    if (begin <= 992 && 992 < begin + 32) {
        f64 rest = lane < 8 ? exp_f32(number(x[992 + lane]) - max) : 0;
        for (int m = 16; m; m >>= 1) rest += __shfl_xor_sync(~0u, rest, m);
        sum += rest;
    }
    if (lane == 0) found->sum[p] = sum;
}

extern "C" __global__ void __launch_bounds__(256) topk_n1000_k8_parts32_held8_3(const struct topk_args a)
{
    __shared__ u64 best[64];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = blockIdx.x;
    pdl_launch();
    pdl_wait();
    if (r >= *a.n_rows) return;
    const struct found *found = found_of(&a, r);
    const u64 *keys = found->key + warp * 32;
    struct top top = {0};
    for (int at = 0; at < 32; at += 256) {
        u64 key[8];
        #pragma unroll
        for (int i = 0; i < 8; i++) {
            int j = at + 32 * i + lane;
            key[i] = j < 32 ? keys[j] : 0;
        }
        offer(&top, key);
    }
    store(&top, best + warp * 8);
    __syncthreads();
    if (warp > 0) return;
    struct top row = {0};
    for (int at = 0; at < 64; at += 256) {
        u64 key[8];
        #pragma unroll
        for (int i = 0; i < 8; i++) {
            int j = at + 32 * i + lane;
            key[i] = j < 64 ? best[j] : 0;
        }
        offer(&row, key);
    }
    store(&row, best);
    __syncwarp();
    for (int i = lane; i < 8; i += 32) {
        i32 id = id_of(best[i]);
        a.id[(i64)r * 8 + i] = id;
        a.value[(i64)r * 8 + i] = number(a.logits[(i64)r * 1000 + id]);
    }
    f64 sum = 0;
    for (int i = lane; i < 32; i += 32) sum += found->sum[i];
    for (int m = 16; m; m >>= 1) sum += __shfl_xor_sync(~0u, sum, m);
    f32 max = logit_of(best[0]);
    if (lane == 0) a.lse[r] = max - max == 0 ? (f32)(max + log(sum)) : max;   /* else all are -inf, or one is infinite */
}
