#include "gate_texts.h"
#include <stdlib.h>
#include <string.h>

enum { SHORT_PROMPT = 320, LONG_PROMPT = 4180, LONG_MOST = 4900, STAGGER = 8 };

/* Texts a unit, and the chunks of its prompts. */
static const struct {
    int n, chunk, large;
} units[] = { { 1, GATE_STEP, 0 }, { 3, GATE_STEP, 0 }, { 1, GATE_STEP, 1 }, { 2, 37, 0 }, { 4, GATE_STEP, 0 }, { 8, GATE_STEP, 0 },
              { 1, 64, 0 }, { 1, 300, 1 }, { 1, GATE_STEP, 1 } };
static const struct {
    int n, chunk, prompt;
} made[] = { { 1, GATE_STEP, 40 }, { 4, GATE_STEP, 24 }, { 1, 200, 500 } };

int gate_wants(int i, int n) { return (n - 1 - i) % ((n + GATE_OUT - 1) / GATE_OUT) == 0; }

static int prompt_rows(int n_prompt, int chunk)
{
    int rows = 0;
    for (int from = 0; from < n_prompt; from += chunk) {
        int n = n_prompt - from < chunk ? n_prompt - from : chunk;
        for (int i = 0; i < n; i++) rows += gate_wants(i, n);
    }
    return rows;
}

int gate_unit_rows(const struct trace *t, const struct trace_unit *u)
{
    int rows = 0;
    for (int i = u->text; i < u->text + u->n; i++) rows += prompt_rows(t->text[i].n_prompt, u->chunk) + t->text[i].n - t->text[i].n_prompt;
    return rows;
}

int gate_rows(const struct trace *t)
{
    int rows = 0;
    for (int u = 0; u < t->n_units; u++) rows += t->unit[u].chosen ? gate_unit_rows(t, &t->unit[u]) : 0;
    return rows;
}

/* A text of that many ids, which the caller fills. */
static struct trace_text *add_text(struct trace *t, const char *name, int n_prompt, int answer)
{
    if (t->n_texts == TRACE_TEXTS || n_prompt < 1 || t->n_ids + n_prompt + answer > TRACE_IDS) return NULL;
    struct trace_text *x = &t->text[t->n_texts++];
    strncpy(x->name, name, sizeof x->name - 1);
    x->at = t->n_ids;
    x->n_prompt = n_prompt;
    x->n = n_prompt + answer;
    t->n_ids += x->n;
    return x;
}

static int encode(const struct tokenizer *tok, const char *text, struct tok_ids *ids, struct q_err *e)
{
    ids->n = 0;
    return text ? tok_encode(tok, text, strlen(text), TOK_PARSE_CONTROL, ids, e) : q_fail(e, Q_EMEM, "no memory for the gate's texts");
}

/* As many entries as this tokenizer needs for a little more than LONG_PROMPT tokens. */
static int encode_long(const struct tokenizer *tok, const char *name, struct tok_ids *ids, struct q_err *e)
{
    int rc = Q_OK, n = 40;
    for (int again = 0; again < 3 && !rc; again++) {
        char *text = gate_long(name, n);
        rc = encode(tok, text, ids, e);
        free(text);
        if (!rc && ids->n) n = (int)((size_t)n * LONG_PROMPT / ids->n) + 1;
    }
    return rc;
}

/* The end of a text that is too long: there stands the question. */
static int read_text(struct trace *t, const struct tokenizer *tok, const struct gate_corpus *c, int answer, struct q_err *e)
{
    struct tok_ids ids = { 0 };
    int rc = c->text ? encode(tok, c->text, &ids, e) : encode_long(tok, c->name, &ids, e), most = c->text ? SHORT_PROMPT : LONG_MOST;
    int n = (int)ids.n < most ? (int)ids.n : most;
    struct trace_text *x = rc ? NULL : add_text(t, c->name, n, answer);
    if (x) memcpy(&t->ids[x->at], ids.at + ids.n - (size_t)n, (size_t)n * sizeof t->ids[0]);
    else if (!rc) rc = q_fail(e, Q_EINTERNAL, "gate: no room for the text %s", c->name);
    free(ids.at);
    return rc;
}

static int real_texts(struct trace *t, const struct tokenizer *tok, int answer, int n_ctx, struct q_err *e)
{
    int rc = Q_OK, next = 0;
    for (size_t u = 0; u < sizeof units / sizeof *units && !rc; u++) {
        struct trace_unit unit = { t->n_texts, units[u].n, units[u].chunk, units[u].large, 0, 0 };
        if (n_ctx < (unit.large ? GATE_LONG_CTX : GATE_CTX)) {
            next += unit.n;
            continue;
        }
        /* Continuations that end one after another: the steps of eight rows become steps of seven, six ... */
        for (int i = 0; i < unit.n && !rc; i++) {
            int more = unit.n == GATE_BATCH ? i * answer / (2 * STAGGER) : 0;
            rc = read_text(t, tok, &gate_corpus[next++], answer + more, e);
        }
        t->unit[t->n_units++] = unit;
    }
    return rc;
}

static int made_texts(struct trace *t, int n_ctx, struct q_err *e)
{
    static const char *const names[] = { "made-1", "made-2", "made-3", "made-4", "made-5", "made-6" };
    for (size_t u = 0; u < sizeof made / sizeof *made; u++) {
        if (n_ctx < GATE_CTX && u == 2) break;
        t->unit[t->n_units++] = (struct trace_unit){ t->n_texts, made[u].n, made[u].chunk, 0, 0, 0 };
        for (int i = 0; i < made[u].n; i++) {
            struct trace_text *x = add_text(t, names[t->n_texts], made[u].prompt, STAGGER);
            if (!x) return q_fail(e, Q_EINTERNAL, "gate: no room for its texts");
            for (int j = 0; j < x->n; j++) t->ids[x->at + j] = (int)((unsigned)(j + 1 + 1000 * t->n_texts) * 2654435761u % (unsigned)t->vocab);
        }
    }
    return Q_OK;
}

int gate_texts(struct trace *t, const struct tokenizer *tok, int answer, int n_ctx, struct q_err *e)
{
    t->synthetic = !tok;
    int rc = tok ? real_texts(t, tok, answer, n_ctx, e) : made_texts(t, n_ctx, e);
    return !rc && !t->n_units ? q_fail(e, Q_EUNSUP, "gate: the model's context of %d tokens is shorter than its texts", n_ctx) : rc;
}
