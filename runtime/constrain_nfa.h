/* Automata over bytes, one a rule, all in one list of states: what expressions become.
 *
 * A state has edges: a byte range, another rule (a text of it leads over the edge), or nothing (free). A rule goes from its start to its
 * accept. After nfa_heights every state that cannot reach its accept has height NFA_NEVER, and no rule begins with itself.
 */
#ifndef Q_CONSTRAIN_NFA_H
#define Q_CONSTRAIN_NFA_H

#include "constrain_expr.h"

enum { NFA_MAX_STATES = 200000, NFA_MAX_EDGES = 1000000, NFA_NEVER = 1 << 30, NFA_MAX_HEIGHT = 128 };

enum nfa_kind { NFA_FREE, NFA_BYTES, NFA_CALL };

struct nfa_edge {
    int next; /* of the same state, -1 */
    int to;
    int rule; /* NFA_CALL */
    unsigned char kind, lo, hi;
};

struct nfa_state {
    int edge;   /* first, -1 */
    int height; /* rules that must at least be open above this one on the way to the accept */
    int like;   /* in a repetition: a state of an earlier turn, from which the same texts of up to `left` bytes go on; -1: none */
    int left;   /* in a product, until nfa_prove_kin: less than 0, the link's level */
    int nest;   /* of that repetition: 1, it is in no other */
    int may;    /* 1 + the first state of a repetition of which each turn may be the last, so that earlier ones take all that later ones do */
    int place, turns; /* if so: one number for this state's like in all turns, the first turn's state where there is one; and how many turns come */
    int plain;  /* a plain character (constrain_text.h) read here, whichever it is, leads to this state alone; or one of: */
};
enum { NFA_PLAIN_NONE = -1, NFA_PLAIN_MANY = -2 }; /* none is read here; to where, or whether one is, depends on which */

struct nfa_rule {
    int start, accept;
    int nullable; /* takes the empty text */
};

struct nfa {
    struct nfa_state *state; /* all owned */
    struct nfa_edge *edge;
    struct nfa_rule *rule;
    int n_state, n_edge, n_rule;
    int cap_state, cap_edge;
    int nest; /* while it is built: repetitions that are open */
};

/* Builds the automata of g's rules. Errors as g->rc. */
int nfa_build(struct nfa *a, struct grammar *g);
void nfa_free(struct nfa *a);
/* Adds; -1, or nothing done, after a failure, which is recorded in g. */
int nfa_add_state(struct nfa *a, struct grammar *g);
void nfa_add_edge(struct nfa *a, struct grammar *g, int from, struct nfa_edge edge);

/* constrain_and.c: texts that both x and y take, from `from`; the state behind them. */
int nfa_build_and(struct nfa *a, struct grammar *g, int from, int x, int y);
/* The expression from `from`; the state behind it (constrain_nfa.c, for constrain_and.c). */
int nfa_build_expr(struct nfa *a, struct grammar *g, int from, int x);

/* constrain_heights.c: fills heights and nullable. Errors: Q_EINPUT (left recursion; nothing can be said), Q_ELIMIT (nested too deep). */
int nfa_heights(struct nfa *a, const struct grammar *g, struct q_err *e);
/* constrain_kin.c: fills `left` of states of products, once heights are known. accept: [n_state]. Errors: Q_EMEM. */
int nfa_prove_kin(struct nfa *a, const char *accept, struct q_err *e);

#endif
