/* Grammars as expressions: what every reader of a format (GBNF, regex, JSON schema, tools) writes and the automata are built from.
 *
 * A grammar is a list of rules, each an expression over characters, texts and other rules. Expressions are numbers of nodes and may be used
 * in several places. The first failure (memory, size) stays in the grammar: later calls do nothing and give node 0, so that a reader
 * looks at g->rc once, at its end.
 */
#ifndef Q_CONSTRAIN_EXPR_H
#define Q_CONSTRAIN_EXPR_H

#include "err.h"
#include <stddef.h>
#include <stdint.h>

enum expr_kind {
    X_EMPTY,   /* the empty text */
    X_NOTHING, /* no text at all */
    X_TEXT,    /* bytes */
    X_CLASS,   /* one character of a class, in UTF-8 */
    X_JSON,    /* one character of a class, as it may be written inside a JSON string */
    X_SEQ,     /* kids, one after the other */
    X_ALT,     /* one of the kids */
    X_REPEAT,  /* the kid, min to max times; max < 0: any number */
    X_RULE,    /* a text of rule `rule` */
    X_AND,     /* a text that both kids take; neither holds a rule */
    X_PARTS,   /* kids: a separator, then pairs of a part and whether it must be there: parts in order, separators between them */
    X_UNTIL,   /* any text up to the first place where `bytes` are, and those */
    X_AVOID    /* any text in which `bytes` are not */
};

/* Characters lo to hi, both included; no class holds surrogates. */
struct expr_range {
    uint32_t lo, hi;
};

struct expr_node {
    enum expr_kind kind;
    int at, n;    /* kids, ranges or bytes of the grammar */
    int min, max; /* X_REPEAT */
    int rule;     /* X_RULE */
};

struct expr_rule {
    char *name; /* owned: for errors */
    int n_name; /* its bytes */
    int body;   /* < 0: used, not yet defined */
};

struct grammar {
    struct expr_node *node; /* all owned */
    int *kid;
    struct expr_range *range;
    char *byte;
    struct expr_rule *rule;
    int n_node, n_kid, n_range, n_byte, n_rule;
    int cap_node, cap_kid, cap_range, cap_byte, cap_rule;
    int root; /* a rule */
    int rc;   /* the first failure's code; its line is in *e */
    struct q_err *e;
};

enum { GRAMMAR_MAX_TEXT = 256 << 10, GRAMMAR_MAX_NODES = 400000, GRAMMAR_MAX_DEPTH = 64, GRAMMAR_MAX_COUNT = 100000 };

void grammar_start(struct grammar *g, struct q_err *e);
void grammar_free(struct grammar *g);
/* Records the first failure. */
void grammar_fail(struct grammar *g, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

int expr_empty(struct grammar *g);
int expr_nothing(struct grammar *g);
int expr_text(struct grammar *g, const char *s, size_t n);
/* Ranges in any order, touching or not; kind X_CLASS or X_JSON. Surrogates and NUL are left out. */
int expr_class(struct grammar *g, enum expr_kind kind, const struct expr_range *r, int n);
/* All characters that are not in the ranges. */
int expr_class_not(struct grammar *g, enum expr_kind kind, const struct expr_range *r, int n);
/* kind X_SEQ, X_ALT or X_AND. One kid is itself; none: empty, or nothing. */
int expr_join(struct grammar *g, enum expr_kind kind, const int *kids, int n);
#define EXPR_SEQ(g, ...) expr_join(g, X_SEQ, (const int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)))
#define EXPR_ALT(g, ...) expr_join(g, X_ALT, (const int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)))
int expr_repeat(struct grammar *g, int kid, int min, int max);
int expr_until(struct grammar *g, enum expr_kind kind, const char *tag); /* X_UNTIL or X_AVOID; tag: ASCII */
int expr_rule(struct grammar *g, int rule);

/* How many characters its texts have, of an expression without rules: *least to *most, < 0: as many as you like. */
void expr_lengths(const struct grammar *g, int x, int *least, int *most);

/* A new rule without a body. */
int grammar_rule(struct grammar *g, const char *name, size_t n);
void grammar_define(struct grammar *g, int rule, int body);

/* Kids gathered one by one. Zero-initialise; expr_kids_join frees. */
struct expr_kids {
    int *at; /* owned */
    int n, cap;
};
void expr_kids_add(struct grammar *g, struct expr_kids *k, int x);
int expr_kids_join(struct grammar *g, enum expr_kind kind, struct expr_kids *k);

#endif
