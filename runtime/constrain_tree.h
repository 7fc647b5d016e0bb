/* The vocabulary as a tree of bytes, so that all tokens are tried against a grammar in one walk that leaves a branch where it fails.
 *
 * Nodes are in the order of a depth-first walk: a node's subtree is nodes i + 1 to end - 1. In it are the tokens that are text: normal,
 * user-defined and byte ones. Control, unknown and unused ones are not, nor those that end an answer. Read-only once made.
 * Tokens of whole plain characters (constrain_text.h), most of a vocabulary, are also listed by how many characters they have, and the others
 * are in a tree of their own: where a grammar takes any text, a token of the former is a count, and only the latter have to be walked.
 * There are a few trees, by the length of tokens: most tokens are short, so what is known about the next few bytes is enough for most of them
 * (nfa_state.like), and in a text with a limit only the long ones have to be tried anew at each place.
 */
#ifndef Q_CONSTRAIN_TREE_H
#define Q_CONSTRAIN_TREE_H

#include "tokenizer.h"

enum { TREES = 4, TREE_MAX_DEPTH = 255 };
extern const int tree_most[TREES]; /* bytes of a token, in each */

struct tree_node {
    int end;   /* behind the subtree */
    int token; /* an id that ends here, -1; more of the same bytes follow by same[] */
    unsigned char byte, depth;
};

struct tree {
    struct tree_node *node; /* owned; node 0 is the empty text */
    int n;
};

/* Plain tokens, fewest characters first; those of up to c characters are the first upto[c]. */
struct plain_tokens {
    int *id; /* owned */
    int upto[TREE_MAX_DEPTH + 1];
    int most; /* characters of the longest */
    uint32_t *bits; /* owned: [most + 1][n_words], those of up to so many characters; NULL in the tree of the longest */
};

struct trees {
    struct tree part[TREES], rest[TREES]; /* of all tokens, and of those that are not plain */
    struct plain_tokens plain[TREES];
    int *same;              /* owned: [n_ids], the next id with the same bytes, -1 */
    int *ends;              /* owned: [n_ends], the ids that end an answer */
    int n_ids, n_ends, n_words; /* n_words: of a mask, 32 ids each */
};

int trees_build(struct trees *trees, const struct tokenizer *t, struct q_err *e);
void trees_free(struct trees *trees);

#endif
