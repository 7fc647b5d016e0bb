/* Opening a tokenizer: a vocabulary is copied, checked once and indexed; all that follows trusts it. */
#include "tok_impl.h"
#include <stdlib.h>
#include <string.h>

/* ---- token texts ---- */

static const char *type_name(int type)
{
    static const char *const names[] = {"?", "normal", "unknown", "control", "user-defined", "unused", "byte"};
    return names[type >= TOK_NORMAL && type <= TOK_BYTE ? type : 0];
}

/* Byte-mapped text becomes its bytes. A text with a character that maps to no byte stands for itself, as in the reference,
 * and so do special and unused tokens. Special tokens are literal: a space in one is a space. */
static struct tok_str make_piece(const struct tokenizer *t, int32_t id, char *dst)
{
    struct tok_str s = t->text[id];
    int mapped = t->type[id] == TOK_NORMAL || t->type[id] == TOK_BYTE;
    ptrdiff_t k = mapped ? tok_unmap(s.at, s.n, dst) : -1;
    return k < 0 ? s : (struct tok_str){dst, (size_t)k};
}

static int check_text(const struct tok_source *src, size_t i, const char *where, struct q_err *e)
{
    struct tok_str s = src->tokens[i];
    size_t bad = utf8_check(s.at, s.n);
    if (bad < s.n)
        return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.tokens[%zu] is not UTF-8: byte 0x%02X at its offset %zu", where, i,
                      (unsigned char)s.at[bad], bad);
    int type = src->types ? src->types[i] : TOK_NORMAL;
    if (type < TOK_NORMAL || type > TOK_BYTE)
        return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.token_type[%zu] is %d, expected 1 to 6", where, i, type);
    return Q_OK;
}

static int allocate(struct tokenizer *t, const struct tok_source *src, const char *where, struct q_err *e)
{
    size_t n = src->n_tokens, bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += src->tokens[i].n;
    t->arena = malloc(2 * bytes + 1); /* the text, and its bytes, which are never more */
    t->text = calloc(n, sizeof *t->text);
    t->piece = calloc(n, sizeof *t->piece);
    t->type = calloc(n, 1);
    t->end = calloc(n, 1);
    if (t->arena && t->text && t->piece && t->type && t->end) return Q_OK;
    return q_fail(e, Q_EMEM, "%s: out of memory for a vocabulary of %zu tokens", where, n);
}

static int copy_tokens(struct tokenizer *t, const struct tok_source *src, const char *where, struct q_err *e)
{
    int rc = allocate(t, src, where, e);
    char *at = t->arena;
    for (size_t i = 0; !rc && i < src->n_tokens; i++) {
        struct tok_str s = src->tokens[i];
        rc = check_text(src, i, where, e);
        if (rc) break;
        t->type[i] = src->types ? (uint8_t)src->types[i] : TOK_NORMAL;
        if (s.n) memcpy(at, s.at, s.n);
        t->text[i] = (struct tok_str){at, s.n};
        at += s.n;
        t->piece[i] = make_piece(t, (int32_t)i, at);
        at += s.n;
        t->n = (int32_t)i + 1;
    }
    return rc;
}

/* ---- look-up by text ---- */

static uint32_t *map_slot(const struct tokenizer *t, const char *s, size_t n)
{
    uint32_t i = (uint32_t)tok_hash(s, n) & t->map.mask;
    for (;; i = (i + 1) & t->map.mask) {
        uint32_t id = t->map.slot[i];
        if (!id) return t->map.slot + i;
        struct tok_str have = t->text[id - 1];
        if (have.n == n && !memcmp(have.at, s, n)) return t->map.slot + i;
    }
}

/* A text twice would make its id a matter of chance. Only unused padding may repeat, or be empty: the first is found. */
static int add_to_map(struct tokenizer *t, int32_t id, const char *where, struct q_err *e)
{
    struct tok_str s = t->text[id];
    uint32_t *slot = map_slot(t, s.at, s.n);
    if (!*slot) return *slot = (uint32_t)id + 1, Q_OK;
    int32_t first = (int32_t)*slot - 1;
    if (t->type[id] == TOK_UNUSED) return Q_OK;
    if (t->type[first] == TOK_UNUSED) return *slot = (uint32_t)id + 1, Q_OK;
    return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.tokens: %d (%s) and %d (%s) have the same text '%.*s'", where, (int)first,
                  type_name(t->type[first]), (int)id, type_name(t->type[id]), (int)(s.n < 64 ? s.n : 64), s.at);
}

static int build_map(struct tokenizer *t, const char *where, struct q_err *e)
{
    size_t slots = 512;
    while (slots < (size_t)t->n * 2) slots *= 2;
    t->map.slot = calloc(slots, sizeof *t->map.slot);
    if (!t->map.slot) return q_fail(e, Q_EMEM, "%s: out of memory for a vocabulary of %d tokens", where, (int)t->n);
    t->map.mask = (uint32_t)(slots - 1);
    for (int32_t id = 0; id < t->n; id++) {
        int rc = add_to_map(t, id, where, e);
        if (rc) return rc;
    }
    return Q_OK;
}

int32_t tok_find(const struct tokenizer *t, const char *text, size_t n)
{
    return (int32_t)*map_slot(t, text, n) - 1;
}

static int find_bytes(struct tokenizer *t, const char *where, struct q_err *e)
{
    for (int b = 0; b < 256; b++) {
        char text[2];
        t->byte_id[b] = tok_find(t, text, tok_map_byte((unsigned char)b, text));
        if (t->byte_id[b] < 0)
            return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.tokens: no token for byte 0x%02X, expected all 256", where, b);
    }
    return Q_OK;
}

/* ---- merges ---- */

static int find_part(const struct tokenizer *t, size_t rank, const char *part, const char *s, size_t n, uint32_t *id,
                     const char *where, struct q_err *e)
{
    int32_t found = tok_find(t, s, n);
    if (found < 0)
        return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.merges[%zu]: its %s '%.*s' is not in the vocabulary", where, rank,
                      part, (int)(n < 64 ? n : 64), s);
    *id = (uint32_t)found;
    return Q_OK;
}

/* "left right": the first space after position 0 splits. `join` has room for the two without it. */
static int add_merge(struct tokenizer *t, size_t rank, struct tok_str m, char *join, const char *where, struct q_err *e)
{
    const char *space = m.n > 1 ? memchr(m.at + 1, ' ', m.n - 1) : NULL;
    if (!space || space + 1 == m.at + m.n)
        return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.merges[%zu]: expected 'left right', found '%.*s'", where, rank,
                      (int)(m.n < 64 ? m.n : 64), m.at);
    size_t left = (size_t)(space - m.at), right = m.n - left - 1;
    struct tok_merge x = {.rank = (uint32_t)rank};
    memcpy(join, m.at, left);
    memcpy(join + left, space + 1, right);
    int rc = find_part(t, rank, "left part", m.at, left, &x.left, where, e);
    if (!rc) rc = find_part(t, rank, "right part", space + 1, right, &x.right, where, e);
    if (!rc) rc = find_part(t, rank, "result", join, left + right, &x.id, where, e);
    if (rc) return rc;
    uint32_t earlier = tok_merges_add(&t->merges, x);
    if (earlier == TOK_NO_MERGE) return Q_OK;
    return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.merges[%zu] repeats [%u]", where, rank, earlier);
}

static int build_merges(struct tokenizer *t, const struct tok_source *src, const char *where, struct q_err *e)
{
    size_t longest = 0;
    for (size_t i = 0; i < src->n_merges; i++)
        if (src->merges[i].n > longest) longest = src->merges[i].n;
    char *join = malloc(longest + 1);
    int rc = join ? tok_merges_init(&t->merges, src->n_merges, e) : q_fail(e, Q_EMEM, "%s: out of memory", where);
    for (size_t i = 0; !rc && i < src->n_merges; i++) rc = add_merge(t, i, src->merges[i], join, where, e);
    free(join);
    return rc;
}

/* ---- opening ---- */

static int check_source(struct tokenizer *t, const struct tok_source *s, const char *where, struct q_err *e)
{
    enum { MOST = 1 << 28 };
    if (!s->model || strcmp(s->model, "gpt2"))
        return q_fail(e, Q_EUNSUP, "%s: tokenizer.ggml.model is '%s', expected 'gpt2'", where, s->model ? s->model : "not there");
    if (s->pre && !strcmp(s->pre, "qwen35")) t->rules = TOK_QWEN35;
    else if (s->pre && !strcmp(s->pre, "qwen2")) t->rules = TOK_QWEN2;
    else
        return q_fail(e, Q_EUNSUP, "%s: tokenizer.ggml.pre is '%s', expected 'qwen35' or 'qwen2'", where,
                      s->pre ? s->pre : "not there");
    if (s->n_tokens == 0 || s->n_tokens > MOST)
        return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.tokens has %zu entries, expected 1 to %d", where, s->n_tokens, MOST);
    if (s->types && s->n_types != s->n_tokens)
        return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.token_type has %zu entries, expected %zu as in tokens", where,
                      s->n_types, s->n_tokens);
    if (s->n_merges > MOST)
        return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.merges has %zu entries, expected at most %d", where, s->n_merges, MOST);
    return Q_OK;
}

static int take_id(int32_t *out, const struct tokenizer *t, int64_t id, const char *key, const char *where, struct q_err *e)
{
    if (id < -1 || id >= t->n)
        return q_fail(e, Q_EINPUT, "%s: tokenizer.ggml.%s is %lld, expected an id below %d", where, key, (long long)id,
                      (int)t->n);
    *out = (int32_t)id;
    return Q_OK;
}

static void mark_ends(struct tokenizer *t)
{
    static const char *const ends[] = {"<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int32_t id = tok_find(t, ends[i], strlen(ends[i]));
        if (id >= 0) t->end[id] = 1;
    }
    if (t->eos >= 0) t->end[t->eos] = 1;
}

static int fill(struct tokenizer *t, const struct tok_source *src, const char *where, struct q_err *e)
{
    int32_t pad;   /* nothing is padded here */
    uc_map_fill(&t->unicode);
    int rc = check_source(t, src, where, e);
    if (!rc) rc = copy_tokens(t, src, where, e);
    if (!rc) rc = build_map(t, where, e);
    if (!rc) rc = find_bytes(t, where, e);
    if (!rc) rc = build_merges(t, src, where, e);
    if (!rc) rc = tok_specials_init(t, where, e);
    if (!rc) rc = take_id(&t->eos, t, src->eos, "eos_token_id", where, e);
    if (!rc) rc = take_id(&pad, t, src->pad, "padding_token_id", where, e);
    if (!rc) rc = take_id(&t->bos, t, src->bos, "bos_token_id", where, e);
    if (!rc) mark_ends(t);
    return rc;
}

static void detach(struct tok_attached *a)
{
    if (!a) return;
    if (a->at) a->drop(a->at);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static int attach_lock(struct tokenizer *t, const char *where, struct q_err *e)
{
    t->attached = calloc(1, sizeof *t->attached);
    if (!t->attached) return q_fail(e, Q_EMEM, "%s: out of memory for a tokenizer", where);
    pthread_mutex_init(&t->attached->lock, NULL);
    return Q_OK;
}

int tok_open(struct tokenizer **out, const struct tok_source *src, const char *where, struct q_err *e)
{
    *out = NULL;
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t) return q_fail(e, Q_EMEM, "%s: out of memory for a tokenizer", where);
    int rc = attach_lock(t, where, e);
    if (!rc) rc = fill(t, src, where, e);
    if (rc) tok_close(t);
    else *out = t;
    return rc;
}

void tok_close(struct tokenizer *t)
{
    if (!t) return;
    free(t->text);
    free(t->piece);
    free(t->arena);
    free(t->type);
    free(t->end);
    free(t->map.slot);
    free(t->merges.slot);
    free(t->specials.id);
    detach(t->attached);
    free(t);
}

int tok_attach(const struct tokenizer *t, int (*make)(void **at, const struct tokenizer *t, struct q_err *e), void (*drop)(void *at), void **at,
               struct q_err *e)
{
    struct tok_attached *a = t->attached;
    pthread_mutex_lock(&a->lock);
    int rc = a->at ? Q_OK : make(&a->at, t, e);
    a->drop = drop;
    *at = a->at;
    pthread_mutex_unlock(&a->lock);
    return rc;
}

/* ---- accessors ---- */

static int has(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n;
}

int32_t tok_count(const struct tokenizer *t) { return t->n; }
int tok_type(const struct tokenizer *t, int32_t id) { return has(t, id) ? t->type[id] : 0; }
int tok_is_end(const struct tokenizer *t, int32_t id) { return has(t, id) && t->end[id]; }
int32_t tok_eos(const struct tokenizer *t) { return t->eos; }
int32_t tok_bos(const struct tokenizer *t) { return t->bos; }

struct tok_str tok_piece(const struct tokenizer *t, int32_t id)
{
    return has(t, id) ? t->piece[id] : (struct tok_str){NULL, 0};
}
