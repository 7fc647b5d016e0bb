#include "rebuild.h"
#include <stdlib.h>
#include <string.h>

struct work {
    const struct build_opts *b;
    const struct target *t;
    struct gen *g;
    struct gen_kernel *k;      /* owned: [n], as the tasks borrow them */
    struct build_task *task;   /* owned: [n] */
    int n;
};

static int is_there(const struct work *w, const struct build_task *task)
{
    char path[Q_PATH];
    for (int i = 0; i < w->n; i++)
        if (!strcmp(w->task[i].object.name, task->object.name)) return 1;
    return !store_object(w->b->store, task->object.name, path, NULL);
}

static void add(struct work *w, const struct record *r, const char *params)
{
    struct q_problem p = { .rows = r->rows, .ctx = r->ctx };
    struct gen_kernel *k = &w->k[w->n];
    strcpy(p.op, r->op);
    strcpy(p.shape, r->shape);
    if (!r->kernel[0] || target_emit(w->t, w->g, &p, params, k, NULL)) return;
    w->task[w->n] = build_task_of(k, w->b->compiler);
    if (is_there(w, &w->task[w->n])) gen_kernel_free(k);
    else w->n++;
}

int rebuild_all(const struct build_opts *b, const struct target *t, struct gen *g, const struct record *const *r, int n, struct q_err *e)
{
    struct work w = { .b = b, .t = t, .g = g };
    w.k = calloc(2 * (size_t)n + 1, sizeof *w.k);
    w.task = calloc(2 * (size_t)n + 1, sizeof *w.task);
    int rc = w.k && w.task ? Q_OK : q_fail(e, Q_EMEM, "no memory for %d kernels", 2 * n);
    for (int i = 0; i < n && !rc; i++) {
        add(&w, r[i], r[i]->params);
        add(&w, r[i], NULL);
    }
    if (!rc && w.n) rc = build_all(b, w.task, w.n, e);
    for (int i = 0; i < w.n; i++) gen_kernel_free(&w.k[i]);
    free(w.k);
    free(w.task);
    return rc;
}
