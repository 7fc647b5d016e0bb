/* What a tune tells while it works: one line a problem on stderr, and a summary. */
#ifndef Q_PROGRESS_H
#define Q_PROGRESS_H

#include "contest.h"
#include "found.h"
#include <stdio.h>

struct progress {
    FILE *f;
    double start;              /* seconds of a steady clock */
    int done, n;               /* problems measured, to be measured */
};

/* "[ 3/37] matmul type=..: 812.3 us, 71 % of roof (ops), default 901.2 us, -9.9 %: tm=2 (24 of 180 tried), 40 s to go" */
void progress_outcome(struct progress *p, const struct q_problem *problem, const struct outcome *o);
/* "[ 3/37] matmul type=..: right again, 812.3 us (recorded 801.0 us)" */
void progress_again(struct progress *p, const struct q_problem *problem, const struct record *now, const struct record *old);
/* A line an op of what was measured in this run: "  matmul: 17 problems, 5 better than their default params, by up to 23 %; 62 to 88 % of roof, 3 in
 * cache" */
void progress_ops(const struct progress *p, const struct found_list *l);
void progress_line(const struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "71 % of roof (bytes)", "in cache", ">100 % of roof (ops)"; "" where none is known. */
enum { PROGRESS_ROOF = 40 };
void progress_roof(char dst[PROGRESS_ROOF], const struct record *r);
/* The same for a column of 11: " 71 % bytes", "in cache". */
void progress_roof_cell(char dst[PROGRESS_ROOF], const struct record *r);
/* "rows<=64", "ctx<=4096", or "" for a winner of steps of any size. */
void progress_bucket(char dst[32], int rows, int ctx);
/* "matmul type=.. rows<=64" */
void progress_name(char *dst, size_t cap, const struct q_problem *p);
/* Only the params in which `params` differs from `base`; "default params" if in none. */
void progress_difference(char *dst, size_t cap, const char *params, const char *base);

#endif
