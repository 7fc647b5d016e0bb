/* A tokenizer out of the tokenizer.ggml.* keys of a model file: types checked here, meaning in tokenizer.c. */
#include "gguf.h"
#include "tok_impl.h"
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

/* A file without the key is as malformed as one with a wrong value: without it text cannot be read. */
static int needed(int rc, const struct gguf *g, const char *key, struct q_err *e)
{
    if (rc != Q_EMISS) return rc;
    return q_fail(e, Q_EINPUT, "%s: key '%s' is missing: the file holds no usable tokenizer", gguf_path(g), key);
}

static int get_name(const struct gguf *g, const char *key, char *dst, size_t size, struct q_err *e)
{
    struct gguf_str s;
    int rc = needed(gguf_get_str(g, key, &s, e), g, key, e);
    if (!rc) gguf_str_copy(dst, size, s);
    return rc;
}

static int get_strings(const struct gguf *g, const char *key, const struct tok_str **out, size_t *n, struct q_err *e)
{
    const struct gguf_kv *kv;
    int rc = needed(gguf_get_array(g, key, GGUF_STRING, &kv, e), g, key, e);
    if (rc) return rc;
    struct tok_str *list = malloc((kv->count ? kv->count : 1) * sizeof *list);
    if (!list) return q_fail(e, Q_EMEM, "%s: %s: out of memory for %zu strings", gguf_path(g), key, (size_t)kv->count);
    const unsigned char *at = kv->data;
    for (uint64_t i = 0; i < kv->count; i++) {
        struct gguf_str s = gguf_next_str(&at);
        list[i] = (struct tok_str){s.s, s.n};
    }
    *out = list;
    *n = kv->count;
    return Q_OK;
}

static int get_types(const struct gguf *g, const char *key, const int32_t **out, size_t *n, struct q_err *e)
{
    const struct gguf_kv *kv;
    int rc = needed(gguf_get_array(g, key, -1, &kv, e), g, key, e);
    if (rc) return rc;
    int32_t *list = malloc((kv->count ? kv->count : 1) * sizeof *list);
    if (!list) return q_fail(e, Q_EMEM, "%s: %s: out of memory for %zu types", gguf_path(g), key, (size_t)kv->count);
    for (uint64_t i = 0; i < kv->count; i++) {
        int64_t v = gguf_array_int(kv, i);
        list[i] = v < 0 || v > INT32_MAX ? 0 : (int32_t)v; /* 0 is no type either: tok_open refuses it */
    }
    *out = list;
    *n = kv->count;
    return Q_OK;
}

static int get_id(const struct gguf *g, const char *key, size_t n_tokens, int64_t *out, struct q_err *e)
{
    *out = -1;
    int rc = gguf_get_int(g, key, 0, n_tokens ? (int64_t)n_tokens - 1 : 0, out, e);
    return rc == Q_EMISS ? Q_OK : rc;
}

int tok_open_gguf(struct tokenizer **out, const struct gguf *g, struct q_err *e)
{
    char model[64], pre[64];
    struct tok_source s = {.model = model, .pre = pre};
    *out = NULL;
    int rc = get_name(g, KEY("model"), model, sizeof model, e);
    if (!rc) rc = get_name(g, KEY("pre"), pre, sizeof pre, e);
    if (!rc) rc = get_strings(g, KEY("tokens"), &s.tokens, &s.n_tokens, e);
    if (!rc) rc = get_types(g, KEY("token_type"), &s.types, &s.n_types, e);
    if (!rc) rc = get_strings(g, KEY("merges"), &s.merges, &s.n_merges, e);
    if (!rc) rc = get_id(g, KEY("eos_token_id"), s.n_tokens, &s.eos, e);
    if (!rc) rc = get_id(g, KEY("padding_token_id"), s.n_tokens, &s.pad, e);
    if (!rc) rc = get_id(g, KEY("bos_token_id"), s.n_tokens, &s.bos, e);
    if (!rc) rc = tok_open(out, &s, gguf_path(g), e);
    free((void *)s.tokens);
    free((void *)s.types);
    free((void *)s.merges);
    return rc;
}
