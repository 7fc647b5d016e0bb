/* embed_q8_0_rows_n1024_vocab4096_avx2: x[r] = row token[r] of w as fp32; rows with token -1 come from step->embd.
 *   w: [4096][1024] q8_0, layout rows; x, embd: [n_rows][1024] fp32
 *   part p of the team owns the p-th run of rows of x
 *   moves 5184 bytes a row: bound by memory latency and bandwidth
 *   caller: token[r] < 4096; embd is there when a token is -1
 * made by: quarry-gen embed --shape type=q8_0,layout=rows,n=1024,vocab=4096 --params isa=avx2 */
#include "kernel.h"
#include "args.h"

typedef f32 vf __attribute__((vector_size(32)));
typedef f32 vf_mem __attribute__((vector_size(32), aligned(4), may_alias));

static inline vf vload(const f32 *p) { return *(const vf_mem *)p; }
static inline void vstore(f32 *p, vf v) { *(vf_mem *)p = v; }

typedef u16 vh __attribute__((vector_size(16)));
typedef i16 vh_i16 __attribute__((vector_size(16)));

static inline vf vfrom_f16(vh h) { return __builtin_ia32_vcvtph2ps256((vh_i16)h); }

static void copy_row(f32 *x, const f32 *from)
{
    for (i64 i = 0; i < 1024; i += 8) vstore(x + i, vload(from + i));
}

typedef u16 u16_mem __attribute__((aligned(2), may_alias));

/* 32 weights by the block's scale; exact, a half by an int8 fits fp32. */
static inline void scale_block(f32 *x, const u8 *scale, const i8 *q)
{
    f32 d = vfrom_f16((vh){*(const u16_mem *)scale})[0];
    for (int i = 0; i < 32; i++) x[i] = d * (f32)q[i];
}

static void load_row(f32 *x, const u8 *w, i64 row)
{
    w += row * 1088;
    for (i64 i = 0; i < 1024; i += 32, w += 34) scale_block(x + i, w, (const i8 *)w + 2);
}

void embed_q8_0_rows_n1024_vocab4096_avx2(const struct embed_args *a, struct team *t)
{
    const struct step *step = a->step;
    i64 begin, end;
    team_share(t, step->n_rows, 1, &begin, &end);
    for (i64 r = begin; r < end; r++) {
        i64 token = step->token[r];
        f32 *x = a->x + r * 1024;
        if (token < 0) copy_row(x, step->embd + r * 1024);
        else load_row(x, a->w, token);
    }
}
