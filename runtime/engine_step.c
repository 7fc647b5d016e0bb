/* Steps: what a step's rows are checked for, the lists that run them, and the results that come back. */
#include "engine_impl.h"
#include "trace.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* rows: those that the list's kernels see. */
static struct q_extent extent(const struct q_engine *en, int rows)
{
    return (struct q_extent){rows, en->table.n_seqs, en->table.ctx};
}

static int submit(struct q_engine *en, const struct q_list *list, int rows, struct q_err *e)
{
    double *trace = en->trace ? trace_list(en->trace, list, rows) : NULL;
    struct q_extent x = extent(en, rows);
    return en->device->ops->submit(en->device, list, &x, trace, e);
}

/* Residual rows after layer taps[i], one list up to each tap. */
static int run_tapped(struct q_engine *en, const struct q_step *s, enum q_form form, struct q_err *e)
{
    const struct q_forward *f = &en->forward;
    int n = en->model->config.n_embd, from = 0, rc = Q_OK;
    struct q_extent x = extent(en, s->n_rows);
    for (int i = 0; i <= s->n_taps && !rc; i++) {
        int to = i < s->n_taps ? f->end[form][s->taps[i]] : f->layers[form].n;
        struct q_list part = {.launch = f->layers[form].launch + from, .n = to - from};
        if (to > from) rc = en->device->ops->submit(en->device, &part, &x, NULL, e);
        if (!rc) rc = en->device->ops->wait(en->device, e);   /* `part` ends with this turn */
        size_t bytes = (size_t)s->n_rows * (size_t)n * sizeof(float);
        if (!rc && i < s->n_taps)
            rc = en->device->ops->read(en->device, s->tap_out + (size_t)i * (size_t)s->n_rows * (size_t)n, en->scratch.x, bytes, e);
        from = to;
    }
    return rc;
}

static int run_head(struct q_engine *en, const struct q_step *s, struct q_err *e)
{
    const struct q_config *c = &en->model->config;
    size_t outs = (size_t)en->table.host.n_out;
    if (!outs) return Q_OK;
    int rc = submit(en, &en->forward.head[outs <= Q_FEW_ROWS ? Q_FEW : Q_MANY], (int)outs, e);
    if (!rc && en->table.want & Q_WANT_TOP) rc = submit(en, &en->forward.top, (int)outs, e);
    if (!rc && s->hidden_out) rc = en->device->ops->read(en->device, s->hidden_out, en->scratch.hn, outs * (size_t)c->n_embd * sizeof(float), e);
    /* Before sampling, which may overwrite them. */
    if (!rc && en->table.want & Q_WANT_LOGITS)
        rc = en->device->ops->read(en->device, en->logits, en->scratch.logits, outs * (size_t)c->n_vocab * sizeof(float), e);
    if (!rc && en->table.want & Q_WANT_ID) rc = submit(en, &en->forward.sample, (int)outs, e);
    return rc;
}

static int check_step(struct q_engine *en, const struct q_step *s, struct q_err *e)
{
    if (en->in_flight) return q_fail(e, Q_EINTERNAL, "step %llu is still in flight; this version runs one at a time", en->ticket);
    for (int i = 0; i < s->n_taps; i++)
        if (s->taps[i] < 0 || s->taps[i] >= en->model->config.n_layers || (i && s->taps[i] <= s->taps[i - 1]))
            return q_fail(e, Q_EINPUT, "layer %d cannot be tapped: layers must ascend, from 0 to %d", s->taps[i], en->model->config.n_layers - 1);
    return step_table_check(&en->table, s, e);
}

static enum q_form form_of(const struct q_engine *en, const struct q_step *s)
{
    if (s->n_rows <= Q_FEW_ROWS) return Q_FEW;
    return s->n_rows <= Q_WIDE_ROWS && en->table.n_seqs == s->n_rows ? Q_WIDE : Q_MANY;
}

/* A step that one list does: its rows all want an id and nothing else. */
static int is_decode(const struct q_engine *en, const struct q_step *s, enum q_form form)
{
    return form != Q_MANY && en->table.host.n_out == s->n_rows && en->table.want == Q_WANT_ID && !s->n_taps && !s->hidden_out;
}

static int run_parts(struct q_engine *en, const struct q_step *s, enum q_form form, struct q_err *e)
{
    int rc = submit(en, &en->forward.embed, s->n_rows, e);
    if (!rc) rc = s->n_taps ? run_tapped(en, s, form, e) : submit(en, &en->forward.layers[form], s->n_rows, e);
    return rc ? rc : run_head(en, s, e);
}

int q_step_submit(struct q_engine *en, const struct q_step *s, q_ticket *t, struct q_err *e)
{
    int rc = check_step(en, s, e);
    if (!rc && en->trace) trace_step(en->trace, s->n_rows, q_seq_length(s->rows[0].seq));
    if (!rc) rc = step_table_fill(&en->table, s, e);
    if (rc) return rc;
    enum q_form form = form_of(en, s);
    rc = is_decode(en, s, form) ? submit(en, &en->forward.decode[form], s->n_rows, e) : run_parts(en, s, form, e);
    if (rc) return rc;
    en->in_flight = 1;
    *t = ++en->ticket;
    return Q_OK;
}

/* A row whose post-norm values are no numbers has no meaningful logits, whatever sampling makes of them. Where every row has an id,
 * their logprobs tell: infinite or NaN values leave no finite one. */
static int check_finite(struct q_engine *en, struct q_err *e)
{
    size_t n = (size_t)en->model->config.n_embd;
    int told = en->table.want & Q_WANT_ID ? en->table.host.n_out : 0;
    for (int i = 0; i < told; i++)
        if (!isfinite(en->logprob[i])) told = 0;
    if (told) return Q_OK;
    for (int i = 0; i < en->table.host.n_out; i++) {
        int rc = en->device->ops->read(en->device, en->hidden, en->scratch.hn + (size_t)i * n, n * sizeof(float), e);
        if (rc) return rc;
        for (size_t j = 0; j < n; j++)
            if (!isfinite(en->hidden[j]))
                return q_fail(e, Q_EINPUT, "%s: the values of row %d of the step are infinite or NaN; `quarry show --check` looks for broken weights",
                              en->model->path, en->table.out_row[i]);
    }
    return Q_OK;
}

/* Ids and logprobs, which lie side by side, in one read: each waits for the device. */
static int read_sampled(struct q_engine *en, size_t n, struct q_err *e)
{
    const struct q_scratch *s = &en->scratch;
    size_t apart = (size_t)((char *)s->logprob - (char *)s->id);
    int rc = en->device->ops->read(en->device, en->sampled, s->id, apart + n * sizeof(float), e);
    if (rc) return rc;
    memcpy(en->id, en->sampled, n * sizeof(int));
    memcpy(en->logprob, en->sampled + apart, n * sizeof(float));
    return Q_OK;
}

/* What the step's rows asked for, from the device to the host. */
static int read_results(struct q_engine *en, struct q_err *e)
{
    const struct q_device_ops *ops = en->device->ops;
    const struct q_scratch *s = &en->scratch;
    size_t n = (size_t)en->table.host.n_out;
    int rc = Q_OK;
    if (en->table.want & Q_WANT_ID) {
        rc = read_sampled(en, n, e);
    }
    if (!rc) rc = check_finite(en, e);
    if (!rc && en->table.want & Q_WANT_TOP) {
        rc = ops->read(en->device, en->top_id, s->top_id, n * Q_TOP * sizeof(int), e);
        if (!rc) rc = ops->read(en->device, en->top_value, s->top_value, n * Q_TOP * sizeof(float), e);
        if (!rc) rc = ops->read(en->device, en->lse, s->lse, n * sizeof(float), e);
    }
    return rc;
}

int q_step_wait(struct q_engine *en, q_ticket t, struct q_result *r, struct q_err *e)
{
    if (!en->in_flight || t != en->ticket) return q_fail(e, Q_EINPUT, "ticket %llu is not in flight", t);
    int rc = en->device->ops->wait(en->device, e);
    if (!rc && en->trace) trace_collect(en->trace);
    if (!rc) rc = read_results(en, e);
    en->in_flight = 0;
    unsigned want = en->table.want;
    if (!rc && r)
        *r = (struct q_result){.n_out = en->table.host.n_out, .n_vocab = en->model->config.n_vocab, .row = en->table.out_row, .id = en->id,
                               .logprob = en->logprob, .logits = want & Q_WANT_LOGITS ? en->logits : NULL,
                               .top_id = want & Q_WANT_TOP ? en->top_id : NULL, .top_value = en->top_value, .lse = en->lse};
    return rc;
}

/* One chunk of a prompt; only its last row may want something. */
static int run_chunk(struct q_engine *en, struct q_seq *s, const int *ids, int n, unsigned want, const struct q_sampling *sampling,
                     struct q_row *rows, struct q_result *r, struct q_err *e)
{
    q_ticket t;
    for (int i = 0; i < n; i++) rows[i] = (struct q_row){.seq = s, .token = ids[i], .pos = {-1, -1, -1}, .parent = -1};
    rows[n - 1].want = want;
    rows[n - 1].sampling = sampling;
    struct q_step step = {.rows = rows, .n_rows = n};
    int rc = q_step_submit(en, &step, &t, e);
    return rc ? rc : q_step_wait(en, t, r, e);
}

int q_prefill(struct q_engine *en, struct q_seq *s, const int *ids, int n, int chunk, unsigned want, const struct q_sampling *sampling,
              struct q_result *r, struct q_err *e)
{
    if (chunk <= 0 || chunk > en->o.max_rows) chunk = en->o.max_rows;
    if (n < 1) return q_fail(e, Q_EINPUT, "there is nothing to read: expected at least one token");
    if (q_seq_length(s) + n > en->o.ctx)
        return q_fail(e, Q_ELIMIT, "the prompt has %d tokens; with %d in the sequence they do not fit the context of %d", n, q_seq_length(s),
                      en->o.ctx);
    struct q_row *rows = malloc((size_t)chunk * sizeof *rows);
    if (!rows) return q_fail(e, Q_EMEM, "no memory for a step of %d rows", chunk);
    int rc = Q_OK;
    for (int at = 0; at < n && !rc; at += chunk) {
        int m = n - at < chunk ? n - at : chunk;
        rc = run_chunk(en, s, ids + at, m, at + m == n ? want : 0, sampling, rows, r, e);
    }
    free(rows);
    return rc;
}
