/* Rotary positions: how much of a head turns, by which base, and which pairs follow which of the three positions. */
#include "config_read.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Qwen3.5 has 32 pairs as 11 + 11 + 10. Files that leave the key out get that, or the same split of another count. */
static void default_sections(int pairs, int s[4])
{
    for (int i = 0; i < 3; i++) s[i] = (pairs + 2 - i) / 3;
    s[3] = 0;
}

static int read_sections(struct q_config *c, const struct gguf *g, struct q_notes *notes, struct q_err *e)
{
    struct config_key key = config_key(c, "rope.dimension_sections");
    const struct gguf_kv *kv;
    int rc = gguf_get_array(g, key.s, -1, &kv, e);
    if (rc == Q_EMISS) {
        default_sections(c->rope_dims / 2, c->rope_sections);
        q_note(notes, "%s is missing: %d, %d, %d assumed", key.s, c->rope_sections[0], c->rope_sections[1],
               c->rope_sections[2]);
        return Q_OK;
    }
    if (rc) return rc;
    if (kv->count < 3 || kv->count > 4)
        return q_fail(e, Q_EINPUT, "%s: key '%s': expected 4 entries (or 3), found %llu", gguf_path(g), key.s,
                      (unsigned long long)kv->count);
    for (uint64_t i = 0; i < kv->count; i++) {
        int64_t v = gguf_array_int(kv, i);
        if (v < 0 || v > 1024)
            return q_fail(e, Q_EINPUT, "%s: key '%s', entry %d: expected 0 to 1024, found %lld", gguf_path(g), key.s, (int)i,
                          (long long)v);
        c->rope_sections[i] = (int)v;
    }
    if (kv->count == 3) q_note(notes, "%s has 3 entries: the fourth is taken as 0", key.s);
    return Q_OK;
}

/* The family turns a quarter of a head. Files without the key are of the family, so that is what is assumed. */
static int read_dims(struct q_config *c, const struct gguf *g, struct q_notes *notes, struct q_err *e)
{
    int missing = c->head_dim / 4 > 1 ? c->head_dim / 8 * 2 : 2;
    if (missing < 2) missing = 2;
    struct config_key key = config_key(c, "rope.dimension_count");
    if (!gguf_find(g, key.s)) q_note(notes, "%s is missing: %d of %d assumed", key.s, missing, c->head_dim);
    return config_int(c, g, "rope.dimension_count", 2, 1024, missing, &c->rope_dims, e);
}

/* A key under rope.scaling. */
static int read_scale(const struct q_config *c, const struct gguf *g, const char *suffix, double missing, float *out, struct q_err *e)
{
    char key[64];
    snprintf(key, sizeof key, "rope.scaling.%s", suffix);
    return config_float(c, g, key, missing, out, e);
}

/* Positions stretched in another way than is known here would change every angle. */
static int refuse_others(const struct q_config *c, const struct gguf *g, struct q_err *e)
{
    static const struct { const char *suffix; float neutral; } others[] = {{"yarn_ext_factor", 1}, {"yarn_log_multiplier", 0}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char suffix[64];
        double v;
        snprintf(suffix, sizeof suffix, "rope.scaling.%s", others[i].suffix);
        struct config_key key = config_key(c, suffix);
        int rc = gguf_get_float(g, key.s, &v, e);
        if (rc == Q_EMISS) continue;
        if (rc) return rc;
        if ((float)v < others[i].neutral || (float)v > others[i].neutral)
            return q_fail(e, Q_EUNSUP, "%s: key '%s' is %g: this version has YaRN with %g alone", gguf_path(g), key.s, v, (double)others[i].neutral);
    }
    return Q_OK;
}

/* What cos and sin are multiplied by, so scores by its square: published files have about 0.5 to 2, and K in fp16 ends at 65504. */
static int read_attention(struct q_config *c, const struct gguf *g, struct q_err *e)
{
    const float least = 0.01f, most = 100;
    float *f = &c->yarn.attention, more = 1;
    int rc = read_scale(c, g, "attn_factor", 1, f, e);
    if (!rc && (*f < least || *f > most))
        return q_fail(e, Q_EINPUT, "%s: key '%s' is %g: expected 0.01 to 100", gguf_path(g), config_key(c, "rope.scaling.attn_factor").s, (double)*f);
    if (!rc) rc = read_scale(c, g, "yarn_attn_factor", 1, &more, e);
    if (rc) return rc;
    double both = (double)*f * (double)more;
    if (both < (double)least || both > (double)most)
        return q_fail(e, Q_EINPUT, "%s: key '%s' is %g, times attn_factor %g: expected 0.01 to 100", gguf_path(g),
                      config_key(c, "rope.scaling.yarn_attn_factor").s, (double)more, both);
    *f = (float)both;
    return Q_OK;
}

static int read_yarn(struct q_config *c, const struct gguf *g, struct q_err *e)
{
    struct q_yarn *y = &c->yarn;
    int rc = refuse_others(c, g, e);
    if (!rc) rc = read_scale(c, g, "factor", 0, &y->factor, e);
    if (!rc) rc = config_int(c, g, "rope.scaling.original_context_length", 1, 1 << 30, c->n_ctx_train, &y->original, e);
    if (!rc) rc = read_scale(c, g, "yarn_beta_fast", 32, &y->beta_fast, e);
    if (!rc) rc = read_scale(c, g, "yarn_beta_slow", 1, &y->beta_slow, e);
    if (!rc) rc = read_attention(c, g, e);
    if (rc) return rc;
    if (y->factor < 1 || y->factor > 10000)
        return q_fail(e, Q_EINPUT, "%s: key '%s' is %g: expected 1 to 10000", gguf_path(g), config_key(c, "rope.scaling.factor").s,
                      (double)y->factor);
    if (y->beta_fast <= y->beta_slow)
        return q_fail(e, Q_EINPUT, "%s: key '%s' is %g: expected more than yarn_beta_slow, %g", gguf_path(g),
                      config_key(c, "rope.scaling.yarn_beta_fast").s, (double)y->beta_fast, (double)y->beta_slow);
    if (y->factor <= 1) *y = (struct q_yarn){0};
    return Q_OK;
}

/* A file that asks for scaled positions does not run without, unless the caller says so (rope.h). */
static int read_scaling(struct q_config *c, const struct gguf *g, struct q_err *e)
{
    struct config_key key = config_key(c, "rope.scaling.type");
    struct gguf_str type;
    int rc = gguf_get_str(g, key.s, &type, e);
    if (!rc && gguf_str_eq(type, "yarn")) return read_yarn(c, g, e);
    if (!rc && !gguf_str_eq(type, "none")) {
        char shown[40];
        return q_fail(e, Q_EUNSUP, "%s: key '%s' is '%s': expected yarn or none", gguf_path(g), key.s, gguf_str_copy(shown, sizeof shown, type));
    }
    if (rc && rc != Q_EMISS) return rc;
    float factor = 1;
    key = config_key(c, "rope.scaling.factor");
    if (rc == Q_EMISS && gguf_find(g, key.s) && (rc = config_float(c, g, "rope.scaling.factor", 1, &factor, e))) return rc;
    if (factor == 1) return Q_OK;
    return q_fail(e, Q_EUNSUP, "%s: key '%s' is %g without a type: this version scales by YaRN alone", gguf_path(g), key.s, (double)factor);
}

int config_read_rope(struct q_config *c, const struct gguf *g, struct q_notes *notes, struct q_err *e)
{
    int rc = read_scaling(c, g, e), interleaved = 1;
    if (!rc) rc = read_dims(c, g, notes, e);
    if (!rc) rc = read_sections(c, g, notes, e);
    struct config_key base = config_key(c, "rope.freq_base");
    if (!gguf_find(g, base.s)) q_note(notes, "%s is missing: 10000 assumed", base.s);
    if (!rc) rc = config_float(c, g, "rope.freq_base", 10000, &c->rope_base, e);
    if (!rc) rc = config_float(c, g, "attention.scale", 1 / sqrt(c->head_dim), &c->attn_scale, e);
    if (rc) return rc;
    if (c->attn_scale > 1000)      /* scores stay finite by far */
        return q_fail(e, Q_EINPUT, "%s: key '%s' is %g: expected above 0 and at most 1000", gguf_path(g), config_key(c, "attention.scale").s,
                      (double)c->attn_scale);
    rc = gguf_get_bool(g, config_key(c, "rope.mrope_interleaved").s, &interleaved, e);
    if (!rc && !interleaved) q_note(notes, "rope.mrope_interleaved is false: sections are used interleaved all the same "
                                           "(no difference for text)");
    return rc == Q_EMISS ? Q_OK : rc;
}
