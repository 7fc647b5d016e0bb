#include "found.h"
#include <stdlib.h>
#include <string.h>

struct found *found_add(struct found_list *l, const struct q_problem *p)
{
    if (l->n == l->cap) {
        int cap = l->cap ? 2 * l->cap : 64;
        struct found *more = realloc(l->f, (size_t)cap * sizeof *more);
        if (!more) return NULL;
        l->f = more;
        l->cap = cap;
    }
    struct found *f = &l->f[l->n++];
    memset(f, 0, sizeof *f);
    f->problem = *p;
    return f;
}

struct found *found_find(const struct found_list *l, const struct q_problem *p)
{
    for (int i = 0; i < l->n; i++)
        if (q_problem_is(&l->f[i].problem, p)) return &l->f[i];
    return NULL;
}
