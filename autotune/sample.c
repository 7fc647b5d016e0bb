#include "sample.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 128 };
#define SHORT_US 1000.0
#define LONG_US 5000.0
#define TALK_US 400.0        /* a request and its answer, the first calls */
#define CARD_US 1500.0       /* the same of a card, and calls for as long as bed_time.c says */

int sample_parts(double us, int on_card)
{
    if (on_card || us > LONG_US) return 1;
    return us > SHORT_US ? 3 : SAMPLE_PARTS;
}

double sample_cost(double us, int on_card)
{
    if (on_card) return fmax(2 * us, CARD_US);
    return TALK_US + (sample_parts(us, 0) + 1) * fmax(us, SAMPLE_PART_US);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sample_low(const double *v, int n)
{
    double s[MOST_VALUES];
    if (n < 1) return INFINITY;
    if (n > MOST_VALUES) n = MOST_VALUES;
    memcpy(s, v, (size_t)n * sizeof *s);
    qsort(s, (size_t)n, sizeof *s, by_value);
    return s[n / 4];
}

int sample_take(sample_part take, void *arg, int parts, double *us, struct q_err *e)
{
    double good[SAMPLE_PARTS], all[SAMPLE_MOST];
    int n = 0, n_good = 0, rc = Q_OK;
    while (n_good < parts && n < 3 * parts) {
        int disturbed = 0;
        if ((rc = take(arg, &all[n], &disturbed, e))) return rc;
        if (!disturbed) good[n_good++] = all[n];
        n++;
    }
    *us = n_good ? sample_low(good, n_good) : sample_low(all, n);
    return Q_OK;
}
