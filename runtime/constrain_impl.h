/* What a constraint is inside; for runtime/constrain*.c alone. */
#ifndef Q_CONSTRAIN_IMPL_H
#define Q_CONSTRAIN_IMPL_H

#include "constrain.h"
#include "constrain_expr.h"

/* The text that a grammar is read from. */
struct constrain_text {
    const char *at;
    size_t n;
    struct q_tool_rules tools;
};

/* Readers: fill g's rules and g->root. Failures stay in g. Each reads the whole text. */
typedef void constrain_reader(struct grammar *g, const struct constrain_text *text);
constrain_reader constrain_read_gbnf, constrain_read_schema, constrain_read_regex, constrain_read_tools;

/* constrain_regex.c: a pattern as an expression of characters of `kind` (X_CLASS, X_JSON); anywhere: it is searched, else it is all of the
 * text. what: begins the line of an error. */
int constrain_regex(struct grammar *g, const char *pattern, size_t n, enum expr_kind kind, int anywhere, const char *what);

#endif
