/* What a tune has found so far: one entry a problem. Shared by tune.c (which fills it) and gate.c (which judges it). */
#ifndef Q_FOUND_H
#define Q_FOUND_H

#include "contest.h"
#include "runtime/kset.h"
#include "runtime/record.h"

struct found {
    struct q_problem problem;
    struct record record;      /* the answer; origin "" where there is none: default params, from the store */
    struct record base;        /* default params, built too; origin "" if the answer was recorded earlier */
    int fresh;                 /* measured in this run, to be written */
    char blamed[256];          /* params that the gate took away, "" if it did not; and their object */
    char blamed_object[65];
    struct rivals rivals;      /* of the winner, where it is fresh */
    int looks;                 /* more of them that were taken */
    int again;                 /* recorded before, built and checked again in this run, to be written */
};

struct found_list {
    struct found *f;           /* owned */
    int n, cap;
};

/* A new entry at the end, NULL when memory is short; pointers to older ones are void afterwards. */
struct found *found_add(struct found_list *l, const struct q_problem *p);
/* NULL if there is none. */
struct found *found_find(const struct found_list *l, const struct q_problem *p);

#endif
