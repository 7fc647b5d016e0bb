#include "layouts.h"
#include "race.h"
#include "runtime/kset_shapes.h"
#include <stdio.h>
#include <string.h>

enum { READ_TOKENS = 512, ANSWER_TOKENS = 128, TURNS = 11 };

/* The best kernel of one product under one layout; its problem stays in a slot of the measurer. */
struct product {
    char object[Q_PATH], kernel[160];
    int slot, rows;
    double per_request;        /* calls of that many rows in a request */
};

static int make_product(const struct contest_env *env, const char *op, const char *shape, double tokens, int slot, struct product *p, struct q_err *e)
{
    struct contest_env mine = *env;
    struct q_problem problem = { .rows = 0 };
    struct outcome out;
    mine.slot = slot;
    snprintf(problem.op, sizeof problem.op, "%s", op);
    snprintf(problem.shape, sizeof problem.shape, "%s", shape);
    int rc = contest_run(&mine, &problem, NULL, 0, env->effort->layout, 0, &out, e);
    if (!rc) rc = store_object(env->build->store, out.record.objects[0].name, p->object, e);
    if (!rc) rc = env->m->drop(env->m->arg, slot, 0, e);
    if (rc) return rc;
    snprintf(p->kernel, sizeof p->kernel, "%s", out.record.kernel);
    p->slot = slot;
    p->rows = out.record.time[0].rows;
    p->per_request = tokens / p->rows;
    return Q_OK;
}

static int make_products(const struct contest_env *env, const struct q_tensor *w, const char *layout, int slot, struct product p[2], struct q_err *e)
{
    char shape[Q_SHAPE_TEXT];
    shape_matmul(shape, sizeof shape, w, kset_act(w, env->t->numerics), layout, 0);
    int rc = make_product(env, "matvec", shape, ANSWER_TOKENS, slot, &p[0], e);
    return rc ? rc : make_product(env, "matmul", shape, READ_TOKENS, slot + 1, &p[1], e);
}

static int request_us(const struct contest_env *env, const struct product p[2], double *us, struct q_err *e)
{
    int rc = Q_OK;
    *us = 0;
    for (int i = 0; i < 2 && !rc; i++) {
        double one;
        rc = env->m->time(env->m->arg, p[i].slot, p[i].object, p[i].kernel, 0, 1, &one, e);
        if (!rc) *us += p[i].per_request * one;
    }
    return rc;
}

/* us[i][t]: layout i in turn t; the order of a turn is reversed in the next. */
static int take_turns(const struct contest_env *env, struct layouts *l, struct product p[][2], double us[LAYOUTS][TURNS], struct q_err *e)
{
    int rc = Q_OK;
    for (int t = 0; t < TURNS && !rc; t++)
        for (int j = 0; j < l->n && !rc; j++) {
            int i = t % 2 ? l->n - 1 - j : j;
            rc = request_us(env, p[i], &us[i][t], e);
        }
    return rc;
}

static void decide(struct layouts *l, double us[LAYOUTS][TURNS])
{
    double ratio[TURNS];
    l->best = 0;
    l->gain = 0;
    for (int i = 0; i < l->n; i++) {
        l->us[i] = race_median(us[i], TURNS);
        for (int t = 0; t < TURNS; t++) ratio[t] = us[i][t] / us[0][t];
        double gain = 1 - race_median(ratio, TURNS);
        if (!i || gain < race_band(ratio, TURNS) || gain <= l->gain) continue;
        l->best = i;
        l->gain = gain;
    }
}

int layouts_race(const struct contest_env *env, const char *type, long n, long k, struct layouts *l, struct q_err *e)
{
    struct q_tensor w = { .format = q_format_by_name(type), .n = n, .k = k };
    struct product p[LAYOUTS][2];
    double us[LAYOUTS][TURNS];
    int rc = Q_OK;
    for (int i = 0; i < l->n && !rc; i++) rc = make_products(env, &w, l->name[i], 2 * i, p[i], e);
    if (!rc) rc = take_turns(env, l, p, us, e);
    if (!rc) decide(l, us);
    for (int i = 0; i < 2 * l->n; i++) env->m->drop(env->m->arg, i, 1, NULL);
    return rc;
}
