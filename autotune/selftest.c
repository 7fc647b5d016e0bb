#include "selftest.h"
#include "sizes.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Both cases share a call's weights, in the child's memory. A set may name any shape: the machine must not be driven out of memory by it. */
static int check_memory(const struct selftest *t, const struct record *r, struct q_err *e)
{
    double bytes = 0, ops = 0, have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (!strcmp(r->op, "ceiling")) return Q_OK;    /* has no sizes */
    if (gen_cost(t->g, r->op, r->shape, 1, 0, &bytes, &ops, e)) return Q_EINTERNAL;
    if (2.2 * bytes <= have) return Q_OK;
    return q_fail(e, Q_EINTERNAL, "its test takes %.1f GB of memory, and here are %.1f", 2.2e-9 * bytes, 1e-9 * have);
}

static int set_cases(struct selftest *t, const struct record *r, struct measure_problem *p, struct q_err *e)
{
    t->ref[0] = 0;
    int rc = check_memory(t, r, e);
    if (rc || (rc = t->m->problem(t->m->arg, 0, p, e)) || (rc = t->m->ready(t->m->arg, e))) return rc;
    snprintf(t->ref, sizeof t->ref, "%s", p->ref);
    snprintf(t->shape, sizeof t->shape, "%s", p->shape);
    memcpy(t->check, p->check, sizeof t->check);
    return Q_OK;
}

/* Has the child hold the record's cases. Ops that share a ref share them where their sizes are the same. */
static int need_cases(struct selftest *t, const struct record *r, struct q_err *e)
{
    char ref[24];
    struct sizes sizes;
    struct measure_problem p = { .ref = ref, .shape = r->shape };
    struct q_problem problem = { .rows = r->rows, .ctx = r->ctx };
    strcpy(problem.op, r->op);
    strcpy(problem.shape, r->shape);
    int rc = gen_ref(t->g, r->op, ref, e);
    if (!rc) rc = sizes_of(&sizes, t->g, t->card, &problem, e);
    if (rc) return rc;
    memcpy(p.check, sizes.check, sizeof p.check);
    int held = !strcmp(ref, t->ref) && !strcmp(r->shape, t->shape) && !memcmp(p.check, t->check, sizeof p.check);
    return held ? Q_OK : set_cases(t, r, &p, e);
}

int selftest_run(struct selftest *t, const struct record *r, const char *object, struct q_err *e)
{
    struct measure_kernel k = { .object = object, .symbol = r->kernel, .launch = r->launch, .numerics = r->numerics };
    char hash[17];
    int rc = need_cases(t, r, e);
    return rc ? rc : t->m->check(t->m->arg, 0, &k, hash, e);
}
