/* Sparse prefill as an engine's option: whether it may be on, what is said of it, and how much of the KV a step read. The choice of pages is
 * attn_pick's (templates/attn_pick/args.h). */
#include "engine_impl.h"
#include <stdlib.h>
#include <string.h>
#include "templates/attn_pick/args.h"

int engine_check_sparse(struct q_engine *en, struct q_err *e)
{
    struct q_sparse *s = &en->o.sparse;
    if (!s->mass) return Q_OK;
    if (!(s->mass > 0 && s->mass < 1))
        return q_fail(e, Q_EINPUT, "sparse prefill keeps a share of attention's mass above 0 and below 1, not %g", s->mass);
    if (en->o.numerics == Q_STRICT || en->o.numerics == Q_REFERENCE)
        return q_fail(e, Q_EINPUT, "sparse prefill leaves pages out, and which ones depends on the steps that a prompt is read in: numerics %s "
                      "allows no such thing", q_numerics_name(en->o.numerics));
    if (s->from <= 0) s->from = SPARSE_FROM;
    return Q_OK;
}

void engine_tell_sparse(const struct q_engine *en)
{
    const struct q_sparse *s = &en->o.sparse;
    if (s->share > 0) engine_say(en, "sparse prefill: a share of %g of the pages by chance, to time it; answers mean nothing", s->share);
    else if (s->mass)
        engine_say(en, "sparse prefill: rows that see more than %d tokens read the pages with about %g %% of their attention; answers may differ",
                   s->from, 100 * s->mass);
}

/* Pages read of pages seen, over the blocks of rows and KV heads that the last step had lists for. */
static double share_of(const struct step *st, const i32 *pick, int kv_heads)
{
    double read = 0, seen = 0;
    for (int q = 0, block = 0; q < st->n_seqs; q++)
        for (int from = 0; from < st->seq_rows[q]; from += PICK_ROWS, block++) {
            int last = from + PICK_ROWS < st->seq_rows[q] ? from + PICK_ROWS : st->seq_rows[q];
            for (int j = 0; j < kv_heads; j++) {
                read += pick[((size_t)block * (size_t)kv_heads + (size_t)j) * (size_t)(1 + st->page_stride)];
                seen += st->kv[st->seq_row[q] + last - 1] / KV_PAGE + 1;
            }
        }
    return read / seen;
}

int q_engine_sparse_share(struct q_engine *en, double *share, struct q_err *e)
{
    const struct step *st = &en->table.host;
    if (!en->scratch.pick || !st->n_rows) return q_fail(e, Q_EINPUT, "no step was sparse");
    int kv_heads = en->model->config.n_head_kv;
    size_t bytes = (size_t)pick_first_block(st, st->n_seqs) * (size_t)kv_heads * (size_t)(1 + st->page_stride) * sizeof(i32);
    i32 *pick = malloc(bytes);
    if (!pick) return q_fail(e, Q_EMEM, "no memory for the lists of a step's pages");
    int rc = en->device->ops->read(en->device, pick, en->scratch.pick, bytes, e);
    if (!rc) *share = share_of(st, pick, kv_heads);
    free(pick);
    return rc;
}
