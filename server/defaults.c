#include "defaults.h"
#include "runtime/gguf.h"
#include "runtime/model.h"

/* A missing key leaves the value; some files write whole numbers as floats and the other way round. */
static int read_float(const struct gguf *g, const char *key, float *to, struct q_err *e)
{
    double v;
    int64_t n;
    int rc = gguf_get_float(g, key, &v, e);
    if (rc == Q_EINPUT && !(rc = gguf_get_int(g, key, INT32_MIN, INT32_MAX, &n, e))) v = (double)n;
    if (!rc) *to = (float)v;
    return rc == Q_EMISS ? Q_OK : rc;
}

static int read_int(const struct gguf *g, const char *key, int *to, struct q_err *e)
{
    float v = (float)*to;
    int rc = read_float(g, key, &v, e);
    if (!rc && !(v >= -1e6f && v <= 1e6f)) rc = q_fail(e, Q_EINPUT, "%s: expected a small whole number, found %g", key, (double)v);
    if (!rc) *to = (int)v;
    return rc;
}

int defaults_sampling(struct q_sampling_params *p, const struct q_engine *en, struct q_err *e)
{
    const struct gguf *g = q_engine_model(en)->file;
    *p = q_sampling_default();
    p->temp = 0.7f, p->top_p = 0.8f, p->top_k = 20;
    p->last_n = -1; /* OpenAI's penalties count the whole answer */
    if (!g) return Q_OK;
    int rc = read_float(g, "general.sampling.temp", &p->temp, e);
    if (!rc) rc = read_float(g, "general.sampling.top_p", &p->top_p, e);
    if (!rc) rc = read_float(g, "general.sampling.min_p", &p->min_p, e);
    if (!rc) rc = read_float(g, "general.sampling.penalty_repeat", &p->repeat, e);
    if (!rc) rc = read_int(g, "general.sampling.top_k", &p->top_k, e);
    if (!rc) rc = read_int(g, "general.sampling.penalty_last_n", &p->last_n, e);
    return rc ? rc : q_sampling_check(p, e);
}
