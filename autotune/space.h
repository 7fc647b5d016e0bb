/* The candidates of one problem: the legal params of its space, what pruned the others, and which of them a tune tries. */
#ifndef Q_SPACE_H
#define Q_SPACE_H

#include "gen/gen.h"

enum { SPACE_REASONS = 16, SPACE_PATHS = 8 };

struct space {
    char (*params)[256];       /* owned: [n] legal ones, in the space's order */
    int n, total;
    struct { char text[96]; int n; } reason[SPACE_REASONS];   /* what pruned the rest, as often as it did */
    int n_reasons;
};

int space_open(struct space *s, struct gen *g, const char *op, const char *shape, const char *card, const char *numerics, struct q_err *e);
void space_close(struct space *s);
/* Its index, -1 if it is not legal. */
int space_find(const struct space *s, const char *params);
/* How many are tried. */
struct space_plan {
    int whole;     /* all of the default's path, where they are no more than that: then no chance decides what is found */
    int near;      /* else so many of that path that differ from the default in one param, by the fewest values, beside: */
    int most;      /* the default and a sample; of eight or more a sixth on other paths, or more where that path has no more */
};
/* Different ones to try: `first` (the default, on the path that the roofline ranks highest), what the plan says, drawn by `seed`, and beside these the
 * `seeds` (winners of other shapes) that are legal here: two tunes draw the same, whatever won before. out: [max(whole, most + near) + most
 * + n_seeds]. Returns how many. */
int space_pick(const struct space *s, const char *first, const struct space_plan *plan, const char (*seeds)[256], int n_seeds,
               unsigned long long seed, int *out);
/* The instruction paths of legal ones, each once. Returns how many. */
int space_paths(const struct space *s, char (*path)[24]);
/* Legal ones on at's path that differ from it in one param, by so many values (1: a step). Returns how many, at most `most`. */
int space_near(const struct space *s, int at, int by, int *out, int most);

#endif
