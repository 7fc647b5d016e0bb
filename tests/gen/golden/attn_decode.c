/* attn_decode_heads8_kv_heads2_head_dim256_f16_f16_q8_avx2_hw_rows2_vecs4_block64_ahead1: o[r][h] = sigmoid(gate[r][h]) *
 *     softmax(scale * q[r][h] . K) V over KV 0..kv[r] of the row's sequence, head h / 4 of K and V.
 *   q: [n_rows][8][256]; qg: [n_rows][8][512], the gate is the second half
 *   oq: int8 [n_rows][2048], d (scale) and s (sum): [n_rows][64], blocks of 32
 *   pages of K (f16) and V (f16) as kv_append writes them: [2][KV_PAGE][256]
 *   part p of the team owns first the p-th run of (sequence, KV head, group of chunks of KV_CHUNK tokens),
 *     each giving (o, max, sum)
 *     for all rows and heads that see it; after one wait the p-th run of the n_rows * 8 heads, each merging its groups ascending
 *   moves 2048 bytes a token of each sequence, once for all its rows and heads; bound by read bandwidth
 *   scores by 32 strided partials and a pairwise tree; a chunk's max first, then weights and sums ascending in t
 *   caller: at most 64 rows, rows of a sequence contiguous and ascending in kv, and `work` as attn_work() says
 * made by: quarry-gen attn_decode --shape heads=8,kv_heads=2,head_dim=256,fk=f16,fv=f16,out=q8 --params isa=avx2,fma=hw,rows=2,vecs=4,block=64,ahead=1 */
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

/* Sums of 2 rows of weights, each ascending in t; side by side, because each addition waits for the one before. */
static void sums(const f32 *p, int end, f32 *sum)
{
    f32 sum0 = 0, sum1 = 0;
    for (int t = 0; t < end; t++) {
        sum0 += p[t];
        sum1 += p[256 + t];
    }
    sum[0] = sum0;
    sum[1] = sum1;
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

/* Query rows that go through chunks together. Where fewer are left the last one is repeated; its copies have no `out`. */
struct block {
    const f32 *q[2];
    i64 head[2];        /* whose they are, row * 8 + head */
    f32 *out[2];        /* [256] o, then max and sum; NULL: dropped */
    int n[2], end;      /* tokens of the chunk that each sees (<= 0: none), and the most of them */
};

/* Scores of 2 query rows with each of n keys. Partial sum i of a score, i < 32, takes the dimensions i, i + 32, ..;
 * partials are folded by halves, which here means 4 vectors into one and then the lanes, all rows at once. */
static void scores(const struct block *b, const u16 *keys, int n, const u8 *next, f32 *s)
{
    const f32 *q0 = b->q[0], *q1 = b->q[1];
    for (int t = 0; t < n; t++) {
        const u16 *key = keys + t * 256;
        vf x;
        vf a0_0 = vset(0), a0_1 = vset(0), a0_2 = vset(0), a0_3 = vset(0);
        vf a1_0 = vset(0), a1_1 = vset(0), a1_2 = vset(0), a1_3 = vset(0);
        for (int d = 0; d < 256; d += 32) {
            __builtin_prefetch(next + (t * 256 + d) * 2, 0, 2);
            x = vload_f16(key + d);
            a0_0 = vfma(vload(q0 + d), x, a0_0);
            a1_0 = vfma(vload(q1 + d), x, a1_0);
            x = vload_f16(key + d + 8);
            a0_1 = vfma(vload(q0 + d + 8), x, a0_1);
            a1_1 = vfma(vload(q1 + d + 8), x, a1_1);
            x = vload_f16(key + d + 16);
            a0_2 = vfma(vload(q0 + d + 16), x, a0_2);
            a1_2 = vfma(vload(q1 + d + 16), x, a1_2);
            x = vload_f16(key + d + 24);
            a0_3 = vfma(vload(q0 + d + 24), x, a0_3);
            a1_3 = vfma(vload(q1 + d + 24), x, a1_3);
        }
        vf f0 = (a0_0 + a0_2) + (a0_1 + a0_3);
        vf f1 = (a1_0 + a1_2) + (a1_1 + a1_3);
        f0 = __builtin_shuffle(f0, f1, (vi){ 0, 1, 2, 3, 8, 9, 10, 11 })
           + __builtin_shuffle(f0, f1, (vi){ 4, 5, 6, 7, 12, 13, 14, 15 });
        f0 += __builtin_shuffle(f0, (vi){ 2, 3, 0, 1, 6, 7, 4, 5 });
        f0 += __builtin_shuffle(f0, (vi){ 1, 0, 3, 2, 5, 4, 7, 6 });
        s[t] = f0[0];
        s[256 + t] = f0[4];
    }
}

/* o[i] += p[i][t] values[t], ascending in t, 64 tokens at a time: o is loaded and stored once for them,
 * and they are read in order. */
static void add_values(const f32 *p, const u16 *values, int n, const u8 *next, f32 *o)
{
    for (int first = 0; first < n; first += 64) {
        int end = first + 64 < n ? first + 64 : n;
        for (int d = 0; d < 256; d += 32) {
            vf o0_0 = vload(o + d), o0_1 = vload(o + d + 8), o0_2 = vload(o + d + 16), o0_3 = vload(o + d + 24);
            vf o1_0 = vload(o + d + 256), o1_1 = vload(o + d + 264), o1_2 = vload(o + d + 272), o1_3 = vload(o + d + 280);
            for (int t = first; t < end; t++) {
                const u16 *value = values + t * 256 + d;
                __builtin_prefetch(next + (t * 256 + d) * 2, 0, 2);
                vf v0 = vload_f16(value);
                vf v1 = vload_f16(value + 8);
                vf v2 = vload_f16(value + 16);
                vf v3 = vload_f16(value + 24);
                o0_0 = vfma(vset(p[t]), v0, o0_0);
                o0_1 = vfma(vset(p[t]), v1, o0_1);
                o0_2 = vfma(vset(p[t]), v2, o0_2);
                o0_3 = vfma(vset(p[t]), v3, o0_3);
                o1_0 = vfma(vset(p[256 + t]), v0, o1_0);
                o1_1 = vfma(vset(p[256 + t]), v1, o1_1);
                o1_2 = vfma(vset(p[256 + t]), v2, o1_2);
                o1_3 = vfma(vset(p[256 + t]), v3, o1_3);
            }
            vstore(o + d, o0_0);
            vstore(o + d + 8, o0_1);
            vstore(o + d + 16, o0_2);
            vstore(o + d + 24, o0_3);
            vstore(o + d + 256, o1_0);
            vstore(o + d + 264, o1_1);
            vstore(o + d + 272, o1_2);
            vstore(o + d + 280, o1_3);
        }
    }
}

/* Rows of one sequence, one after the other, whose lengths make groups of the same number of chunks. */
struct span {
    int seq, rows, chunks; /* chunks: that the last row sees */
    i64 row;
    int group, groups;     /* chunks of a group, groups in all */
};

/* A part's unit of work: a group of chunks of a span's sequence, KV head j. */
struct item {
    const struct attn_args *a;
    const struct span *span;
    int j, group;
    i64 room;              /* results that a row and head has room for */
};

static f32 *result(const struct attn_args *a, i64 head, i64 group, i64 room)
{
    return (f32 *)a->work + (head * room + group) * 272;
}

/* The 2 query rows from the m-th of the item's span on; query row m is head m % 4 of row m / 4. */
static void fill(struct block *b, const struct item *it, int m, int count)
{
    const struct span *span = it->span;
    for (int i = 0; i < 2; i++) {
        int at = m + i < count ? m + i : count - 1;
        i64 row = span->row + at / 4, head = row * 8 + it->j * 4 + at % 4;
        int sees = it->a->step->kv[row] >= it->group * span->group * KV_CHUNK;
        b->out[i] = m + i < count && sees ? result(it->a, head, it->group, it->room) : 0;
        b->q[i] = it->a->q + head * 256;
        b->head[i] = head;
    }
}

/* What the query rows see of the chunk that begins with token `first`. */
static void look(struct block *b, const struct item *it, int first)
{
    b->end = 0;
    for (int i = 0; i < 2; i++) {
        int n = it->a->step->kv[b->head[i] / 8] + 1 - first;
        b->n[i] = n < KV_CHUNK ? n : KV_CHUNK;
        b->end = b->end > b->n[i] ? b->end : b->n[i];
    }
}

/* This head's piece of the page with KV index t (past the last token of the sequence: the last page). */
static i64 piece_of(const struct item *it, int t)
{
    const struct step *st = it->a->step;
    int seq = it->span->seq, last = st->kv[st->seq_row[seq]] + st->seq_rows[seq] - 1;
    return (i64)st->pages[(i64)seq * st->page_stride + (t < last ? t : last) / KV_PAGE] * 2 + it->j;
}

static const u16 *key_page(const struct item *it, int t)
{
    return (const u16 *)((const u8 *)it->a->pages_k + piece_of(it, t) * 32768);
}

static const u16 *value_page(const struct item *it, int t)
{
    return (const u16 *)((const u8 *)it->a->pages_v + piece_of(it, t) * 32768);
}

static inline int page_tokens(int t, int end) { return end - t < KV_PAGE ? end - t : KV_PAGE; }

/* The block's part of the chunk that begins with token `first`: o [2][256], max and sum of each query row. */
static void attend(const struct block *b, const struct item *it, int first, f32 *o, f32 *max, f32 *sum)
{
    f32 s[2 * KV_CHUNK];
    for (int t = 0; t < b->end; t += KV_PAGE) {
        const u8 *next = t + KV_PAGE < b->end
                             ? (const u8 *)key_page(it, first + t + KV_PAGE) : (const u8 *)value_page(it, first);
        scores(b, key_page(it, first + t), page_tokens(t, b->end), next, s + t);
    }
    for (int i = 0; i < 2; i++) max[i] = weights(s + i * KV_CHUNK, b->n[i], b->end, it->a->scale);
    sums(s, b->end, sum);
    for (int i = 0; i < 512; i++) o[i] = 0;
    for (int t = 0; t < b->end; t += KV_PAGE) {
        const u8 *next = t + KV_PAGE < b->end
                             ? (const u8 *)value_page(it, first + t + KV_PAGE) : (const u8 *)key_page(it, first + KV_CHUNK);
        add_values(s + t, value_page(it, first + t), page_tokens(t, b->end), next, o);
    }
}

/* The block's results of the item's group, its chunks merged ascending. */
static void attend_group(struct block *b, const struct item *it)
{
    f32 o[512], max[2], sum[2], old, add;
    struct running run[2] = { { 0 } };
    int begin = it->group * it->span->group, end = begin + it->span->group;
    for (int c = begin; c < end && c < it->span->chunks; c++) {
        look(b, it, c * KV_CHUNK);
        if (b->end <= 0) return;
        attend(b, it, c * KV_CHUNK, o, max, sum);
        for (int i = 0; i < 2; i++) {
            f32 *out = b->out[i];
            if (!out || b->n[i] <= 0) continue;
            if (c == begin) {
                run[i] = (struct running){ max[i], sum[i] };
                for (int d = 0; d < 256; d++) out[d] = o[i * 256 + d];
            } else {
                merge(run + i, max[i], sum[i], &old, &add);
                accumulate(out, o + i * 256, 256, old, add);
            }
            out[256] = run[i].max;
            out[257] = run[i].sum;
        }
    }
}

/* The rows of sequence `seq` from its row `from` on that have groups of one size. */
static struct span span_at(const struct step *st, int seq, int from)
{
    const i32 *kv = st->kv + st->seq_row[seq];
    int rows = 1, group = (int)attn_group(kv[from] + 1);
    while (from + rows < st->seq_rows[seq] && attn_group(kv[from + rows] + 1) == group) rows++;
    int chunks = kv[from + rows - 1] / KV_CHUNK + 1;
    return (struct span){ seq, rows, chunks, st->seq_row[seq] + from, group, (chunks + group - 1) / group };
}

/* This part's items, in the order of span, KV head, group. */
static void share_groups(const struct attn_args *a, struct team *t, i64 total, i64 room)
{
    const struct step *st = a->step;
    struct block b;
    struct span span;
    i64 begin, end, at = 0;
    team_share(t, total, 1, &begin, &end);
    for (int i = 0; i < 2; i++) b.head[i] = -1;
    for (int seq = 0; seq < st->n_seqs; seq++)
        for (int from = 0; from < st->seq_rows[seq]; from += span.rows, at += (i64)span.groups * 2) {
            span = span_at(st, seq, from);
            int count = span.rows * 4;
            for (i64 i = begin > at ? begin - at : 0; i < (i64)span.groups * 2 && at + i < end; i++) {
                struct item it = { a, &span, (int)(i / span.groups), (int)(i % span.groups), room };
                for (int m = 0; m < count; m += 2) {
                    fill(&b, &it, m, count);
                    attend_group(&b, &it);
                }
            }
        }
}

static void merge_groups(const struct attn_args *a, i64 head, i64 room)
{
    struct running run = { -__builtin_inff(), 0 };
    f32 o[256] = { 0 }, old, add;
    i64 tokens = a->step->kv[head / 8] + 1, group = attn_group(tokens) * KV_CHUNK;
    for (i64 g = 0; g * group < tokens; g++) {
        const f32 *in = result(a, head, g, room);
        merge(&run, in[256], in[257], &old, &add);
        accumulate(o, in, 256, old, add);
    }
    gate_out(a, head, o, run.sum);
}

void attn_decode_heads8_kv_heads2_head_dim256_f16_f16_q8_avx2_hw_rows2_vecs4_block64_ahead1(
    const struct attn_args *a, struct team *t)
{
    const struct step *st = a->step;
    struct span span;
    i64 begin, end, total = 0, room = 0;
    for (int seq = 0; seq < st->n_seqs; seq++)
        for (int from = 0; from < st->seq_rows[seq]; from += span.rows) {
            span = span_at(st, seq, from);
            total += (i64)span.groups * 2;
            room = room > span.groups ? room : span.groups;
        }
    share_groups(a, t, total, room);
    team_wait(t);
    team_share(t, (i64)st->n_rows * 8, 1, &begin, &end);
    for (i64 i = begin; i < end; i++) merge_groups(a, i, room);
}
