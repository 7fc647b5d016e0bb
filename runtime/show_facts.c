/* Gathers what `show` prints, and notes what is odd: values a reader of the file would want to be told about. */
#define _GNU_SOURCE
#include "show.h"
#include "chat_template.h"
#include "model_parts.h"
#include "rope.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const show_part_names[SHOW_PARTS] = { "embedding", "head", "attention", "delta net", "feed-forward", "norms and small" };
const char *const show_token_types[SHOW_TOKEN_TYPES] = { "undefined", "normal", "unknown", "control", "user", "unused", "byte" };

/* --- weights --- */

static void count_type(struct show_facts *f, const struct gguf_tensor *t)
{
    const char *name = q_type_name(t->type);
    int i = 0;
    while (i < f->n_types && strcmp(f->types[i].name, name)) i++;
    if (i == SHOW_MAX_TYPES) return;
    if (i == f->n_types) f->types[f->n_types++].name = name;
    f->types[i].tensors++;
    f->types[i].bytes += t->bytes;
}

static int by_bytes(const void *a, const void *b)
{
    const struct show_type *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static enum show_part part_of(const struct q_part *p, int layer)
{
    if (layer < 0) return p->role != ROLE_MATRIX ? SHOW_SMALL : p->in == IN_UNTIED ? SHOW_HEAD : SHOW_EMBD;
    if (p->role != ROLE_MATRIX) return SHOW_SMALL;
    return p->in == IN_ATTN ? SHOW_ATTN : p->in == IN_GDN ? SHOW_GDN : SHOW_FFN;
}

static int count_part(void *user, const struct q_part *p, int layer, struct q_tensor *t)
{
    struct show_facts *f = user;
    f->part_bytes[part_of(p, layer)] += t->bytes;
    f->parameters += (size_t)(t->n * t->k);
    return 0;
}

static void add_plans(struct show_facts *f)
{
    const int64_t trained = rope_limit(f->config);
    for (int64_t ctx = 1024; ctx < trained && f->n_plans < SHOW_MAX_PLANS - 1; ctx *= 4) f->ctx[f->n_plans++] = ctx;
    f->ctx[f->n_plans++] = trained;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < f->n_plans; i++) {
        struct q_plan_options o = plan_defaults(f->weight_bytes, (int)f->ctx[i], cpus > 0 && cpus < 4096 ? (int)cpus : 1);
        plan_make(f->plans + i, f->config, &o);
    }
}

/* --- tokenizer and template --- */

static void copy_key(const struct gguf *g, const char *key, char *dst, size_t size)
{
    struct gguf_str s;
    if (!gguf_get_str(g, key, &s, NULL)) gguf_str_copy(dst, size, s);
}

static void read_eos(struct show_facts *f, const struct gguf_kv *tokens)
{
    struct gguf_strings index;
    f->eos = -1;
    gguf_get_int(f->file, "tokenizer.ggml.eos_token_id", 0, INT32_MAX, &f->eos, NULL);
    if (f->eos < 0 || (uint64_t)f->eos >= tokens->count || gguf_strings_open(&index, tokens, NULL)) return;
    gguf_str_copy(f->eos_text, sizeof f->eos_text, gguf_strings_get(&index, (uint64_t)f->eos));
    gguf_strings_close(&index);
}

static void read_tokenizer(struct show_facts *f)
{
    const struct gguf_kv *tokens, *kv;
    if (gguf_get_array(f->file, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, NULL)) return;
    f->has_tokenizer = 1;
    f->n_tokens = tokens->count;
    copy_key(f->file, "tokenizer.ggml.model", f->tok_model, sizeof f->tok_model);
    copy_key(f->file, "tokenizer.ggml.pre", f->tok_pre, sizeof f->tok_pre);
    if (!gguf_get_array(f->file, "tokenizer.ggml.merges", GGUF_STRING, &kv, NULL)) f->n_merges = kv->count;
    if (!gguf_get_array(f->file, "tokenizer.ggml.token_type", -1, &kv, NULL))
        for (uint64_t i = 0; i < kv->count; i++) {
            int64_t t = gguf_array_int(kv, i);
            if (t >= 0 && t < SHOW_TOKEN_TYPES) f->n_token_type[t]++;
        }
    read_eos(f, tokens);
}

static void read_template(struct show_facts *f)
{
    struct gguf_str t;
    if (gguf_get_str(f->file, "tokenizer.chat_template", &t, NULL)) return;
    f->has_template = 1;
    f->template_bytes = t.n;
    f->knows_enable = memmem(t.s, t.n, "enable_thinking", 15) != NULL;
    f->knows_preserve = memmem(t.s, t.n, "preserve_thinking", 17) != NULL;
    f->knows_tools = memmem(t.s, t.n, "tools", 5) != NULL;
}

void show_each_special(const struct show_facts *f, void (*fn)(void *, uint64_t, struct gguf_str, int), void *user)
{
    const struct gguf_kv *tokens, *types;
    if (!f->file || gguf_get_array(f->file, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, NULL) ||
        gguf_get_array(f->file, "tokenizer.ggml.token_type", -1, &types, NULL))
        return;
    const unsigned char *at = tokens->data;
    for (uint64_t i = 0; i < tokens->count && i < types->count; i++) {
        struct gguf_str text = gguf_next_str(&at);
        int64_t type = gguf_array_int(types, i);
        if (type >= 2 && type <= 4) fn(user, i, text, (int)type);
    }
}

/* --- what is odd --- */

static void note_file_type(struct show_facts *f)
{
    static const struct { short file_type, type; } table[] = {
        { 0, 0 }, { 1, 1 }, { 2, 2 }, { 3, 3 }, { 7, 8 }, { 8, 6 }, { 9, 7 }, { 10, 10 }, { 11, 11 }, { 12, 11 },
        { 13, 11 }, { 14, 12 }, { 15, 12 }, { 16, 13 }, { 17, 13 }, { 18, 14 }, { 25, 20 }, { 30, 23 }, { 32, 30 },
    };
    int64_t said;
    if (gguf_get_int(f->file, "general.file_type", 0, 1 << 20, &said, NULL) || !f->n_types) return;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].file_type == said && strcmp(q_type_name(table[i].type), f->types[0].name))
            q_note(&f->notes, "general.file_type %lld says %s, but most bytes are %s", (long long)said,
                   q_type_name(table[i].type), f->types[0].name);
}

/* A template that does not compile would only show at the first chat. */
static void note_template(struct show_facts *f)
{
    struct gguf_str t;
    struct chat_template *compiled;
    struct q_err e;
    if (gguf_get_str(f->file, "tokenizer.chat_template", &t, NULL)) return;
    if (chat_template_open(&compiled, t.s, t.n, "the chat template cannot be used", &e)) q_note(&f->notes, "%s", e.text);
    else chat_template_close(compiled);
}

static void note_tokenizer(struct show_facts *f)
{
    if (!f->has_tokenizer) return;
    if (strcmp(f->tok_model, "gpt2"))
        q_note(&f->notes, "tokenizer.ggml.model is '%s'; the family has 'gpt2' (byte-level BPE)", f->tok_model);
    if (strcmp(f->tok_pre, "qwen35")) q_note(&f->notes, "tokenizer.ggml.pre is '%s'; the family has 'qwen35'", f->tok_pre);
    if (f->eos < 0) q_note(&f->notes, "tokenizer.ggml.eos_token_id is missing");
    if (f->n_token_type[5])
        q_note(&f->notes, "%llu of %llu tokens are unused (padding of the vocabulary)",
               (unsigned long long)f->n_token_type[5], (unsigned long long)f->n_tokens);
    if (!f->n_merges) q_note(&f->notes, "tokenizer.ggml.merges is missing or empty");
    if (!f->has_template) q_note(&f->notes, "tokenizer.chat_template is missing: chats cannot be rendered");
    if (f->has_template) note_template(f);
    if (f->has_template && !f->knows_enable) q_note(&f->notes, "the chat template has no switch for thinking");
}

static void note_values(struct show_facts *f)
{
    const struct q_config *c = f->config;
    if (c->rms_eps != 1e-6f) q_note(&f->notes, "rms epsilon is %g; the family has 1e-6", c->rms_eps);
    if (c->rope_base != 1e7f) q_note(&f->notes, "rope base is %g; the family has 1e7", c->rope_base);
    if (c->head_dim != 256 && q_count_layers(c, Q_LAYER_ATTN))
        q_note(&f->notes, "attention heads have %d dimensions; the family has 256", c->head_dim);
    if (c->state_dim != 128 && q_count_layers(c, Q_LAYER_GDN))
        q_note(&f->notes, "delta-net heads have %d dimensions; the family has 128", c->state_dim);
    if (!q_count_layers(c, Q_LAYER_ATTN)) q_note(&f->notes, "no layer is full attention");
    if (!q_count_layers(c, Q_LAYER_GDN)) q_note(&f->notes, "no layer is a delta net");
}

/* --- the two ways in --- */

static void note_lines(struct show_facts *f, const char *text)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        q_note(&f->notes, "%.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

void show_from_model(struct show_facts *f, const struct q_model *m)
{
    memset(f, 0, sizeof *f);
    f->config = &m->config;
    f->model = m;
    f->file = m->file;
    f->weight_bytes = m->weight_bytes;
    q_each_part((struct q_model *)(uintptr_t)m, count_part, f);
    for (int i = 0; i < gguf_n_tensors(m->file); i++) count_type(f, gguf_tensor(m->file, i));
    qsort(f->types, (size_t)f->n_types, sizeof *f->types, by_bytes);
    read_tokenizer(f);
    read_template(f);
    add_plans(f);
    note_lines(f, m->notices);
    note_file_type(f);
    note_tokenizer(f);
    note_values(f);
}

void show_from_shape(struct show_facts *f, const struct q_config *c, const struct q_format *format)
{
    memset(f, 0, sizeof *f);
    f->config = c;
    f->format = format->name;
    f->weight_bytes = q_config_weight_bytes(c, format);
    f->parameters = q_config_weight_bytes(c, q_format_find(Q_TYPE_F32)) / 4;
    f->eos = -1;
    add_plans(f);
    note_values(f);
}

void show_free(struct show_facts *f) { free(f->notes.text); }
