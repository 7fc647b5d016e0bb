#define _GNU_SOURCE
#include "gate.h"
#include "defaults.h"
#include "runtime/model.h"
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 8, PROMPT = 64, ANSWER = 24, LEAST_ANSWER = 8, MOST_OPS = 32 };
#define MEMORY 256e6          /* of the reference's logits */
#define SECONDS 60.0          /* what the reference may take about */
#define MARGIN 0.5

struct text {
    int ids[PROMPT + ANSWER];
    int n_prompt, n;
};

struct gate {
    const struct gate_opts *o;
    struct found_list *l;
    char dir[Q_PATH];          /* of records, for the engines */
    struct text text[TEXTS];
    int n_texts, positions, synthetic, vocab;
    float *ref;                /* owned: [positions][vocab] */
    struct q_row *rows;        /* owned: [PROMPT] */
    char ops[MOST_OPS][24];    /* ops with fresh records that are not their defaults */
    int n_ops, use[MOST_OPS];  /* whether their winners are in the set */
};

struct score {
    double kld;                /* mean */
    int exceptions;            /* other first choices where the reference's margin is above MARGIN */
    double worst_margin;
};

/* --- engines ----------------------------------------------------------------------------------------------------------- */

static int interrupted(const struct gate *g, struct q_err *e)
{
    struct pollfd fd = { g->o->build->signal_fd, POLLIN, 0 };
    return poll(&fd, 1, 0) > 0 && fd.revents & POLLIN ? q_fail(e, Q_EIO, "interrupted") : Q_OK;
}

/* Default kernels for what the records in `tunes` and the user's own do not answer, with the tune's compiler. */
static int complete_set(const struct gate *g, enum q_numerics numerics, const char *tunes, struct q_err *e)
{
    const struct gate_opts *o = g->o;
    struct store_opts so = { .tunes = tunes };
    struct build_opts b = *o->build;
    struct target t = *o->t;
    struct defaults_result done;
    int rc = store_open(&b.store, &so, e);
    if (rc) return rc;
    t.numerics = numerics;
    rc = defaults_make(&t, o->g, &b, o->compiler, o->given, NULL, NULL, &done, e);
    store_close(b.store);
    return rc;
}

static int open_engine(const struct gate *g, enum q_numerics numerics, const char *tunes, struct q_engine **en, struct q_err *e)
{
    const struct gate_opts *o = g->o;
    int rc = complete_set(g, numerics, tunes, e);
    if (rc) return rc;
    struct q_engine_opts eo = { .model = o->model, .preset = o->preset, .preset_type = o->preset ? o->type : NULL, .threads = o->t->card.threads,
                                .ctx = 256, .max_rows = PROMPT, .max_out = PROMPT, .numerics = numerics, .kv_k = o->t->kv_k, .kv_v = o->t->kv_v,
                                .tunes = tunes, .program_dir = o->program_dir, .device = o->device };
    return q_engine_open(en, &eo, e);
}

/* Rows at [from, from + n) of a text, all logits. */
static int feed(struct gate *g, struct q_engine *en, struct q_seq *s, const struct text *t, int from, int n, struct q_result *r, struct q_err *e)
{
    q_ticket ticket;
    int rc = interrupted(g, e);
    if (rc) return rc;
    for (int i = 0; i < n; i++)
        g->rows[i] = (struct q_row){ .seq = s, .token = t->ids[from + i], .pos = { -1, -1, -1 }, .parent = -1, .want = Q_WANT_LOGITS };
    rc = q_step_submit(en, &(struct q_step){ .rows = g->rows, .n_rows = n }, &ticket, e);
    return rc ? rc : q_step_wait(en, ticket, r, e);
}

/* --- texts and the reference ------------------------------------------------------------------------------------------- */

/* Ids spread over the vocabulary. */
static void synthetic_texts(struct gate *g)
{
    g->n_texts = 2;
    for (int i = 0; i < g->n_texts; i++) {
        struct text *t = &g->text[i];
        t->n_prompt = 40;
        t->n = 40 + LEAST_ANSWER;
        for (int j = 0; j < t->n; j++) t->ids[j] = (int)((unsigned)(j + 1 + 1000 * i) * 2654435761u % (unsigned)g->vocab);
    }
}

static int real_texts(struct gate *g, const struct tokenizer *tok, int most, struct q_err *e)
{
    int rc = Q_OK;
    for (; g->n_texts < TEXTS && gate_corpus[g->n_texts] && !rc; g->n_texts++) {
        const char *text = gate_corpus[g->n_texts];
        struct text *t = &g->text[g->n_texts];
        struct tok_ids ids = { 0 };
        rc = tok_encode(tok, text, strlen(text), 0, &ids, e);
        int room = most - LEAST_ANSWER < PROMPT ? most - LEAST_ANSWER : PROMPT;
        for (t->n_prompt = 0; !rc && t->n_prompt < room && t->n_prompt < (int)ids.n; t->n_prompt++) t->ids[t->n_prompt] = ids.at[t->n_prompt];
        t->n = t->n_prompt + ANSWER < most ? t->n_prompt + ANSWER : most;
        free(ids.at);
    }
    return rc;
}

static int make_texts(struct gate *g, struct q_engine *en, struct q_err *e)
{
    const struct tokenizer *tok = q_engine_tokenizer(en);
    int most = (int)(MEMORY / (4.0 * g->vocab * TEXTS)), rc = Q_OK;
    g->synthetic = !tok;
    if (most > PROMPT + ANSWER) most = PROMPT + ANSWER;
    if (most < 2 * LEAST_ANSWER) most = 2 * LEAST_ANSWER;
    if (g->synthetic) synthetic_texts(g);
    else rc = real_texts(g, tok, most, e);
    size_t positions = TEXTS * (PROMPT + ANSWER);
    if (!rc && !(g->ref = malloc(positions * (size_t)g->vocab * sizeof *g->ref))) rc = q_fail(e, Q_EMEM, "no memory for the gate's logits");
    return rc;
}

static int largest(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static void keep(struct gate *g, const struct q_result *r, int n)
{
    size_t vocab = (size_t)g->vocab;
    memcpy(g->ref + (size_t)g->positions * vocab, r->logits, (size_t)n * vocab * sizeof *g->ref);
    g->positions += n;
}

/* The reference reads a prompt and answers; of presets the answer is given. */
static int reference_text(struct gate *g, struct q_engine *en, struct q_seq *s, struct text *t, struct q_err *e)
{
    struct q_result r;
    int rc = feed(g, en, s, t, 0, t->n_prompt, &r, e);
    if (!rc) keep(g, &r, t->n_prompt);
    for (int at = t->n_prompt; at < t->n && !rc; at++) {
        if (!g->synthetic) t->ids[at] = largest(g->ref + (size_t)(g->positions - 1) * (size_t)g->vocab, g->vocab);
        rc = feed(g, en, s, t, at, 1, &r, e);
        if (!rc) keep(g, &r, 1);
    }
    return rc;
}

/* When the first text shows that all would take too long, the others are answered shortly. */
static void shorten(struct gate *g, double seconds)
{
    if (seconds * g->n_texts <= SECONDS) return;
    for (int i = 1; i < g->n_texts; i++) g->text[i].n = g->text[i].n_prompt + LEAST_ANSWER;
}

static int reference(struct gate *g, struct q_err *e)
{
    struct q_engine *en;
    struct q_seq *s = NULL;
    int rc = open_engine(g, Q_REFERENCE, NULL, &en, e);
    if (rc) return rc;
    g->vocab = q_engine_model(en)->config.n_vocab;
    rc = make_texts(g, en, e);
    if (!rc) rc = q_seq_open(en, &s, e);
    for (int i = 0; i < g->n_texts && !rc; i++) {
        double t0 = progress_now();
        q_seq_clear(s);
        rc = reference_text(g, en, s, &g->text[i], e);
        if (i == 0) shorten(g, progress_now() - t0);
    }
    q_seq_close(s);
    q_engine_close(en);
    return rc;
}

/* --- a set's score ----------------------------------------------------------------------------------------------------- */

static double logsumexp(const float *x, int n, float max)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double)x[i] - max);
    return max + log(sum);
}

/* One position: KLD and first choices. NaN in `got` gives NaN, which passes nothing. */
static void compare(const struct gate *g, const float *ref, const float *got, struct score *s)
{
    int first = largest(ref, g->vocab), got_first = largest(got, g->vocab);
    double zr = logsumexp(ref, g->vocab, ref[first]), zg = logsumexp(got, g->vocab, got[got_first]), kld = 0;
    float second = -INFINITY;
    for (int i = 0; i < g->vocab; i++) {
        kld += exp(ref[i] - zr) * ((ref[i] - zr) - (got[i] - zg));
        if (i != first && ref[i] > second) second = ref[i];
    }
    s->kld += kld;
    if (got_first == first) return;
    double margin = (double)ref[first] - second;
    s->exceptions += margin > MARGIN;
    s->worst_margin = fmax(s->worst_margin, margin);
}

static int score_text(struct gate *g, struct q_engine *en, struct q_seq *q, const struct text *t, int *at, struct score *s, struct q_err *e)
{
    struct q_result r;
    int rc = Q_OK;
    for (int from = 0, n; from < t->n && !rc; from += n) {
        n = from ? 1 : t->n_prompt;
        rc = feed(g, en, q, t, from, n, &r, e);
        for (int i = 0; i < n && !rc; i++, ++*at)
            compare(g, g->ref + (size_t)*at * (size_t)g->vocab, r.logits + (size_t)i * (size_t)g->vocab, s);
    }
    return rc;
}

static int in_use(const struct gate *g, const char *op)
{
    for (int i = 0; i < g->n_ops; i++)
        if (!strcmp(g->ops[i], op)) return g->use[i];
    return 1;
}

/* The set under test as records of a directory: winners of the ops in use, default params of the others. */
static int write_set(const struct gate *g, struct q_err *e)
{
    struct store_opts so = { .tunes = g->dir };
    struct store *s;
    dir_remove(g->dir);
    int rc = dir_make(g->dir, e);
    if (!rc) rc = store_open(&s, &so, e);
    if (rc) return rc;
    for (int i = 0; i < g->l->n && !rc; i++) {
        const struct found *f = &g->l->f[i];
        const struct record *r = f->fresh && f->base.origin[0] && !in_use(g, f->problem.op) ? &f->base : &f->record;
        if (r->origin[0]) rc = store_put(s, r, e);
    }
    store_close(s);
    return rc;
}

static int score_set(struct gate *g, struct score *s, struct q_err *e)
{
    struct q_engine *en;
    struct q_seq *q = NULL;
    int at = 0, rc = write_set(g, e);
    memset(s, 0, sizeof *s);
    if (!rc) rc = open_engine(g, g->o->t->numerics, g->dir, &en, e);
    if (rc) return rc;
    rc = q_seq_open(en, &q, e);
    for (int i = 0; i < g->n_texts && !rc; i++) {
        q_seq_clear(q);
        rc = score_text(g, en, q, &g->text[i], &at, s, e);
    }
    s->kld /= g->positions;
    q_seq_close(q);
    q_engine_close(en);
    return rc;
}

/* --- the verdict ------------------------------------------------------------------------------------------------------- */

static int passes(const struct gate *g, const struct score *s, const struct score *base)
{
    return s->kld <= 1.5 * base->kld + 1e-6 && (g->synthetic || s->exceptions <= base->exceptions);
}

static void use_first(struct gate *g, int n)
{
    for (int i = 0; i < g->n_ops; i++) g->use[i] = i < n;
}

static void list_ops(struct gate *g)
{
    for (int i = 0; i < g->l->n; i++) {
        const struct found *f = &g->l->f[i];
        int j = 0;
        if (!f->fresh || !f->base.origin[0] || !strcmp(f->record.params, f->base.params)) continue;
        while (j < g->n_ops && strcmp(g->ops[j], f->problem.op)) j++;
        if (j == g->n_ops && j < MOST_OPS) strcpy(g->ops[g->n_ops++], f->problem.op);
    }
}

/* Back to default params, and nothing is written of it. */
static void drop_op(struct gate *g, int culprit)
{
    for (int i = 0; i < g->l->n; i++) {
        struct found *f = &g->l->f[i];
        if (strcmp(f->problem.op, g->ops[culprit]) || !f->base.origin[0]) continue;
        f->record = f->base;
        f->fresh = 0;
    }
    memmove(&g->ops[culprit], &g->ops[culprit + 1], (size_t)(--g->n_ops - culprit) * sizeof g->ops[0]);
}

/* The least number of ops, in their order, whose winners fail together: the last of them is the culprit. */
static int find_culprit(struct gate *g, const struct score *base, int *culprit, struct q_err *e)
{
    int good = 0, bad = g->n_ops, rc = Q_OK;
    struct score s;
    while (bad - good > 1 && !rc) {
        int middle = (good + bad) / 2;
        use_first(g, middle);
        rc = score_set(g, &s, e);
        if (!rc) *(passes(g, &s, base) ? &good : &bad) = middle;
    }
    *culprit = bad - 1;
    return rc;
}

static int judge(struct gate *g, struct score *s, struct score *base, struct q_err *e)
{
    list_ops(g);
    use_first(g, 0);
    int rc = score_set(g, base, e);
    if (!rc && !(base->kld < 1)) return q_fail(e, Q_EINTERNAL, "gate: even default params are %.3g (mean KLD) away from the reference; nothing is written", base->kld);
    for (;;) {
        int culprit;
        use_first(g, g->n_ops);
        if (rc || (rc = score_set(g, s, e)) || passes(g, s, base) || !g->n_ops) return rc;
        if ((rc = find_culprit(g, base, &culprit, e))) return rc;
        progress_line(g->o->progress, "gate: mean KLD %.3g (default params %.3g), %d first choices differ beyond a margin of %.1f: %s is to blame and keeps its default params",
                      s->kld, base->kld, s->exceptions, MARGIN, g->ops[culprit]);
        drop_op(g, culprit);
    }
}

static void summarise(const struct gate *g, const struct score *s, const struct score *base, char *dst, size_t cap)
{
    int answers = 0;
    for (int i = 0; i < g->n_texts; i++) answers += g->text[i].n - g->text[i].n_prompt;
    snprintf(dst, cap, "gate passed: %d positions, %d of them %s; mean KLD %.3g, default params %.3g; %d first choices differ beyond a margin of %.1f (default %d)",
             g->positions, answers, g->synthetic ? "given one by one" : "continued greedily", s->kld, base->kld, s->exceptions, MARGIN, base->exceptions);
}

int gate_run(const struct gate_opts *o, struct found_list *l, char *summary, size_t cap, struct q_err *e)
{
    struct gate g = { .o = o, .l = l };
    struct score s, base;
    summary[0] = 0;
    g.rows = calloc(PROMPT, sizeof *g.rows);
    int rc = g.rows ? store_workdir(o->build->store, g.dir, e) : q_fail(e, Q_EMEM, "no memory for the gate");
    if (!rc) {
        rc = reference(&g, e);
        if (!rc) rc = judge(&g, &s, &base, e);
        if (!rc) summarise(&g, &s, &base, summary, cap);
        dir_remove(g.dir);
    }
    free(g.rows);
    free(g.ref);
    return rc;
}
