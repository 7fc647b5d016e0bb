#include "kset_shapes.h"
#include "kernel.h"
#include "model_parts.h"
#include <stdio.h>
#include <string.h>

static unsigned out_of(enum q_act act) { return act == Q_ACT_Q8 ? Q_OUT_Q8 : Q_OUT_F32; }

static const char *out_name(unsigned out)
{
    return out == (Q_OUT_F32 | Q_OUT_Q8) ? "both" : out == Q_OUT_Q8 ? "q8" : "f32";
}

enum q_act kset_act(const struct q_tensor *w, enum q_numerics numerics)
{
    return numerics == Q_REFERENCE ? Q_ACT_F32 : w->format->act;
}

unsigned kset_out_attn_norm(const struct q_layer *l, enum q_numerics numerics)
{
    if (l->kind == Q_LAYER_ATTN)
        return out_of(kset_act(&l->wq, numerics)) | out_of(kset_act(&l->wk, numerics)) | out_of(kset_act(&l->wv, numerics));
    return out_of(kset_act(&l->qkv, numerics)) | out_of(kset_act(&l->z, numerics)) | out_of(kset_act(&l->alpha, numerics))
           | out_of(kset_act(&l->beta, numerics));
}

unsigned kset_out_ffn_norm(const struct q_layer *l, enum q_numerics numerics)
{
    return out_of(kset_act(&l->ffn_gate, numerics)) | out_of(kset_act(&l->ffn_up, numerics));
}

unsigned kset_out_swiglu(const struct q_layer *l, enum q_numerics numerics) { return out_of(kset_act(&l->ffn_down, numerics)); }

unsigned kset_out_attn(const struct q_layer *l, const struct q_config *c, enum q_numerics numerics)
{
    return c->head_dim % Q8_BLOCK ? Q_OUT_F32 : out_of(kset_act(&l->wo, numerics));
}

unsigned kset_out_gated_norm(const struct q_layer *l, const struct q_config *c, enum q_numerics numerics)
{
    return c->state_dim % Q8_BLOCK ? Q_OUT_F32 : out_of(kset_act(&l->ssm_out, numerics));
}

/* fp32 always: a next-n head and embeddings read the normed rows too. */
unsigned kset_out_head(const struct q_model *m, enum q_numerics numerics) { return Q_OUT_F32 | out_of(kset_act(&m->head, numerics)); }

void shape_layout(char *dst, size_t cap, const char *type, long n, long k) { snprintf(dst, cap, "type=%s,n=%ld,k=%ld", type, n, k); }

void shape_repack(char *dst, size_t cap, const struct q_tensor *w, const char *layout)
{
    snprintf(dst, cap, "type=%s,layout=%s,n=%ld,k=%ld", w->format->name, layout, (long)w->n, (long)w->k);
}

void shape_synth(char *dst, size_t cap, const struct q_tensor *w, const char *layout)
{
    int vector = q_role_of(w) != ROLE_MATRIX;
    snprintf(dst, cap, "type=%s,layout=%s,n=%ld,k=%ld,kind=%s", w->format->name, layout, (long)w->n, (long)w->k, vector ? "vector" : "matrix");
}

void shape_embed(char *dst, size_t cap, const struct q_tensor *embd, const char *layout)
{
    snprintf(dst, cap, "type=%s,layout=%s,n=%ld,vocab=%ld", embd->format->name, layout, (long)embd->k, (long)embd->n);
}

void shape_rmsnorm(char *dst, size_t cap, long n, unsigned out) { snprintf(dst, cap, "n=%ld,out=%s", n, out_name(out)); }

void shape_matmul(char *dst, size_t cap, const struct q_tensor *w, enum q_act act, const char *layout, enum q_epi epi)
{
    static const char *const names[] = {[Q_EPI_NONE] = "none", [Q_EPI_ADD] = "add", [Q_EPI_PARTS] = "parts"};
    snprintf(dst, cap, "type=%s,act=%s,layout=%s,n=%ld,k=%ld,epi=%s", w->format->name, act == Q_ACT_Q8 ? "q8" : "f32", layout,
             (long)w->n, (long)w->k, names[epi]);
}

void shape_quantize(char *dst, size_t cap, long n) { snprintf(dst, cap, "n=%ld", n); }

void shape_rope_table(char *dst, size_t cap, const struct q_config *c)
{
    snprintf(dst, cap, "pairs=%d,s0=%d,s1=%d,s2=%d", c->rope_dims / 2, c->rope_sections[0], c->rope_sections[1], c->rope_sections[2]);
}

void shape_qk_rope(char *dst, size_t cap, const struct q_config *c)
{
    snprintf(dst, cap, "heads=%d,kv_heads=%d,head_dim=%d,pairs=%d", c->n_head, c->n_head_kv, c->head_dim, c->rope_dims / 2);
}

void shape_kv_append(char *dst, size_t cap, const struct q_config *c, const char *fk, const char *fv)
{
    snprintf(dst, cap, "kv_heads=%d,head_dim=%d,fk=%s,fv=%s", c->n_head_kv, c->head_dim, fk, fv);
}

void shape_attn(char *dst, size_t cap, const struct q_config *c, const char *fk, const char *fv, unsigned out)
{
    snprintf(dst, cap, "heads=%d,kv_heads=%d,head_dim=%d,fk=%s,fv=%s,out=%s", c->n_head, c->n_head_kv, c->head_dim, fk, fv, out_name(out));
}

void shape_attn_pick(char *dst, size_t cap, const struct q_config *c, const char *fk)
{
    snprintf(dst, cap, "heads=%d,kv_heads=%d,head_dim=%d,fk=%s", c->n_head, c->n_head_kv, c->head_dim, fk);
}

void shape_conv_silu(char *dst, size_t cap, const struct q_config *c)
{
    snprintf(dst, cap, "channels=%d,taps=%d", q_conv_dim(c), c->conv_taps);
}

void shape_gdn_prep(char *dst, size_t cap, const struct q_config *c)
{
    snprintf(dst, cap, "k_heads=%d,v_heads=%d,dim=%d", c->n_k_heads, c->n_v_heads, c->state_dim);
}

void shape_gdn(char *dst, size_t cap, const struct q_config *c)
{
    snprintf(dst, cap, "k_heads=%d,v_heads=%d,dim=%d,group=%s", c->n_k_heads, c->n_v_heads, c->state_dim, c->v_grouped ? "grouped" : "tiled");
}

void shape_gdn_conv_prep(char *dst, size_t cap, const struct q_config *c)
{
    snprintf(dst, cap, "k_heads=%d,v_heads=%d,dim=%d,taps=%d", c->n_k_heads, c->n_v_heads, c->state_dim, c->conv_taps);
}

void shape_gdn_step_norm(char *dst, size_t cap, const struct q_config *c, unsigned out)
{
    shape_gdn(dst, cap, c);
    size_t n = strlen(dst);
    snprintf(dst + n, cap - n, ",out=%s", out_name(out));
}

void shape_gated_norm(char *dst, size_t cap, const struct q_config *c, unsigned out)
{
    snprintf(dst, cap, "heads=%d,dim=%d,out=%s", c->n_v_heads, c->state_dim, out_name(out));
}

void shape_swiglu(char *dst, size_t cap, long n, unsigned out) { snprintf(dst, cap, "n=%ld,out=%s", n, out_name(out)); }

void shape_topk(char *dst, size_t cap, long vocab) { snprintf(dst, cap, "n=%ld,k=%d", vocab, Q_TOPK); }

void shape_sample(char *dst, size_t cap, long vocab) { snprintf(dst, cap, "n=%ld", vocab); }
