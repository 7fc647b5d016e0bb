/* ldmatrix and the mma forms, by the fragment tables of the PTX ISA manual ("Matrix Fragments for mma.m8n8k4 .." and following).
 * Each form is written as: which lane and register hold element (row, column), then a plain product. */
#include "impl.h"
#include <string.h>

/* --- elements ---------------------------------------------------------------------------------------------------- */

static int byte_at(const u32 *word, int i) { return (signed char)(word[i / 4] >> 8 * (i % 4)); }

f32 simt_from_half(u16 bits);
u16 simt_to_half(f64 x);

/* The value of every half: a conversion without the instruction takes long. */
static f32 half_value[1 << 16];

void matrix_open(void)
{
    for (u32 i = 0; half_value[1] == 0 && i < 1 << 16; i++) {
        u16 bits = (u16)(65535 - i);
        _Float16 h;
        memcpy(&h, &bits, sizeof h);
        half_value[bits] = (f32)h;
    }
}

f32 simt_from_half(u16 bits) { return half_value[bits]; }

/* Rounded once. */
u16 simt_to_half(f64 x)
{
    _Float16 h = (_Float16)x;
    u16 bits;
    memcpy(&bits, &h, sizeof bits);
    return bits;
}

static f32 half_at(const u32 *word, int i) { return half_value[(u16)(word[i / 2] >> 16 * (i % 2))]; }

static f32 float_at(const u32 *word, int i)
{
    f32 x;
    memcpy(&x, word + i, sizeof x);
    return x;
}

static void set_float(u32 *word, f32 x) { memcpy(word, &x, sizeof x); }

/* --- int8 -------------------------------------------------------------------------------------------------------- */

/* m8n8k16. A: lane 4 row + k/4, byte k%4. B: lane 4 column + k/4. C, D: lane 4 row + column/2, register column%2.
 * in: a, b, c0, c1. */
static void s8_8816(struct thread *w)
{
    for (int r = 0; r < 8; r++)
        for (int c = 0; c < 8; c++) {
            struct thread *t = &w[4 * r + c / 2];
            i32 sum = (i32)t->in[2 + c % 2];
            for (int k = 0; k < 16; k++) sum += byte_at(w[4 * r + k / 4].in, k % 4) * byte_at(w[4 * c + k / 4].in + 1, k % 4);
            t->out[c % 2] = (u32)sum;
        }
}

/* m16n8k32. A: lane 4 (row%8) + k%16/4, register row/8 + 2 (k/16). B: lane 4 column + k%16/4, register k/16. C, D: lane
 * 4 (row%8) + column/2, register column%2 + 2 (row/8). in: a0 .. a3, b0, b1, c. */
static void s8_16832(struct thread *w)
{
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 8; c++) {
            struct thread *t = &w[4 * (r % 8) + c / 2];
            i32 sum = (i32)t->in[6];
            for (int k = 0; k < 32; k++) {
                int lane = k % 16 / 4;
                sum += byte_at(w[4 * (r % 8) + lane].in + r / 8 + 2 * (k / 16), k % 4) *
                    byte_at(w[4 * c + lane].in + 4 + k / 16, k % 4);
            }
            t->out[c % 2 + 2 * (r / 8)] = (u32)sum;
        }
}

/* --- halves ------------------------------------------------------------------------------------------------------ */

/* m16n8k8 and m16n8k16. A: lane 4 (row%8) + k%8/2, register row/8 + 2 (k/8). B: lane 4 column + k%8/2, register k/8. C, D: lane
 * 4 (row%8) + column/2, register column%2 + 2 (row/8). in: a (2 or 4), b (1 or 2), d0 .. d3. */
static void f16_16(struct thread *w, int depth)
{
    int b = depth / 4, d = b + depth / 8;
    f32 left[16][16], right[8][16];
    for (int r = 0; r < 16; r++)
        for (int k = 0; k < depth; k++) left[r][k] = half_at(w[4 * (r % 8) + k % 8 / 2].in + r / 8 + 2 * (k / 8), k % 2);
    for (int c = 0; c < 8; c++)
        for (int k = 0; k < depth; k++) right[c][k] = half_at(w[4 * c + k % 8 / 2].in + b + k / 8, k % 2);
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 8; c++) {
            struct thread *t = &w[4 * (r % 8) + c / 2];
            int reg = c % 2 + 2 * (r / 8);
            double sum = float_at(t->in, d + reg);
            for (int k = 0; k < depth; k++) sum += (double)left[r][k] * right[c][k];
            set_float(t->out + reg, (f32)sum);
        }
}

/* m8n8k4, row.col: four products, of quad pair q the lanes 4q .. 4q+3 and 4q+16 .. 4q+19. A: row r is lane r%4 of the lower quad
 * for r < 4, of the upper from 4 on, register and half by k. B: column the same. D in fp32: register i of lane l (of the pair, 0
 * .. 3 and 16 .. 19) is row (l & 1) + (i & 2) + (l >= 16 ? 4 : 0), column (i & 4) + (l & 2) + (i & 1). in: a0, a1, b0, b1,
 * d0 .. d7. */
static void f16_884(struct thread *w)
{
    for (int l = 0; l < WARP; l++)
        for (int i = 0; i < 8; i++) {
            int quad = l % 16 / 4 * 4, r = (l & 1) + (i & 2) + (l >= 16 ? 4 : 0), c = (i & 4) + (l & 2) + (i & 1);
            const u32 *a = w[quad + r % 4 + r / 4 * 16].in, *b = w[quad + c % 4 + c / 4 * 16].in + 2;
            double sum = float_at(w[l].in, 4 + i);
            for (int k = 0; k < 4; k++) sum += (double)half_at(a, k) * half_at(b, k);
            set_float(w[l].out + i, (f32)sum);
        }
}

/* --- ldmatrix ---------------------------------------------------------------------------------------------------- */

/* Matrix j's row i is at lane 8j + i's address. Lane l gets row l/4, halves 2 (l%4) and the next; transposed, column l/4. */
static void load(struct thread *w, int matrices, int transposed)
{
    for (int l = 0; l < WARP; l++)
        for (int j = 0; j < matrices; j++) {
            u16 h[2];
            for (int i = 0; i < 2; i++) {
                int row = l / 4, column = l % 4 * 2 + i;
                const unsigned char *p = w[8 * j + (transposed ? column : row)].row;
                memcpy(h + i, p + 2 * (transposed ? row : column), 2);
            }
            w[l].out[j] = h[0] | (u32)h[1] << 16;
        }
}

void matrix_compute(struct thread *w)
{
    switch ((enum matrix_op)w->arg) {
    case S8_8816: return s8_8816(w);
    case S8_16832: return s8_16832(w);
    case F16_1688: return f16_16(w, 8);
    case F16_16816: return f16_16(w, 16);
    case F16_884: return f16_884(w);
    case LD_X2: return load(w, 2, 0);
    case LD_X4: return load(w, 4, 0);
    case LD_X2_TRANS: return load(w, 2, 1);
    case LD_X4_TRANS: return load(w, 4, 1);
    }
}
