/* quarry tune list: what the store holds for a card, as lines, as a table of what was measured, as JSON or as tuned/ holds it. */
#include "measured.h"
#include "verbs.h"
#include <stdlib.h>

/* What a winner does, in the units that its roof is in. */
static int table_record(void *arg, const struct record *r, const char *path)
{
    double bytes = 0, ops = 0, us = r->n_times ? r->time[0].median_us : 0;
    (void)arg;
    (void)path;
    if (us <= 0) return 0;
    record_cost(&r->cost, r->time[0].rows, r->time[0].past, &bytes, &ops);
    printf("| %-14s | %-70s | %5d %6d | %9.1f | %8.1f | %8.2f | %5.1f %-5s | %s\n", r->op, r->shape, r->time[0].rows, r->time[0].past, us, bytes / us * 1e-3,
           ops / us * 1e-6, r->roof_pct, r->bound, r->params);
    return 0;
}

static int list_record(void *arg, const struct record *r, const char *path)
{
    const struct options *o = arg;
    (void)path;
    char *line = o->json ? record_print(r) : NULL;
    if (line) fputs(line, stdout);
    else printf("%-8s %-9s %-9s %s %s %s\n", r->origin, r->profile, r->numerics, r->op, r->shape, r->params);
    free(line);
    return 0;
}

static int list(const struct options *o, struct store *s, struct q_err *e)
{
    fprintf(stderr, "card %s\n", o->card.key);
    if (o->table) puts("| op             | shape                                                                  |  rows   past |   us/call |     GB/s |    TOP/s | % of roof   | params\n"
                       "|----------------|------------------------------------------------------------------------|-------------:|----------:|---------:|---------:|-------------|-------");
    if (o->measured) return measured_print(stdout, s, o->card.key, e);
    return store_each(s, o->card.key, o->table ? table_record : list_record, (void *)o, e);
}

int verb_list(const struct options *o, struct q_err *e)
{
    struct store *s;
    int r = verb_store(o, &s, e);
    if (r) return r;
    r = list(o, s, e);
    store_close(s);
    return r;
}
