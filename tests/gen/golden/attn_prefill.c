/* attn_prefill_heads8_kv_heads2_head_dim256_f16_f16_q8_avx2_hw_rows6_vecs2_tile48_chunk128_plain:
 *     o[r][h] = sigmoid(gate[r][h]) * softmax(scale * q[r][h] . K) V over KV 0..kv[r] of the row's sequence,
 *     head h / 4 of K and V.
 *   q: [n_rows][8][256]; qg: [n_rows][8][512], the gate is the second half
 *   oq: int8 [n_rows][2048], d (scale) and s (sum): [n_rows][64], blocks of 32
 *   pages of K (f16) and V (f16) as kv_append writes them: [2][KV_PAGE][256]
 *   part p of the team owns the p-th run of tiles, cut by cost; a tile is (sequence, KV head, 12 rows): 48 query rows,
 *     row-major by (row, head); no part waits
 *   per tile, over chunks of 128 tokens: scores with keys as fp32 [256][KV_PAGE] (lanes are tokens), weights, then values by
 *     slices of 16 dimensions as fp32 [128][16] (lanes are dimensions); chunks merge into o in ascending order
 *   scores ascending in the dimension; a chunk's max first, then weights and sums ascending in t
 *   8192 operations a row and token that it sees, bound by fp32 fma; a part uses 147456 bytes of work
 *   caller: rows of a sequence contiguous and ascending in kv; work as attn_work() says, 64-byte aligned
 * made by: quarry-gen attn_prefill --shape heads=8,kv_heads=2,head_dim=256,fk=f16,fv=f16,out=q8 --params isa=avx2,fma=hw,rows=6,vecs=2,tile=48,chunk=128,dot=plain */
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
static inline vf vabs(vf v) { return vfloat(vbits(v) & 0x7FFFFFFF); }

/* Masks: all bits of a lane set where true. */
static inline vi vless(vf a, vf b) { return a < b; }
static inline vf vselect(vi mask, vf yes, vf no) { return vfloat((mask & vbits(yes)) | (~mask & vbits(no))); }
static inline vf vmaxf(vf a, vf b) { return __builtin_ia32_maxps256(a, b); }

/* Nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves it in the low bits. */
static inline vi vround(vf x) { return vbits(x + 12582912.0f) - 0x4B400000; }

static inline vf vfma(vf a, vf b, vf c) { return __builtin_ia32_vfmaddps256(a, b, c); }

typedef f32 vf4 __attribute__((vector_size(16)));
typedef i32 vi4 __attribute__((vector_size(16)));

static inline f32 vhmax(vf v)
{
    vf4 v4 = __builtin_ia32_maxps(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7));
    vf4 v2 = __builtin_ia32_maxps(v4, __builtin_shufflevector(v4, v4, 2, 3, 2, 3));
    return v2[0] > v2[1] ? v2[0] : v2[1];
}

typedef u16 vh __attribute__((vector_size(16)));
typedef u16 vh_mem __attribute__((vector_size(16), aligned(2), may_alias));
typedef i16 vh_i16 __attribute__((vector_size(16)));

static inline vf vfrom_f16(vh h) { return __builtin_ia32_vcvtph2ps256((vh_i16)h); }

static inline vf vload_f16(const u16 *p) { return vfrom_f16(*(const vh_mem *)p); }

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
static inline vf vsigmoid(vf x) { return 1.0f / (1.0f + vexp(-x)); }

typedef i16 vq16h __attribute__((vector_size(32)));
typedef i8 vq32 __attribute__((vector_size(32)));
typedef i8 vq_mem __attribute__((vector_size(32), aligned(1), may_alias));

/* Thirty-two ints within int8 to memory. Packing works in each half alone, so the four-byte groups are put in order after it. */
static inline void vstore_i8(i8 *q, const vi *k)
{
    vq16h low = __builtin_ia32_packssdw256(k[0], k[1]), high = __builtin_ia32_packssdw256(k[2], k[3]);
    vi packed = (vi)(vq32)__builtin_ia32_packsswb256(low, high);
    *(vq_mem *)q = (vq32)__builtin_shufflevector(packed, packed, 0, 4, 1, 5, 2, 6, 3, 7);
}

/* One block of 32 values to int8, as kernel.h defines it. Blocks too small for 127 / max to be finite count as zero. */
static inline void vquant32(const vf *v, i8 *q, f32 *d, i32 *s)
{
    vi k[4];
    vf m = vabs(v[0]);
    for (int i = 1; i < 4; i++) m = vmaxf(m, vabs(v[i]));
    f32 max = vhmax(m);
    f32 inv = max > 0x1p-120f ? 127.0f / max : 0;
    for (int i = 0; i < 4; i++) k[i] = vround(v[i] * inv);
    vi sum = k[0] + k[1] + k[2] + k[3];
    vstore_i8(q, k);
    vi4 s4 = __builtin_shufflevector(sum, sum, 0, 1, 2, 3) + __builtin_shufflevector(sum, sum, 4, 5, 6, 7);
    *s = s4[0] + s4[1] + s4[2] + s4[3];
    *d = inv > 0 ? max / 127.0f : 0;
}

/* Scores s[0..n) of one query row become weights exp(scale * s - max), then zeros up to `end`. Returns max; -inf if n <= 0. */
static f32 weights(f32 *s, int n, int end, f32 scale)
{
    int seen = n > 0 ? n : 0, whole = (seen + 7) / 8 * 8;
    vf top = vset(-__builtin_inff());
    for (int t = seen; t < whole; t++) s[t] = -__builtin_inff();
    for (int t = 0; t < whole; t += 8) {
        vf x = vload(s + t) * scale;
        vstore(s + t, x);
        top = vmaxf(top, x);
    }
    f32 max = vhmax(top);
    for (int t = 0; t < whole; t += 8) vstore(s + t, vexp(vload(s + t) - max));
    for (int t = whole; t < end; t++) s[t] = 0;
    return max;
}

/* Sums of 6 rows of weights, each ascending in t; side by side, because each addition waits for the one before. */
static void sums(const f32 *p, int end, f32 *sum)
{
    f32 sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0, sum4 = 0, sum5 = 0;
    for (int t = 0; t < end; t++) {
        sum0 += p[t];
        sum1 += p[128 + t];
        sum2 += p[256 + t];
        sum3 += p[384 + t];
        sum4 += p[512 + t];
        sum5 += p[640 + t];
    }
    sum[0] = sum0;
    sum[1] = sum1;
    sum[2] = sum2;
    sum[3] = sum3;
    sum[4] = sum4;
    sum[5] = sum5;
}

/* Softmax so far: o is the sum of exp(score - max) V, sum that of exp(score - max). It starts as -inf, 0 and o = 0. */
struct running {
    f32 max, sum;
};

/* Takes in a chunk's (max, sum); *old and *add are the factors for o so far and for the chunk's o. A chunk that shows nothing
 * (-inf, 0) changes nothing, even what has seen nothing: the factors are 1 and 0. */
static void merge(struct running *run, f32 max, f32 sum, f32 *old, f32 *add)
{
    *old = 1;
    *add = 0;
    if (max == -__builtin_inff()) return;
    f32 top = run->max > max ? run->max : max;
    *old = sexp(run->max - top);
    *add = sexp(max - top);
    run->sum = run->sum * *old + sum * *add;
    run->max = top;
}

static inline void accumulate(f32 *o, const f32 *chunk, int n, f32 old, f32 add)
{
    for (int d = 0; d < n; d++) o[d] = o[d] * old + chunk[d] * add;
}

/* The result of head `head` of all rows' heads: sigmoid(gate) * o / sum. */
static void gate_out(const struct attn_args *a, i64 head, const f32 *o, f32 sum)
{
    i64 at = head * 256;
    const f32 *gate = a->qg + 2 * at + 256;
    f32 inv = 1 / sum;
    for (int d = 0; d < 256; d += 32) {
        i64 block = (at + d) / 32;
        vf v[4];
        for (int i = 0; i < 4; i++) {
            v[i] = vload(o + d + i * 8) * inv * vsigmoid(vload(gate + d + i * 8));
        }
        vquant32(v, a->oq.q + at + d, a->oq.d + block, a->oq.s + block);
    }
}

/* Rows of one sequence for one KV head j; query row m is head m % 4 of row m / 4. */
struct tile {
    const struct attn_args *a;
    i64 row;
    int seq, j, count;     /* count: query rows, <= 48 */
    int tokens;            /* that its last row sees */
    const i32 *pick;       /* of its rows and KV head: a count, then the pages that they read; NULL: all */
    int picked;            /* how many of them are behind */
    f32 *keys;             /* [256][KV_PAGE]; this and the other arrays: this part's work */
    f32 *values;           /* [128][16] */
    f32 *s;                /* [48][128] scores, then weights */
    f32 *o;                /* [48][256] */
    struct running run[48];
};

static inline i64 head_at(const struct tile *it, int m)
{
    int at = m < it->count ? m : it->count - 1;
    return (it->row + at / 4) * 8 + it->j * 4 + at % 4;
}

/* What a chunk has of K and V: pages that are read, in ascending order; their tokens lie side by side. */
struct run {
    int page[2], pages, tokens;
};

/* The chunk of `end` tokens from `first` on, after those before. */
static struct run run_of(struct tile *it, int first, int end)
{
    struct run r = { .pages = 0 };
    for (int page = first / KV_PAGE; page * KV_PAGE < first + end; page++) {
        if (it->pick && (it->picked == it->pick[0] || it->pick[1 + it->picked] != page)) continue;
        int left = first + end - page * KV_PAGE;
        it->picked++;
        r.page[r.pages++] = page;
        r.tokens += left < KV_PAGE ? left : KV_PAGE;
    }
    return r;
}

/* Tokens of page i of a run, and how many of the run one sees whose own is `kv`. */
static inline int page_tokens(const struct run *r, int i)
{
    return r->tokens - i * KV_PAGE < KV_PAGE ? r->tokens - i * KV_PAGE : KV_PAGE;
}

static inline int seen_of(const struct run *r, int kv)
{
    int n = 0;
    for (int i = 0; i < r->pages && r->page[i] * KV_PAGE <= kv; i++) n = i * KV_PAGE + (kv + 1 - r->page[i] * KV_PAGE < KV_PAGE ? kv + 1 - r->page[i] * KV_PAGE : KV_PAGE);
    return n < r->tokens ? n : r->tokens;
}

/* Where a page of the sequence lies for this head, in pieces. */
static i64 piece_of(const struct tile *it, int page)
{
    const struct step *st = it->a->step;
    return (i64)st->pages[(i64)it->seq * st->page_stride + page] * 2 + it->j;
}

/* Rows to columns: interleaving row i with row i + 4 doubles what lies together, 8 lanes after 3 rounds. */
static inline void transpose(vf *x)
{
    const vi low = { 0, 8, 1, 9, 2, 10, 3, 11 };
    const vi high = { 4, 12, 5, 13, 6, 14, 7, 15 };
    vf y[8];
    for (int i = 0; i < 4; i++) {
        y[2 * i] = __builtin_shuffle(x[i], x[i + 4], low);
        y[2 * i + 1] = __builtin_shuffle(x[i], x[i + 4], high);
    }
    for (int i = 0; i < 4; i++) {
        x[2 * i] = __builtin_shuffle(y[i], y[i + 4], low);
        x[2 * i + 1] = __builtin_shuffle(y[i], y[i + 4], high);
    }
    for (int i = 0; i < 4; i++) {
        y[2 * i] = __builtin_shuffle(x[i], x[i + 4], low);
        y[2 * i + 1] = __builtin_shuffle(x[i], x[i + 4], high);
    }
    for (int i = 0; i < 8; i++) x[i] = y[i];
}

/* n keys of a page as fp32 [256][KV_PAGE]; the tokens after them repeat the last, so that all is finite. */
static void pack_keys(f32 *to, const u16 *keys, int n)
{
    for (int t = 0; t < KV_PAGE; t += 8) {
        const u16 *key[8];
        vf x[8];
        for (int i = 0; i < 8; i++) key[i] = keys + (t + i < n ? t + i : n - 1) * 256;
        for (int d = 0; d < 256; d += 8) {
            for (int i = 0; i < 8; i++) x[i] = vload_f16(key[i] + d);
            transpose(x);
            for (int i = 0; i < 8; i++) vstore(to + (d + i) * KV_PAGE + t, x[i]);
        }
    }
}

/* Scores of 6 query rows with the 16 keys from `key` on, 6 x 2 vectors in registers. */
static void scores(const f32 *const *q, const f32 *key, f32 *s)
{
    const f32 *q0 = q[0], *q1 = q[1], *q2 = q[2], *q3 = q[3], *q4 = q[4], *q5 = q[5];
    vf a0_0 = vset(0), a0_1 = vset(0);
    vf a1_0 = vset(0), a1_1 = vset(0);
    vf a2_0 = vset(0), a2_1 = vset(0);
    vf a3_0 = vset(0), a3_1 = vset(0);
    vf a4_0 = vset(0), a4_1 = vset(0);
    vf a5_0 = vset(0), a5_1 = vset(0);
    for (int d = 0; d < 256; d++) {
        vf k0 = vload(key + d * KV_PAGE), k1 = vload(key + d * KV_PAGE + 8), x;
        x = vset(q0[d]);
        a0_0 = vfma(x, k0, a0_0);
        a0_1 = vfma(x, k1, a0_1);
        x = vset(q1[d]);
        a1_0 = vfma(x, k0, a1_0);
        a1_1 = vfma(x, k1, a1_1);
        x = vset(q2[d]);
        a2_0 = vfma(x, k0, a2_0);
        a2_1 = vfma(x, k1, a2_1);
        x = vset(q3[d]);
        a3_0 = vfma(x, k0, a3_0);
        a3_1 = vfma(x, k1, a3_1);
        x = vset(q4[d]);
        a4_0 = vfma(x, k0, a4_0);
        a4_1 = vfma(x, k1, a4_1);
        x = vset(q5[d]);
        a5_0 = vfma(x, k0, a5_0);
        a5_1 = vfma(x, k1, a5_1);
    }
    vstore(s, a0_0);
    vstore(s + 8, a0_1);
    vstore(s + 128, a1_0);
    vstore(s + 136, a1_1);
    vstore(s + 256, a2_0);
    vstore(s + 264, a2_1);
    vstore(s + 384, a3_0);
    vstore(s + 392, a3_1);
    vstore(s + 512, a4_0);
    vstore(s + 520, a4_1);
    vstore(s + 640, a5_0);
    vstore(s + 648, a5_1);
}

/* Scores of all query rows with the n keys of a page; they go to s from column `column` on. */
static void page_scores(const struct tile *it, int page, int n, int column)
{
    pack_keys(it->keys, (const u16 *)((const u8 *)it->a->pages_k + piece_of(it, page) * 32768), n);
    for (int m = 0; m < it->count; m += 6) {
        const f32 *q[6];
        for (int i = 0; i < 6; i++) q[i] = it->a->q + head_at(it, m + i) * 256;
        for (int u = 0; u < n; u += 16) scores(q, it->keys + u, it->s + m * 128 + column + u);
    }
}

/* Dimensions d .. d + 15 of n values of a page as fp32 [n][16]. */
static void pack_values(f32 *to, const u16 *values, int n, int d)
{
    for (int t = 0; t < n; t++)
        for (int k = 0; k < 16; k += 8)
            vstore(to + t * 16 + k, vload_f16(values + t * 256 + d + k));
}

/* o[i] = sum of p[i][t] value[t] over n tokens, ascending, 6 x 2 vectors in registers. */
static void weighted(const f32 *p, const f32 *value, int n, f32 *o)
{
    vf a0_0 = vset(0), a0_1 = vset(0);
    vf a1_0 = vset(0), a1_1 = vset(0);
    vf a2_0 = vset(0), a2_1 = vset(0);
    vf a3_0 = vset(0), a3_1 = vset(0);
    vf a4_0 = vset(0), a4_1 = vset(0);
    vf a5_0 = vset(0), a5_1 = vset(0);
    for (int t = 0; t < n; t++, value += 16) {
        vf v0 = vload(value), v1 = vload(value + 8), x;
        x = vset(p[t]);
        a0_0 = vfma(x, v0, a0_0);
        a0_1 = vfma(x, v1, a0_1);
        x = vset(p[128 + t]);
        a1_0 = vfma(x, v0, a1_0);
        a1_1 = vfma(x, v1, a1_1);
        x = vset(p[256 + t]);
        a2_0 = vfma(x, v0, a2_0);
        a2_1 = vfma(x, v1, a2_1);
        x = vset(p[384 + t]);
        a3_0 = vfma(x, v0, a3_0);
        a3_1 = vfma(x, v1, a3_1);
        x = vset(p[512 + t]);
        a4_0 = vfma(x, v0, a4_0);
        a4_1 = vfma(x, v1, a4_1);
        x = vset(p[640 + t]);
        a5_0 = vfma(x, v0, a5_0);
        a5_1 = vfma(x, v1, a5_1);
    }
    vstore(o, a0_0);
    vstore(o + 8, a0_1);
    vstore(o + 16, a1_0);
    vstore(o + 24, a1_1);
    vstore(o + 32, a2_0);
    vstore(o + 40, a2_1);
    vstore(o + 48, a3_0);
    vstore(o + 56, a3_1);
    vstore(o + 64, a4_0);
    vstore(o + 72, a4_1);
    vstore(o + 80, a5_0);
    vstore(o + 88, a5_1);
}

/* One slice of the values of a run, weighed and merged into o. */
static void slice_values(const struct tile *it, const struct run *r, int d, const f32 *old, const f32 *add)
{
    f32 o[96];
    for (int i = 0; i < r->pages; i++)
        pack_values(it->values + i * 1024, (const u16 *)((const u8 *)it->a->pages_v + piece_of(it, r->page[i]) * 32768),
                    page_tokens(r, i), d);
    for (int m = 0; m < it->count; m += 6) {
        weighted(it->s + m * 128, it->values, r->tokens, o);
        for (int i = 0; i < 6 && m + i < it->count; i++)
            accumulate(it->o + (m + i) * 256 + d, o + i * 16, 16, old[m + i], add[m + i]);
    }
}

static void clear(struct tile *it, int m)
{
    it->run[m] = (struct running){ -__builtin_inff(), 0 };
    for (int d = 0; d < 256; d++) it->o[m * 256 + d] = 0;
}

/* The chunk of `end` tokens from `first` on. */
static void attend(struct tile *it, int first, int end)
{
    f32 max[48], sum[48], old[48], add[48];
    const i32 *kv = it->a->step->kv + it->row;
    const struct run r = run_of(it, first, end);
    for (int i = 0; i < r.pages; i++) page_scores(it, r.page[i], page_tokens(&r, i), i * KV_PAGE);
    for (int m = 0; m < it->count; m++) max[m] = weights(it->s + m * 128, seen_of(&r, kv[m / 4]), r.tokens, it->a->scale);
    for (int m = 0; m < it->count; m += 6) sums(it->s + m * 128, r.tokens, sum + m);
    for (int m = 0; m < it->count; m++) merge(it->run + m, max[m], sum[m], old + m, add + m);
    for (int d = 0; d < 256 && r.pages; d += 16) slice_values(it, &r, d, old, add);
}

/* The output of query row m. */
static void finish(struct tile *it, int m)
{
    f32 *o = it->o + m * 256, sum = it->run[m].sum;
    gate_out(it->a, head_at(it, m), o, sum);
}

static void run_tile(struct tile *it)
{
    for (int m = 0; m < it->count; m++) {
        clear(it, m);
    }
    it->picked = 0;
    for (int t = 0; t < it->tokens; t += 128) attend(it, t, it->tokens - t < 128 ? it->tokens - t : 128);
    for (int m = 0; m < it->count; m++) finish(it, m);
}

/* The sequence's tile that begins with its row `from`; where pages are picked, it lies in one block of rows. block:
 * of the sequence's
 * first row. Cost: rows times tokens that they read. */
static i64 open_tile(struct tile *it, int seq, int block, int from)
{
    const struct step *st = it->a->step;
    int rows = st->seq_rows[seq] - from < 12 ? st->seq_rows[seq] - from : 12, left = ATTN_PICK_ROWS - from % ATTN_PICK_ROWS;
    if (it->a->pick && rows > left) rows = left;
    it->seq = seq;
    it->row = st->seq_row[seq] + from;
    it->count = rows * 4;
    it->tokens = st->kv[it->row + rows - 1] + 1;
    it->pick = it->a->pick ? it->a->pick + ((i64)(block + from / ATTN_PICK_ROWS) * 2 + it->j) * (1 + st->page_stride) : 0;
    return (i64)rows * (it->pick ? it->pick[0] * KV_PAGE : it->tokens);
}

static inline int blocks_of(int rows) { return (rows + ATTN_PICK_ROWS - 1) / ATTN_PICK_ROWS; }

static i64 total_cost(struct tile *it)
{
    const struct step *st = it->a->step;
    i64 sum = 0;
    for (int seq = 0, block = 0; seq < st->n_seqs; block += blocks_of(st->seq_rows[seq++]))
        for (it->j = 0; it->j < 2; it->j++)
            for (int from = 0; from < st->seq_rows[seq]; from += it->count / 4) sum += open_tile(it, seq, block, from);
    return sum;
}

/* All tiles lie on a line, each as long as its cost; the line is cut into equal parts, and a tile is whose its middle is. */
void attn_prefill_heads8_kv_heads2_head_dim256_f16_f16_q8_avx2_hw_rows6_vecs2_tile48_chunk128_plain(
    const struct attn_args *a, struct team *t)
{
    f32 *work = (f32 *)a->work + (i64)t->part * 36864;
    struct tile it = { .a = a, .s = work, .values = work + 6144, .keys = work + 8192,
                       .o = work + 24576 };
    i64 total = total_cost(&it), at = 0;
    for (int seq = 0, block = 0; seq < a->step->n_seqs; block += blocks_of(a->step->seq_rows[seq++]))
        for (it.j = 0; it.j < 2; it.j++)
            for (int from = 0; from < a->step->seq_rows[seq]; from += it.count / 4) {
                i64 cost = open_tile(&it, seq, block, from);
                if ((at + cost / 2) * t->parts / total == t->part) run_tile(&it);
                at += cost;
            }
}
