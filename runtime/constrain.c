#include "constrain_program.h"
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct q_constraint {
    struct shared_program *program; /* held */
    struct shared_pda *states;   /* held */
    const struct tokenizer *tokenizer;
    int state;                      /* of `states` */
    int over;                       /* an end token was read */
    int fresh;                      /* `bits` are of this state */
    size_t spent;                   /* work of its masks beyond what each may take for long */
    uint32_t *bits;                 /* owned: [n_words]; NULL: not asked for yet */
};

/* ---- making ---- */

static int open_at(struct q_constraint **out, struct shared_program *p, const struct tokenizer *t, struct q_err *e)
{
    struct q_constraint *c = calloc(1, sizeof *c);
    if (!c) return q_fail(e, Q_EMEM, "no memory for a constraint");
    constrain_program_hold(p);
    c->program = p;
    c->tokenizer = t;
    int rc = constrain_program_states(p, &c->states, e);
    if (!rc) {
        pthread_mutex_lock(&c->states->lock);
        c->state = pda_start(&c->states->s, p->p.root);
        rc = c->states->s.rc;
        pthread_mutex_unlock(&c->states->lock);
        if (rc) q_fail(e, rc, "the grammar is too large for its first state");
    }
    const uint32_t *bits;
    if (!rc) rc = q_constraint_mask(c, &bits, e);
    if (rc) q_constraint_free(c);
    else *out = c;
    return rc;
}

void q_constraint_free(struct q_constraint *c)
{
    if (!c) return;
    pda_drop(c->states);
    constrain_program_drop(c->program);
    free(c->bits);
    free(c);
}

int q_constraint_clone(struct q_constraint **copy, const struct q_constraint *c, struct q_err *e)
{
    struct q_constraint *n = malloc(sizeof *n);
    if (!n) return q_fail(e, Q_EMEM, "no memory for a constraint");
    *n = *c;
    n->bits = NULL;
    n->fresh = 0;
    constrain_program_hold(n->program);
    atomic_fetch_add(&n->states->holders, 1);
    *copy = n;
    return Q_OK;
}

/* ---- what was built before ---- */

enum { MOST_KEPT = 24 << 20, ALL_KEPT = 128 << 20 };

static void make_key(unsigned char key[32], char kind, const struct constrain_text *text)
{
    crypto_generichash_state h;
    const char rules[3] = {kind, (char)text->tools.required, (char)text->tools.parallel};
    const char *only = text->tools.only ? text->tools.only : "", *otherwise = text->tools.otherwise ? text->tools.otherwise : "";
    crypto_generichash_init(&h, NULL, 0, 32);
    crypto_generichash_update(&h, (const unsigned char *)rules, sizeof rules);
    crypto_generichash_update(&h, (const unsigned char *)only, strlen(only) + 1);
    crypto_generichash_update(&h, (const unsigned char *)otherwise, strlen(otherwise) + 1);
    crypto_generichash_update(&h, (const unsigned char *)text->at, text->n);
    crypto_generichash_final(&h, key, 32);
}

/* Held, or NULL. */
static struct shared_program *find_kept(struct vocabulary *v, const unsigned char key[32])
{
    struct shared_program *p = NULL;
    pthread_mutex_lock(&v->lock);
    for (int i = 0; i < 16 && !p; i++) {
        if (!v->kept[i].program || memcmp(v->kept[i].key, key, 32)) continue;
        p = v->kept[i].program;
        v->kept[i].used = ++v->clock;
        constrain_program_hold(p);
    }
    pthread_mutex_unlock(&v->lock);
    return p;
}

/* The one that was not used for the longest time among those that are full, or among all: an empty one then. */
static struct kept *oldest(struct vocabulary *v, int full)
{
    struct kept *at = NULL;
    for (int i = 0; i < 16; i++)
        if ((!full || v->kept[i].used) && (!at || v->kept[i].used < at->used)) at = v->kept + i;
    return at;
}

static void empty(struct kept *at)
{
    constrain_program_drop(at->program);
    *at = (struct kept){0};
}

/* In the place of those that were not used for the longest time. The largest are not kept: they would be all that memory is used for. */
static void keep(struct vocabulary *v, const unsigned char key[32], struct shared_program *p)
{
    size_t bytes = constrain_program_bytes(p), all = bytes;
    if (bytes > MOST_KEPT) return;
    constrain_program_hold(p);
    pthread_mutex_lock(&v->lock);
    for (int i = 0; i < 16; i++) all += v->kept[i].bytes;
    for (struct kept *at; all > ALL_KEPT && (at = oldest(v, 1)); empty(at)) all -= at->bytes;
    struct kept *at = oldest(v, 0);
    empty(at);
    memcpy(at->key, key, 32);
    at->program = p;
    at->bytes = bytes;
    at->used = ++v->clock;
    pthread_mutex_unlock(&v->lock);
}

static int read_program(struct shared_program **p, const struct trees *trees, constrain_reader *read, const struct constrain_text *text,
                        struct q_err *e)
{
    struct grammar g;
    grammar_start(&g, e);
    if (text->n > GRAMMAR_MAX_TEXT) grammar_fail(&g, Q_ELIMIT, "a grammar of %zu bytes, at most %d are read", text->n, GRAMMAR_MAX_TEXT);
    else read(&g, text);
    int rc = g.rc;
    if (!rc) rc = constrain_program_open(p, &g, trees, e);
    grammar_free(&g);
    return rc;
}

/* From a text by a reader; `kind` tells readers apart. A grammar that was built before is used again. */
static int build(struct q_constraint **c, const struct tokenizer *t, constrain_reader *read, char kind, const struct constrain_text *text,
                 struct q_err *e)
{
    struct vocabulary *v;
    unsigned char key[32];
    int rc = constrain_vocabulary(&v, t, e);
    if (rc) return rc;
    make_key(key, kind, text);
    struct shared_program *p = find_kept(v, key);
    if (!p) {
        rc = read_program(&p, &v->trees, read, text, e);
        if (rc) return rc;
        keep(v, key, p);
    }
    rc = open_at(c, p, t, e);
    constrain_program_drop(p);
    return rc;
}

int q_constraint_from_gbnf(struct q_constraint **c, const struct tokenizer *t, const char *text, size_t n, struct q_err *e)
{
    return build(c, t, constrain_read_gbnf, 'g', &(struct constrain_text){.at = text, .n = n}, e);
}

int q_constraint_from_schema(struct q_constraint **c, const struct tokenizer *t, const char *json, size_t n, struct q_err *e)
{
    return build(c, t, constrain_read_schema, 's', &(struct constrain_text){.at = json, .n = n}, e);
}

int q_constraint_from_regex(struct q_constraint **c, const struct tokenizer *t, const char *pattern, size_t n, struct q_err *e)
{
    return build(c, t, constrain_read_regex, 'r', &(struct constrain_text){.at = pattern, .n = n}, e);
}

int q_constraint_from_tools(struct q_constraint **c, const struct tokenizer *t, const char *tools, size_t n, const struct q_tool_rules *r,
                            struct q_err *e)
{
    return build(c, t, constrain_read_tools, 't', &(struct constrain_text){tools, n, *r}, e);
}

/* The texts, one after the other, each with its NUL. */
static void read_choice(struct grammar *g, const struct constrain_text *text)
{
    struct expr_kids kids = {0};
    for (size_t at = 0; at < text->n; at += strlen(text->at + at) + 1) expr_kids_add(g, &kids, expr_text(g, text->at + at, strlen(text->at + at)));
    g->root = grammar_rule(g, "choice", 6);
    grammar_define(g, g->root, expr_kids_join(g, X_ALT, &kids));
}

int q_constraint_from_choice(struct q_constraint **c, const struct tokenizer *t, const char *const *choice, int n, struct q_err *e)
{
    size_t all = 0, at = 0;
    for (int i = 0; i < n; i++) all += strlen(choice[i]) + 1;
    char *text = malloc(all + 1);
    if (!text) return q_fail(e, Q_EMEM, "no memory for %d choices", n);
    for (int i = 0; i < n; i++) {
        memcpy(text + at, choice[i], strlen(choice[i]) + 1);
        at += strlen(choice[i]) + 1;
    }
    int rc = build(c, t, read_choice, 'c', &(struct constrain_text){.at = text, .n = all}, e);
    free(text);
    return rc;
}

/* ---- use ---- */

/* Others wait for a mask: one that takes more than some milliseconds may be followed by few more like it. */
enum { FAIR_WORK = 2 << 20, MOST_SPENT = 400 << 20 };

int q_constraint_thinking(struct q_constraint *c, struct q_err *e)
{
    pthread_mutex_lock(&c->states->lock);
    int state = pda_start(&c->states->s, c->program->p.thinking), rc = c->states->s.rc;
    pthread_mutex_unlock(&c->states->lock);
    if (rc) return q_fail(e, rc, "the grammar is too large for its first state");
    c->state = state;
    c->fresh = 0;
    return Q_OK;
}

/* Goes on in new states when the old ones are full. */
static int renew(struct q_constraint *c, struct q_err *e)
{
    struct shared_pda *old = c->states, *s;
    pthread_mutex_lock(&old->lock);
    int full = pda_full(&old->s);
    pthread_mutex_unlock(&old->lock);
    if (!full) return Q_OK;
    int rc = constrain_program_states(c->program, &s, e);
    if (rc) return rc;
    pthread_mutex_lock(&old->lock);
    pthread_mutex_lock(&s->lock);
    int state = old == s ? c->state : pda_import(&s->s, &old->s, c->state);
    rc = s->s.rc;
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(&old->lock);
    if (rc) return pda_drop(s), q_fail(e, rc, "no memory for the states of a grammar");
    pda_drop(old);
    c->states = s;
    c->state = state;
    return Q_OK;
}

static int fill(struct q_constraint *c, struct q_err *e)
{
    const struct trees *trees = c->program->trees;
    if (c->over) {
        memset(c->bits, 0, sizeof *c->bits * (size_t)trees->n_words);
        for (int i = 0; i < trees->n_ends; i++) c->bits[trees->ends[i] / 32] |= 1u << trees->ends[i] % 32;
        return Q_OK;
    }
    int rc = renew(c, e);
    if (rc) return rc;
    pthread_mutex_lock(&c->states->lock);
    rc = mask_fill(&c->states->s, trees, c->state, c->bits, e);
    c->spent += c->states->s.work;
    pthread_mutex_unlock(&c->states->lock);
    c->spent -= c->spent < FAIR_WORK ? c->spent : FAIR_WORK;
    if (!rc && c->spent > MOST_SPENT) rc = q_fail(e, Q_ELIMIT, "the grammar takes too much work at each token");
    return rc;
}

int q_constraint_mask(struct q_constraint *c, const uint32_t **bits, struct q_err *e)
{
    if (!c->bits) c->bits = malloc(sizeof *c->bits * (size_t)c->program->trees->n_words);
    if (!c->bits) return q_fail(e, Q_EMEM, "no memory for a mask");
    int rc = c->fresh ? Q_OK : fill(c, e);
    c->fresh = !rc;
    *bits = c->bits;
    return rc;
}

static int refuse(const struct q_constraint *c, int32_t id, struct q_err *e)
{
    struct tok_str s = tok_piece(c->tokenizer, id);
    return q_fail(e, Q_EINPUT, "token %d ('%.*s') is not what the grammar lets follow", (int)id, (int)(s.n < 40 ? s.n : 40), s.at ? s.at : "");
}

static int is_readable(const struct q_constraint *c, int32_t id)
{
    int type = tok_type(c->tokenizer, id);
    return !c->over && (type == TOK_NORMAL || type == TOK_USER || type == TOK_BYTE) && tok_piece(c->tokenizer, id).n <= TREE_MAX_DEPTH;
}

int q_constraint_accept(struct q_constraint *c, int32_t id, struct q_err *e)
{
    if (tok_is_end(c->tokenizer, id) && q_constraint_may_end(c)) {
        c->over = 1;
        c->fresh = 0;
        return Q_OK;
    }
    if (tok_is_end(c->tokenizer, id) || !is_readable(c, id)) return refuse(c, id, e);
    struct tok_str s = tok_piece(c->tokenizer, id);
    struct pda *st = &c->states->s;
    pthread_mutex_lock(&c->states->lock);
    st->work = 0;
    st->most_work = MASK_MOST_WORK;
    int state = c->state;
    for (size_t i = 0; i < s.n && state; i++) state = pda_step(st, state, st->p->class_of[(unsigned char)s.at[i]]);
    int rc = st->rc;
    pthread_mutex_unlock(&c->states->lock);
    if (rc) return q_fail(e, rc, "the grammar is too ambiguous: the text has too many readings at once");
    if (!state || !s.n) return refuse(c, id, e);
    c->state = state;
    c->fresh = 0;
    return Q_OK;
}

int q_constraint_may_end(const struct q_constraint *c)
{
    pthread_mutex_lock(&c->states->lock);
    int may = c->over || c->states->s.state[c->state].may_end;
    pthread_mutex_unlock(&c->states->lock);
    return may;
}
