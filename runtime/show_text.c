/* `show` for people: a column of names, then what there is to say. */
#include "rope.h"
#include "show.h"
#include <string.h>

static const char *size_text(size_t bytes, char buf[24])
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
    double v = (double)bytes;
    int u = 0;
    while (v >= 1000 && u < 4) v /= 1000, u++;
    snprintf(buf, 24, u ? "%.*f %s" : "%.*f %s", u && v < 100 ? 1 : 0, v, units[u]);
    return buf;
}
#define SIZE(n) size_text((n), (char[24]){ 0 })

static void print_head(const struct show_facts *f, FILE *out)
{
    const struct q_config *c = f->config;
    if (f->file) {
        fprintf(out, "file          %s\n", f->model->path);
        fprintf(out, "              %s, GGUF version %u", SIZE(gguf_file_bytes(f->file)), gguf_version(f->file));
        if (gguf_n_shards(f->file) > 1) fprintf(out, ", split in %d files", gguf_n_shards(f->file));
        fprintf(out, "; header %s\nid            ", SIZE(gguf_header_bytes(f->file)));
        for (int i = 0; i < 32; i++) fprintf(out, "%02x", f->model->id[i]);
        fprintf(out, "\n");
    }
    fprintf(out, "name          %s\n", c->name[0] ? c->name : "(none)");
    fprintf(out, "architecture  %s: %d layers, %d delta net and %d full attention", c->arch, c->n_layers,
            q_count_layers(c, Q_LAYER_GDN), q_count_layers(c, Q_LAYER_ATTN));
    if (c->n_nextn) fprintf(out, "; %d next-n", c->n_nextn);
    fprintf(out, "\n");
}

static void print_shape(const struct q_config *c, FILE *out)
{
    fprintf(out, "shape         hidden %d, feed-forward %d, vocabulary %d, trained for %d tokens\n", c->n_embd, c->n_ff,
            c->n_vocab, c->n_ctx_train);
    fprintf(out, "attention     %d query heads, %d KV heads of %d; rope turns %d, base %g, sections %d %d %d %d\n", c->n_head,
            c->n_head_kv, c->head_dim, c->rope_dims, c->rope_base, c->rope_sections[0], c->rope_sections[1],
            c->rope_sections[2], c->rope_sections[3]);
    if (c->yarn.factor > 1)
        fprintf(out, "              YaRN: %d tokens times %g, so up to %d\n", c->yarn.original, (double)c->yarn.factor, rope_limit(c));
    fprintf(out, "delta net     %d key heads, %d value heads of %d (%s); convolution over %d tokens\n", c->n_k_heads,
            c->n_v_heads, c->state_dim, c->v_grouped ? "grouped" : "tiled", c->conv_taps);
}

static void print_weights(const struct show_facts *f, FILE *out)
{
    fprintf(out, "weights       %.1f million parameters, %s%s%s; head %s\n", (double)f->parameters / 1e6, SIZE(f->weight_bytes),
            f->format ? " as " : "", f->format ? f->format : "", f->config->tied ? "tied to the embedding" : "of its own");
    for (int i = 0; i < f->n_types; i++)
        fprintf(out, "  %-16s  %5d tensors  %9s\n", f->types[i].name, f->types[i].tensors, SIZE(f->types[i].bytes));
    for (int i = 0; i < SHOW_PARTS; i++)
        if (f->part_bytes[i]) fprintf(out, "  %-16s                 %9s\n", show_part_names[i], SIZE(f->part_bytes[i]));
    if (f->checked) fprintf(out, "  every block was read: all values are finite\n");
}

struct special {
    FILE *out;
    int n, column;
};

static void print_special(void *user, uint64_t id, struct gguf_str text, int type)
{
    struct special *s = user;
    char shown[48];
    if (s->n++ >= 64) return;
    if (s->column > 90) {
        fprintf(s->out, "\n             ");
        s->column = 0;
    }
    s->column += fprintf(s->out, " %llu %s", (unsigned long long)id, gguf_str_copy(shown, sizeof shown, text));
}

static void print_tokenizer(const struct show_facts *f, FILE *out)
{
    if (!f->has_tokenizer) {
        if (f->file) fprintf(out, "tokenizer     none\n");
        return;
    }
    fprintf(out, "tokenizer     %s, pre %s: %llu tokens, %llu merges", f->tok_model, f->tok_pre,
            (unsigned long long)f->n_tokens, (unsigned long long)f->n_merges);
    for (int i = 0; i < SHOW_TOKEN_TYPES; i++)
        if (i != 1 && f->n_token_type[i]) fprintf(out, ", %llu %s", (unsigned long long)f->n_token_type[i], show_token_types[i]);
    if (f->eos >= 0)
        fprintf(out, "\n              end of text: %lld %s", (long long)f->eos, f->eos_text);
    fprintf(out, "\n  special    ");
    struct special s = { .out = out };
    show_each_special(f, print_special, &s);
    if (s.n > 64) fprintf(out, " ... (%d in all)", s.n);
    fprintf(out, "%s\n", s.n ? "" : " none");
}

static void print_template(const struct show_facts *f, FILE *out)
{
    if (!f->file) return;
    if (!f->has_template) {
        fprintf(out, "template      none\n");
        return;
    }
    fprintf(out, "template      %s; enable_thinking %s, preserve_thinking %s, tools %s\n", SIZE(f->template_bytes),
            f->knows_enable ? "yes" : "no", f->knows_preserve ? "yes" : "no", f->knows_tools ? "yes" : "no");
}

static void print_plans(const struct show_facts *f, FILE *out)
{
    fprintf(out, "memory        one sequence, fp16 KV, steps of up to 512 rows\n");
    fprintf(out, "  %9s", "context");
    for (int k = 0; k < Q_PLAN_KERNELS; k++) fprintf(out, "  %9s", f->plans[0].lines[k].what);
    fprintf(out, "  %9s\n", "total");
    for (int i = 0; i < f->n_plans; i++) {
        char ctx[24];
        snprintf(ctx, sizeof ctx, f->ctx[i] % 1024 ? "%lld" : "%lldK", (long long)(f->ctx[i] % 1024 ? f->ctx[i] : f->ctx[i] / 1024));
        fprintf(out, "  %9s", ctx);
        for (int k = 0; k < Q_PLAN_KERNELS; k++) fprintf(out, "  %9s", SIZE(f->plans[i].lines[k].bytes));
        fprintf(out, "  %9s\n", SIZE(f->plans[i].total));
    }
}

static void print_notices(const char *text, FILE *out)
{
    fprintf(out, "notices%s\n", text ? "" : "       none");
    for (const char *line = text; line && *line;) {
        size_t n = strcspn(line, "\n");
        fprintf(out, "  - %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

void show_text(const struct show_facts *f, FILE *out)
{
    print_head(f, out);
    print_shape(f->config, out);
    print_weights(f, out);
    if (f->fit) {
        show_fit_text(f->fit, out);
        return;
    }
    print_tokenizer(f, out);
    print_template(f, out);
    print_plans(f, out);
    print_notices(f->notes.text, out);
}
