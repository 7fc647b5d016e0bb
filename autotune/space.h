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
/* At most `most` different ones to try: `first` (the default), up to `steps` of its neighbours (space_steps), then a sample drawn by `seed`, all on
 * first's instruction path (which the roofline ranks highest) and, of eight or more, a sixth on others, or more where that path has no more; and beside
 * these the `seeds` (winners of other shapes) that are legal here: two tunes draw the same, whatever won before. out: [most + n_seeds]. Returns how
 * many. */
int space_pick(const struct space *s, const char *first, int steps, const char (*seeds)[256], int n_seeds, int most, unsigned long long seed,
               int *out);
/* The instruction paths of legal ones, each once. Returns how many. */
int space_paths(const struct space *s, char (*path)[24]);
/* Legal ones that differ from `at` by one step in one param. Returns how many, at most `most`. */
int space_steps(const struct space *s, int at, int *out, int most);

#endif
