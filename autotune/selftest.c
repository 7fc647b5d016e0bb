#include "selftest.h"
#include "sizes.h"
#include <stdio.h>
#include <string.h>

static int set_cases(struct selftest *t, const struct record *r, const char *ref, struct q_err *e)
{
    struct sizes sizes;
    struct measure_problem p = { .ref = ref, .shape = r->shape };
    struct q_problem problem = { .rows = r->rows, .ctx = r->ctx };
    strcpy(problem.op, r->op);
    strcpy(problem.shape, r->shape);
    t->ref[0] = 0;
    int rc = sizes_of(&sizes, t->g, t->card, &problem, e);
    if (rc) return rc;
    memcpy(p.check, sizes.check, sizeof p.check);
    if ((rc = t->m->problem(t->m->arg, 0, &p, e)) || (rc = t->m->ready(t->m->arg, e))) return rc;
    snprintf(t->ref, sizeof t->ref, "%s", ref);
    snprintf(t->shape, sizeof t->shape, "%s", r->shape);
    return Q_OK;
}

int selftest_run(struct selftest *t, const struct record *r, const char *object, struct q_err *e)
{
    struct measure_kernel k = { .object = object, .symbol = r->kernel, .launch = r->launch, .numerics = r->numerics };
    char ref[24], hash[17];
    int rc = gen_ref(t->g, r->op, ref, e);
    if (!rc && (strcmp(ref, t->ref) || strcmp(r->shape, t->shape))) rc = set_cases(t, r, ref, e);
    return rc ? rc : t->m->check(t->m->arg, 0, &k, hash, e);
}
