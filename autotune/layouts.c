#include "layouts.h"
#include "race.h"
#include "runtime/kset_shapes.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR 1.3     /* a layout that slow is none, whatever more turns tell */
enum { READ_TOKENS = 512, ANSWER_TOKENS = 128, LOOKS = 2, FEW = 15, TURNS = 41 };

/* The best kernel of one product under one layout; its problem stays in a slot of the measurer. */
struct product {
    char object[Q_PATH], symbol[160];
    struct q_phases launch;
    int slot, rows;
    double per_request;        /* calls of that many rows in a request */
};

static int make_product(const struct contest_env *env, const char *op, const char *shape, double tokens, int slot, struct product *p, struct q_err *e)
{
    struct contest_env mine = *env;
    struct effort brief = *env->effort;
    struct q_problem problem = { .rows = 0 };
    struct outcome out;
    mine.slot = slot;
    mine.effort = &brief;
    brief.budget_us /= 3;      /* a layout is judged by its own race */
    brief.brief = 1;
    snprintf(problem.op, sizeof problem.op, "%s", op);
    snprintf(problem.shape, sizeof problem.shape, "%s", shape);
    int rc = contest_run(&mine, &problem, NULL, NULL, 0, env->effort->layout, 0, &out, e);
    if (!rc) rc = store_object(env->build->store, out.record.objects[0].name, p->object, e);
    if (!rc) rc = env->m->drop(env->m->arg, slot, 0, e);
    if (rc) return rc;
    snprintf(p->symbol, sizeof p->symbol, "%s", out.record.kernel);
    p->launch = out.record.launch;
    p->slot = slot;
    p->rows = out.record.time[0].rows;
    p->per_request = tokens / p->rows;
    return Q_OK;
}

static int make_products(const struct contest_env *env, const struct q_tensor *w, const char *layout, int n_products, int slot, struct product p[2],
                         struct q_err *e)
{
    char shape[Q_SHAPE_TEXT];
    shape_matmul(shape, sizeof shape, w, kset_act(w, env->t->numerics), layout, 0);
    int rc = make_product(env, "matvec", shape, ANSWER_TOKENS, slot, &p[0], e);
    return rc || n_products < 2 ? rc : make_product(env, "matmul", shape, READ_TOKENS, slot + 1, &p[1], e);
}

/* place: products of the same weight, under any layout, whose memory the kernels of p read. They took as long over each other's
 * as over their own (r16 and r16u, an output head). */
static int request_us(const struct contest_env *env, const struct product *p, const struct product *place, int n_products, double *us,
                      struct q_err *e)
{
    int rc = Q_OK;
    *us = 0;
    for (int i = 0; i < n_products && !rc; i++) {
        struct measure_kernel k = { .object = p[i].object, .symbol = p[i].symbol, .launch = p[i].launch };
        double one;
        rc = env->m->time(env->m->arg, place[i].slot, &k, 0, 1, &one, e);
        if (!rc) *us += p[i].per_request * one;
    }
    return rc;
}

struct turns {
    struct product p[LAYOUTS][2];
    int n_products, on_card;
    int out[LAYOUTS];                /* no more turns: far behind in the first ones, or told apart from the others */
    int had[LAYOUTS];                /* turns */
    double us[LAYOUTS][TURNS];       /* of a request */
    int n;
};

/* On a CPU all read the same memory in a turn, another's in the next but one: which pages a ring of cases got makes up to a fifth of its time, for as
 * long as it lives, and would pass for a layout's. */
static int take_turn(const struct contest_env *env, const struct layouts *l, struct turns *t, struct q_err *e)
{
    int rc = Q_OK, place = t->n / 2 % l->n, in[LAYOUTS], order[LAYOUTS], k = 0;
    for (int i = 0; i < l->n; i++)
        if (!t->out[i]) in[k++] = i;
    race_order(t->n, k, order);
    for (int j = 0; j < k && !rc; j++) {
        int i = in[order[j]];
        rc = request_us(env, t->p[i], t->p[t->on_card ? i : place], t->n_products, &t->us[i][t->n], e);
        t->had[i] = t->n + 1;
    }
    t->n++;
    return rc;
}

/* By the better of two turns: one may have met a pause of the machine. */
static void drop_slow(const struct layouts *l, struct turns *t)
{
    double best = INFINITY, least[LAYOUTS];
    for (int i = 0; i < l->n; i++) {
        least[i] = sample_low(t->us[i], t->n);
        best = fmin(best, least[i]);
    }
    for (int i = 1; i < l->n; i++) t->out[i] = least[i] > FAR * best;
}

/* What b saves of a's time, told as a duel's gain is (race.h), by the turns that both had. */
static double saved_by(const struct turns *t, int a, int b, double *noise)
{
    double ratio[TURNS];
    int n = t->had[a] < t->had[b] ? t->had[a] : t->had[b];
    for (int j = 0; j < n; j++) ratio[j] = t->us[b][j] / t->us[a][j];
    double middle = t->on_card ? race_middle(ratio, n) : race_median(ratio, n), low = sample_low(t->us[b], n) / sample_low(t->us[a], n);
    *noise = fmax(race_noise(ratio, n), t->on_card ? 0 : fabs(middle - low) / 2);
    return t->on_card ? 1 - middle : race_both(1 - middle, 1 - low);
}

/* A step, and twice its noise: another layout changes all problems of the weight. */
static int gains(const void *arg, int a, int b, double *gain, double *noise)
{
    *gain = saved_by(arg, a, b, noise);
    return *gain >= fmax(RACE_STEP, 2 * *noise);
}

/* In their order, the default first. Non-zero: more turns of those that are not `out` now may tell otherwise. */
static int choose(struct layouts *l, struct turns *t)
{
    int of[LAYOUTS], k = 0;
    char more[LAYOUTS] = { 0 };
    for (int i = 0; i < l->n; i++)
        if (!t->out[i]) of[k++] = i;
    int open = race_choose(of, k, gains, t, &l->best, more);
    more[0] = more[l->best] = 1;
    for (int i = 0; i < l->n; i++) t->out[i] |= !more[i];
    return open;
}

static void conclude(struct layouts *l, const struct turns *t)
{
    for (int i = 0; i < l->n; i++) {
        l->us[i] = t->had[i] > LOOKS ? race_median(t->us[i], t->had[i]) : 0;
        l->saved[i] = saved_by(t, 0, i, &l->noise[i]);
    }
    l->gain = l->best ? fmax(l->saved[l->best], 0) : 0;
}

static int make_all(const struct contest_env *env, const char *type, long n, long k, const struct layouts *l, struct turns *t, struct q_err *e)
{
    struct q_tensor w = { .format = q_format_by_name(type), .n = n, .k = k };
    int rc = Q_OK;
    for (int i = 0; i < l->n && !rc; i++) rc = make_products(env, &w, l->name[i], t->n_products, 2 * i, t->p[i], e);
    return rc;
}

int layouts_race(const struct contest_env *env, const char *type, long n, long k, int is_head, struct layouts *l, struct q_err *e)
{
    struct turns *t = calloc(1, sizeof *t);
    if (!t) return q_fail(e, Q_EMEM, "no memory for a race of layouts");
    t->n_products = is_head ? 1 : 2;
    t->on_card = env->t->card.kind == Q_CARD_CUDA;
    int open = 1, rc = make_all(env, type, n, k, l, t, e);
    for (int i = 0; i < LOOKS && !rc; i++) rc = take_turn(env, l, t, e);
    if (!rc) drop_slow(l, t);
    while (!rc && (t->n < FEW || (open && t->n < TURNS)))
        if (!(rc = take_turn(env, l, t, e)) && t->n >= FEW) open = choose(l, t);
    if (!rc) conclude(l, t);
    for (int i = 0; i < 2 * l->n; i++) env->m->drop(env->m->arg, i, 1, NULL);
    free(t);
    return rc;
}
