#include "recorded.h"
#include "judge.h"
#include "runtime/cuda_api.h"
#include "tune.h"
#include <stdio.h>
#include <string.h>

/* A winner for exactly these steps on this card, measured with at least the effort that is asked for. */
static int answers(const struct recorded_query *q, const struct q_problem *p, const struct record *r)
{
    const struct effort *had = effort_find(r->effort);
    return r->rows == p->rows && r->ctx == p->ctx && !strcmp(r->origin, "tuned") && had && had >= q->effort && target_admits(q->t, r->numerics);
}

static int has_objects(const struct recorded_query *q, const struct record *r)
{
    char path[Q_PATH];
    for (int i = 0; i < r->n_objects; i++)
        if (store_object(q->store, r->objects[i].name, path, NULL)) return 0;
    return r->n_objects || !r->kernel[0];
}

/* What changed since the record was made; 0: nothing that is known. */
static int changed(const struct recorded_query *q, const struct record *r, char why[200])
{
    const char *was = r->n_objects ? r->objects[0].compiler : "", *is = q->compiler->version;
    if (*was && *is && strcmp(was, is)) return snprintf(why, 200, "compiled by %.80s, here is %.80s", was, is);
    if (r->driver[0] && q->driver[0] && strcmp(r->driver, q->driver))
        return snprintf(why, 200, "measured under driver %s, here is %s", r->driver, q->driver);
    return has_objects(q, r) ? 0 : snprintf(why, 200, "its object is gone");
}

/* A winner that this program would not make the same is none: somebody wrote in it. */
static enum recorded judge(const struct recorded_query *q, const struct record *r, char why[200])
{
    struct gen_kernel gk;
    struct record own;
    struct q_err bad;
    if (judge_own(q->g, &q->t->card, r, &own, &gk, &bad))
        return snprintf(why, 200, "what is recorded is not believed: %.160s", bad.text), RECORDED_NONE;
    gen_kernel_free(&gk);
    return changed(q, r, why) ? RECORDED_AGAIN : RECORDED_GOOD;
}

void recorded_driver(const struct q_card *card, char driver[32])
{
    driver[0] = 0;
    if (card->kind != Q_CARD_CUDA) return;
    cuda_driver_version(driver, 32, NULL);
    int stands_for = driver[0] ? 0 : nvrtc_driver();
    if (stands_for) snprintf(driver, 32, "cuda%d.%d", stands_for / 1000, stands_for % 1000 / 10);
}

int recorded_find(const struct recorded_query *q, const struct q_problem *p, struct record *r, enum recorded *state, char why[200], struct q_err *e)
{
    char generator[65];
    struct store_key k;
    int layer = 0, rc = target_key(q->t, q->g, p, generator, &k, e);
    *state = RECORDED_NONE;
    why[0] = 0;
    while (!rc && !q->again && *state == RECORDED_NONE && !store_find(q->store, &k, &layer, r, NULL))
        if (answers(q, p, r)) *state = judge(q, r, why);
    return rc;
}

int recorded_holds(const struct recorded_query *q, const struct q_problem *p, struct record *r)
{
    char generator[65], why[200];
    struct store_key k;
    int layer = 0, rc = target_key(q->t, q->g, p, generator, &k, NULL);
    while (!rc && !store_find(q->store, &k, &layer, r, NULL))
        if (r->rows == p->rows && r->ctx == p->ctx && !strcmp(r->origin, "tuned") && judge(q, r, why) != RECORDED_NONE) return 1;
    return 0;
}
