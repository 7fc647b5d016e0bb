/* `show --json`: the same facts as one JSON object on one line. Sizes are bytes. Fields are added, never renamed. */
#include "rope.h"
#include "show.h"
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define NUM(o, name, v) cJSON_AddNumberToObject(o, name, (double)(v))
#define STR(o, name, v) cJSON_AddStringToObject(o, name, v)
#define BOOL(o, name, v) cJSON_AddBoolToObject(o, name, (v) != 0)

static void add_file(cJSON *root, const struct show_facts *f)
{
    if (!f->file) return;
    char id[65];
    for (int i = 0; i < 32; i++) snprintf(id + 2 * i, 3, "%02x", f->model->id[i]);
    STR(root, "file", f->model->path);
    STR(root, "id", id);
    NUM(root, "file_bytes", gguf_file_bytes(f->file));
    NUM(root, "header_bytes", gguf_header_bytes(f->file));
    NUM(root, "gguf_version", gguf_version(f->file));
    NUM(root, "files", gguf_n_shards(f->file));
}

static void add_config(cJSON *root, const struct q_config *c)
{
    STR(root, "name", c->name);
    STR(root, "architecture", c->arch);
    cJSON *o = cJSON_AddObjectToObject(root, "shape");
    const struct { const char *name; int v; } rows[] = {
        { "n_layers", c->n_layers }, { "n_nextn", c->n_nextn }, { "n_embd", c->n_embd }, { "n_ff", c->n_ff },
        { "n_vocab", c->n_vocab }, { "n_ctx_train", c->n_ctx_train }, { "n_head", c->n_head },
        { "n_head_kv", c->n_head_kv }, { "head_dim", c->head_dim }, { "rope_dims", c->rope_dims },
        { "conv_taps", c->conv_taps }, { "state_dim", c->state_dim }, { "n_k_heads", c->n_k_heads },
        { "n_v_heads", c->n_v_heads }, { "attention_layers", q_count_layers(c, Q_LAYER_ATTN) },
        { "delta_net_layers", q_count_layers(c, Q_LAYER_GDN) },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) NUM(o, rows[i].name, rows[i].v);
    NUM(o, "rms_eps", c->rms_eps);
    NUM(o, "rope_base", c->rope_base);
    NUM(o, "attn_scale", c->attn_scale);
    cJSON_AddItemToObject(o, "rope_sections", cJSON_CreateIntArray(c->rope_sections, 4));
    if (c->yarn.factor > 1) {
        cJSON *y = cJSON_AddObjectToObject(o, "yarn");
        NUM(y, "factor", c->yarn.factor);
        NUM(y, "original", c->yarn.original);
        NUM(y, "limit", rope_limit(c));
        NUM(y, "attention", rope_attention(c));
    }
    BOOL(o, "tied", c->tied);
    BOOL(o, "v_grouped", c->v_grouped);
    cJSON *kinds = cJSON_AddArrayToObject(o, "layers");
    for (int i = 0; i < c->n_layers; i++)
        cJSON_AddItemToArray(kinds, cJSON_CreateString(c->kind[i] == Q_LAYER_ATTN ? "attention" : "delta_net"));
}

static void add_weights(cJSON *root, const struct show_facts *f)
{
    cJSON *o = cJSON_AddObjectToObject(root, "weights");
    NUM(o, "bytes", f->weight_bytes);
    NUM(o, "parameters", f->parameters);
    if (f->format) STR(o, "format", f->format);
    cJSON *types = cJSON_AddArrayToObject(o, "types"), *parts = cJSON_AddObjectToObject(o, "parts");
    for (int i = 0; i < f->n_types; i++) {
        cJSON *t = cJSON_CreateObject();
        STR(t, "type", f->types[i].name);
        NUM(t, "tensors", f->types[i].tensors);
        NUM(t, "bytes", f->types[i].bytes);
        cJSON_AddItemToArray(types, t);
    }
    for (int i = 0; i < SHOW_PARTS && f->file; i++) NUM(parts, show_part_names[i], f->part_bytes[i]);
    BOOL(o, "checked", f->checked);
}

static void add_special(void *user, uint64_t id, struct gguf_str text, int type)
{
    char shown[256];
    cJSON *t = cJSON_CreateObject();
    NUM(t, "id", id);
    STR(t, "text", gguf_str_copy(shown, sizeof shown, text));
    STR(t, "type", show_token_types[type]);
    cJSON_AddItemToArray(user, t);
}

static void add_tokenizer(cJSON *root, const struct show_facts *f)
{
    if (!f->has_tokenizer) return;
    cJSON *o = cJSON_AddObjectToObject(root, "tokenizer"), *types = cJSON_AddObjectToObject(o, "types");
    STR(o, "model", f->tok_model);
    STR(o, "pre", f->tok_pre);
    NUM(o, "tokens", f->n_tokens);
    NUM(o, "merges", f->n_merges);
    for (int i = 0; i < SHOW_TOKEN_TYPES; i++) NUM(types, show_token_types[i], f->n_token_type[i]);
    if (f->eos >= 0) NUM(o, "eos", f->eos);
    show_each_special(f, add_special, cJSON_AddArrayToObject(o, "special"));
}

static void add_template(cJSON *root, const struct show_facts *f)
{
    if (!f->has_template) return;
    cJSON *o = cJSON_AddObjectToObject(root, "template");
    NUM(o, "bytes", f->template_bytes);
    BOOL(o, "enable_thinking", f->knows_enable);
    BOOL(o, "preserve_thinking", f->knows_preserve);
    BOOL(o, "tools", f->knows_tools);
}

static void add_plans(cJSON *root, const struct show_facts *f)
{
    cJSON *list = cJSON_AddArrayToObject(root, "memory");
    for (int i = 0; i < f->n_plans; i++) {
        const struct q_plan *p = f->plans + i;
        cJSON *o = cJSON_CreateObject();
        NUM(o, "context", f->ctx[i]);
        for (int k = 0; k < Q_PLAN_KERNELS; k++) NUM(o, p->lines[k].what, p->lines[k].bytes);
        NUM(o, "total", p->total);
        cJSON_AddItemToArray(list, o);
    }
}

static void add_notices(cJSON *root, const char *text)
{
    cJSON *list = cJSON_AddArrayToObject(root, "notices");
    for (const char *line = text; line && *line;) {
        char copy[640];
        size_t n = strcspn(line, "\n");
        snprintf(copy, sizeof copy, "%.*s", (int)n, line);
        cJSON_AddItemToArray(list, cJSON_CreateString(copy));
        line += n + (line[n] == '\n');
    }
}

int show_json(const struct show_facts *f, FILE *out)
{
    cJSON *root = cJSON_CreateObject();
    add_file(root, f);
    add_config(root, f->config);
    add_weights(root, f);
    add_tokenizer(root, f);
    add_template(root, f);
    add_plans(root, f);
    if (f->fit) show_fit_json(f->fit, root);
    add_notices(root, f->notes.text);
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    if (!text) return Q_EMEM;
    fprintf(out, "%s\n", text);
    free(text);
    return Q_OK;
}
