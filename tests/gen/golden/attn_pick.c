/* attn_pick_heads8_kv_heads2_head_dim256_f16_avx2_hw: the pages of KV that each block of 64 rows reads, a list a KV head:
 *     the fewest that hold the share `mass` of attention, as
 * four probe rows of the block judge it (args.h has the rules).
 *   q: [n_rows][8][256]; a page of K (f16): 2 pieces of 32768 bytes
 *   pick: [blocks][2][1 + page_stride]; work: a record a block and KV head
 *   part p of the team owns every parts-th (block, KV head) from p on; no part waits
 *   4096 operations a probe and token that it sees, a sixteenth of the rows being probes; bound by fp32 fma
 *   caller: rows of a sequence contiguous and ascending in kv
 * made by: quarry-gen attn_pick --shape heads=8,kv_heads=2,head_dim=256,fk=f16 --params isa=avx2,fma=hw */
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
static inline f32 sfma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }

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

/* Sum of a[i] b[i], n a multiple of 32: 32 partial sums p[i % 32], each in ascending order, folded by halves 16, 8, 4, 2, 1. */
static inline f32 vdot32(const f32 *a, const f32 *b, int n)
{
    vf p0 = {0}, p1 = {0}, p2 = {0}, p3 = {0};
    for (int i = 0; i < n; i += 32) {
        p0 = vfma(vload(a + i), vload(b + i), p0);
        p1 = vfma(vload(a + i + 8), vload(b + i + 8), p1);
        p2 = vfma(vload(a + i + 16), vload(b + i + 16), p2);
        p3 = vfma(vload(a + i + 24), vload(b + i + 24), p3);
    }
    p0 += p2;
    p1 += p3;
    return vsum(p0 + p1);
}

/* ln x for x >= 1: x = 2^k m, m within [0.7, 1.42]; ln m = 2 atanh(t), t = (m - 1) / (m + 1), by its series to t^9. */
static inline f32 log_of(f32 x)
{
    union { f32 f; i32 i; } u = { x };
    i32 k = (u.i >> 23) - 127;
    u.i = (u.i & 0x7FFFFF) | 0x3F800000;
    f32 m = u.f;
    if (m > 1.41421356f) {
        m *= 0.5f;
        k++;
    }
    f32 t = (m - 1) / (m + 1), z = t * t, p = sfma(0.111111111f, z, 0.142857143f);
    p = sfma(p, z, 0.2f);
    p = sfma(p, z, 0.333333333f);
    return sfma((f32)k, 0.693147182f, 2 * sfma(p * z, t, t));
}

/* A block of rows and a KV head; probe row m is head m % 4 of the group in probe m / 4. */
struct list {
    const struct attn_pick_args *a;
    const i32 *pages;      /* of the sequence */
    int row, block, j;
    int count, pitch;      /* pages that the last row sees; floats a row of p */
    f32 *p;                /* [16][pitch] */
    u8 *step;              /* [2][pitch] */
    const f32 *q[16];
};

/* The last KV index that probe row m sees. */
static inline int last_of(const struct list *l, int m) { return l->a->step->kv[pick_probe(l->row, m / 4)]; }

/* Token t of a piece as fp32. */
static void key_of(const u8 *piece, int t, f32 *x)
{
    const u16 *key = (const u16 *)piece + t * 256;
    for (int i = 0; i < 256; i += 8) vstore(x + i, vload_f16(key + i));
}

/* Thirty-two partial sums folded by halves. */
static inline f32 folded(f32 *part)
{
    for (int h = 16; h > 0; h /= 2)
        for (int i = 0; i < h; i++) part[i] += part[i + h];
    return part[0];
}

/* s[0..n), n a multiple of 32, becomes exp(s - shift); returns the sum. */
static f32 exp_all(f32 *s, int n, f32 shift)
{
    f32 part[32] = { 0 };
    for (int i = 0; i < n; i += 32)
        for (int k = 0; k < 32; k += 8) {
            vf x = vexp(vload(s + i + k) - shift);
            vstore(s + i + k, x);
            vstore(part + k, vload(part + k) + x);
        }
    return folded(part);
}

static f32 max_of(const f32 *s, int n)
{
    vf top = vset(-__builtin_inff());
    for (int i = 0; i < n; i += 8) top = vmaxf(top, vload(s + i));
    return vhmax(top);
}

/* p[m][page] = logsumexp of the scores of all probe rows with the page's tokens. */
static void score_page(const struct list *l, int page)
{
    f32 s[16][KV_PAGE], key[256];
    const u8 *piece = (const u8 *)l->a->pages_k + ((i64)l->pages[page] * 2 + l->j) * 32768;
    int seen = last_of(l, 15) + 1 - page * KV_PAGE;
    for (int t = 0; t < KV_PAGE && t < seen; t++) {
        key_of(piece, t, key);
        for (int m = 0; m < 16; m++) s[m][t] = vdot32(l->q[m], key, 256) * l->a->scale;
    }
    for (int m = 0; m < 16; m++) {
        int n = last_of(l, m) + 1 - page * KV_PAGE;
        for (int t = n > 0 ? n : 0; t < KV_PAGE; t++) s[m][t] = -__builtin_inff();
        f32 max = max_of(s[m], KV_PAGE);
        l->p[(i64)m * l->pitch + page] = n > 0 ? max + log_of(exp_all(s[m], KV_PAGE, max)) : -__builtin_inff();
    }
}

/* Masses of the pages in probe row m. */
static void normalise(const struct list *l, f32 *p)
{
    for (int i = l->count; i < l->pitch; i++) p[i] = -__builtin_inff();
    f32 max = max_of(p, l->pitch), part[32] = { 0 };
    for (int i = 0; i < l->pitch; i += 32)
        for (int k = 0; k < 32; k += 8) vstore(part + k, vload(part + k) + vexp(vload(p + i + k) - max));
    f32 z = max + log_of(folded(part));
    exp_all(p, l->pitch, z);
}

/* The mass of page i for head g of the group: half 0 by probes 0 and 2, half 1 by 1 and 3. */
static inline f32 weight(const struct list *l, int half, int g, int i)
{
    const f32 *p = l->p + (i64)(half * 4 + g) * l->pitch + i;
    return (p[0] + p[8 * (i64)l->pitch]) * 0.5f;
}

static void find_steps(const struct list *l)
{
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < l->pitch; i++) {
            union { f32 f; i32 i; } most = { 0 };
            for (int g = 0; g < 4; g++) {
                f32 x = weight(l, half, g, i);
                if (x > most.f) most.f = x;
            }
            l->step[half * l->pitch + i] = (u8)pick_step(most.i);
        }
}

static inline int is_kept(const struct list *l, int page) { return pick_is_kept(page, l->a->step->kv[l->row]); }

/* What the pages that one half keeps at `step` hold of head g's mass in the other half. */
static f32 held(const struct list *l, int half, int g, int step)
{
    f32 part[32] = { 0 };
    const u8 *chosen = l->step + half * l->pitch;
    for (int i = 0; i < l->pitch; i += 32)
        for (int k = 0; k < 32; k++)
            if (chosen[i + k] >= step || is_kept(l, i + k)) part[k] += weight(l, !half, g, i + k);
    return folded(part);
}

static int suffices(const struct list *l, int step)
{
    for (int g = 0; g < 4; g++)
        if (!((held(l, 0, g, step) + held(l, 1, g, step)) * 0.5f >= l->a->mass)) return 0;
    return 1;
}

/* The largest step that suffices; 0, which all pages have, if none does. */
static int find_step(const struct list *l)
{
    int low = 0, high = 256;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (suffices(l, middle)) low = middle;
        else high = middle;
    }
    return low;
}

/* step 0: all. */
static void write_list(const struct list *l, int step)
{
    i32 *out = l->a->pick + ((i64)l->block * 2 + l->j) * (1 + l->a->step->page_stride), n = 0;
    f32 share = l->a->share;
    for (int i = 0; i < l->count; i++) {
        int most = 0;
        if (step && share > 0) most = pick_by_chance(share, l->block, i) ? 255 : 0;
        else if (step) most = l->step[i] > l->step[l->pitch + i] ? l->step[i] : l->step[l->pitch + i];
        if (most >= step || is_kept(l, i)) out[++n] = i;
    }
    out[0] = n;
}

static void choose(struct list *l)
{
    for (int m = 0; m < 16; m++) {
        const f32 *from = l->a->q + ((i64)pick_probe(l->row, m / 4) * 8 + l->j * 4 + m % 4) * 256;
        l->q[m] = from;
    }
    for (int page = 0; page < l->count; page++) score_page(l, page);
    for (int m = 0; m < 16; m++) normalise(l, l->p + (i64)m * l->pitch);
    find_steps(l);
    int step = find_step(l);
    write_list(l, l->a->share > 0 ? 1 : step);
}

static void one_list(struct list *l, int end)
{
    const struct step *st = l->a->step;
    int rows = end - l->row < PICK_ROWS ? end - l->row : PICK_ROWS;
    u8 *record = (u8 *)l->a->work + ((i64)l->block * 2 + l->j) * pick_record(4, st->page_stride);
    l->pitch = (int)pick_pitch(st->page_stride);
    l->count = st->kv[l->row + rows - 1] / KV_PAGE + 1;
    l->p = (f32 *)record;
    l->step = record + (i64)l->pitch * 64;
    if (pick_is_dense(st, l->row, end, l->a->dense)) write_list(l, 0);
    else choose(l);
}

void attn_pick_heads8_kv_heads2_head_dim256_f16_avx2_hw(const struct attn_pick_args *a, struct team *t)
{
    const struct step *st = a->step;
    i64 n = 0;
    for (int seq = 0, block = 0; seq < st->n_seqs; seq++)
        for (int from = 0; from < st->seq_rows[seq]; from += PICK_ROWS, block++)
            for (int j = 0; j < 2; j++, n++) {
                struct list l = { .a = a, .pages = st->pages + (i64)seq * st->page_stride, .row = st->seq_row[seq] + from, .block = block, .j = j };
                if (n % t->parts == t->part) one_list(&l, st->seq_row[seq] + st->seq_rows[seq]);
            }
}
