/* kv_append_kv_heads2_head_dim256_f16_f16_sse42: writes each row's K (f16) and V (f16) into its sequence's pages at kv[r].
 *   k, v: [n_rows][2][256] fp32; page p of K at byte 65536 * p, of V at 65536 * p
 *   a page in f16: [2][KV_PAGE][256]
 *   part p of the team owns the p-th run of the n_rows * 2 heads
 *   moves 6144 bytes a row; bound by the cache it comes from
 *   caller: no two rows have the same place
 * made by: quarry-gen kv_append --shape kv_heads=2,head_dim=256,fk=f16,fv=f16 --params isa=sse42 */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(16)));
typedef i32 vi __attribute__((vector_size(16)));
typedef f32 vf_mem __attribute__((vector_size(16), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }

/* x in every lane: a scalar meets a vector lane by lane, and x - 0 is x, -0 included. */
static inline vf vset(f32 x) { return x - (vf){0}; }

/* The same bits as integers and back. */
static inline vi vbits(vf v) { union { vf f; vi i; } u = {.f = v}; return u.i; }
static inline vf vfloat(vi v) { union { vi i; vf f; } u = {.i = v}; return u.f; }

/* Masks: all bits of a lane set where true. */
static inline vi vless(vf a, vf b) { return a < b; }
static inline vf vselect(vi mask, vf yes, vf no) { return vfloat((mask & vbits(yes)) | (~mask & vbits(no))); }

typedef u16 vh __attribute__((vector_size(8)));
typedef u16 vh_mem __attribute__((vector_size(8), aligned(2), may_alias));

/* Round to even. Below 2^-14 an addition of 0.5 rounds to the subnormal's grid; above, the exponent is moved and the bits
 * below the mantissa rounded; NaN stays NaN. */
static inline vh vto_f16(vf x)
{
    vi b = vbits(x), mag = b & 0x7FFFFFFF, sign = (b & (i32)0x80000000) >> 16 & 0x8000;
    vf a = vfloat(mag);
    vi small = vbits(a + vset(0.5f)) - 0x3F000000;
    vi normal = (mag - (112 << 23) + 0xFFF + (mag >> 13 & 1)) >> 13;
    vi r = vbits(vselect(vless(a, vset(0x1p-14f)), vfloat(small), vfloat(normal)));
    r = vbits(vselect(vless(a, vset(65520.0f)), vfloat(r), vfloat((r & 0) + 0x7C00)));
    vi nan = mag > 0x7F800000;
    r = (nan & (0x7E00 | (mag >> 13 & 0x3FF))) | (~nan & r);
    r |= sign;
    return __builtin_convertvector(r, vh);
}

static inline void vstore_f16(u16 *p, vf v) { *(vh_mem *)p = vto_f16(v); }

static void put_f16(u8 *piece, i64 t, const f32 *x)
{
    u16 *to = (u16 *)piece + t * 256;
    for (int d = 0; d < 256; d += 4) vstore_f16(to + d, vload(x + d));
}

void kv_append_kv_heads2_head_dim256_f16_f16_sse42(const struct kv_append_args *a, struct team *t)
{
    const struct step *st = a->step;
    i64 begin, end;
    team_share(t, (i64)st->n_rows * 2, 1, &begin, &end);
    for (i64 i = begin; i < end; i++) {
        i64 r = i / 2, j = i % 2;
        i64 page = st->pages[(i64)st->seq[r] * st->page_stride + st->kv[r] / KV_PAGE];
        i64 piece = page * 2 + j, token = st->kv[r] % KV_PAGE;
        put_f16((u8 *)a->pages_k + piece * 32768, token, a->k + i * 256);
        put_f16((u8 *)a->pages_v + piece * 32768, token, a->v + i * 256);
    }
}
