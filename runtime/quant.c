/* The weight formats as a table, and GGUF's names of all types. Sources: the ggml block layouts; IEEE 754. */
#include "quant.h"
#include <math.h>
#include <string.h>

float q_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3FF, bits;
    if (e == 31)
        bits = sign | 0x7F800000 | m << 13;
    else if (e)
        bits = sign | (e + 112) << 23 | m << 13;
    else {   /* zero or subnormal: m * 2^-24, exact in fp32 */
        float f = (float)m * 0x1p-24f;
        return sign ? -f : f;
    }
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

uint16_t q_float_to_half(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000) return (uint16_t)(sign | 0x7E00 | (bits >> 13 & 0x1FF));   /* NaN, made quiet */
    if (bits >= 0x477FF000) return sign | 0x7C00;                                     /* rounds to infinity */
    if (bits < 0x38800000) {   /* subnormal half: the fp32 adder rounds to a multiple of 2^-24 for us */
        float f;
        memcpy(&f, &bits, 4);
        f += 0.5f;
        memcpy(&bits, &f, 4);
        return (uint16_t)(sign | (bits - 0x3F000000));
    }
    bits += 0xFFF + (bits >> 13 & 1);
    return (uint16_t)(sign | (bits - 0x38000000) >> 13);
}

static void f32_copy(float *dst, const void *src, int64_t n) { memcpy(dst, src, (size_t)n * 4); }
static void f32_store(void *dst, const float *src, int64_t n) { memcpy(dst, src, (size_t)n * 4); }

static void f16_dequantise(float *dst, const void *src, int64_t n)
{
    const uint16_t *h = src;
    for (int64_t i = 0; i < n; i++) dst[i] = q_half_to_float(h[i]);
}

static void f16_quantise(void *dst, const float *src, int64_t n)
{
    uint16_t *h = dst;
    for (int64_t i = 0; i < n; i++) h[i] = q_float_to_half(src[i]);
}

static void bf16_dequantise(float *dst, const void *src, int64_t n)
{
    const uint16_t *b = src;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)b[i] << 16;
        memcpy(dst + i, &bits, 4);
    }
}

/* Round to nearest even on the upper half; a NaN is made quiet, so that rounding cannot turn it into an infinity. */
static void bf16_quantise(void *dst, const float *src, int64_t n)
{
    uint16_t *b = dst;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, src + i, 4);
        if ((bits & 0x7FFFFFFF) > 0x7F800000)
            b[i] = (uint16_t)(bits >> 16 | 0x40);
        else
            b[i] = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    }
}

/* A Q8_0 block: an fp16 scale, then 32 int8. Blocks are 34 bytes, so the scale is 2-aligned at best. */
enum { Q8_BLOCK = 32, Q8_BYTES = 34 };

static void q8_0_dequantise(float *dst, const void *src, int64_t n)
{
    const unsigned char *p = src;
    for (int64_t b = 0; b < n / Q8_BLOCK; b++, p += Q8_BYTES, dst += Q8_BLOCK) {
        uint16_t h;
        memcpy(&h, p, 2);
        float d = q_half_to_float(h);
        for (int i = 0; i < Q8_BLOCK; i++) dst[i] = (float)(int8_t)p[2 + i] * d;
    }
}

/* d = max|x| / 127; q = x * (1/d), half away from zero. The products use the unrounded d; the half is what is stored. */
static void q8_0_quantise(void *dst, const float *src, int64_t n)
{
    unsigned char *p = dst;
    for (int64_t b = 0; b < n / Q8_BLOCK; b++, p += Q8_BYTES, src += Q8_BLOCK) {
        float max = 0;
        for (int i = 0; i < Q8_BLOCK; i++) max = fmaxf(max, fabsf(src[i]));
        float d = max / 127.0f, inverse = d > 0 ? 1.0f / d : 0.0f;
        if (isinf(inverse)) inverse = 0;   /* a block of subnormals: all zero, as its stored scale is */
        uint16_t h = q_float_to_half(d);
        memcpy(p, &h, 2);
        for (int i = 0; i < Q8_BLOCK; i++) {
            float q = roundf(src[i] * inverse);
            p[2 + i] = (unsigned char)(int8_t)(q >= -127 && q <= 127 ? q : 0);   /* NaN and inf have no place here */
        }
    }
}

static const struct q_format formats[] = {
    { Q_TYPE_F32, "f32", 1, 4, Q_ACT_F32, f32_copy, f32_store },
    { Q_TYPE_F16, "f16", 1, 2, Q_ACT_F32, f16_dequantise, f16_quantise },
    { Q_TYPE_BF16, "bf16", 1, 2, Q_ACT_F32, bf16_dequantise, bf16_quantise },
    { Q_TYPE_Q8_0, "q8_0", Q8_BLOCK, Q8_BYTES, Q_ACT_Q8, q8_0_dequantise, q8_0_quantise },
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

const struct q_format *q_format_find(int type)
{
    for (int i = 0; i < N_FORMATS; i++)
        if ((int)formats[i].type == type) return formats + i;
    return NULL;
}

const struct q_format *q_format_by_name(const char *name)
{
    for (int i = 0; i < N_FORMATS; i++)
        if (!strcmp(formats[i].name, name)) return formats + i;
    return NULL;
}

/* All ids that GGUF has given out; those with no name are free or were removed. */
static const struct type_info {
    const char *name;
    short block, bytes;
} types[] = {
    [0] = { "F32", 1, 4 }, [1] = { "F16", 1, 2 }, [2] = { "Q4_0", 32, 18 }, [3] = { "Q4_1", 32, 20 },
    [6] = { "Q5_0", 32, 22 }, [7] = { "Q5_1", 32, 24 }, [8] = { "Q8_0", 32, 34 }, [9] = { "Q8_1", 32, 36 },
    [10] = { "Q2_K", 256, 84 }, [11] = { "Q3_K", 256, 110 }, [12] = { "Q4_K", 256, 144 }, [13] = { "Q5_K", 256, 176 },
    [14] = { "Q6_K", 256, 210 }, [15] = { "Q8_K", 256, 292 }, [16] = { "IQ2_XXS", 256, 66 },
    [17] = { "IQ2_XS", 256, 74 }, [18] = { "IQ3_XXS", 256, 98 }, [19] = { "IQ1_S", 256, 50 },
    [20] = { "IQ4_NL", 32, 18 }, [21] = { "IQ3_S", 256, 110 }, [22] = { "IQ2_S", 256, 82 },
    [23] = { "IQ4_XS", 256, 136 }, [24] = { "I8", 1, 1 }, [25] = { "I16", 1, 2 }, [26] = { "I32", 1, 4 },
    [27] = { "I64", 1, 8 }, [28] = { "F64", 1, 8 }, [29] = { "IQ1_M", 256, 56 }, [30] = { "BF16", 1, 2 },
    [34] = { "TQ1_0", 256, 54 }, [35] = { "TQ2_0", 256, 66 }, [39] = { "MXFP4", 32, 17 }, [40] = { "NVFP4", 64, 36 },
    [41] = { "Q1_0", 128, 18 },
};
enum { N_TYPES = sizeof types / sizeof *types };

const char *q_type_name(int type)
{
    return type >= 0 && type < N_TYPES && types[type].name ? types[type].name : "?";
}

int q_type_block(int type) { return type >= 0 && type < N_TYPES ? types[type].block : 0; }
int q_type_bytes(int type) { return type >= 0 && type < N_TYPES ? types[type].bytes : 0; }
