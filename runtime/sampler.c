#include "sampler.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct q_sampling_params q_sampling_default(void)
{
    return (struct q_sampling_params){.temp = 0, .top_p = 1, .min_p = 0, .top_k = 0, .repeat = 1, .last_n = 64, .seed = 0};
}

static int in_range(double v, double lo, double hi) { return isfinite(v) && v >= lo && v <= hi; }

int q_sampling_check(const struct q_sampling_params *p, struct q_err *e)
{
    if (!in_range(p->temp, 0, 1e3)) return q_fail(e, Q_EINPUT, "temperature must be between 0 and 1000, not %g", (double)p->temp);
    if (!in_range(p->top_p, 1e-9, 1)) return q_fail(e, Q_EINPUT, "top_p must be above 0 and at most 1, not %g", (double)p->top_p);
    if (!in_range(p->min_p, 0, 1)) return q_fail(e, Q_EINPUT, "min_p must be between 0 and 1, not %g", (double)p->min_p);
    if (!in_range(p->repeat, 1e-3, 1e3)) return q_fail(e, Q_EINPUT, "the repeat penalty must be above 0, not %g", (double)p->repeat);
    if (!in_range(p->frequency, -100, 100))
        return q_fail(e, Q_EINPUT, "the frequency penalty must be between -100 and 100, not %g", (double)p->frequency);
    if (!in_range(p->presence, -100, 100))
        return q_fail(e, Q_EINPUT, "the presence penalty must be between -100 and 100, not %g", (double)p->presence);
    return Q_OK;
}

/* pairs holds one (id, count) an id in the window, unordered; slot finds an id's pair by linear probing on a table of twice the size. */
struct q_history {
    int last_n;              /* < 0: no window */
    int32_t *ring;           /* owned: the window, oldest at `at` once full */
    int n, cap, at;
    int32_t (*pairs)[2];     /* owned */
    int n_pairs, cap_pairs;
    int32_t *slot;           /* owned: [slots] index into pairs, -1 free */
    int slots;               /* a power of two */
};

static int find_slot(const struct q_history *h, int32_t id)
{
    unsigned i = (unsigned)id * 2654435761u & (unsigned)(h->slots - 1);
    while (h->slot[i] >= 0 && h->pairs[h->slot[i]][0] != id) i = (i + 1) & (unsigned)(h->slots - 1);
    return (int)i;
}

static void index_pairs(struct q_history *h)
{
    memset(h->slot, 0xFF, (size_t)h->slots * sizeof *h->slot);
    for (int i = 0; i < h->n_pairs; i++) h->slot[find_slot(h, h->pairs[i][0])] = i;
}

static int grow(struct q_history *h, struct q_err *e)
{
    int cap = h->cap_pairs ? h->cap_pairs * 2 : 64;
    void *pairs = realloc(h->pairs, (size_t)cap * sizeof *h->pairs);
    if (pairs) h->pairs = pairs;
    int32_t *slot = malloc((size_t)cap * 2 * sizeof *slot);
    if (!pairs || !slot) {
        free(slot);
        return q_fail(e, Q_EMEM, "no memory for a history of %d ids", cap);
    }
    free(h->slot);
    h->slot = slot;
    h->slots = cap * 2;
    h->cap_pairs = cap;
    index_pairs(h);
    return Q_OK;
}

int q_history_open(struct q_history **out, int last_n, struct q_err *e)
{
    struct q_history *h = calloc(1, sizeof *h);
    if (!h) return q_fail(e, Q_EMEM, "no memory for a sampler's history");
    h->last_n = last_n;
    h->cap = last_n > 0 ? last_n : 0;
    if (h->cap && !(h->ring = malloc((size_t)h->cap * sizeof *h->ring))) {
        free(h);
        return q_fail(e, Q_EMEM, "no memory for a history of %d tokens", last_n);
    }
    *out = h;
    return Q_OK;
}

void q_history_close(struct q_history *h)
{
    if (!h) return;
    free(h->ring);
    free(h->pairs);
    free(h->slot);
    free(h);
}

/* The last pair takes the place of a removed one; the table is rebuilt only then. */
static void forget(struct q_history *h, int32_t id)
{
    int p = h->slot[find_slot(h, id)];
    if (--h->pairs[p][1] > 0) return;
    memcpy(h->pairs[p], h->pairs[--h->n_pairs], sizeof *h->pairs);
    index_pairs(h);
}

int q_history_push(struct q_history *h, int32_t id, struct q_err *e)
{
    if (h->last_n == 0) return Q_OK;
    if (h->n_pairs == h->cap_pairs) {
        int rc = grow(h, e);
        if (rc) return rc;
    }
    if (h->last_n > 0) {
        if (h->n == h->cap) forget(h, h->ring[h->at]);
        else h->n++;
        h->ring[h->at] = id;
        h->at = (h->at + 1) % h->cap;
    }
    int i = find_slot(h, id);
    if (h->slot[i] < 0) {
        h->slot[i] = h->n_pairs++;
        h->pairs[h->slot[i]][0] = id;
        h->pairs[h->slot[i]][1] = 0;
    }
    h->pairs[h->slot[i]][1]++;
    return Q_OK;
}

void q_history_fill(const struct q_history *h, struct q_sampling *s)
{
    s->history = (const int32_t *)h->pairs;
    s->n_history = h->n_pairs;
}
