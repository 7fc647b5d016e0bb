#include "constrain_program.h"
#include "constrain_alike.h"
#include <stdlib.h>
#include <string.h>

/* ---- vocabulary ---- */

static void vocabulary_free(void *arg)
{
    struct vocabulary *v = arg;
    for (int i = 0; i < 16; i++) constrain_program_drop(v->kept[i].program);
    trees_free(&v->trees);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

static int vocabulary_make(void **out, const struct tokenizer *t, struct q_err *e)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    if (!v) return q_fail(e, Q_EMEM, "no memory for a vocabulary");
    int rc = trees_build(&v->trees, t, e);
    if (rc) return free(v), rc;
    pthread_mutex_init(&v->lock, NULL);
    *out = v;
    return Q_OK;
}

int constrain_vocabulary(struct vocabulary **v, const struct tokenizer *t, struct q_err *e)
{
    void *at = NULL;
    int rc = tok_attach(t, vocabulary_make, vocabulary_free, &at, e);
    *v = at;
    return rc;
}

/* ---- states ---- */

static int pda_new(struct shared_pda **out, const struct program *p, struct q_err *e)
{
    struct shared_pda *s = calloc(1, sizeof *s);
    if (!s) return q_fail(e, Q_EMEM, "no memory for the states of a grammar");
    pthread_mutex_init(&s->lock, NULL);
    s->holders = 1;
    *out = s;
    return pda_open(&s->s, p) ? q_fail(e, Q_EMEM, "no memory for the states of a grammar") : Q_OK;
}

void pda_drop(struct shared_pda *s)
{
    if (!s || atomic_fetch_sub(&s->holders, 1) != 1) return;
    pda_close(&s->s);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int constrain_program_states(struct shared_program *p, struct shared_pda **out, struct q_err *e)
{
    struct shared_pda *fresh = NULL;
    int rc = Q_OK;
    pthread_mutex_lock(&p->lock);
    pthread_mutex_lock(&p->states->lock);
    int full = pda_full(&p->states->s);
    pthread_mutex_unlock(&p->states->lock);
    if (full) rc = pda_new(&fresh, &p->p, e);
    if (!rc && full) {
        pda_drop(p->states);
        p->states = fresh;
    } else {
        pda_drop(fresh);
    }
    if (!rc) atomic_fetch_add(&p->states->holders, 1);
    *out = rc ? NULL : p->states;
    pthread_mutex_unlock(&p->lock);
    return rc;
}

/* ---- programs ---- */

/* Bytes between two edges' ends are one class. */
static void find_classes(struct program *p)
{
    char begins[257] = {1};
    for (int i = 0; i < p->nfa.n_edge; i++)
        if (p->nfa.edge[i].kind == NFA_BYTES) begins[p->nfa.edge[i].lo] = begins[p->nfa.edge[i].hi + 1] = 1;
    for (int b = 0; b < 256; b++) {
        if (begins[b]) p->byte_of[p->n_class++] = (unsigned char)b;
        p->class_of[b] = (unsigned char)(p->n_class - 1);
    }
}

/* The rule for answers that begin with thought: that, the line ends behind it, and the root. */
static int add_thinking(struct grammar *g)
{
    int rule = grammar_rule(g, "thinking", 8);
    int line_ends = expr_repeat(g, expr_text(g, "\n", 1), 0, 2);
    grammar_define(g, rule, EXPR_SEQ(g, expr_until(g, X_UNTIL, "</think>"), line_ends, expr_rule(g, g->root)));
    return rule;
}

static int compile(struct program *p, struct grammar *g, struct q_err *e)
{
    p->root = g->root;
    p->thinking = add_thinking(g);
    int rc = nfa_build(&p->nfa, g);
    if (!rc) rc = nfa_heights(&p->nfa, g, e);
    if (rc) return rc;
    p->accept = calloc((size_t)p->nfa.n_state + 1, 1);
    if (!p->accept) return q_fail(e, Q_EMEM, "no memory for a grammar's automaton");
    for (int r = 0; r < p->nfa.n_rule; r++) p->accept[p->nfa.rule[r].accept] = 1;
    find_classes(p);
    return nfa_prove_kin(&p->nfa, p->accept, e);
}

static void program_free(struct shared_program *p)
{
    pda_drop(p->states);
    alike_free(&p->p);
    nfa_free(&p->p.nfa);
    free(p->p.accept);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

size_t constrain_program_bytes(struct shared_program *p)
{
    const struct nfa *a = &p->p.nfa;
    pthread_mutex_lock(&p->states->lock);
    size_t n = p->states->s.arena.used;
    pthread_mutex_unlock(&p->states->lock);
    n += alike_bytes(&p->p, p->trees);
    return n + (size_t)a->cap_state * sizeof *a->state + (size_t)a->cap_edge * sizeof *a->edge;
}

void constrain_program_hold(struct shared_program *p) { atomic_fetch_add(&p->holders, 1); }

void constrain_program_drop(struct shared_program *p)
{
    if (p && atomic_fetch_sub(&p->holders, 1) == 1) program_free(p);
}

int constrain_program_open(struct shared_program **out, struct grammar *g, const struct trees *trees, struct q_err *e)
{
    struct shared_program *p = calloc(1, sizeof *p);
    if (!p) return q_fail(e, Q_EMEM, "no memory for a grammar");
    pthread_mutex_init(&p->lock, NULL);
    p->trees = trees;
    p->holders = 1;
    int rc = compile(&p->p, g, e);
    if (!rc) rc = alike_build(&p->p, trees, e);
    if (!rc) rc = pda_new(&p->states, &p->p, e);
    if (!rc) rc = mask_ahead(&p->states->s, trees, e);
    if (rc) program_free(p);
    else *out = p;
    return rc;
}
