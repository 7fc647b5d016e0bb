#include "gate_score.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const int score_until[SCORE_PLACES] = { 64, 256, 1024, 2048, 4096, INT_MAX };

static double logsumexp(const float *x, int n, float max)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double)x[i] - max);
    return max + log(sum);
}

double gate_divergence(const float *ref, const float *got, int n)
{
    double zr = logsumexp(ref, n, ref[gate_largest(ref, n)]), zg = logsumexp(got, n, got[gate_largest(got, n)]), kld = 0;
    for (int i = 0; i < n; i++) kld += exp(ref[i] - zr) * ((ref[i] - zr) - (got[i] - zg));
    return kld;
}

static double angle(const float *a, const float *b, int n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? 1 - ab / sqrt(aa * bb) : NAN;
}

double gate_drift(const float *a, const float *b, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs((double)a[i] - b[i]));
    return most;
}

/* "'text' (id)", bytes that are no printable ASCII or UTF-8 lead as they are, control characters as '.'. */
static void token_text(char *dst, size_t cap, const struct tokenizer *tok, int id)
{
    struct tok_str p = tok ? tok_piece(tok, id) : (struct tok_str){ "", 0 };
    struct tok_stream whole = { 0 };
    struct tok_text text = { 0 };
    if (tok && !tok_stream_push(&whole, tok, id, &text, NULL) && !tok_stream_flush(&whole, &text, NULL)) p = (struct tok_str){ text.at, text.n };
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.at[i] < ' ') text.at[i] = '.';
    snprintf(dst, cap, "%d '%.*s'", id, p.n < 24 ? (int)p.n : 24, p.n ? p.at : "");
    free(text.at);
}

/* The largest margins first. */
static void keep_worst(struct scorer *c, double margin, const char *line)
{
    int i = SCORE_WORST - 1;
    if (c->s.worst[i][0] && !(margin > c->margin[i])) return;
    for (; i > 0 && (!c->s.worst[i - 1][0] || margin > c->margin[i - 1]); i--) {
        c->margin[i] = c->margin[i - 1];
        memcpy(c->s.worst[i], c->s.worst[i - 1], sizeof c->s.worst[i]);
    }
    c->margin[i] = margin;
    snprintf(c->s.worst[i], sizeof c->s.worst[i], "%s", line);
}

static void disagree(struct scorer *c, const struct trace_row *r, int got)
{
    char want_text[48], got_text[48], line[160];
    token_text(want_text, sizeof want_text, c->tok, r->first);
    token_text(got_text, sizeof got_text, c->tok, got);
    snprintf(line, sizeof line, "%s position %d: %s instead of %s, margin %.3f", c->t->text[r->text].name, r->pos, got_text, want_text,
             (double)r->margin);
    c->s.differ++;
    c->s.exceptions += r->margin > GATE_MARGIN;
    if (c->report) fprintf(c->report, "  %s\n", line);
    keep_worst(c, r->margin, line);
}

static struct score_place *place_of(struct scorer *c, int pos)
{
    int i = 0;
    while (pos >= score_until[i]) i++;
    return &c->s.place[i];
}

static void compare(struct scorer *c, const struct trace_row *r, const float *ref, const float *got)
{
    struct score_place *p = place_of(c, r->pos);
    double kld = gate_divergence(ref, got, c->t->vocab);
    c->s.kld += kld;
    c->s.angle += angle(ref, got, c->t->vocab);
    c->s.kept++;
    p->kld += kld;
    p->drift = fmax(p->drift, gate_drift(ref, got, c->t->vocab));
    p->kept++;
}

int score_row(struct scorer *c, int text, int pos, const float *got, struct q_err *e)
{
    if (c->s.rows >= c->t->n_rows) return q_fail(e, Q_EINTERNAL, "gate: more rows than the reference has");
    const struct trace_row *r = &c->t->row[c->s.rows];
    const float *ref = gate_trace_logits(c->t, c->s.rows++);
    if (r->text != text || r->pos != pos)
        return q_fail(e, Q_EINTERNAL, "gate: row of text %d at %d where the reference has text %d at %d", text, pos, r->text, r->pos);
    int first = gate_largest(got, c->t->vocab);
    if (!isfinite(got[first])) c->s.kld = NAN;
    place_of(c, pos)->margin += r->margin;
    place_of(c, pos)->rows++;
    if (ref) compare(c, r, ref, got);
    if (first != r->first && !c->t->synthetic) disagree(c, r, first);
    return Q_OK;
}

void score_finish(struct scorer *c)
{
    int n = c->s.kept ? c->s.kept : 1;
    c->s.kld /= n;
    c->s.angle /= n;
    for (struct score_place *p = c->s.place; p < c->s.place + SCORE_PLACES; p++) {
        p->kld /= p->kept ? p->kept : 1;
        p->margin /= p->rows ? p->rows : 1;
    }
}
