/* Decimal numbers within bounds, as expressions. */
#ifndef Q_CONSTRAIN_NUMBER_H
#define Q_CONSTRAIN_NUMBER_H

#include "constrain_expr.h"

/* Digits before the point, and behind it, that are written at most. */
enum { NUMBER_DIGITS = 20 };
#define NUMBER_MOST 9007199254740992.0 /* bounds beyond this have no exact digits */

struct number_bounds {
    int has_min, has_max;
    double min, max;          /* within +-NUMBER_MOST */
    int above_min, below_max; /* the bound itself is out */
};

/* A JSON integer, or number, within the bounds. */
int expr_integer(struct grammar *g, const struct number_bounds *b);
int expr_number(struct grammar *g, const struct number_bounds *b);

#endif
