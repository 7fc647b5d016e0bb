/* The table of tensors, and the sizes it refers to. Source of names and dimensions: GGUF files of architecture qwen35. */
#include "model_parts.h"
#include <stdio.h>
#include <string.h>

#define L(field) offsetof(struct q_layer, field)
#define M(field) offsetof(struct q_model, field)

const struct q_part q_layer_parts[] = {
    { "attn_norm.weight", NULL, L(attn_norm), IN_ALL, ROLE_NORM, D_ONE, D_EMBD },
    { "post_attention_norm.weight", NULL, L(ffn_norm), IN_ALL, ROLE_NORM, D_ONE, D_EMBD },
    { "ffn_gate.weight", NULL, L(ffn_gate), IN_ALL, ROLE_MATRIX, D_FF, D_EMBD },
    { "ffn_up.weight", NULL, L(ffn_up), IN_ALL, ROLE_MATRIX, D_FF, D_EMBD },
    { "ffn_down.weight", NULL, L(ffn_down), IN_ALL, ROLE_MATRIX, D_EMBD, D_FF },

    { "attn_q.weight", NULL, L(wq), IN_ATTN, ROLE_MATRIX, D_QG, D_EMBD },
    { "attn_k.weight", NULL, L(wk), IN_ATTN, ROLE_MATRIX, D_KV, D_EMBD },
    { "attn_v.weight", NULL, L(wv), IN_ATTN, ROLE_MATRIX, D_KV, D_EMBD },
    { "attn_output.weight", NULL, L(wo), IN_ATTN, ROLE_MATRIX, D_EMBD, D_ATTN },
    { "attn_q_norm.weight", NULL, L(q_norm), IN_ATTN, ROLE_NORM, D_ONE, D_HEAD },
    { "attn_k_norm.weight", NULL, L(k_norm), IN_ATTN, ROLE_NORM, D_ONE, D_HEAD },

    { "attn_qkv.weight", NULL, L(qkv), IN_GDN, ROLE_MATRIX, D_CONV, D_EMBD },
    { "attn_gate.weight", NULL, L(z), IN_GDN, ROLE_MATRIX, D_V, D_EMBD },
    { "ssm_alpha.weight", NULL, L(alpha), IN_GDN, ROLE_MATRIX, D_NV, D_EMBD },
    { "ssm_beta.weight", NULL, L(beta), IN_GDN, ROLE_MATRIX, D_NV, D_EMBD },
    { "ssm_conv1d.weight", NULL, L(conv), IN_GDN, ROLE_CONV, D_CONV, D_TAPS },
    { "ssm_dt.bias", "ssm_dt", L(dt), IN_GDN, ROLE_DT, D_ONE, D_NV },
    { "ssm_a", NULL, L(a), IN_GDN, ROLE_A, D_ONE, D_NV },
    { "ssm_norm.weight", NULL, L(ssm_norm), IN_GDN, ROLE_NORM, D_ONE, D_STATE },
    { "ssm_out.weight", NULL, L(ssm_out), IN_GDN, ROLE_MATRIX, D_EMBD, D_V },
};
const int q_n_layer_parts = sizeof q_layer_parts / sizeof *q_layer_parts;

const struct q_part q_model_parts[] = {
    { "token_embd.weight", NULL, M(embd), IN_ALL, ROLE_MATRIX, D_VOCAB, D_EMBD },
    { "output_norm.weight", NULL, M(out_norm), IN_ALL, ROLE_NORM, D_ONE, D_EMBD },
    { "output.weight", NULL, M(head), IN_UNTIED, ROLE_MATRIX, D_VOCAB, D_EMBD },
};
const int q_n_model_parts = sizeof q_model_parts / sizeof *q_model_parts;

int64_t q_dim_of(const struct q_config *c, enum q_dim d)
{
    switch (d) {
    case D_ONE: return 1;
    case D_EMBD: return c->n_embd;
    case D_FF: return c->n_ff;
    case D_VOCAB: return c->n_vocab;
    case D_TAPS: return c->conv_taps;
    case D_HEAD: return c->head_dim;
    case D_STATE: return c->state_dim;
    case D_QG: return (int64_t)c->n_head * 2 * c->head_dim;
    case D_ATTN: return (int64_t)c->n_head * c->head_dim;
    case D_KV: return (int64_t)c->n_head_kv * c->head_dim;
    case D_QKV: return q_dim_of(c, D_QG) + 2 * q_dim_of(c, D_KV);
    case D_CONV: return q_conv_dim(c);
    case D_V: return q_v_dim(c);
    case D_NV: return c->n_v_heads;
    }
    return 0;
}

int q_part_in_model(const struct q_config *c, const struct q_part *p) { return p->in != IN_UNTIED || !c->tied; }

void q_part_name(char *name, int layer, const char *part)
{
    if (layer < 0)
        snprintf(name, 64, "%s", part);
    else
        snprintf(name, 64, "blk.%d.%s", layer, part);
}

static int is_part(const char *name, const struct q_part *p) { return !strcmp(name, p->name) || (p->alias && !strcmp(name, p->alias)); }

enum q_role q_role_of(const struct q_tensor *t)
{
    const char *name = t->name;
    if (!strncmp(name, "blk.", 4)) name += 4 + strspn(name + 4, "0123456789") + 1;
    for (int i = 0; i < q_n_layer_parts; i++)
        if (is_part(name, q_layer_parts + i)) return q_layer_parts[i].role;
    for (int i = 0; i < q_n_model_parts; i++)
        if (is_part(name, q_model_parts + i)) return q_model_parts[i].role;
    return ROLE_MATRIX;
}

const struct q_format *q_part_format(const struct q_config *c, const struct q_part *p, const struct q_format *format)
{
    if (p->role != ROLE_MATRIX) return q_format_find(Q_TYPE_F32);
    return q_dim_of(c, p->k) % format->block ? q_format_find(Q_TYPE_F16) : format;
}

int q_each_part(struct q_model *m, q_part_fn f, void *user)
{
    int rc = 0;
    for (int i = 0; i < q_n_model_parts && !rc; i++) {
        const struct q_part *p = q_model_parts + i;
        if (q_part_in_model(&m->config, p)) rc = f(user, p, -1, (struct q_tensor *)((char *)m + p->at));
    }
    for (int l = 0; l < m->config.n_layers && !rc; l++)
        for (int i = 0; i < q_n_layer_parts && !rc; i++) {
            const struct q_part *p = q_layer_parts + i;
            if (p->in & 1 << m->config.kind[l]) rc = f(user, p, l, (struct q_tensor *)((char *)(m->layers + l) + p->at));
        }
    return rc;
}

size_t q_part_bytes(const struct q_config *c, const struct q_part *p, const struct q_format *format)
{
    return (size_t)(q_dim_of(c, p->n) * q_row_bytes(q_part_format(c, p, format), q_dim_of(c, p->k)));
}

size_t q_config_weight_bytes(const struct q_config *c, const struct q_format *format)
{
    size_t bytes = 0;
    for (int i = 0; i < q_n_model_parts; i++)
        if (q_part_in_model(c, q_model_parts + i)) bytes += q_part_bytes(c, q_model_parts + i, format);
    for (int i = 0; i < q_n_layer_parts; i++)
        for (int kind = 0; kind < 2; kind++)
            if (q_layer_parts[i].in & 1 << kind)
                bytes += q_part_bytes(c, q_layer_parts + i, format) * (size_t)q_count_layers(c, kind);
    return bytes;
}
