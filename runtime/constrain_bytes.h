/* Characters as byte sequences: a range of characters becomes a few sequences of byte sets, in UTF-8 or as a JSON string writes it.
 *
 * All of them come from one idea: numbers from lo to hi, written with the same count of digits, are few products of digit ranges. UTF-8 is
 * such a way of writing (a lead and digits to base 64), so is \uXXXX, so are decimal numbers (constrain_number.c).
 */
#ifndef Q_CONSTRAIN_BYTES_H
#define Q_CONSTRAIN_BYTES_H

#include "constrain_expr.h"

enum { DIGITS_MAX = 24 };

/* Calls `put` for products of digit ranges a[i]..b[i] that together hold exactly the numbers from lo to hi (digits, most significant
 * first); digit i goes from 0 to top[i]. lo <= hi. */
typedef void digits_put(void *arg, const int *a, const int *b, int n);
void digits_span(const int *lo, const int *hi, const int *top, int n, digits_put *put, void *arg);

/* One place of a sequence: any byte of up to three ranges. */
struct byte_set {
    int n;
    unsigned char lo[3], hi[3];
};
typedef void bytes_put(void *arg, const struct byte_set *s, int n);
/* Characters r.lo to r.hi in UTF-8. */
void bytes_utf8(struct expr_range r, bytes_put *put, void *arg);
/* The same inside a JSON string: as they are where they may be, by their short escapes, and as \uXXXX where they are no printable ASCII. */
void bytes_json(struct expr_range r, bytes_put *put, void *arg);

#endif
