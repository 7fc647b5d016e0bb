/* sample_n1000_avx2_hw: one id a row of 1000 logits, as the row's struct sampling asks:
 *     NaN counts as -inf, +inf as the largest float
 *     the logits x, in fp32: repeat, then count * frequency + presence, for ids of the history; + bias; -inf where the mask has
 *     no bit
 *     temp <= 0: the largest x, lowest id on a tie. Else weights w = exp((x - max) / temp), the largest is 1, and the kept set is
 *       top_k: the k largest x, lower ids first on a tie
 *       top_p: of these the fewest largest w whose sum reaches top_p of their sum (the one that crosses included, lower ids first
 *         on a tie, one at least)
 *       min_p: of these all with w >= min_p
 *     id: in ascending order, the first at which the running sum of the kept w exceeds u times their sum, u in [0, 1) the first
 *       word of Philox4x32-10 with key seed and counter position, over 2^32;   no id has x > -inf: id -1, logprob -inf
 *   logprob: of the id, log softmax of the raw logits
 *   logits: [n_out][1000] fp32, cleaned of NaN and +inf in place; id, logprob: [n_out]; work: [parts][12096] bytes
 *   nothing is sorted: top_k finds its least value by a heap of k values, top_p by bisection over the bits of w
 *   part p of the team owns the p-th run of rows
 *   sums run over 256 values in 32 strided fp32 partials, folded by halves, then in double
 *   three to five passes over a row and one or two exp a logit: bound by exp, then by the caches
 *   caller: logits do not overlap anything else
 * made by: quarry-gen sample --shape n=1000 --params isa=avx2,fma=hw */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(32)));
typedef i32 vi __attribute__((vector_size(32)));
typedef f32 vf_mem __attribute__((vector_size(32), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }
static inline void vstore(f32 *p, vf v) { *(vf_mem *)p = v; }

/* x in every lane: a scalar meets a vector lane by lane, and x - 0 is x, -0 included. */
static inline vf vset(f32 x) { return x - (vf){0}; }

/* The same bits as integers and back. */
static inline vi vbits(vf v) { union { vf f; vi i; } u = {.f = v}; return u.i; }
static inline vf vfloat(vi v) { union { vi i; vf f; } u = {.i = v}; return u.f; }

/* Masks: all bits of a lane set where true. */
static inline vi vless(vf a, vf b) { return a < b; }
static inline vf vselect(vi mask, vf yes, vf no) { return vfloat((mask & vbits(yes)) | (~mask & vbits(no))); }
static inline vf vmaxf(vf a, vf b) { return __builtin_ia32_maxps256(a, b); }

static inline vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps256(a, b, c); }

typedef f32 vf4 __attribute__((vector_size(16)));

/* Lanes folded by halves: 4 + i onto i, and so on. */
static inline f32 vsum(vf v)
{
    vf4 v4 = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
    return (v4[0] + v4[2]) + (v4[1] + v4[3]);
}

static inline f32 vhmax(vf v)
{
    vf4 v4 = __builtin_ia32_maxps(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7));
    vf4 v2 = __builtin_ia32_maxps(v4, __builtin_shufflevector(v4, v4, 2, 3, 2, 3));
    return v2[0] > v2[1] ? v2[0] : v2[1];
}

/* e^x = 2^k e^r, k = round(x / ln 2), |r| <= ln(2) / 2; ln 2 in two parts, so that r is exact to its last bits; e^r by a
 * polynomial of degree 6 (error 3e-9). Below -87.33 the result is 0, above 88.72 infinite; NaN stays NaN. */
static inline vf vexp(vf x)
{
    vf t = vfma(x, vset(1.44269502f), vset(12582912.0f));
    vf k = t - 12582912.0f;
    vf r = vfma(k, vset(-0.693359375f), x);
    r = vfma(k, vset(0.000212194442f), r);
    vf p = vset(0.00138143206f);
    p = vfma(p, r, vset(0.00836885069f));
    p = vfma(p, r, vset(0.0416684002f));
    p = vfma(p, r, vset(0.166665196f));
    p = vfma(p, r, vset(0.49999994f));
    p = vfma(p * r, r, r) + 1.0f;
    vf y = vfloat(vbits(p) + (vbits(t) << 23));
    y = vselect(vless(x, vset(-87.33f)), vset(0), y);
    return vselect(vless(vset(88.72f), x), vset(__builtin_inff()), y);
}

/* One lane of vexp. */
static inline f32 sexp(f32 x) { return vexp(vset(x))[0]; }

/* Logits, later weights, of the ids still in question: ascending ids, x padded with -inf (later 0) to whole runs of 256. */
struct row {
    f32 *x;     /* [1024] */
    i32 *id;    /* [n] once thinned; before that id i is at x[i], and the room serves as heap */
    i32 n;
    int thinned;
};

static inline f32 clean(f32 x) { return x != x ? -__builtin_inff() : x > 0x1.fffffep127f ? 0x1.fffffep127f : x; }

static inline f32 run_max(const f32 *x)
{
    vf m = vload(x);
    for (int i = 8; i < 256; i += 8) m = vmaxf(m, vload(x + i));
    return vhmax(m);
}

/* Folds 32 partial sums by halves. */
static inline f32 fold32(vf *p)
{
    for (int h = 2; h > 0; h /= 2)
        for (int i = 0; i < h; i++) p[i] += p[i + h];
    return vsum(p[0]);
}

static f32 run_sum(const f32 *x)
{
    vf p[4] = { 0 };
    for (int i = 0; i < 256; i += 32)
        for (int j = 0; j < 4; j++) p[j] += vload(x + i + 8 * j);
    return fold32(p);
}

/* Of the values not below t. */
static f32 run_sum_from(const f32 *x, f32 t)
{
    const vf zero = { 0 }, least = vset(t);
    vf p[4] = { 0 };
    for (int i = 0; i < 256; i += 32)
        for (int j = 0; j < 4; j++) p[j] += vselect(vless(vload(x + i + 8 * j), least), zero, vload(x + i + 8 * j));
    return fold32(p);
}

static f32 run_sum_exp(const f32 *x, f32 max, f32 temp)
{
    vf p[4] = { 0 };
    for (int i = 0; i < 256; i += 32)
        for (int j = 0; j < 4; j++) p[j] += vexp((vload(x + i + 8 * j) - max) / temp);
    return fold32(p);
}

static f64 sum_exp(const struct row *r, f32 max, f32 temp)
{
    f64 sum = 0;
    for (i32 i = 0; i < r->n; i += 256) sum += run_sum_exp(r->x + i, max, temp);
    return sum;
}

static f64 sum_from(const struct row *r, f32 t)
{
    f64 sum = 0;
    for (i32 i = 0; i < r->n; i += 256) sum += run_sum_from(r->x + i, t);
    return sum;
}

static void pad(struct row *r)
{
    for (i32 i = r->n; i % 256; i++) r->x[i] = -__builtin_inff();
}

static f32 largest(const struct row *r)
{
    f32 max = -__builtin_inff();
    for (i32 i = 0; i < r->n; i += 256) {
        f32 m = run_max(r->x + i);
        max = m > max ? m : max;
    }
    return max;
}

static void read_logits(struct row *r, f32 *logits)
{
    r->n = 1000, r->thinned = 0;
    for (i32 i = 0; i < 1000; i++) r->x[i] = logits[i] = clean(logits[i]);
    pad(r);
}

static void penalise(f32 *x, const struct sampling *s)
{
    for (i32 i = 0; i < s->n_history; i++) {
        i32 id = s->history[2 * i], count = s->history[2 * i + 1];
        if (id < 0 || id >= 1000 || count <= 0) continue;
        f32 v = x[id] > 0 ? x[id] / s->repeat : x[id] * s->repeat;
        x[id] = clean(v - ((f32)count * s->frequency + s->presence));
    }
}

static void add_bias(f32 *x, const struct sampling *s)
{
    for (i32 i = 0; i < s->n_bias; i++)
        if (s->bias_id[i] >= 0 && s->bias_id[i] < 1000) x[s->bias_id[i]] = clean(x[s->bias_id[i]] + s->bias[i]);
}

static void apply_mask(f32 *x, const u32 *mask)
{
    for (i32 i = 0; i < 1000; i += 32) {
        u32 bits = mask[i / 32];
        if (bits == 0xFFFFFFFF) continue;
        for (int j = 0; j < 32; j++) x[i + j] = bits >> j & 1 ? x[i + j] : -__builtin_inff();
    }
}

static i32 first_with(const struct row *r, f32 value)
{
    i32 i = 0;
    while (run_max(r->x + i) < value) i += 256;
    while (r->x[i] != value) i++;
    return i;
}

/* Lets heap[i] sink to its place in a heap of n values whose least is at 0. */
static void sink(f32 *heap, i32 i, i32 n)
{
    f32 v = heap[i];
    for (i32 j; (j = 2 * i + 1) < n; i = j) {
        if (j + 1 < n && heap[j + 1] < heap[j]) j++;
        if (heap[j] >= v) break;
        heap[i] = heap[j];
    }
    heap[i] = v;
}

/* The k largest values (k < n) as a heap in the room of the ids. */
static f32 *heap_of(struct row *r, i32 k)
{
    f32 *heap = (f32 *)r->id;
    for (i32 i = 0; i < k; i++) heap[i] = r->x[i];
    for (i32 i = k / 2; i-- > 0;) sink(heap, i, k);
    for (i32 run = k / 256 * 256; run < r->n; run += 256) {
        if (run_max(r->x + run) <= heap[0]) continue;
        for (i32 i = run < k ? k : run; i < run + 256; i++)
            if (r->x[i] > heap[0]) heap[0] = r->x[i], sink(heap, 0, k);
    }
    return heap;
}

/* Keeps x above `least` and the first `ties` equal to it. */
static void thin(struct row *r, f32 least, i32 ties)
{
    i32 n = 0;
    for (i32 run = 0; run < r->n; run += 256) {
        if (run_max(r->x + run) < least) continue;
        for (i32 i = run; i < run + 256; i++) {
            f32 x = r->x[i];
            if (x < least || x == -__builtin_inff() || (x == least && ties-- <= 0)) continue;
            r->x[n] = x, r->id[n++] = i;
        }
    }
    r->n = n, r->thinned = 1;
    pad(r);
}

static void keep_k(struct row *r, i32 k)
{
    f32 *heap = heap_of(r, k), least = heap[0];
    i32 ties = 0;
    for (i32 i = 0; i < k; i++) ties += heap[i] == least;
    thin(r, least, ties);
}

/* Before top_p alone: the 256 largest, if their weights already reach `target`. */
static void keep_few(struct row *r, f32 max, f32 temp, f64 target)
{
    if (r->n <= 256) return;
    f32 *heap = heap_of(r, 256), least = heap[0];
    f64 sum = 0;
    for (int i = 0; i < 256; i++) sum += sexp((heap[i] - max) / temp);
    if (sum >= target) thin(r, least, r->n);
}

static void to_weights(struct row *r, f32 max, f32 temp)
{
    for (i32 i = 0; i < (r->n + 7) / 8 * 8; i += 8) vstore(r->x + i, vexp((vload(r->x + i) - max) / temp));
    for (i32 i = r->n; i % 256; i++) r->x[i] = 0;
}

static inline f32 from_bits(u32 i) { union { u32 i; f32 f; } u = { i }; return u.f; }

/* Zeroes weights past the fewest largest that reach `target`. The largest w is 1; positive floats are ordered as their bits. */
static void keep_p(struct row *r, f64 target)
{
    u32 low = 0, high = 0x3F800000;   /* sum_from(low) reaches the target, sum_from(high + 1) does not */
    while (low < high) {
        u32 mid = low + (high - low + 1) / 2;
        if (sum_from(r, from_bits(mid)) >= target) low = mid;
        else high = mid - 1;
    }
    f32 least = from_bits(low);
    f64 missing = (target - sum_from(r, from_bits(low + 1))) / least;
    i32 ties = least == 0 || missing >= r->n ? r->n : (i32)missing;
    if (ties < 1 || ties < missing) ties++;
    for (i32 i = 0; i < r->n; i++)
        if (r->x[i] < least || (r->x[i] == least && ties-- <= 0)) r->x[i] = 0;
}

static void keep_min_p(struct row *r, f32 min_p)
{
    f32 least = min_p < 1 ? min_p : 1;
    for (i32 i = 0; i < r->n; i++) r->x[i] = r->x[i] < least ? 0 : r->x[i];
}

/* First word of Philox4x32-10 (Salmon et al., SC 2011) as a fraction in [0, 1). */
static f64 uniform(u64 seed, u64 position)
{
    u32 c0 = (u32)position, c1 = (u32)(position >> 32), c2 = 0, c3 = 0, k0 = (u32)seed, k1 = (u32)(seed >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
        u64 a = (u64)0xD2511F53 * c0, b = (u64)0xCD9E8D57 * c2;
        c0 = (u32)(b >> 32) ^ c1 ^ k0, c1 = (u32)b;
        c2 = (u32)(a >> 32) ^ c3 ^ k1, c3 = (u32)a;
    }
    return c0 * 0x1p-32;
}

/* Index of the drawn weight. Should rounding leave none, the last positive one. */
static i32 draw(const struct row *r, f64 u)
{
    f64 before = 0, goal = u * sum_from(r, 0);
    i32 last = 0;
    for (i32 run = 0; run < r->n; run += 256) {
        f64 sum = run_sum(r->x + run);
        if (before + sum <= goal && run + 256 < r->n) {
            before += sum;
            continue;
        }
        f64 at = before;
        for (i32 i = run; i < run + 256; i++) {
            if (r->x[i] > 0) last = i;
            at += r->x[i];
            if (at > goal) return last;
        }
        before += sum;
    }
    return last;
}

static i32 choose(struct row *r, const struct sampling *s, f32 max)
{
    if (!(s->temp > 0)) return first_with(r, max);
    const f32 temp = s->temp < 1e30f ? s->temp : 1e30f;
    const int use_p = s->top_p < 1;
    f64 target = 0;
    if (s->top_k > 0 && s->top_k < 1000) keep_k(r, s->top_k);
    if (use_p) target = s->top_p * sum_exp(r, max, temp);
    if (use_p && !r->thinned) keep_few(r, max, temp, target);
    to_weights(r, max, temp);
    if (use_p) keep_p(r, target);
    if (s->min_p > 0) keep_min_p(r, s->min_p);
    i32 i = draw(r, uniform(s->seed, (u64)s->position));
    return r->thinned ? r->id[i] : i;
}

/* Sum of exp(x - max) but for one x that is max: log1p of it keeps the digits of a probability near 1. */
static f64 sum_of_others(struct row *r, f32 max)
{
    i32 top = first_with(r, max);
    r->x[top] = -__builtin_inff();
    f64 sum = sum_exp(r, max, 1);
    r->x[top] = max;
    return sum;
}

static void sample_row(const struct sample_args *a, i64 out, struct row *r)
{
    const struct sampling *s = &a->step->sampling[out];
    f32 *logits = a->logits + out * 1000;
    read_logits(r, logits);
    f32 raw_max = largest(r), max = raw_max;
    a->id[out] = -1, a->logprob[out] = -__builtin_inff();
    if (raw_max == -__builtin_inff()) return;
    f64 others = sum_of_others(r, raw_max);
    if (s->n_history > 0 || s->n_bias > 0 || s->mask) {
        penalise(r->x, s);
        add_bias(r->x, s);
        if (s->mask) apply_mask(r->x, s->mask);
        max = largest(r);
    }
    if (max == -__builtin_inff()) return;
    i32 id = choose(r, s, max);
    a->id[out] = id;
    a->logprob[out] = (f32)((f64)logits[id] - raw_max - __builtin_log1p(others));
}

void sample_n1000_avx2_hw(const struct sample_args *a, struct team *t)
{
    f32 *x = (f32 *)((char *)a->work + (i64)t->part * 12096);
    struct row r = { x, (i32 *)(x + 1024), 0, 0 };
    i64 out, end;
    team_share(t, a->step->n_out, 1, &out, &end);
    for (; out < end; out++) sample_row(a, out, &r);
}
