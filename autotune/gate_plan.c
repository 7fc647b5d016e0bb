#include "gate_plan.h"

/* Multiply-adds of a row that do not depend on its position. */
static double of_layer(const struct q_layer *l, const struct q_config *c)
{
    const struct q_tensor *all[] = { &l->ffn_gate, &l->ffn_up, &l->ffn_down, &l->wq, &l->wk, &l->wv, &l->wo, &l->qkv, &l->z,
                                    &l->alpha, &l->beta, &l->conv, &l->ssm_out };
    double sum = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sum += (double)all[i]->n * (double)all[i]->k;
    /* The delta rule reads, changes and reads again a state of state_dim by state_dim a value head. */
    if (l->kind == Q_LAYER_GDN) sum += 3.0 * c->n_v_heads * c->state_dim * c->state_dim;
    return sum;
}

/* And a position more of context: keys and values of all attention layers. */
static double of_context(const struct q_config *c) { return 2.0 * q_count_layers(c, Q_LAYER_ATTN) * c->n_head * c->head_dim; }

static double of_row(const struct q_model *m)
{
    double sum = 0;
    for (int i = 0; i < m->config.n_layers; i++) sum += of_layer(&m->layers[i], &m->config);
    return sum;
}

/* Rows of the unit's prompts and answers as steps of at least `least`. */
static double rows_of(const struct trace *t, const struct trace_unit *u, int least)
{
    double rows = 0;
    int steps = 0;
    for (int i = u->text; i < u->text + u->n; i++) {
        int n = t->text[i].n - t->text[i].n_prompt;
        rows += t->text[i].n_prompt > least ? t->text[i].n_prompt : least;
        steps = n > steps ? n : steps;
    }
    return rows + (double)steps * (u->n > least ? u->n : least);
}

double gate_unit_work(const struct trace *t, const struct trace_unit *u, const struct q_model *m, int least)
{
    double work = rows_of(t, u, least) * of_row(m);
    for (int i = u->text; i < u->text + u->n; i++) work += 0.5 * t->text[i].n * t->text[i].n * of_context(&m->config);
    return work + (double)gate_unit_rows(t, u) * (double)m->head.n * (double)m->head.k;
}

static void shorten(struct trace *t, const struct q_model *m, const struct gate_speed *s, double work)
{
    const struct trace_unit *u = &t->unit[0];
    for (int i = u->text; i < u->text + u->n; i++)
        while (t->text[i].n > t->text[i].n_prompt + GATE_LEAST_ANSWER && gate_unit_work(t, u, m, s->least) > work) t->text[i].n--;
}

int gate_choose(struct trace *t, const struct q_model *m, const struct gate_speed *s, double seconds, int must, struct q_err *e)
{
    double left = s->rate * seconds, first = gate_unit_work(t, &t->unit[0], m, s->least);
    if (first > left && !must) return q_fail(e, Q_ELIMIT, "its first text would take about %.0f s, and it has %.1f s", first / s->rate, seconds);
    shorten(t, m, s, left);
    for (int u = 0; u < t->n_units; u++) {
        double work = gate_unit_work(t, &t->unit[u], m, s->least);
        t->unit[u].chosen = work <= left || !u;
        if (t->unit[u].chosen) left -= work;
    }
    return Q_OK;
}
