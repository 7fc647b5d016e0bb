#include "ceilings.h"
#include "device.h"
#include "kernel.h"
#include "kset.h"
#include "record.h"
#include "roof.h"
#include "templates/ceiling/args.h"
#include <stdio.h>
#include <string.h>

/* Memory that a call wants: the buffer that is read, and where sums go. */
struct ground {
    void *buf;
    u64 *out;
};

/* Operations or bytes a second of one ceiling; 0 where the set has none. */
static int measure_one(struct q_device *d, const struct kset *k, const struct ground *g, const char *what, double *rate, struct q_err *e)
{
    enum { TIMES = 5 };
    const struct q_kernel *kernel;
    const struct record_cost *cost;
    const char *text;
    char shape[64];
    struct q_list list = {0};
    double us = 0;
    snprintf(shape, sizeof shape, "what=%s", what);
    *rate = 0;
    if (kset_find(k, "ceiling", shape, &kernel, NULL)) return Q_OK;
    kset_about(k, "ceiling", shape, &text, &cost);
    int read = !strcmp(what, "read");
    struct ceiling_args args = {.buf = g->buf, .bytes = CEILING_BYTES, .loops = CEILING_LOOPS, .out = g->out};
    int rc = list_push(&list, kernel, "ceiling", &args, sizeof args, e);
    if (!rc) rc = d->ops->time(d, &list, &(struct q_extent){1, 1, 1}, TIMES, &us, e);
    if (!rc && us > 0) *rate = (read ? cost->bytes[0] : cost->ops[0]) / us * 1e6;
    list_free(&list);
    return rc;
}

static int measure_card(struct q_device *d, const struct kset *k, struct q_roofs *r, struct q_err *e)
{
    struct { const char *what; double *rate; } all[] = {{"read", &r->read}, {"dp4a", &r->dp4a},       {"hfma2", &r->hfma2},
                                                        {"ffma", &r->ffma}, {"mma_f16", &r->mma_f16}, {"mma_i8", &r->mma_i8}};
    struct ground g = {d->ops->alloc(d, (size_t)CEILING_BYTES, e), NULL};
    int rc = g.buf && (g.out = d->ops->alloc(d, sizeof *g.out, e)) ? Q_OK : e ? e->code : Q_EMEM;
    for (size_t i = 0; i < sizeof all / sizeof *all && !rc; i++) rc = measure_one(d, k, &g, all[i].what, all[i].rate, e);
    d->ops->release(d, g.out);
    d->ops->release(d, g.buf);
    ceilings_sum(r);
    return rc;
}

int roof_measure(struct q_device *d, const struct kset *k, struct q_roofs *r, struct q_err *e)
{
    memset(r, 0, sizeof *r);
    return d->host_memory ? roof_measure_host(d->parts, d->card.isa, r, e) : measure_card(d, k, r, e);
}
