#include "kv_format.h"
#include "kernel.h"
#include <string.h>

const char *const kv_formats[] = {"f32", "f16", "q8", "r4", "r3", NULL};
const char kv_format_names[] = "f32, f16, q8, r4, r3";

int kv_format_known(const char *format)
{
    for (int i = 0; kv_formats[i]; i++)
        if (!strcmp(kv_formats[i], format)) return 1;
    return 0;
}

int kv_run(int head_dim)
{
    int run = head_dim & -head_dim;
    return run > 256 ? 256 : run < 32 ? 0 : run;
}

/* Of one token of one head. Scales are f16. */
static size_t token_bytes(const char *format, int head_dim)
{
    size_t n = (size_t)head_dim, run = (size_t)kv_run(head_dim);
    if (!strcmp(format, "f32")) return n * 4;
    if (!strcmp(format, "f16")) return n * 2;
    if (!strcmp(format, "q8")) return n % 32 ? 0 : n + n / 32 * 2;
    if (!run) return 0;
    if (!strcmp(format, "r4")) return n / 2 + n / run * 2;
    return strcmp(format, "r3") ? 0 : n / 32 * 12 + n / run * 2;
}

size_t kv_piece_bytes(const char *format, int head_dim) { return KV_PAGE * token_bytes(format, head_dim); }
