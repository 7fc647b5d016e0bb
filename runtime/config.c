/* From GGUF keys to a shape. The dialects of the family's files end here:
 *   block_count counts the next-n blocks; a per-layer key is one number or an array with or without them;
 *   which layers are full attention is told by recurrent_layers, or full_attention_interval, or zeros among the KV heads.
 */
#include "config_read.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_HEADS = 4096, MAX_WIDTH = 1 << 20, MAX_CONTEXT = 1 << 30 };

/* --- keys under the architecture's prefix --- */

struct config_key config_key(const struct q_config *c, const char *suffix)
{
    struct config_key k;
    snprintf(k.s, sizeof k.s, "%s.%s", c->arch, suffix);
    return k;
}

int config_int(const struct q_config *c, const struct gguf *g, const char *suffix, int min, int max, int missing,
               int *out, struct q_err *e)
{
    int64_t v = missing;
    int rc = gguf_get_int(g, config_key(c, suffix).s, min, max, &v, e);
    if (rc == Q_EMISS && missing >= min) rc = Q_OK;
    if (!rc) *out = (int)v;
    return rc;
}

int config_float(const struct q_config *c, const struct gguf *g, const char *suffix, double missing, float *out,
                 struct q_err *e)
{
    double v = missing;
    struct config_key key = config_key(c, suffix);
    int rc = gguf_get_float(g, key.s, &v, e);
    if (rc == Q_EMISS && missing > 0) rc = Q_OK;
    if (rc) return rc;
    *out = (float)v;
    if (!(*out > 0) || isinf(*out))
        return q_fail(e, Q_EINPUT, "%s: key '%s': expected a number above 0, found %g", gguf_path(g), key.s, v);
    return Q_OK;
}

/* A per-layer key into v[n_layers]: one number for all, or an array of n_layers, or of n_layers + n_nextn, entries. */
static int read_layers(const struct q_config *c, const struct gguf *g, const char *suffix, int max, int missing, int *v,
                       struct q_err *e)
{
    struct config_key key = config_key(c, suffix);
    const struct gguf_kv *kv = gguf_find(g, key.s);
    int one = 0, rc;
    if (!kv || kv->type != GGUF_ARRAY) {
        if (kv && kv->type == GGUF_BOOL)
            one = kv->data[0];
        else if ((rc = config_int(c, g, suffix, 0, max, missing, &one, e)))
            return rc;
        for (int i = 0; i < c->n_layers; i++) v[i] = one;
        return Q_OK;
    }
    if ((rc = gguf_get_array(g, key.s, -1, &kv, e))) return rc;
    if (kv->count != (uint64_t)c->n_layers && kv->count != (uint64_t)(c->n_layers + c->n_nextn))
        return q_fail(e, Q_EINPUT, "%s: key '%s': expected %d entries (one a layer), found %llu", gguf_path(g), key.s,
                      c->n_layers, (unsigned long long)kv->count);
    for (int i = 0; i < c->n_layers; i++) {
        int64_t x = gguf_array_int(kv, (uint64_t)i);
        if (x < 0 || x > max)
            return q_fail(e, Q_EINPUT, "%s: key '%s', entry %d: expected 0 to %d, found %lld", gguf_path(g), key.s, i, max,
                          (long long)x);
        v[i] = (int)x;
    }
    return Q_OK;
}

/* The one value that v has at all layers of a kind (any kind: -1); layers that differ are not supported. */
static int one_value(const struct q_config *c, const struct gguf *g, const char *suffix, const int *v, int kind, int *out,
                     struct q_err *e)
{
    int found = -1;
    for (int i = 0; i < c->n_layers; i++) {
        if (kind >= 0 && c->kind[i] != kind) continue;
        if (v[i] == 0)
            return q_fail(e, Q_EINPUT, "%s: key '%s' is 0 at layer %d, which needs it%s", gguf_path(g),
                          config_key(c, suffix).s, i, kind == Q_LAYER_ATTN ? " (full attention)" : "");
        if (found >= 0 && v[i] != found)
            return q_fail(e, Q_EUNSUP, "%s: key '%s': %d at layer %d but %d before; this version needs one value",
                          gguf_path(g), config_key(c, suffix).s, v[i], i, found);
        found = v[i];
    }
    if (found >= 0) *out = found;
    return Q_OK;
}

/* --- the parts --- */

static int read_arch(struct q_config *c, const struct gguf *g, struct q_err *e)
{
    struct gguf_str arch, type;
    int rc = gguf_get_str(g, "general.architecture", &arch, e);
    if (rc) return rc;
    gguf_str_copy(c->arch, sizeof c->arch, arch);
    if (gguf_str_eq(arch, "clip"))
        return q_fail(e, Q_EUNSUP, "%s: a vision projector (architecture 'clip'), not a language model", gguf_path(g));
    if (gguf_str_eq(arch, "qwen35moe") || gguf_str_eq(arch, "qwen3next"))
        return q_fail(e, Q_EUNSUP, "%s: architecture '%s' is not supported yet; this version runs qwen35 (dense)",
                      gguf_path(g), c->arch);
    if (!gguf_str_eq(arch, "qwen35"))
        return q_fail(e, Q_EUNSUP, "%s: architecture '%s' is not supported; this version runs qwen35 (dense)",
                      gguf_path(g), c->arch);
    rc = gguf_get_str(g, "general.type", &type, e);
    if (!rc && !gguf_str_eq(type, "model")) {
        char shown[64];
        return q_fail(e, Q_EUNSUP, "%s: key 'general.type': expected 'model', found '%s'", gguf_path(g),
                      gguf_str_copy(shown, sizeof shown, type));
    }
    return rc == Q_EMISS ? Q_OK : rc;
}

static int read_name(struct q_config *c, const struct gguf *g, struct q_err *e)
{
    struct gguf_str name;
    int rc = gguf_get_str(g, "general.name", &name, e);
    if (!rc) gguf_str_copy(c->name, sizeof c->name, name);
    return rc == Q_EMISS ? Q_OK : rc;
}

static int read_sizes(struct q_config *c, const struct gguf *g, struct q_err *e)
{
    int blocks = 0, rc = config_int(c, g, "block_count", 1, 2 * Q_MAX_LAYERS, -1, &blocks, e);
    if (!rc) rc = config_int(c, g, "nextn_predict_layers", 0, Q_MAX_LAYERS, 0, &c->n_nextn, e);
    if (rc) return rc;
    if (c->n_nextn >= blocks || blocks - c->n_nextn > Q_MAX_LAYERS)
        return q_fail(e, Q_EINPUT, "%s: key '%s': %d of %d blocks leave no legal trunk (1 to %d layers)", gguf_path(g),
                      config_key(c, "nextn_predict_layers").s, c->n_nextn, blocks, Q_MAX_LAYERS);
    c->n_layers = blocks - c->n_nextn;
    rc = config_int(c, g, "context_length", 1, MAX_CONTEXT, -1, &c->n_ctx_train, e);
    if (!rc) rc = config_int(c, g, "embedding_length", 1, MAX_WIDTH, -1, &c->n_embd, e);
    if (!rc) rc = config_float(c, g, "attention.layer_norm_rms_epsilon", 0, &c->rms_eps, e);
    return rc;
}

static int has_zeros(const int *v, int n)
{
    for (int i = 0; i < n; i++)
        if (!v[i]) return 1;
    return 0;
}

/* Which layers are full attention. `kv_heads` as read: its zeros decide only where nothing else does. */
static int read_kinds(struct q_config *c, const struct gguf *g, const int *kv_heads, struct q_err *e)
{
    int recurrent[Q_MAX_LAYERS], every = 4, rc;
    if (gguf_find(g, config_key(c, "attention.recurrent_layers").s)) {
        if ((rc = read_layers(c, g, "attention.recurrent_layers", 1, -1, recurrent, e))) return rc;
        for (int i = 0; i < c->n_layers; i++) c->kind[i] = recurrent[i] ? Q_LAYER_GDN : Q_LAYER_ATTN;
        return Q_OK;
    }
    int given = gguf_find(g, config_key(c, "full_attention_interval").s) != NULL;
    if ((rc = config_int(c, g, "full_attention_interval", 1, MAX_WIDTH, 4, &every, e))) return rc;
    for (int i = 0; i < c->n_layers; i++) {
        int attention = !given && has_zeros(kv_heads, c->n_layers) ? kv_heads[i] > 0 : (i + 1) % every == 0;
        c->kind[i] = attention ? Q_LAYER_ATTN : Q_LAYER_GDN;
    }
    return Q_OK;
}

static int read_attention(struct q_config *c, const struct gguf *g, struct q_err *e)
{
    int heads[Q_MAX_LAYERS], kv_heads[Q_MAX_LAYERS], v_dim = 0;
    int rc = read_layers(c, g, "attention.head_count", MAX_HEADS, -1, heads, e);
    if (rc) return rc;
    if (gguf_find(g, config_key(c, "attention.head_count_kv").s))
        rc = read_layers(c, g, "attention.head_count_kv", MAX_HEADS, -1, kv_heads, e);
    else
        memcpy(kv_heads, heads, sizeof kv_heads);
    if (!rc) rc = read_kinds(c, g, kv_heads, e);
    c->n_head = c->n_head_kv = 1;   /* what a model without an attention layer is left with */
    if (!rc) rc = one_value(c, g, "attention.head_count", heads, Q_LAYER_ATTN, &c->n_head, e);
    if (!rc) rc = one_value(c, g, "attention.head_count_kv", kv_heads, Q_LAYER_ATTN, &c->n_head_kv, e);
    if (!rc) rc = config_int(c, g, "attention.key_length", 2, 1024, c->n_embd / c->n_head, &c->head_dim, e);
    if (!rc) rc = config_int(c, g, "attention.value_length", 2, 1024, c->head_dim, &v_dim, e);
    if (!rc && v_dim != c->head_dim)
        rc = q_fail(e, Q_EUNSUP, "%s: key '%s': expected %d, as the keys have, found %d", gguf_path(g),
                    config_key(c, "attention.value_length").s, c->head_dim, v_dim);
    return rc;
}

/* A model whose layers are all attention may leave the delta net's keys out; its fields then hold legal sizes. */
static int read_delta_net(struct q_config *c, const struct gguf *g, struct q_err *e)
{
    int optional = !q_count_layers(c, Q_LAYER_GDN), inner = 0, reordered = 1;
    int rc = config_int(c, g, "ssm.conv_kernel", 1, 64, optional ? 4 : -1, &c->conv_taps, e);
    if (!rc) rc = config_int(c, g, "ssm.state_size", 1, 4096, optional ? 8 : -1, &c->state_dim, e);
    if (!rc) rc = config_int(c, g, "ssm.group_count", 1, MAX_HEADS, optional ? 1 : -1, &c->n_k_heads, e);
    if (!rc) rc = config_int(c, g, "ssm.time_step_rank", 1, MAX_HEADS, optional ? 1 : -1, &c->n_v_heads, e);
    if (!rc) rc = config_int(c, g, "ssm.inner_size", 1, 1 << 24, optional ? q_v_dim(c) : -1, &inner, e);
    if (rc) return rc;
    if (inner != q_v_dim(c))
        return q_fail(e, Q_EINPUT, "%s: key '%s': expected time_step_rank x state_size = %d, found %d", gguf_path(g),
                      config_key(c, "ssm.inner_size").s, q_v_dim(c), inner);
    rc = gguf_get_bool(g, config_key(c, "ssm.v_head_reordered").s, &reordered, e);
    c->v_grouped = !reordered;
    return rc == Q_EMISS ? Q_OK : rc;
}

static int read_ff(struct q_config *c, const struct gguf *g, struct q_err *e)
{
    int ff[Q_MAX_LAYERS], experts = 0;
    int rc = config_int(c, g, "expert_count", 0, 1 << 20, 0, &experts, e);
    if (rc) return rc;
    if (experts)
        return q_fail(e, Q_EUNSUP, "%s: key '%s' is %d: mixtures of experts are not supported yet", gguf_path(g),
                      config_key(c, "expert_count").s, experts);
    rc = read_layers(c, g, "feed_forward_length", 1 << 22, -1, ff, e);
    return rc ? rc : one_value(c, g, "feed_forward_length", ff, -1, &c->n_ff, e);
}

int config_read(struct q_config *c, const struct gguf *g, struct q_notes *notes, struct q_err *e)
{
    memset(c, 0, sizeof *c);
    int rc = read_arch(c, g, e);
    if (!rc) rc = read_name(c, g, e);
    if (!rc) rc = read_sizes(c, g, e);
    if (!rc) rc = read_attention(c, g, e);
    if (!rc) rc = config_read_rope(c, g, notes, e);
    if (!rc) rc = read_delta_net(c, g, e);
    if (!rc) rc = read_ff(c, g, e);
    if (!rc) rc = config_read_vocab(c, g, notes, e);
    if (rc) return rc;
    c->tied = !gguf_tensor_find(g, "output.weight");
    if (c->v_grouped) q_note(notes, "ssm.v_head_reordered is false: value heads are grouped (h / r), not tiled");
    return config_check(c, gguf_path(g), e);
}

int config_from_gguf(struct q_config *c, const struct gguf *g, struct q_err *e) { return config_read(c, g, NULL, e); }

/* --- invariants --- */

static int out_of_range(const struct q_config *c, const char *where, struct q_err *e)
{
    const struct {
        const char *what;
        int v, min, max;
    } rows[] = {
        { "n_layers", c->n_layers, 1, Q_MAX_LAYERS }, { "n_nextn", c->n_nextn, 0, Q_MAX_LAYERS },
        { "n_embd", c->n_embd, 1, MAX_WIDTH }, { "n_ff", c->n_ff, 1, 1 << 22 }, { "n_vocab", c->n_vocab, 1, 1 << 24 },
        { "n_ctx_train", c->n_ctx_train, 1, MAX_CONTEXT },
        { "n_head", c->n_head, 1, MAX_HEADS }, { "n_head_kv", c->n_head_kv, 1, MAX_HEADS },
        { "head_dim", c->head_dim, 2, 512 }, { "rope_dims", c->rope_dims, 2, 512 },
        { "conv_taps", c->conv_taps, 1, 16 }, { "state_dim", c->state_dim, 8, 256 },
        { "n_k_heads", c->n_k_heads, 1, MAX_HEADS }, { "n_v_heads", c->n_v_heads, 1, MAX_HEADS },
        { "v_grouped", c->v_grouped, 0, 1 }, { "tied", c->tied, 0, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].v < rows[i].min || rows[i].v > rows[i].max)
            return q_fail(e, Q_EUNSUP, "%s: %s is %d; this version runs %d to %d", where, rows[i].what, rows[i].v,
                          rows[i].min, rows[i].max);
    return Q_OK;
}

static int check_rope(const struct q_config *c, const char *where, struct q_err *e)
{
    const int *s = c->rope_sections;
    if (c->head_dim % 2 || c->rope_dims % 2 || c->rope_dims > c->head_dim)
        return q_fail(e, Q_EINPUT, "%s: rope turns %d of %d dimensions of a head; expected even numbers, at most all",
                      where, c->rope_dims, c->head_dim);
    for (int i = 0; i < 4; i++)
        if (s[i] < 0 || s[i] > c->rope_dims)
            return q_fail(e, Q_EINPUT, "%s: rope section %d is %d", where, i, s[i]);
    if (s[0] + s[1] + s[2] + s[3] > c->rope_dims / 2)
        return q_fail(e, Q_EINPUT, "%s: rope sections %d + %d + %d + %d exceed the %d pairs of rope dimension count %d",
                      where, s[0], s[1], s[2], s[3], c->rope_dims / 2, c->rope_dims);
    return Q_OK;
}

static int check_floats(const struct q_config *c, const char *where, struct q_err *e)
{
    const struct {
        const char *what;
        float v;
    } rows[] = { { "rms_eps", c->rms_eps }, { "attn_scale", c->attn_scale }, { "rope_base", c->rope_base } };
    for (int i = 0; i < 3; i++)
        if (!(rows[i].v > 0) || isinf(rows[i].v))
            return q_fail(e, Q_EINPUT, "%s: %s is %g; expected a finite number above 0", where, rows[i].what, rows[i].v);
    return c->rms_eps < 1 ? Q_OK : q_fail(e, Q_EINPUT, "%s: rms_eps is %g; expected less than 1", where, c->rms_eps);
}

int config_check(const struct q_config *c, const char *where, struct q_err *e)
{
    int rc = out_of_range(c, where, e);
    if (!rc) rc = check_rope(c, where, e);
    if (!rc) rc = check_floats(c, where, e);
    if (rc) return rc;
    if (c->n_head % c->n_head_kv)
        return q_fail(e, Q_EINPUT, "%s: %d attention heads are not a multiple of %d KV heads", where, c->n_head,
                      c->n_head_kv);
    if (c->n_v_heads % c->n_k_heads)
        return q_fail(e, Q_EINPUT, "%s: %d value heads (ssm.time_step_rank) are not a multiple of %d key heads "
                      "(ssm.group_count)", where, c->n_v_heads, c->n_k_heads);
    if (c->state_dim % 8)
        return q_fail(e, Q_EUNSUP, "%s: state_dim is %d; this version runs multiples of 8", where, c->state_dim);
    for (int i = 0; i < c->n_layers; i++)
        if (c->kind[i] > Q_LAYER_ATTN) return q_fail(e, Q_EINPUT, "%s: layer %d is of unknown kind", where, i);
    return Q_OK;
}
