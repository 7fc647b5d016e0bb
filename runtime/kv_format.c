#include "kv_format.h"
#include "kernel.h"
#include "templates/kv_append/args.h"
#include <string.h>

const char *const kv_formats[] = {"f32", "f16", "q8", "r4", "r3", NULL};
const char kv_format_names[] = "f32, f16, q8, r4, r3";

/* enum kv_format, or -1. */
static int find(const char *name)
{
    static const struct {
        const char *name;
        enum kv_format format;
    } rows[] = {{"f32", KV_F32}, {"f16", KV_F16}, {"q8", KV_Q8}, {"r4", KV_R4}, {"r3", KV_R3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name)) return (int)rows[i].format;
    return -1;
}

int kv_format_known(const char *format) { return find(format) >= 0; }

size_t kv_format_piece_bytes(const char *format, int head_dim)
{
    int f = find(format), has_scales = f != KV_F16 && f != KV_F32;
    if (f < 0 || (has_scales && head_dim % 32)) return 0;
    return (size_t)kv_piece_bytes((enum kv_format)f, head_dim);
}
