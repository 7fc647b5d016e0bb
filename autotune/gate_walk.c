#include "gate_walk.h"

int walk_open(struct walk *w, int seqs, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < seqs && !rc; i++) rc = q_seq_open(w->en, &w->seq[i], e);
    return rc;
}

void walk_close(struct walk *w)
{
    for (int i = 0; i < GATE_BATCH; i++) {
        if (w->seq[i]) q_seq_close(w->seq[i]);
        w->seq[i] = NULL;
    }
}

static void add(struct walk *w, int text, int pos, struct q_seq *s, int wanted)
{
    int token = w->t->ids[w->t->text[text].at + pos];
    w->rows[w->n] = (struct q_row){ .seq = s, .token = token, .pos = { -1, -1, -1 }, .parent = -1, .want = wanted ? Q_WANT_LOGITS : 0 };
    w->text[w->n] = text;
    w->pos[w->n++] = pos;
}

/* The rows that were added, as one step. */
static int run(struct walk *w, struct q_err *e)
{
    struct q_result r;
    q_ticket ticket;
    int rc = w->step(w->arg, w->text[0], w->pos[0]);
    if (!rc) rc = q_step_submit(w->en, &(struct q_step){ .rows = w->rows, .n_rows = w->n }, &ticket, e);
    if (!rc) rc = q_step_wait(w->en, ticket, &r, e);
    for (int i = 0; !rc && i < r.n_out; i++)
        rc = w->row(w->arg, w->text[r.row[i]], w->pos[r.row[i]], r.logits + (size_t)i * (size_t)w->t->vocab, e);
    return rc;
}

static int prompt(struct walk *w, const struct trace_unit *u, int i, struct q_err *e)
{
    const struct trace_text *x = &w->t->text[u->text + i];
    int rc = Q_OK;
    q_seq_clear(w->seq[i]);
    for (int from = 0; from < x->n_prompt && !rc; from += w->n) {
        int n = x->n_prompt - from < u->chunk ? x->n_prompt - from : u->chunk;
        w->n = 0;
        for (int j = 0; j < n; j++) add(w, u->text + i, from + j, w->seq[i], gate_wants(j, n));
        rc = run(w, e);
        if (!rc) w->at[i] += n;
    }
    return rc;
}

/* One token of each text that is not at its end. */
static int answer(struct walk *w, const struct trace_unit *u, int *more, struct q_err *e)
{
    w->n = 0;
    for (int i = 0; i < u->n; i++)
        if (w->at[i] < w->t->text[u->text + i].n) add(w, u->text + i, w->at[i], w->seq[i], 1);
    *more = w->n > 0;
    int rc = *more ? run(w, e) : Q_OK;
    if (rc || !*more) return rc;
    for (int i = 0; i < u->n; i++) w->at[i] += w->at[i] < w->t->text[u->text + i].n;
    return Q_OK;
}

int walk_unit(struct walk *w, const struct trace_unit *u, struct q_err *e)
{
    int rc = Q_OK, more = 1;
    for (int i = 0; i < GATE_BATCH; i++) w->at[i] = 0;
    for (int i = 0; i < u->n && !rc; i++) rc = prompt(w, u, i, e);
    while (more && !rc) rc = answer(w, u, &more, e);
    return rc;
}
