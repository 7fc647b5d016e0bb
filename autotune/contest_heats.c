/* A race holds as many candidates as RACE_MOST. Where all legal ones are to be tried, the winner so far meets as many of the others as fit,
 * heat after heat. */
#include "contest_impl.h"
#include <stdlib.h>
#include <string.h>

/* The default stays the first, the champion becomes the second; all others make room. */
static void keep_champion(struct contest *t, int *best)
{
    for (int i = 1; i < t->n; i++)
        if (i != *best) gen_kernel_free(&t->c[i].k);
    if (*best > 1) {
        struct candidate *c = &t->c[1];
        *c = t->c[*best];
        t->r[1] = t->r[*best];
        c->task.kernel = &c->k;
        c->who.c.params = c->k.params;
        c->who.c.object = c->task.object.name;
    }
    t->n = *best ? 2 : 1;
    *best = t->n - 1;
}

int contest_try_rest(struct contest *t, int *best, struct q_err *e)
{
    int next = 0, rc = Q_OK;
    char *tried = calloc((size_t)t->space.n + 1, 1);
    if (!tried) return q_fail(e, Q_EMEM, "no memory for %d candidates", t->space.n);
    for (int i = 0; i < t->n; i++) {
        int at = space_find(&t->space, t->c[i].k.params);
        if (at >= 0) tried[at] = 1;
    }
    while (!rc && next < t->space.n) {
        keep_champion(t, best);
        int from = t->n;
        for (; next < t->space.n && t->n < RACE_MOST && !rc; next++)
            if (!tried[next]) rc = contest_add(t, t->space.params[next], e);
        if (!rc && t->n > from) rc = contest_heat(t, from, best, e);
    }
    free(tried);
    return rc;
}
