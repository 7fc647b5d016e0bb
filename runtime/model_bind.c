/* From a file's tensors to a model's parts: each is found by name and held against the dimensions and types that its
 * place asks for, once, so that inference can trust them. Dialects of names end here: `ssm_dt` for `ssm_dt.bias`, and
 * an attention layer's q, k and v fused as `attn_qkv`. What is left over is sorted into: next-n blocks and riders from
 * other programs (a notice), unknown names (a notice), and tensors that would change the results (refused). */
#define _GNU_SOURCE
#include "model_parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct binder {
    struct q_model *m;
    const struct gguf *g;
    const struct gguf_tensor **used;   /* owned [n_used] */
    int n_used, n_wanted;
    int reported_a;
    struct q_notes *notes;
    struct q_err *e;
};

/* --- one tensor --- */

static int wrong_dims(struct binder *b, const char *name, const struct gguf_tensor *t, int64_t n, int64_t k)
{
    return q_fail(b->e, Q_EINPUT, "%s: tensor '%s': expected dimensions [%lld, %lld], found [%lld, %lld%s]",
                  gguf_shard_path(b->g, t->shard), name, (long long)k, (long long)n, (long long)t->ne[0],
                  (long long)t->ne[1], t->ne[2] * t->ne[3] != 1 ? ", ..." : "");
}

static int check_type(struct binder *b, const char *name, const struct gguf_tensor *t, int role)
{
    const char *path = gguf_shard_path(b->g, t->shard);
    if (role != ROLE_MATRIX && t->type != Q_TYPE_F32)
        return q_fail(b->e, Q_EUNSUP, "%s: tensor '%s' is %s; expected F32", path, name, q_type_name(t->type));
    if (!q_format_find(t->type))
        return q_fail(b->e, Q_EUNSUP, "%s: tensor '%s' is %s; this version runs F32, F16, BF16, Q8_0", path, name,
                      q_type_name(t->type));
    if ((uintptr_t)t->data % (t->type == Q_TYPE_F32 ? 4 : 2))
        return q_fail(b->e, Q_EUNSUP, "%s: tensor '%s' lies at an odd address; general.alignment is %llu, expected at "
                      "least 4", path, name, (unsigned long long)gguf_alignment(b->g, t->shard));
    return Q_OK;
}

/* The small F32 tensors are read whole: a NaN in a norm would spread over everything. (Matrices: model_check.) */
static int check_values(struct binder *b, const char *name, const struct gguf_tensor *t, int role)
{
    const float *v = (const float *)t->data;
    int64_t n = t->ne[0] * t->ne[1];
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            return q_fail(b->e, Q_EINPUT, "%s: tensor '%s', element %lld: expected a finite number, found %g",
                          gguf_shard_path(b->g, t->shard), name, (long long)i, v[i]);
        if (role == ROLE_A && v[i] > 0 && !b->reported_a) {
            q_note(b->notes, "tensor '%s' has a value above 0 (%g): states would grow; -exp(A_log) is expected", name, v[i]);
            b->reported_a = 1;
        }
    }
    return Q_OK;
}

static int use(struct binder *b, const struct gguf_tensor *t)
{
    if (b->n_used == b->n_wanted) {
        int more = b->n_wanted ? 2 * b->n_wanted : 256;
        const struct gguf_tensor **p = realloc(b->used, (size_t)more * sizeof *p);
        if (!p) return q_fail(b->e, Q_EMEM, "%s: out of memory", b->m->path);
        b->used = p;
        b->n_wanted = more;
    }
    b->used[b->n_used++] = t;
    b->m->weight_bytes += t->bytes;
    return Q_OK;
}

static int take(struct binder *b, const char *name, const struct gguf_tensor *t, int64_t n, int64_t k, int role)
{
    if (t->ne[0] != k || t->ne[1] != n || t->ne[2] != 1 || t->ne[3] != 1) return wrong_dims(b, name, t, n, k);
    int rc = check_type(b, name, t, role);
    if (!rc && role != ROLE_MATRIX) rc = check_values(b, name, t, role);
    return rc ? rc : use(b, t);
}

/* Rows [row, row + n) of t as a weight of its own. */
static void view(struct q_tensor *w, const char *name, const struct gguf_tensor *t, int64_t row, int64_t n)
{
    snprintf(w->name, sizeof w->name, "%s", name);
    w->format = q_format_find(t->type);
    w->n = n;
    w->k = t->ne[0];
    w->bytes = (size_t)(n * q_row_bytes(w->format, w->k));
    w->data = t->data + row * q_row_bytes(w->format, w->k);
}

/* --- one part --- */

static int missing(struct binder *b, const char *name, int layer)
{
    if (layer < 0) return q_fail(b->e, Q_EMISS, "%s: tensor '%s' is missing", b->m->path, name);
    return q_fail(b->e, Q_EMISS, "%s: tensor '%s' is missing (layer %d is %s by the file's keys)", b->m->path, name, layer,
                  b->m->config.kind[layer] == Q_LAYER_ATTN ? "full attention" : "a delta net");
}

/* Fused q, k, v of an attention layer: rows of q and its gates, then k, then v. Fills all three when it meets the first. */
static int bind_fused(struct binder *b, int layer, const char *wanted)
{
    const struct q_config *c = &b->m->config;
    char name[64];
    q_part_name(name, layer, "attn_qkv.weight");
    const struct gguf_tensor *t = gguf_tensor_find(b->g, name);
    char delta[64];
    q_part_name(delta, layer, "ssm_a");   /* a delta net has an attn_qkv too: then the keys are wrong about this layer */
    if (!t || gguf_tensor_find(b->g, delta)) return missing(b, wanted, layer);
    struct q_layer *l = b->m->layers + layer;
    int64_t q = q_dim_of(c, D_QG), kv = q_dim_of(c, D_KV);
    int rc = take(b, name, t, q_dim_of(c, D_QKV), c->n_embd, ROLE_MATRIX);
    if (rc) return rc;
    view(&l->wq, name, t, 0, q);
    view(&l->wk, name, t, q, kv);
    view(&l->wv, name, t, q + kv, kv);
    return Q_OK;
}

static int bind_part(void *user, const struct q_part *p, int layer, struct q_tensor *w)
{
    struct binder *b = user;
    if (w->data) return Q_OK;   /* came with a fused one */
    char name[64];
    q_part_name(name, layer, p->name);
    const struct gguf_tensor *t = gguf_tensor_find(b->g, name);
    if (!t && p->alias) {
        char alias[64];
        q_part_name(alias, layer, p->alias);
        if ((t = gguf_tensor_find(b->g, alias))) strcpy(name, alias);
    }
    if (!t) return p->at == offsetof(struct q_layer, wq) && layer >= 0 ? bind_fused(b, layer, name) : missing(b, name, layer);
    int64_t n = q_dim_of(&b->m->config, p->n);
    int rc = take(b, name, t, n, q_dim_of(&b->m->config, p->k), p->role);
    if (!rc) view(w, name, t, 0, n);
    return rc;
}

/* --- what is left over --- */

struct extras {
    int nextn, vision, mtp, other;
    size_t nextn_bytes, bytes;
    char first[64];
};

static int begins(struct gguf_str s, const char *with) { return s.n >= strlen(with) && !memcmp(s.s, with, strlen(with)); }

static int ends(struct gguf_str s, const char *with)
{
    size_t n = strlen(with);
    return s.n >= n && !memcmp(s.s + s.n - n, with, n);
}

/* N of a name that begins with "blk.N.", else -1. */
static int block_of(struct gguf_str s)
{
    int n = 0;
    size_t i = 4;
    if (!begins(s, "blk.")) return -1;
    for (; i < s.n && i < 12 && s.s[i] >= '0' && s.s[i] <= '9'; i++) n = n * 10 + (s.s[i] - '0');
    return i > 4 && i < s.n && s.s[i] == '.' ? n : -1;
}

/* Some files hold the next-n block without counting it: then it is known by its own tensors. */
static int is_nextn_block(const struct binder *b, int block)
{
    const struct q_config *c = &b->m->config;
    if (block < c->n_layers) return 0;
    if (block < c->n_layers + c->n_nextn) return 1;
    char name[64];
    snprintf(name, sizeof name, "blk.%d.nextn.eh_proj.weight", block);
    return gguf_tensor_find(b->g, name) != NULL;
}

/* Names that the forward pass would have to heed: left out, they would make wrong answers, not slow ones. */
static int changes_results(struct gguf_str s)
{
    return ends(s, ".scale") || ends(s, ".bias") || begins(s, "rope_freqs") || begins(s, "rope_factors");
}

static int sort_extra(struct binder *b, const struct gguf_tensor *t, struct extras *x)
{
    char shown[100];
    int block = block_of(t->name);
    if (block >= 0 && is_nextn_block(b, block)) {
        x->nextn++;
        x->nextn_bytes += t->bytes;
        return Q_OK;
    }
    if (block >= b->m->config.n_layers)
        return q_fail(b->e, Q_EINPUT, "%s: tensor '%s' is of block %d, but the file's keys say %d layers", b->m->path,
                      gguf_str_copy(shown, sizeof shown, t->name), block, b->m->config.n_layers);
    x->bytes += t->bytes;
    if (begins(t->name, "v.") || begins(t->name, "mm.")) return x->vision++, Q_OK;
    if (begins(t->name, "mtp.")) return x->mtp++, Q_OK;
    if (changes_results(t->name))
        return q_fail(b->e, Q_EUNSUP, "%s: tensor '%s' would change the results and is not supported by this version",
                      b->m->path, gguf_str_copy(shown, sizeof shown, t->name));
    if (!x->other++) gguf_str_copy(x->first, sizeof x->first, t->name);
    return Q_OK;
}

static void note_extras(struct binder *b, const struct extras *x)
{
    const struct q_config *c = &b->m->config;
    if (x->nextn)
        q_note(b->notes, "next-n (MTP) block present and not used: %d tensors, %.1f MB", x->nextn, (double)x->nextn_bytes / 1e6);
    else if (c->n_nextn)
        q_note(b->notes, "the keys announce %d next-n (MTP) block%s, but no tensors of it are in the file", c->n_nextn,
               c->n_nextn > 1 ? "s" : "");
    int n = x->vision + x->mtp + x->other;
    if (!n) return;
    char what[200] = "";
    if (x->vision) snprintf(what, sizeof what, ", %d vision (v.*, mm.*)", x->vision);
    if (x->mtp) snprintf(what + strlen(what), sizeof what - strlen(what), ", %d mtp.*", x->mtp);
    if (x->other) snprintf(what + strlen(what), sizeof what - strlen(what), ", %d unknown (the first is '%s')", x->other, x->first);
    q_note(b->notes, "%d tensor%s not used and skipped (%.1f MB): %s", n, n > 1 ? "s are" : " is", (double)x->bytes / 1e6,
           what + 2);
}

static int cmp_pointer(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a, *y = *(const struct gguf_tensor *const *)b;
    return (x > y) - (x < y);
}

static int sort_extras(struct binder *b)
{
    struct extras x = { 0 };
    int rc = Q_OK;
    qsort(b->used, (size_t)b->n_used, sizeof *b->used, cmp_pointer);
    for (int i = 0; i < gguf_n_tensors(b->g) && !rc; i++) {
        const struct gguf_tensor *t = gguf_tensor(b->g, i);
        if (!bsearch(&t, b->used, (size_t)b->n_used, sizeof *b->used, cmp_pointer)) rc = sort_extra(b, t, &x);
    }
    if (!rc) note_extras(b, &x);
    return rc;
}

/* Files that are whole in themselves but no model: said plainly, not as a missing tensor. */
static int check_has_trunk(struct binder *b)
{
    int first = 0, n = gguf_n_tensors(b->g);
    if (!n) return q_fail(b->e, Q_EUNSUP, "%s: holds no tensors (a vocabulary-only file?)", b->m->path);
    for (int i = 0; i < n && !first; i++) first = block_of(gguf_tensor(b->g, i)->name) == 0;
    for (int i = 0; i < n && !first; i++) {
        struct gguf_str s = gguf_tensor(b->g, i)->name;
        if (block_of(s) > 0 && memmem(s.s, s.n, ".nextn.", 7))
            return q_fail(b->e, Q_EUNSUP, "%s: holds only the next-n (MTP) block, no layers of the model itself; it goes with "
                          "another file", b->m->path);
    }
    return first ? Q_OK : q_fail(b->e, Q_EINPUT, "%s: holds no layers (no tensor 'blk.0.*')", b->m->path);
}

int model_bind(struct q_model *m, struct q_notes *notes, struct q_err *e)
{
    struct binder b = { .m = m, .g = m->file, .notes = notes, .e = e };
    int rc = check_has_trunk(&b);
    if (!rc) rc = q_each_part(m, bind_part, &b);
    if (!rc) rc = sort_extras(&b);
    free(b.used);
    if (m->config.tied) m->head = m->embd;
    return rc;
}
