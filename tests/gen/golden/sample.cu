/* sample_n1000_parts32_threads256_last512: one id a row of 1000 logits, as the row's struct sampling asks:
 *     NaN counts as -inf, +inf as the largest float
 *     the logits x, in fp32: repeat, then count * frequency + presence, for ids of the history; + bias; -inf where the mask has
 *     no bit
 *     temp <= 0: the largest x, lowest id on a tie. Else weights w = exp((x - max) / temp), the largest is 1, and the kept set is
 *       top_k: the k largest x, lower ids first on a tie
 *       top_p: of these the fewest largest x whose w reach top_p of their sum (the one that crosses included, lower ids first
 *         on a tie, one at least)
 *       min_p: of these all with w >= min_p
 *     id: in ascending order, the first at which the running sum of the kept w exceeds u times their sum, u in [0, 1) the first
 *       word of Philox4x32-10 with key seed and counter position, over 2^32;   no id has x > -inf: id -1, logprob -inf
 *   logprob: of the id, log softmax of the raw logits
 *   logits: [n_out][1000] fp32, read alone; id, logprob: [n_out]; work: struct row [n_out]
 *   three kernels; 32 blocks of the first two own 256 ids each of a row, a block of the third a row
 *     1: x where it is not the raw logit; the largest of both in the part
 *     2: sum of e^(logit - max), run by run of 256; when an id is drawn the sum of w and, for top_k or top_p, how many
 *        ids (or how much w) stand how far below the largest: 1024 bins of 1/32 in (max - x) / temp
 *     3: the nearest bins that hold the kept set tell the candidates; bisection over the bits of x finds the last one
 *        kept; the draw
 *   weights are summed as whole numbers of 2^-44, so that no order shows; beyond 32 below the largest they count as 0
 *   a greedy row reads its 4000 bytes twice, the second time from L2, others up to five times: bound by latency
 *   caller: at least n_out rows of blocks; the ids of a history are distinct
 * made by: quarry-gen sample --shape n=1000 --params parts=32,threads=256,last=512 --card cuda:sm_70 */
#include "kernel.cuh"
#include "args.h"

struct part {
    u64 raw, most;        /* keys of the largest logit, of the largest x */
    f64 others;           /* sum of e^(logit - max) but for the largest logit itself */
    u64 weight;           /* sum of w */
};

struct row {
    f32 x[1008];       /* written where a history, bias or mask makes it differ from the logits */
    u64 bin[1024];        /* ids when top_k asks, else their w */
    struct part part[32];
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

static inline f32 minus_infinity() { return as_f32((i32)0xFF800000); }
static inline f32 clean(f32 x) { return x != x ? minus_infinity() : x > 0x1.fffffep127f ? 0x1.fffffep127f : x; }

/* How a row is drawn. */
struct draw {
    f32 max, temp;        /* x of the largest */
    f32 least;            /* smallest w that may be drawn */
    f32 floor;            /* smallest w that takes part in the choice before: sums for top_p are taken without min_p */
    int use_k, use_p;
};

static inline struct draw draw_of(const struct sampling *s, f32 max)
{
    struct draw d = {max, s->temp < 1e30f ? s->temp : 1e30f, 0, 0, s->top_k > 0 && s->top_k < 1000, s->top_p < 1};
    if (s->min_p > 0) d.least = s->min_p < 1 ? s->min_p : 1;
    if (!d.use_p) d.floor = d.least;
    return d;
}

/* How far below the largest, in temperatures. */
static inline f32 depth_of(const struct draw *d, f32 x) { return -((x - d->max) / d->temp); }
static inline int bin_of(f32 depth) { return (int)(depth * 32.0f); }

/* w as a whole number; 0 below `least`. */
static inline u64 weight_of(f32 depth, f32 least)
{
    f32 w = exp_f32(-depth);
    return depth < 32.0f && w >= least ? (u64)(w * 0x1p44f) : 0;
}

static inline int is_adjusted(const struct sampling *s) { return s->n_history > 0 || s->n_bias > 0 || s->mask; }
static inline struct row *row_of(const struct sample_args *a, int row) { return (struct row *)a->work + row; }

/* The key of the largest of all parts, in every thread of every warp. */
static inline u64 largest_of(const struct part *part, int raw)
{
    u64 most = 0;
    #pragma unroll
    for (int i = 0; i < 32; i += 32) {
        u64 key = raw ? part[i + threadIdx.x % 32].raw : part[i + threadIdx.x % 32].most;
        most = key > most ? key : most;
    }
    return warp_largest(most);
}

/* --- 1: the largest ------------------------------------------------------------------------------------------------------ */

static inline u64 block_largest(u64 key)
{
    __shared__ u64 warps[8];
    key = warp_largest(key);
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = key;
    __syncthreads();
    return warp_largest(threadIdx.x % 32 < 8 ? warps[threadIdx.x % 32] : 0);
}

/* History and bias of ids [begin, end). A bias that names an id several times adds in its order:
 * the first entry does all of them. */
static inline void adjust(f32 *x, const struct sampling *s, int begin, int end)
{
    for (int i = threadIdx.x; i < s->n_history; i += 256) {
        i32 id = s->history[2 * i], count = s->history[2 * i + 1];
        if (id < begin || id >= end || count <= 0) continue;
        f32 v = x[id] > 0 ? x[id] / s->repeat : x[id] * s->repeat;
        x[id] = clean(v - ((f32)count * s->frequency + s->presence));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < s->n_bias; i += 256) {
        i32 id = s->bias_id[i];
        int first = 0;
        if (id < begin || id >= end) continue;
        while (s->bias_id[first] != id) first++;
        for (int j = i; first == i && j < s->n_bias; j++)
            if (s->bias_id[j] == id) x[id] = clean(x[id] + s->bias[j]);
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(256) sample_n1000_parts32_threads256_last512(const struct sample_args a)
{
    int t = threadIdx.x, p = blockIdx.x, r = blockIdx.y;
    pdl_launch();
    pdl_wait();
    if (r >= a.step->n_out) return;
    const struct sampling *s = &a.step->sampling[r];
    const f32 *logits = a.logits + (i64)r * 1000;
    struct row *row = row_of(&a, r);
    int adjusted = is_adjusted(s), begin = p * 256, end = begin + 256 < 1000 ? begin + 256 : 1000;
    u64 raw = 0;
    #pragma unroll 4
    for (int i = begin + t; i < end; i += 256) {
        f32 x = clean(logits[i]);
        u64 key = key_of(x, i);
        raw = key > raw ? key : raw;
        if (adjusted) row->x[i] = x;
    }
    u64 most = raw;
    if (adjusted) {
        __syncthreads();
        adjust(row->x, s, begin, end);
        most = 0;
        for (int i = begin + t; i < end; i += 256) {
            if (s->mask && !(s->mask[i / 32] >> i % 32 & 1)) row->x[i] = minus_infinity();
            u64 key = key_of(row->x[i], i);
            most = key > most ? key : most;
        }
    }
    raw = block_largest(raw);
    most = block_largest(most);
    if (t == 0) row->part[p].raw = raw, row->part[p].most = most;
    for (int i = p * 32 + t; i < (p + 1) * 32; i += 256) row->bin[i] = 0;
}

/* --- 2: sums ------------------------------------------------------------------------------------------------------------- */

/* Of e^(logit - max) over ids [begin, end) but for id `top`: runs of 256 in 32 strided partials, folded by halves,
 * then in double. */
static inline f64 sum_of_others(const f32 *logits, f32 max, int top, int begin, int end)
{
    f64 sum = 0;
    for (int run = begin + threadIdx.x / 32 * 256; run < end; run += 2048) {
        f32 partial = 0;
        #pragma unroll
        for (int j = 0; j < 8; j++) {
            int i = run + 32 * j + threadIdx.x % 32;
            partial += i < end && i != top ? exp_f32(clean(logits[i]) - max) : 0;
        }
        sum += warp_sum(partial);
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256, 1) sample_n1000_parts32_threads256_last512_2(const struct sample_args a)
{
    __shared__ u64 bin[1024], weights[8];
    __shared__ f64 others[8];
    int t = threadIdx.x, p = blockIdx.x, r = blockIdx.y;
    pdl_launch();
    pdl_wait();
    if (r >= a.step->n_out) return;
    const struct sampling *s = &a.step->sampling[r];
    const f32 *logits = a.logits + (i64)r * 1000;
    struct row *row = row_of(&a, r);
    int begin = p * 256, end = begin + 256 < 1000 ? begin + 256 : 1000;
    u64 raw = largest_of(row->part, 1), most = largest_of(row->part, 0), weight = 0;
    f64 sum = sum_of_others(logits, logit_of(raw), id_of(raw), begin, end);
    int drawn = s->temp > 0;
    struct draw d = draw_of(s, logit_of(most));
    int binned = drawn && (d.use_k || d.use_p);
    if (binned) {
        for (int i = t; i < 1024; i += 256) bin[i] = 0;
        __syncthreads();
    }
    const f32 *x = is_adjusted(s) ? row->x : logits;
    #pragma unroll 4
    for (int i = begin + t; drawn && i < end; i += 256) {
        f32 depth = depth_of(&d, clean(x[i]));
        u64 w = weight_of(depth, d.floor);
        weight += w;
        if (binned && w) atomicAdd(&bin[bin_of(depth)], d.use_k ? 1 : w);
    }
    for (int m = 16; m; m >>= 1) weight += __shfl_xor_sync(~0u, weight, m);
    if (t % 32 == 0) others[t / 32] = sum, weights[t / 32] = weight;
    __syncthreads();
    for (int i = t; binned && i < 1024; i += 256)
        if (bin[i]) atomicAdd(&row->bin[i], bin[i]);
    if (t > 0) return;
    for (int i = 1; i < 8; i++) sum += others[i], weight += weights[i];
    row->part[p].others = sum;
    row->part[p].weight = weight;
}

/* --- 3: the draw --------------------------------------------------------------------------------------------------------- */

static inline u64 warp_total(u64 x)
{
    for (int m = 16; m; m >>= 1) x += __shfl_xor_sync(~0u, x, m);
    return x;
}

static inline u64 block_total(u64 x)
{
    __shared__ u64 warps[16];
    x = warp_total(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_total(threadIdx.x % 32 < 16 ? warps[threadIdx.x % 32] : 0);
}

/* Of the threads before this one. */
static inline u64 block_before(u64 x)
{
    __shared__ u64 warps[16];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 sum = x;
    for (int m = 1; m < 32; m <<= 1) {
        u64 left = __shfl_up_sync(~0u, sum, m);
        if (lane >= m) sum += left;
    }
    __syncthreads();
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    return warp_total(lane < warp ? warps[lane] : 0) + sum - x;
}

/* Candidates in ascending order of id. Kept: x above `last`, and those equal to it up to id last_id. */
struct list {
    const f32 *x;
    const i32 *id;        /* NULL: candidate i is id i */
    int n;
    f32 last;
    i32 last_id;
};

static inline i32 id_at(const struct list *l, int i) { return l->id ? l->id[i] : i; }
static inline int is_kept(const struct list *l, f32 x, i32 id) { return x > l->last || (x == l->last && id <= l->last_id); }

/* The smallest bin up to which at least `goal` is found; the last one if there is less. */
static inline int last_bin(const u64 *bin, u64 goal)
{
    __shared__ int found;
    u64 sum = 0;
    if (threadIdx.x == 0) found = 1023;
    for (int i = 0; i < 2; i++) sum += bin[threadIdx.x * 2 + i];
    u64 before = block_before(sum);
    if (before < goal && before + sum >= goal) {
        int i = threadIdx.x * 2;
        while ((before += bin[i]) < goal) i++;
        found = i;
    }
    __syncthreads();
    return found;
}

/* Which of a part's next 32 ids are candidates, as bits of a warp; *x: this lane's. */
static inline u32 candidates(const struct draw *d, const f32 *x, int i, int end, int bin, f32 *value)
{
    int yes = 0;
    if (i < end) {
        *value = clean(x[i]);
        f32 depth = depth_of(d, *value);
        yes = weight_of(depth, d->floor) > 0 && bin_of(depth) <= bin;
    }
    return __ballot_sync(~0u, yes);
}

/* Lists the ids in bins up to `bin`: a warp counts those of a part, then puts them in their place.
 * All of the row if they are too many. */
static inline struct list gather(const struct draw *d, const struct row *row, const f32 *x, int bin, f32 *list_x, i32 *list_id)
{
    __shared__ int count[32], first[32];
    int t = threadIdx.x, lane = t % 32;
    for (int p = t / 32; p < 32; p += 16) {
        int n = 0, begin = p * 256, end = begin + 256 < 1000 ? begin + 256 : 1000;
        f32 value, depth = row->part[p].most ? depth_of(d, logit_of(row->part[p].most)) : 32.0f;
        if (depth < 32.0f && bin_of(depth) <= bin)
            for (int i = begin; i < end; i += 32) n += __popc(candidates(d, x, i + lane, end, bin, &value));
        if (lane == 0) count[p] = n;
    }
    __syncthreads();
    u64 n = t < 32 ? count[t] : 0, before = block_before(n), total = block_total(n);
    if (t < 32) first[t] = (int)before;
    __syncthreads();
    if (total > 2048) return {x, 0, 1000, minus_infinity(), -1};
    for (int p = t / 32; p < 32; p += 16) {
        int to = first[p], begin = p * 256, end = begin + 256 < 1000 ? begin + 256 : 1000;
        for (int i = begin; count[p] && i < end; i += 32) {
            f32 value;
            u32 found = candidates(d, x, i + lane, end, bin, &value);
            int at = to + __popc(found & ((1u << lane) - 1));
            if (found >> lane & 1) list_x[at] = value, list_id[at] = i + lane;
            to += __popc(found);
        }
    }
    __syncthreads();
    return {list_x, list_id, (int)total, minus_infinity(), -1};
}

/* What a kept candidate counts: 1, or its w. */
static inline u64 measure(const struct draw *d, f32 x, int by_weight)
{
    return by_weight ? weight_of(depth_of(d, x), d->floor) : 1;
}

/* Of the kept with x >= least. */
static inline u64 sum_from(const struct draw *d, const struct list *l, int by_weight, f32 least)
{
    u64 sum = 0;
    for (int i = threadIdx.x; i < l->n; i += 512) {
        f32 x = clean(l->x[i]);
        if (x >= least && is_kept(l, x, id_at(l, i))) sum += measure(d, x, by_weight);
    }
    return block_total(sum);
}

/* How many kept candidates with x == last have ids up to `id`. */
static inline u64 ties_to(const struct list *l, f32 last, i32 id)
{
    u64 n = 0;
    for (int i = threadIdx.x; i < l->n; i += 512) {
        i32 at = id_at(l, i);
        n += clean(l->x[i]) == last && at <= id && is_kept(l, last, at);
    }
    return block_total(n);
}

/* Keeps the fewest best that reach `goal`, which all of the kept do. The upper half of a key is x, ordered. */
static inline void cut(const struct draw *d, struct list *l, int by_weight, u64 goal)
{
    u32 low = 0x00800000, high = (u32)(key_of(d->max, 0) >> 32);   /* -FLT_MAX; sum_from(high + 1) is 0 */
    while (low < high) {
        u32 mid = low + (high - low + 1) / 2;
        if (sum_from(d, l, by_weight, logit_of((u64)mid << 32)) >= goal) low = mid;
        else high = mid - 1;
    }
    f32 last = logit_of((u64)low << 32);
    u64 missing = goal - sum_from(d, l, by_weight, logit_of((u64)(low + 1) << 32)), each = measure(d, last, by_weight);
    i32 from = 0, to = last == l->last ? l->last_id : 999;
    int tied = ties_to(l, last, to) > 1;
    while (tied && from < to) {
        i32 mid = from + (to - from) / 2;
        if (ties_to(l, last, mid) * each >= missing) to = mid;
        else from = mid + 1;
    }
    l->last = last;
    l->last_id = to;
}

/* The least whole sum that is p of `total` or more. */
static inline u64 reach_of(f32 p, u64 total)
{
    f64 exact = p > 0 ? p * (f64)total : 0;
    u64 whole = (u64)exact;
    whole += (f64)whole < exact;
    return whole > 1 ? whole : 1;
}

/* First word of Philox4x32-10 (Salmon et al., SC 2011). */
static inline u32 philox(u64 seed, u64 position)
{
    u32 c0 = (u32)position, c1 = (u32)(position >> 32), c2 = 0, c3 = 0, k0 = (u32)seed, k1 = (u32)(seed >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
        u64 a = (u64)0xD2511F53 * c0, b = (u64)0xCD9E8D57 * c2;
        c0 = (u32)(b >> 32) ^ c1 ^ k0, c1 = (u32)b;
        c2 = (u32)(a >> 32) ^ c3 ^ k1, c3 = (u32)a;
    }
    return c0;
}

/* floor(total * u / 2^32), with total below 2^63. */
static inline u64 share_of(u64 total, u32 u) { return (total >> 32) * u + ((total & 0xFFFFFFFF) * u >> 32); }

/* The id of candidates [begin, end) at which the running sum of kept w exceeds goal; every thread adds up a run of them. */
static inline i32 pick(const struct draw *d, const struct list *l, int begin, int end, u64 goal)
{
    __shared__ i32 id;
    int each = (end - begin + 511) / 512, from = begin + threadIdx.x * each, to = from + each < end ? from + each : end;
    u64 sum = 0;
    for (int i = from; i < to; i++) {
        f32 x = clean(l->x[i]);
        sum += is_kept(l, x, id_at(l, i)) ? weight_of(depth_of(d, x), d->least) : 0;
    }
    u64 before = block_before(sum);
    if (before <= goal && goal < before + sum) {
        int i = from;
        for (;; i++) {
            f32 x = clean(l->x[i]);
            before += is_kept(l, x, id_at(l, i)) ? weight_of(depth_of(d, x), d->least) : 0;
            if (before > goal) break;
        }
        id = id_at(l, i);
    }
    __syncthreads();
    return id;
}

/* Without top_k and top_p the sums of the parts tell where to look. */
static inline i32 pick_of_all(const struct draw *d, const struct row *row, const f32 *x, u32 u)
{
    __shared__ int part;
    __shared__ u64 rest;
    int t = threadIdx.x;
    u64 weight = t < 32 ? row->part[t].weight : 0, goal = share_of(block_total(weight), u), before = block_before(weight);
    if (before <= goal && goal < before + weight) part = t, rest = goal - before;
    __syncthreads();
    struct list all = {x, 0, 1000, minus_infinity(), -1};
    int begin = part * 256;
    return pick(d, &all, begin, begin + 256 < 1000 ? begin + 256 : 1000, rest);
}

/* For top_k, top_p, or both. */
static inline i32 pick_of_best(const struct draw *d, const struct sampling *s, const struct row *row, const f32 *x, u32 u)
{
    __shared__ f32 list_x[2048];
    __shared__ i32 list_id[2048];
    u64 k = (u64)s->top_k, all = block_total(threadIdx.x < 32 ? row->part[threadIdx.x].weight : 0);
    u64 target = reach_of(s->top_p, all);
    struct list l = gather(d, row, x, last_bin(row->bin, d->use_k ? k : target), list_x, list_id);
    if (d->use_k && (u64)l.n > k) cut(d, &l, 0, k);
    if (d->use_k && d->use_p) target = reach_of(s->top_p, sum_from(d, &l, 1, minus_infinity()));
    if (d->use_p) cut(d, &l, 1, target);
    u64 sum = 0;
    for (int i = threadIdx.x; i < l.n; i += 512) {
        f32 v = clean(l.x[i]);
        sum += is_kept(&l, v, id_at(&l, i)) ? weight_of(depth_of(d, v), d->least) : 0;
    }
    return pick(d, &l, 0, l.n, share_of(block_total(sum), u));
}

extern "C" __global__ void __launch_bounds__(512, 1) sample_n1000_parts32_threads256_last512_3(const struct sample_args a)
{
    int t = threadIdx.x, r = blockIdx.x;
    pdl_launch();
    pdl_wait();
    if (r >= a.step->n_out) return;
    const struct sampling *s = &a.step->sampling[r];
    const f32 *logits = a.logits + (i64)r * 1000;
    const struct row *row = row_of(&a, r);
    u64 most = largest_of(row->part, 0);
    f32 raw = logit_of(largest_of(row->part, 1)), max = logit_of(most);
    i32 id = id_of(most);
    if (max == minus_infinity()) {
        if (t == 0) a.id[r] = -1, a.logprob[r] = max;
        return;
    }
    if (s->temp > 0) {
        struct draw d = draw_of(s, max);
        const f32 *x = is_adjusted(s) ? row->x : logits;
        u32 u = philox(s->seed, (u64)s->position);
        id = d.use_k || d.use_p ? pick_of_best(&d, s, row, x, u) : pick_of_all(&d, row, x, u);
    }
    if (t >= 32) return;
    f64 others = 0;
    for (int i = t; i < 32; i += 32) others += row->part[i].others;
    for (int m = 16; m; m >>= 1) others += __shfl_xor_sync(~0u, others, m);
    if (t == 0) a.id[r] = id, a.logprob[r] = (f32)((f64)clean(logits[id]) - raw - log1p(others));
}
