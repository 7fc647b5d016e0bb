/* Where a text stands in a grammar: deterministic states made as they are met.
 *
 * Three kinds, each numbered and kept once, so that equal ones are equal numbers:
 *   spot   a place in one rule: the set of the rule's automaton states that the rule's bytes so far may have led to (0: none)
 *   stack  what comes when a rule ends: a set of (spot to go on at, stack below it); 0 is the bottom: the text is over
 *   state  a place in the grammar: a set of (spot, stack), and whether the text may end here (0: no text goes on from here)
 * A state's spots are those that take a byte; the rules they were called from wait in their stacks. A rule called last in another
 * leaves nothing on the stack, so lists written by recursion to the right do not grow it. Stacks are at most NFA_MAX_HEIGHT deep, and a spot whose
 * rule could not end within that is not entered, so that every state has a way to an end.
 *
 * What is met is kept until the owner starts anew (pda_full): memory is bounded by PDA_FULL and the work of one mask.
 * One thread at a time. Failures (memory, too much work) stay in s->rc; numbers are then 0.
 */
#ifndef Q_CONSTRAIN_PDA_H
#define Q_CONSTRAIN_PDA_H

#include "constrain_nfa.h"

struct alike;
/* A grammar ready to run; read-only. */
struct program {
    struct nfa nfa;
    int root, thinking;                 /* rules */
    unsigned char class_of[256], byte_of[256]; /* bytes that no edge tells apart are one class; a byte of each */
    int n_class;
    char *accept;                       /* owned: [n_state], the last state of a rule */
    struct alike *alike, **alike_of;    /* owned: constrain_alike.h; [n_rule], those that rules have, NULL */
    char *usual;                        /* owned: [n_state], of such a rule and reached without an escape */
};

struct chunk;
struct arena {
    struct chunk *chunks; /* owned */
    size_t used;          /* bytes of all chunks */
};
/* Aligned for any type; NULL: no memory. */
void *pda_arena_take(struct arena *a, size_t n);
void pda_arena_free(struct arena *a);

/* Lists of ints, each once, numbered from 0. */
struct pool_item {
    const int *at;
    int n;
    unsigned hash;
};
struct pool {
    struct pool_item *item; /* owned */
    int *slot;              /* owned */
    int n, cap;
};

struct spot_call {
    int rule, start, after; /* spots: of the callee, and behind the call */
};
struct local;
struct spot {
    int *next;              /* [n_class], -1: not known; NULL */
    struct spot_call *call;
    int n_call;             /* -1: not known */
    int height;
    char accept, takes_byte, done; /* done: the rule's end and nothing else */
    struct local *local[4]; /* constrain_mask.c: of each tree */
    unsigned epoch;         /* of constrain_settle.c: the last in which it had a node, and which */
    int node;
};

struct stack {
    int depth;
    int reach;  /* how deep it must at least become, or is, to be left again from any of its spots */
    int resume; /* the state when the rule above it has ended; -1: not known */
    int last;   /* constrain_settle.c: the pair on it that was added last */
};

struct state {
    int *next; /* [n_class], -1: not known; NULL */
    int reach; /* the same of its spots and their stacks */
    int plain; /* constrain_text.c: 1 + the state behind a plain character; 0: not known, -1: there are several */
    int plain_reach; /* the largest reach on the ways there */
    char may_end, odd; /* odd: classes of bytes that lead elsewhere */
};

enum { WHOLE_MASKS = 32 };

struct pda {
    const struct program *p;
    struct arena arena;
    struct pool spots, stacks, all;
    struct pool masks;   /* constrain_mask.c */
    struct spot *spot;   /* owned, as the pools' items */
    struct stack *stack;
    struct state *state;
    int cap_spot, cap_stack, cap_state;
    unsigned closure, settled; /* epochs */
    unsigned *mark;      /* owned: [n_state] of the automaton, the last closure that it was in */
    struct pda_turn {    /* owned: the same, of the states at its place in that closure: the repetition of one, and the most turns that come */
        unsigned closure;
        int may, turns;
    } *turn;
    struct pda_scratch *scratch; /* owned */
    struct whole_mask {  /* constrain_mask.c: the last masks that took long */
        int state;       /* 0: none */
        uint32_t *bits;  /* in the arena */
    } whole[WHOLE_MASKS];
    int n_whole;         /* kept so far */
    size_t work, most_work;         /* done since the owner set it to 0, in steps of some nanoseconds; and how much may be */
    int rc;
};

enum { PDA_FULL = 12 << 20, PDA_MAX = 48 << 20 };

int pda_open(struct pda *s, const struct program *p);
void pda_close(struct pda *s);
static inline int pda_full(const struct pda *s) { return s->rc || s->arena.used > PDA_FULL; }
/* The state before the first byte of a rule's text. */
int pda_start(struct pda *s, int rule);
int pda_step_new(struct pda *s, int state, int class);
static inline int pda_step(struct pda *s, int state, int class)
{
    const int *next = s->state[state].next;
    return next && next[class] >= 0 ? next[class] : pda_step_new(s, state, class);
}
/* The state once the rule above `stack` has ended. */
int pda_resume(struct pda *s, int stack);
/* The state that stands at one spot, and in none of the rules that it calls. */
int pda_single(struct pda *s, int spot, int stack);
int pda_spot_start(struct pda *s, int rule);
int pda_spot_next(struct pda *s, int spot, int class);
/* Behind a plain character, whichever it is, as far as the automaton's states say it; -1: they do not. */
int pda_spot_plain(struct pda *s, int spot);
/* A spot at which the same texts of up to so many bytes may follow, itself if none is known; 0 after a failure. */
int pda_spot_like(struct pda *s, int spot, int bytes);
/* The same place in other states of the same program (whose numbers differ). */
int pda_import(struct pda *to, const struct pda *from, int state);

/* (spot, stack) pairs of a state. */
static inline const int *pda_frames(const struct pda *s, int state, int *n)
{
    *n = (s->all.item[state].n - 1) / 2;
    return s->all.item[state].at + 1;
}

/* What the parts of this share, in constrain_pda.c. */

/* Growable ints, pairs and nodes that are used again for each state. */
struct ints {
    int *at;
    int n, cap;
};
struct pair {
    int spot, stack;
};
struct settle_node {
    int spot;
    int n_in;  /* calls that lead to it */
    int first; /* of what lies below it, linked by next; -1 */
    int stack; /* -1: not entered */
};
struct below {
    struct pair pair;
    int next;
};
struct pda_scratch {
    struct ints queue, set, calls, order; /* owned, and the rest */
    struct pair *pair;
    struct settle_node *node;
    struct below *below;
    int *before;           /* of each pair added, the one before it on its stack, -1 */
    int n_pair, cap_pair, cap_before, n_node, cap_node, n_below, cap_below;
};
/* Records a failure; 0. */
int pda_fail(struct pda *s, int code);
int pda_room(struct pda *s, void *array, int n, int *cap, size_t size);
void pda_push(struct pda *s, struct ints *list, int x);
/* Counts work; 0 when there was too much of it. */
int pda_work(struct pda *s, size_t n);
/* Orders pairs and drops doubles; how many are left. */
int pda_sort_pairs(struct pair *pair, int n);
/* The number of the stack of these pairs, which it sorts. A spot -1 stands for the end of the text. */
int pda_stack(struct pda *s, struct pair *pair, int n);
/* constrain_spots.c. A new row of next[], -1 all; NULL: recorded. The spot of an ordered set of automaton states. */
int *pda_row(struct pda *s);
int pda_spot_of(struct pda *s, const int *set, int n);
/* The rules that a spot may call, in s->spot[spot].call; how many. */
int pda_spot_calls(struct pda *s, int spot);
/* constrain_settle.c: the state of the places in scratch->pair, behind a byte; may_end: the text may end for another reason too. */
int pda_settle(struct pda *s, int may_end);
void pda_add_pair(struct pda *s, int spot, int stack);

/* constrain_pool.c: the number of the list; *fresh: it is new. -1: no memory. */
int pda_pool_number(struct pool *p, struct arena *a, const int *list, int n, int *fresh);
void pda_pool_free(struct pool *p);

#endif
