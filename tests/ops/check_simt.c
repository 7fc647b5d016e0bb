/* Running one CUDA candidate on one trial, on tests/simt: as check.c does it for a CPU's, over grids of whole buckets, with
 * blocks and warps in other orders and other bytes in shared memory each time. */
#include "op_check.h"
#include "tests/simt/simt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VIEWS = 128 };

static int up_to_power(int n, int least, int factor)
{
    int p = least;
    while (p < n) p *= factor;
    return p;
}

/* The bucket that a step of this size falls in. */
static struct q_extent extent_of(const struct ref_size *z)
{
    return (struct q_extent){up_to_power(z->rows, 1, 2), up_to_power(z->seqs, 1, 2), up_to_power(z->past + z->rows, 1024, 4)};
}

/* What may be read before pdl_wait(): what no kernel writes, weights and the step's tables; states where nothing before in a step
 * writes them. */
static int is_settled(const struct ref_view *v, const char *op)
{
    static const char *const names[] = {"w", "wq", "wk", "q_norm", "k_norm", "freq", "a", "dt", "n_rows", "list", "step", "token",
                                        "pos", "seq", "kv", "pages", "seq_segment", "segments", "seq_row", "seq_rows"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(v->name, names[i])) return v->role == REF_IN;
    return !strcmp(op, "gdn_step_norm") && !strcmp(v->name, "state");
}

static int views(struct simt_buffer out[MOST_VIEWS], const struct ref_case *c, const char *op)
{
    struct ref_view v;
    int n = 0;
    for (; n < MOST_VIEWS && !ref_case_view(c, n, &v); n++)
        out[n] = (struct simt_buffer){v.name, v.data, v.bytes, v.role != REF_IN, is_settled(&v, op)};
    return n;
}

static int run_once(const char *object, const struct gen_kernel *k, const struct truth *t, int i, unsigned long long seed,
                    unsigned long long *hash, struct q_err *e)
{
    struct simt_buffer buffer[MOST_VIEWS];
    const struct trial_case *c = &t->c[i][0];
    ref_case_restore(c->c, t->begin[i][0]);
    struct simt_call call = {.name = k->name,
                             .source = k->source,
                             .object = object,
                             .launch = &k->launch,
                             .extent = extent_of(&t->trial->size[i]),
                             .cc = atoi(k->arch + 3),
                             .args = c->args,
                             .args_bytes = t->ref->args_bytes,
                             .buffer = buffer,
                             .n_buffers = views(buffer, c->c, t->ref->op),
                             .seed = seed};
    int rc = simt_run(&call, e);
    if (!rc) rc = ref_case_compare(t->want[i], c->c, k->numerics, e);
    if (!rc) *hash = ref_case_hash(c->c);
    return rc;
}

void kernel_check_simt(struct verdict *v, const char *object, const struct gen_kernel *k, const struct truth *t)
{
    struct q_err e = {0};
    memset(v, 0, sizeof *v);
    v->ran = 1;
    if (!k->launch.n) q_fail(&e, Q_EINTERNAL, "a CUDA candidate without a launch");
    for (int i = 0; !e.code && i < t->trial->n_sizes; i++) {
        const struct ref_size *z = &t->trial->size[i];
        unsigned long long second = 0;
        struct q_err why = {0};
        if (run_once(object, k, t, i, 0, &v->hash[i], &why) || run_once(object, k, t, i, (unsigned)i + 1, &second, &why))
            q_fail(&e, why.code, "rows %d, seqs %d, past %d: %s", z->rows, z->seqs, z->past, why.text);
        else if (second != v->hash[i])
            q_fail(&e, Q_EINTERNAL,
                   "rows %d, seqs %d, past %d: the order of blocks or old bytes in shared memory change the result", z->rows,
                   z->seqs, z->past);
    }
    v->failed = e.code != 0;
    snprintf(v->why, sizeof v->why, "%.599s", e.text);
}
