/* Borrowing: a problem that nobody tuned on this card is answered by the winner of the nearest other one.
 *
 * Near means: the same vendor and family, or the same best instruction path; and this card must have the path that the winner takes.
 * Nearest is the same model, then the same set of paths, then the closest number of threads. What a borrowed winner computes is as right
 * as its own card's, so only its speed is a guess. */
#define _GNU_SOURCE
#include "card.h"
#include "shape.h"
#include "store_impl.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { FAR = 1 << 20 };

static unsigned best_path(unsigned isa)
{
    unsigned best = 1;
    while (isa >>= 1) best <<= 1;
    return best;
}

/* FAR or more: not near. */
static int distance(const struct q_card *here, const struct q_card *there)
{
    int family = !strcmp(here->vendor, there->vendor) && here->family == there->family;
    if (!family && best_path(here->isa) != best_path(there->isa)) return FAR;
    int threads = abs(here->threads - there->threads);
    return (family && here->model == there->model ? 0 : family ? 40000 : 80000) + (here->isa == there->isa ? 0 : 20000) + (threads < 10000 ? threads : 9999);
}

/* Whether the card can run these params. */
static int has_path(const struct q_card *c, const char *params)
{
    struct q_shape p;
    struct q_card path;
    char key[64] = "cpu:";
    const char *isa = shape_parse(&p, params, NULL) ? NULL : shape_find(&p, "isa");
    if (!isa) return 1;          /* a choice without a kernel */
    strncat(key, isa, sizeof key - strlen(key) - 1);
    return !card_parse(&path, key, NULL) && c->isa & best_path(path.isa);
}

/* Damaged files of other cards are none of this card's concern: no line is said. */
static void consider(const struct store_layer *l, const char *folder, const struct store_key *k, const struct q_card *here, int *nearest,
                     struct record *r)
{
    char file[64], path[Q_PATH];
    struct q_card there;
    struct record *other = malloc(sizeof *other);
    store_file_name(file, k);
    int good = other && !path_join(path, NULL, l->dir, folder, k->op, file, NULL) && !store_read(other, l, path, NULL) && store_answers(other, k)
               && strcmp(other->card, k->card) && !strcmp(other->origin, "tuned") && !card_parse(&there, other->card, NULL)
               && has_path(here, other->params);
    if (good && distance(here, &there) < *nearest) {
        *nearest = distance(here, &there);
        *r = *other;
    }
    free(other);
}

static int not_hidden(const struct dirent *d) { return d->d_name[0] != '.'; }

int store_borrow(struct store *s, const struct store_key *k, struct record *r)
{
    struct q_card here;
    int nearest = FAR;
    if (card_parse(&here, k->card, NULL)) return Q_EMISS;
    for (int i = 0; i < s->n_layers; i++) {
        struct dirent **cards;
        int n = i == s->defaults ? -1 : scandir(s->layers[i].dir, &cards, not_hidden, alphasort);
        for (int j = 0; j < n; j++) {
            consider(&s->layers[i], cards[j]->d_name, k, &here, &nearest, r);
            free(cards[j]);
        }
        if (n >= 0) free(cards);
    }
    if (nearest == FAR) return Q_EMISS;
    strcpy(r->origin, "borrowed");
    strcpy(r->card, k->card);
    return Q_OK;
}
