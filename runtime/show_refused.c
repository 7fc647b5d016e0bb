/* `show` for a well-formed file that this version does not run: what the container says, as far as it goes. */
#include "show.h"
#include <inttypes.h>
#include <string.h>

struct type_count {
    int type, tensors;
    size_t bytes;
};

/* Tensors and bytes by GGUF type, in order of first appearance. */
static int count_types(const struct gguf *g, struct type_count out[SHOW_MAX_TYPES])
{
    int n = 0;
    for (int i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor(g, i);
        int j = 0;
        while (j < n && out[j].type != t->type) j++;
        if (j == SHOW_MAX_TYPES) continue;
        if (j == n) out[n++] = (struct type_count){t->type, 0, 0};
        out[j].tensors++;
        out[j].bytes += t->bytes;
    }
    return n;
}

static void print_name(const struct gguf *g, const char *label, const char *key, FILE *out)
{
    struct gguf_str s;
    char text[128];
    if (gguf_get_str(g, key, &s, NULL)) return;
    fprintf(out, "%-13s %s\n", label, gguf_str_copy(text, sizeof text, s));
}

void show_refused(const struct gguf *g, FILE *out)
{
    struct type_count types[SHOW_MAX_TYPES];
    int n = count_types(g, types);
    fprintf(out, "file          %s\n              %.1f MB, GGUF version %u, %d keys, %d tensors\n", gguf_path(g),
            (double)gguf_file_bytes(g) / 1e6, gguf_version(g), gguf_n_keys(g), gguf_n_tensors(g));
    print_name(g, "name", "general.name", out);
    print_name(g, "architecture", "general.architecture", out);
    fprintf(out, "weights\n");
    for (int i = 0; i < n; i++)
        fprintf(out, "  %-16s  %5d tensors  %9.1f MB%s\n", q_type_name(types[i].type), types[i].tensors, (double)types[i].bytes / 1e6,
                q_format_find(types[i].type) ? "" : "  (not run by this version)");
    fprintf(out, "this version cannot run it; the reason follows\n");
}
