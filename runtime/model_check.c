/* The slow check of a model's matrices: every block is read for values that are no numbers. It touches the whole file. */
#include "model_parts.h"
#include <string.h>

static uint16_t load16(const unsigned char *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

/* First element or block whose number is infinite or NaN; -1 if there is none. `step` bytes apart, the number first. */
static int64_t find_bad16(const unsigned char *p, int64_t count, size_t step, uint16_t exponent)
{
    for (int64_t i = 0; i < count; i++, p += step)
        if ((load16(p) & exponent) == exponent) return i;
    return -1;
}

static int64_t find_bad(const struct q_tensor *t)
{
    int64_t n = t->n * t->k;
    const unsigned char *p = t->data;
    switch (t->format->type) {
    case Q_TYPE_F32: return find_bad16(p + 2, n, 4, 0x7F80);
    case Q_TYPE_BF16: return find_bad16(p, n, 2, 0x7F80);
    case Q_TYPE_F16: return find_bad16(p, n, 2, 0x7C00);
    case Q_TYPE_Q8_0: return find_bad16(p, n / 32, 34, 0x7C00);
    }
    return -1;
}

int model_check_tensor(const struct q_model *m, const struct q_tensor *t, struct q_err *e)
{
    int64_t i = find_bad(t);
    if (i < 0) return Q_OK;
    i *= t->format->block;
    return q_fail(e, Q_EINPUT, "%s: tensor '%s', row %lld, element %lld: the %s is infinite or NaN", m->path, t->name,
                  (long long)(i / t->k), (long long)(i % t->k), t->format->block > 1 ? "block's scale" : "value");
}

struct check {
    const struct q_model *model;
    struct q_err *e;
};

static int check_part(void *user, const struct q_part *p, int layer, struct q_tensor *t)
{
    struct check *c = user;
    return model_check_tensor(c->model, t, c->e);
}

int model_check(const struct q_model *m, struct q_err *e)
{
    struct check c = { m, e };
    return q_each_part((struct q_model *)(uintptr_t)m, check_part, &c);
}
