/* The formats of K and V as kv_append/args.h defines them, one value after the other. */
#include "templates/ref_kv.h"
#include <math.h>
#include <string.h>

static const i32 r3_level[4] = { 13, 40, 71, 114 }, r4_level[8] = { 6, 18, 31, 44, 58, 75, 96, 127 };

enum kv_format ref_kv_format(const struct q_shape *s, const char *key)
{
    static const char *const name[] = { [KV_F16] = "f16", [KV_F32] = "f32", [KV_Q8] = "q8", [KV_R4] = "r4", [KV_R3] = "r3" };
    int f = KV_R3;
    while (f > KV_F16 && !shape_is(s, key, name[f])) f--;
    return (enum kv_format)f;
}

int ref_kv_rotated(enum kv_format f) { return f == KV_R4 || f == KV_R3; }

void *ref_kv_pages(struct ref_case *c, const char *name, enum ref_role role, enum kv_format f, int kv_heads, int dim, int pages)
{
    size_t bytes = (size_t)pages * (size_t)kv_heads * (size_t)kv_piece_bytes(f, dim);
    if (f == KV_F16) return ref_buf(c, name, role, REF_F16, bytes / 2, 0);
    if (f == KV_F32) return ref_buf(c, name, role, REF_F32, bytes / 4, 0);
    return ref_buf(c, name, role, REF_I8, bytes, 0);
}

static int is_negative(int i) { return (int)((u32)i * 0x9E3779B1u >> 31); }

static void rotate_run(f32 *y, int run)
{
    for (int i = 0; i < run; i++) y[i] = is_negative(i) ? -y[i] : y[i];
    for (int h = 1; h < run; h *= 2)
        for (int i = 0; i < run; i++) {
            if (i & h) continue;
            f32 a = y[i], b = y[i + h];
            y[i] = a + b;
            y[i + h] = a - b;
        }
    for (int i = 0; i < run; i++) y[i] *= (f32)(1 / sqrt(run));
}

static f32 norm_of(const f32 *y, int n)
{
    f32 p[32] = { 0 };
    for (int i = 0; i < n; i++) p[i % 32] += y[i] * y[i];
    for (int h = 16; h > 0; h /= 2)
        for (int i = 0; i < h; i++) p[i] += p[i + h];
    return sqrtf(p[0]);
}

/* Indexes of the magnitudes of a run, and its scale. */
static u16 choose(enum kv_format f, const f32 *y, int run, u8 *index)
{
    const i32 *level = f == KV_R3 ? r3_level : r4_level;
    int levels = f == KV_R3 ? 4 : 8;
    f32 norm = norm_of(y, run), unit = norm * (f32)(1 / (sqrt(run) * (f == KV_R3 ? 53 : 46.5)));
    i64 square = 0;
    for (int i = 0; i < run; i++) {
        index[i] = 0;
        for (int j = 0; j + 1 < levels; j++) index[i] += fabsf(y[i]) > (f32)(level[j] + level[j + 1]) / 2 * unit;
        square += (i64)level[index[i]] * level[index[i]];
    }
    return norm < 0x1p-14f ? 0 : ref_f32_to_half(norm / sqrtf((f32)square));
}

static void set_bits(u8 *codes, int bit, int bits, u32 value)
{
    for (int i = 0; i < bits; i++, bit++) codes[bit / 8] = (u8)((codes[bit / 8] & ~(1 << bit % 8)) | (value >> i & 1) << bit % 8);
}

static u32 get_bits(const u8 *codes, int bit, int bits)
{
    u32 value = 0;
    for (int i = 0; i < bits; i++, bit++) value |= (u32)(codes[bit / 8] >> bit % 8 & 1) << i;
    return value;
}

/* Bit b (of 3) of value i of a token in r3, counted from its first word. */
static int r3_bit(int i, int b)
{
    int block = i / 32 * 96, j = i % 32;
    return j < 24 ? block + j / 8 * 32 + j % 8 * 4 + b : block + b * 32 + j % 8 * 4 + 3;
}

static void put_code(enum kv_format f, u8 *codes, int i, int index, int negative)
{
    if (f == KV_R4) return set_bits(codes, 4 * i, 4, (u32)(negative << 3 | index));
    u32 code = negative ? 3u - (u32)index : 4u + (u32)index;
    for (int b = 0; b < 3; b++) set_bits(codes, r3_bit(i, b), 1, code >> b & 1);
}

static int level_at(enum kv_format f, const u8 *codes, int i)
{
    if (f == KV_R4) {
        u32 code = get_bits(codes, 4 * i, 4);
        return code & 8 ? -r4_level[code & 7] : r4_level[code];
    }
    u32 code = 0;
    for (int b = 0; b < 3; b++) code |= get_bits(codes, r3_bit(i, b), 1) << b;
    return code < 4 ? -r3_level[3 - code] : r3_level[code - 4];
}

/* Where a token's codes and scales lie in a piece. */
static u8 *codes_of(enum kv_format f, int dim, const void *piece, int token) { return (u8 *)piece + (size_t)token * (size_t)kv_code_bytes(f, dim); }

static u16 *scales_of(enum kv_format f, int dim, const void *piece, int token)
{
    return (u16 *)((u8 *)piece + KV_PAGE * (size_t)kv_code_bytes(f, dim)) + (size_t)token * (size_t)kv_scales(f, dim);
}

void ref_kv_put_rotated(enum kv_format f, int dim, void *piece, int token, const f32 *y)
{
    u8 *codes = codes_of(f, dim, piece, token), index[256];
    int run = kv_run(dim);
    for (int i = 0; i < dim; i += run) {
        scales_of(f, dim, piece, token)[i / run] = choose(f, y + i, run, index);
        for (int k = 0; k < run; k++) put_code(f, codes, i + k, index[k], y[i + k] < 0);
    }
}

static void put_q8(int dim, void *piece, int token, const f32 *x)
{
    struct act_q8 a;
    f32 d[REF_KV_WIDEST / 32];
    i32 s[REF_KV_WIDEST / 32];
    a.q = (i8 *)codes_of(KV_Q8, dim, piece, token);
    a.d = d;
    a.s = s;
    for (int b = 0; b < dim / 32; b++) {
        ref_quant_block(x + 32 * b, &a, (size_t)b);
        scales_of(KV_Q8, dim, piece, token)[b] = ref_f32_to_half(d[b]);
    }
}

void ref_kv_put(enum kv_format f, int dim, void *piece, int token, const f32 *x)
{
    u8 *codes = codes_of(f, dim, piece, token);
    if (f == KV_F32) memcpy(codes, x, (size_t)dim * sizeof *x);
    else if (f == KV_F16)
        for (int i = 0; i < dim; i++) ((u16 *)codes)[i] = ref_f32_to_half(x[i]);
    else if (f == KV_Q8) put_q8(dim, piece, token, x);
    else {
        f32 y[REF_KV_WIDEST];
        memcpy(y, x, (size_t)dim * sizeof *x);
        for (int i = 0; i < dim; i += kv_run(dim)) rotate_run(y + i, kv_run(dim));
        ref_kv_put_rotated(f, dim, piece, token, y);
    }
}

void ref_kv_get(enum kv_format f, int dim, const void *piece, int token, double *y)
{
    const u8 *codes = codes_of(f, dim, piece, token);
    const u16 *scale = scales_of(f, dim, piece, token);
    for (int i = 0; i < dim; i++) {
        if (f == KV_F32) y[i] = ((const f32 *)codes)[i];
        else if (f == KV_F16) y[i] = ref_half_to_f32(((const u16 *)codes)[i]);
        else if (f == KV_Q8) y[i] = ((const i8 *)codes)[i] * (double)ref_half_to_f32(scale[i / 32]);
        else y[i] = level_at(f, codes, i) * (double)ref_half_to_f32(scale[i / kv_run(dim)]);
    }
}

/* H / sqrt(run) is its own inverse. */
static void hadamard(double *y, int run)
{
    for (int h = 1; h < run; h *= 2)
        for (int i = 0; i < run; i++) {
            if (i & h) continue;
            double a = y[i], b = y[i + h];
            y[i] = a + b;
            y[i + h] = a - b;
        }
    for (int i = 0; i < run; i++) y[i] /= sqrt(run);
}

static void change_signs(double *x, int run)
{
    for (int i = 0; i < run; i++) x[i] = is_negative(i) ? -x[i] : x[i];
}

void ref_kv_rotate(int dim, double *x)
{
    for (int i = 0; i < dim; i += kv_run(dim)) {
        change_signs(x + i, kv_run(dim));
        hadamard(x + i, kv_run(dim));
    }
}

void ref_kv_rotate_back(int dim, double *y)
{
    for (int i = 0; i < dim; i += kv_run(dim)) {
        hadamard(y + i, kv_run(dim));
        change_signs(y + i, kv_run(dim));
    }
}
