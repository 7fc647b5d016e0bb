#include "trace.h"
#include "record.h"
#include <stdlib.h>
#include <string.h>

enum { LISTS = 8, LINES = 256 };

/* A list of the model and its times in the step that runs. */
struct timed {
    const struct q_list *list;
    double *us;                /* owned: [list->n] */
    int rows;                  /* 0: not in this step */
};

struct q_trace {
    struct timed timed[LISTS];
    int n_timed, past;
    struct q_trace_line line[LINES];
    int n_lines;
};

struct q_trace *trace_open(void) { return calloc(1, sizeof(struct q_trace)); }

void trace_close(struct q_trace *t)
{
    if (!t) return;
    for (int i = 0; i < t->n_timed; i++) free(t->timed[i].us);
    free(t);
}

void trace_step(struct q_trace *t, int rows, int past)
{
    t->past = past;
    for (int i = 0; i < t->n_timed; i++) t->timed[i].rows = 0;
}

static struct timed *timed_of(struct q_trace *t, const struct q_list *list)
{
    for (int i = 0; i < t->n_timed; i++)
        if (t->timed[i].list == list) return &t->timed[i];
    double *us = t->n_timed < LISTS ? calloc((size_t)list->n + 1, sizeof *us) : NULL;
    if (!us) return NULL;
    t->timed[t->n_timed] = (struct timed){ list, us, 0 };
    return &t->timed[t->n_timed++];
}

double *trace_list(struct q_trace *t, const struct q_list *list, int rows)
{
    struct timed *d = timed_of(t, list);
    if (!d) return NULL;
    d->rows = rows;
    return d->us;
}

static struct q_trace_line *line_of(struct q_trace *t, const struct q_launch *l)
{
    const char *shape = l->shape ? l->shape : "";
    for (int i = 0; i < t->n_lines; i++)
        if (!strcmp(t->line[i].op, l->op) && !strcmp(t->line[i].shape, shape)) return &t->line[i];
    if (t->n_lines == LINES) return NULL;
    t->line[t->n_lines] = (struct q_trace_line){ .op = l->op, .shape = shape };
    return &t->line[t->n_lines++];
}

static void add(struct q_trace *t, const struct q_launch *l, int rows, double us)
{
    struct q_trace_line *line = line_of(t, l);
    double bytes = 0, ops = 0;
    if (!line) return;
    if (l->cost) record_cost(l->cost, rows, t->past, &bytes, &ops);
    line->calls++;
    line->us += us;
    line->bytes += bytes;
    line->ops += ops;
}

void trace_collect(struct q_trace *t)
{
    for (int i = 0; i < t->n_timed; i++) {
        struct timed *d = &t->timed[i];
        if (!d->rows) continue;
        for (int j = 0; j < d->list->n; j++) add(t, &d->list->launch[j], d->rows, d->us[j]);
        memset(d->us, 0, (size_t)d->list->n * sizeof *d->us);
    }
}

static int longest_first(const void *a, const void *b)
{
    double x = ((const struct q_trace_line *)a)->us, y = ((const struct q_trace_line *)b)->us;
    return (x < y) - (x > y);
}

const struct q_trace_line *trace_lines(struct q_trace *t, int *n)
{
    qsort(t->line, (size_t)t->n_lines, sizeof *t->line, longest_first);
    *n = t->n_lines;
    return t->line;
}
