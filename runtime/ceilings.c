#include "ceilings.h"
#include "shape.h"
#include "store_impl.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct { const char *what; size_t at; } ceilings[] = {
    { "read", offsetof(struct q_roofs, read) }, { "dp4a", offsetof(struct q_roofs, dp4a) },       { "hfma2", offsetof(struct q_roofs, hfma2) },
    { "ffma", offsetof(struct q_roofs, ffma) }, { "mma_f16", offsetof(struct q_roofs, mma_f16) }, { "mma_i8", offsetof(struct q_roofs, mma_i8) },
};
enum { CEILINGS = sizeof ceilings / sizeof *ceilings };

static double *find(struct q_roofs *r, const char *what)
{
    for (int i = 0; i < CEILINGS; i++)
        if (!strcmp(ceilings[i].what, what)) return (double *)((char *)r + ceilings[i].at);
    return NULL;
}

static double most(double a, double b) { return a > b ? a : b; }

void ceilings_sum(struct q_roofs *r)
{
    r->int8 = r->dp4a > 0 || r->mma_i8 > 0 ? most(r->dp4a, r->mma_i8) : most(r->hfma2, r->ffma);
    r->fp32 = r->ffma;
}

/* Of calls of milliseconds the median's deviation is 0.2 % of it for half of a quiet card's kernels, 1.5 % for the worst. */
#define QUIET 0.03

int ceiling_is_doubtful(const struct record *record)
{
    const struct record_time *z = &record->time[0];
    const char *slowed = record->clocks.slowed;
    return record->n_times > 0 && (z->mad_us > QUIET * z->median_us || (*slowed && strcmp(slowed, "power")));
}

int ceilings_enter(struct q_roofs *r, const struct record *record)
{
    struct q_shape s;
    const char *what = strcmp(record->op, "ceiling") || shape_parse(&s, record->shape, NULL) ? NULL : shape_find(&s, "what");
    double *rate = what ? find(r, what) : NULL, us = record->n_times ? record->time[0].median_us : 0;
    if (!rate || !record->cost.known || us <= 0) return 0;
    *rate = (strcmp(what, "read") ? record->cost.ops[0] : record->cost.bytes[0]) / us * 1e6;
    ceilings_sum(r);
    r->doubtful += *rate > 0 && ceiling_is_doubtful(record);
    return *rate > 0;
}

struct reading {
    struct q_roofs *r;
    const char *card;
    int n;
};

/* The first layer that has a ceiling wins. */
static int enter(void *arg, const struct record *record, const char *path)
{
    struct reading *g = arg;
    struct q_roofs one = { 0 };
    (void)path;
    if (strcmp(record->card, g->card) || !ceilings_enter(&one, record)) return 0;
    for (int i = 0; i < CEILINGS; i++) {
        double *have = (double *)((char *)g->r + ceilings[i].at), got = *(double *)((char *)&one + ceilings[i].at);
        if (got > 0 && !*have) {
            ceilings_enter(g->r, record);
            g->n++;
        }
    }
    return 0;
}

int ceilings_read(struct store *s, const char *card, struct q_roofs *r)
{
    struct reading g = { &s->roofs, card, 0 };
    char folder[STORE_FOLDER];
    if (strcmp(s->roofs_of, card)) {
        memset(&s->roofs, 0, sizeof s->roofs);
        snprintf(s->roofs_of, sizeof s->roofs_of, "%s", card);
        store_folder(folder, card);
        for (int i = 0; i < s->n_layers; i++)
            if (!s->layers[i].lines) store_each_in(s, i, folder, "ceiling", enter, &g);   /* what was shipped was measured elsewhere */
        s->n_roofs = g.n;
    }
    *r = s->roofs;
    return s->n_roofs;
}

const char *ceiling_of_path(const char *path)
{
    for (int i = 1; i < CEILINGS; i++)
        if (!strcmp(ceilings[i].what, path)) return ceilings[i].what;
    return strstr(path, "mma") ? "mma_f16" : "ffma";   /* wgmma is of the same units; a ceiling of its own is not measured */
}

double ceiling_rate(const struct q_roofs *r, const char *path)
{
    struct q_roofs copy = *r;
    return *find(&copy, ceiling_of_path(path));
}
