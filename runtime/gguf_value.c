/* Typed reading of keys: what a caller expects is checked here, and a mismatch says both types by name. */
#include "gguf_impl.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name;
    unsigned char bytes;
    unsigned char integer;
} types[GGUF_N_TYPES] = {
    [GGUF_U8] = { "u8", 1, 1 }, [GGUF_I8] = { "i8", 1, 1 }, [GGUF_U16] = { "u16", 2, 1 }, [GGUF_I16] = { "i16", 2, 1 },
    [GGUF_U32] = { "u32", 4, 1 }, [GGUF_I32] = { "i32", 4, 1 }, [GGUF_F32] = { "f32", 4, 0 },
    [GGUF_BOOL] = { "bool", 1, 0 }, [GGUF_STRING] = { "string", 0, 0 }, [GGUF_ARRAY] = { "array", 0, 0 },
    [GGUF_U64] = { "u64", 8, 1 }, [GGUF_I64] = { "i64", 8, 1 }, [GGUF_F64] = { "f64", 8, 0 },
};

const char *gguf_type_name(int type) { return type >= 0 && type < GGUF_N_TYPES ? types[type].name : "?"; }
int gguf_is_int(int type) { return type >= 0 && type < GGUF_N_TYPES && types[type].integer; }

static int64_t load_int(int type, const unsigned char *p)
{
    switch (type) {
    case GGUF_BOOL:
    case GGUF_U8: return p[0];
    case GGUF_I8: return (int8_t)p[0];
    case GGUF_U16: return (uint16_t)(p[0] | p[1] << 8);
    case GGUF_I16: return (int16_t)(p[0] | p[1] << 8);
    case GGUF_U32: return load_u32(p);
    case GGUF_I32: return (int32_t)load_u32(p);
    case GGUF_I64: return (int64_t)load_u64(p);
    case GGUF_U64: return load_u64(p) > INT64_MAX ? INT64_MAX : (int64_t)load_u64(p);
    default: return 0;
    }
}

int64_t gguf_array_int(const struct gguf_kv *kv, uint64_t i)
{
    return load_int(kv->elem, kv->data + i * types[kv->elem].bytes);
}

int gguf_kv_int(const struct gguf_kv *kv, int64_t *out)
{
    if (!kv || !gguf_is_int(kv->type)) return 0;
    *out = load_int(kv->type, kv->data);
    return 1;
}

/* "array of u8" and the like, for messages. */
static const char *describe(const struct gguf_kv *kv, char *buf, size_t size)
{
    if (kv->type == GGUF_ARRAY)
        snprintf(buf, size, "array of %s", gguf_type_name(kv->elem));
    else
        snprintf(buf, size, "%s", gguf_type_name(kv->type));
    return buf;
}

static int wrong_type(const struct gguf *g, const char *key, const char *expected, const struct gguf_kv *kv,
                      struct q_err *e)
{
    char found[40];
    return q_fail(e, Q_EINPUT, "%s: key '%s': expected %s, found %s", g->path, key, expected,
                  describe(kv, found, sizeof found));
}

static int find(const struct gguf *g, const char *key, const struct gguf_kv **kv, struct q_err *e)
{
    *kv = gguf_find(g, key);
    return *kv ? Q_OK : q_fail(e, Q_EMISS, "%s: key '%s' is missing", g->path, key);
}

int gguf_get_int(const struct gguf *g, const char *key, int64_t min, int64_t max, int64_t *out, struct q_err *e)
{
    const struct gguf_kv *kv;
    int64_t v;
    int rc = find(g, key, &kv, e);
    if (rc) return rc;
    if (!gguf_kv_int(kv, &v)) return wrong_type(g, key, "an integer", kv, e);
    if (v < min || v > max)
        return q_fail(e, Q_EINPUT, "%s: key '%s': expected %lld to %lld, found %lld", g->path, key, (long long)min,
                      (long long)max, (long long)v);
    *out = v;
    return Q_OK;
}

int gguf_get_float(const struct gguf *g, const char *key, double *out, struct q_err *e)
{
    const struct gguf_kv *kv;
    int rc = find(g, key, &kv, e);
    if (rc) return rc;
    float f;
    double v;
    if (kv->type == GGUF_F32) memcpy(&f, kv->data, 4), v = f;
    else if (kv->type == GGUF_F64) memcpy(&v, kv->data, 8);
    else return wrong_type(g, key, "f32", kv, e);
    if (!isfinite(v)) return q_fail(e, Q_EINPUT, "%s: key '%s': expected a finite number, found %g", g->path, key, v);
    *out = v;
    return Q_OK;
}

int gguf_get_bool(const struct gguf *g, const char *key, int *out, struct q_err *e)
{
    const struct gguf_kv *kv;
    int rc = find(g, key, &kv, e);
    if (rc) return rc;
    if (kv->type != GGUF_BOOL) return wrong_type(g, key, "bool", kv, e);
    *out = kv->data[0];
    return Q_OK;
}

int gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *out, struct q_err *e)
{
    const struct gguf_kv *kv;
    int rc = find(g, key, &kv, e);
    if (rc) return rc;
    if (kv->type != GGUF_STRING) return wrong_type(g, key, "a string", kv, e);
    const unsigned char *at = kv->data;
    *out = gguf_next_str(&at);
    return Q_OK;
}

int gguf_get_array(const struct gguf *g, const char *key, int elem, const struct gguf_kv **out, struct q_err *e)
{
    const struct gguf_kv *kv;
    int rc = find(g, key, &kv, e);
    if (rc) return rc;
    char expected[40];
    snprintf(expected, sizeof expected, "an array of %s", elem < 0 ? "integers" : gguf_type_name(elem));
    int fits = elem < 0 ? gguf_is_int(kv->elem) || kv->elem == GGUF_BOOL : kv->elem == elem;
    if (kv->type != GGUF_ARRAY || !fits) return wrong_type(g, key, expected, kv, e);
    *out = kv;
    return Q_OK;
}

struct gguf_str gguf_next_str(const unsigned char **at)
{
    struct gguf_str s = { (const char *)*at + 8, (size_t)load_u64(*at) };
    *at += 8 + s.n;
    return s;
}

enum { INDEX_STRIDE = 8 };

int gguf_strings_open(struct gguf_strings *s, const struct gguf_kv *kv, struct q_err *e)
{
    uint64_t n = (kv->count + INDEX_STRIDE - 1) / INDEX_STRIDE;
    s->kv = kv;
    s->at = malloc((n ? n : 1) * sizeof *s->at);
    if (!s->at) return q_fail(e, Q_EMEM, "out of memory for an index of %llu strings", (unsigned long long)kv->count);
    const unsigned char *at = kv->data;
    for (uint64_t i = 0; i < kv->count; i++) {
        if (i % INDEX_STRIDE == 0) s->at[i / INDEX_STRIDE] = (uint64_t)(at - kv->data);
        gguf_next_str(&at);
    }
    return Q_OK;
}

struct gguf_str gguf_strings_get(const struct gguf_strings *s, uint64_t i)
{
    const unsigned char *at = s->kv->data + s->at[i / INDEX_STRIDE];
    struct gguf_str r = gguf_next_str(&at);
    for (uint64_t k = i % INDEX_STRIDE; k; k--) r = gguf_next_str(&at);
    return r;
}

void gguf_strings_close(struct gguf_strings *s)
{
    free(s->at);
    s->at = NULL;
}

int gguf_str_eq(struct gguf_str a, const char *b) { return a.n == strlen(b) && !memcmp(a.s, b, a.n); }
