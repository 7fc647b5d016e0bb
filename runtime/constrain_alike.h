/* Tokens that a rule does not tell apart, as a tree of their own.
 *
 * In a rule of few kinds of characters ([a-zA-Z]{1,12} and a space) most tokens of a vocabulary are the same text: so many letters. Bytes on which
 * no state of the rule differs are one kind, and the vocabulary's tree, with each byte replaced by its kind and branches that are then equal joined,
 * has some thousand nodes in place of some hundred thousand. A walk through it does once what the other does for each token.
 * Escapes (\n, \u00e9 in a JSON string) tell letters and digits apart that nothing else does, but few tokens have one: states that are reached behind
 * a backslash alone do not count, walks do not begin there, and what follows a backslash in a token is left byte by byte.
 * That pays where a rule has many spots, each with a mask of its own: repetitions with a limit. Rules that call others, that have few states, whose
 * text is plain (constrain_text.h counts it), or whose tree would be hardly smaller have none. Rules of the same kinds share one.
 * Read-only once made.
 */
#ifndef Q_CONSTRAIN_ALIKE_H
#define Q_CONSTRAIN_ALIKE_H

#include "constrain_pda.h"
#include "constrain_tree.h"

struct alike_node {
    int end;           /* behind the subtree; nodes are in the order of a depth-first walk, as in struct tree */
    int id, n_id;      /* id[id .. id + n_id): tokens that end here */
    int inner, n_inner; /* the same of nodes of the vocabulary's tree that are this one and have a subtree */
    int bits;          /* of those tokens: bits[bits * n_words ...]; -1: they are few */
    unsigned char byte, depth; /* one of its kind */
};

struct alike_tree {
    struct alike_node *node; /* all owned */
    int *id, *inner;
    uint32_t *bits;
    int n, n_bits;
};

struct alike {
    unsigned char kind[256]; /* of each byte; 0: the rule takes it nowhere */
    struct alike_tree part[TREES];
    struct alike *next;      /* owned */
};

/* Fills p->alike, for rules worth it. Errors: Q_EMEM. */
int alike_build(struct program *p, const struct trees *trees, struct q_err *e);
void alike_free(struct program *p);
/* The tree of the rule that these n states of the automaton are of, for walks from there; NULL: there is none. */
const struct alike *alike_of(const struct program *p, const int *set, int n);
size_t alike_bytes(const struct program *p, const struct trees *trees);

#endif
