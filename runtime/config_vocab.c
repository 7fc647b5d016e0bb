/* The vocabulary's size, and whether the tokenizer's arrays agree with each other: lengths, types, ids in range.
 * What the strings mean (pieces, merges) is the tokenizer's business. */
#include "config_read.h"
#include <string.h>

enum { MAX_VOCAB = 1 << 24, TYPE_MAX = 6 };

/* An array that has one entry a token, if it is there at all. */
static int check_parallel(const struct gguf *g, const char *key, int elem, uint64_t n, const struct gguf_kv **out,
                          struct q_err *e)
{
    *out = NULL;
    int rc = gguf_get_array(g, key, elem, out, e);
    if (rc) return rc == Q_EMISS ? Q_OK : rc;
    if ((*out)->count != n)
        return q_fail(e, Q_EINPUT, "%s: key '%s': expected %llu entries, one a token, found %llu", gguf_path(g), key,
                      (unsigned long long)n, (unsigned long long)(*out)->count);
    return Q_OK;
}

static int check_types(const struct gguf *g, uint64_t n, struct q_err *e)
{
    const struct gguf_kv *kv;
    int rc = check_parallel(g, "tokenizer.ggml.token_type", -1, n, &kv, e);
    if (rc || !kv) return rc;
    for (uint64_t i = 0; i < n; i++) {
        int64_t t = gguf_array_int(kv, i);
        if (t < 0 || t > TYPE_MAX)
            return q_fail(e, Q_EINPUT, "%s: key 'tokenizer.ggml.token_type', token %llu: expected 0 to %d, found %lld",
                          gguf_path(g), (unsigned long long)i, TYPE_MAX, (long long)t);
    }
    return Q_OK;
}

static int check_one_id(const struct gguf *g, const struct gguf_kv *kv, int64_t v, uint64_t n, struct q_err *e)
{
    if (v >= 0 && (uint64_t)v < n) return Q_OK;
    char key[80];
    return q_fail(e, Q_EINPUT, "%s: key '%s': token id %lld is outside the vocabulary of %llu", gguf_path(g),
                  gguf_str_copy(key, sizeof key, kv->key), (long long)v, (unsigned long long)n);
}

static int ends_with(struct gguf_str s, const char *end)
{
    size_t n = strlen(end);
    return s.n >= n && !memcmp(s.s + s.n - n, end, n);
}

/* Every tokenizer.ggml.*_token_id (bos, eos, padding ...) and array *_token_ids. */
static int check_ids(const struct gguf *g, uint64_t n, struct q_err *e)
{
    static const char prefix[] = "tokenizer.ggml.";
    for (int i = 0; i < gguf_n_keys(g); i++) {
        const struct gguf_kv *kv = gguf_key(g, i);
        if (kv->key.n < sizeof prefix || memcmp(kv->key.s, prefix, sizeof prefix - 1)) continue;
        int list = ends_with(kv->key, "_token_ids");
        if (!list && !ends_with(kv->key, "_token_id")) continue;
        if (!gguf_is_int(kv->elem) || (kv->type == GGUF_ARRAY) != list) {
            char key[80];
            return q_fail(e, Q_EINPUT, "%s: key '%s': expected %s, found %s%s", gguf_path(g),
                          gguf_str_copy(key, sizeof key, kv->key), list ? "an array of integers" : "an integer",
                          kv->type == GGUF_ARRAY ? "array of " : "", gguf_type_name(kv->elem));
        }
        for (uint64_t k = 0; k < kv->count; k++) {
            int rc = check_one_id(g, kv, gguf_array_int(kv, k), n, e);
            if (rc) return rc;
        }
    }
    return Q_OK;
}

/* Strings whose type would otherwise be found out only by whoever reads them. */
static int check_strings(const struct gguf *g, struct q_err *e)
{
    static const char *const keys[] = { "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.chat_template" };
    for (int i = 0; i < 3; i++) {
        struct gguf_str s;
        int rc = gguf_get_str(g, keys[i], &s, e);
        if (rc && rc != Q_EMISS) return rc;
    }
    return Q_OK;
}

static int check_tokenizer(const struct gguf *g, uint64_t n, struct q_err *e)
{
    const struct gguf_kv *kv;
    int rc = check_types(g, n, e);
    if (!rc) rc = check_parallel(g, "tokenizer.ggml.scores", GGUF_F32, n, &kv, e);
    if (!rc) {
        rc = gguf_get_array(g, "tokenizer.ggml.merges", GGUF_STRING, &kv, e);
        if (rc == Q_EMISS) rc = Q_OK;
    }
    if (!rc) rc = check_ids(g, n, e);
    return rc ? rc : check_strings(g, e);
}

/* Without a tokenizer (a file for tests) the size is vocab_size's or the embedding's. */
static int size_without_tokens(struct q_config *c, const struct gguf *g, struct q_notes *notes, struct q_err *e)
{
    const struct gguf_tensor *embd = gguf_tensor_find(g, "token_embd.weight");
    int rows = embd && embd->ne[1] <= MAX_VOCAB ? (int)embd->ne[1] : 0;
    q_note(notes, "the file has no tokenizer");
    return config_int(c, g, "vocab_size", 1, MAX_VOCAB, rows, &c->n_vocab, e);
}

int config_read_vocab(struct q_config *c, const struct gguf *g, struct q_notes *notes, struct q_err *e)
{
    const struct gguf_kv *tokens;
    int rc = gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, e);
    if (rc == Q_EMISS) return size_without_tokens(c, g, notes, e);
    if (rc) return rc;
    if (!tokens->count || tokens->count > MAX_VOCAB)
        return q_fail(e, Q_EINPUT, "%s: key 'tokenizer.ggml.tokens': expected 1 to %d entries, found %llu", gguf_path(g),
                      MAX_VOCAB, (unsigned long long)tokens->count);
    c->n_vocab = (int)tokens->count;
    int said = c->n_vocab;
    rc = config_int(c, g, "vocab_size", 1, MAX_VOCAB, said, &said, e);
    if (!rc && said != c->n_vocab)
        q_note(notes, "%s is %d, but there are %d tokens: the tokens count", config_key(c, "vocab_size").s, said,
               c->n_vocab);
    return rc ? rc : check_tokenizer(g, tokens->count, e);
}
