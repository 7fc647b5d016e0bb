/* Borrowing: a problem that nobody tuned on this card is answered by the winner of the nearest other one.
 *
 * A CPU is near when it is of the same vendor and family, or has the same best instruction path; nearest is the same model, then the same
 * set of paths, then the closest number of threads. A GPU is near when it is of the same generation; nearest is the same compute
 * capability, then the closest number of multiprocessors. This card must have the path that the winner takes, and a GPU's units must
 * still do what the silicon could: where fuses left a fraction of a rate, a healthy card's winner would be a loss. What a borrowed
 * winner computes is as right as its own card's, so only its speed is a guess. */
#define _GNU_SOURCE
#include "card.h"
#include "ceilings.h"
#include "shape.h"
#include "store_impl.h"
#include <stdlib.h>
#include <string.h>

enum { FAR = 1 << 20 };

static unsigned best_path(unsigned isa)
{
    unsigned best = 1;
    while (isa >>= 1) best <<= 1;
    return best;
}

static int most(int v, int limit) { return v < limit ? v : limit; }

static int cpu_distance(const struct q_card *here, const struct q_card *there)
{
    int family = !strcmp(here->vendor, there->vendor) && here->family == there->family;
    if (!family && best_path(here->isa) != best_path(there->isa)) return FAR;
    int threads = abs(here->threads - there->threads);
    return (family && here->model == there->model ? 0 : family ? 40000 : 80000) + (here->isa == there->isa ? 0 : 20000) + most(threads, 9999);
}

/* A key that leaves out what a card has stands for a card that is not there: the last choice among equals. */
static int cuda_distance(const struct q_card *here, const struct q_card *there)
{
    if (here->cc / 10 != there->cc / 10) return FAR;
    int memory = (here->l2 != there->l2) + (here->bus != there->bus) + (here->smem != there->smem);
    int units = here->without_mma != there->without_mma || here->without_dp4a != there->without_dp4a;
    return 40000 * (here->cc != there->cc) + 20000 * units + 4 * most(abs(here->sms - there->sms), 4000) + memory;
}

/* FAR or more: not near. */
static int distance(const struct q_card *here, const struct q_card *there)
{
    if (here->kind != there->kind) return FAR;
    return here->kind == Q_CARD_CUDA ? cuda_distance(here, there) : cpu_distance(here, there);
}

/* --- paths ------------------------------------------------------------------------------------------------------------- */

static int cpu_has_path(const struct q_card *c, const char *isa)
{
    struct q_card path;
    char key[64] = "cpu:";
    strncat(key, isa, sizeof key - strlen(key) - 1);
    return !card_parse(&path, key, NULL) && c->isa & best_path(path.isa);
}

static int is_mma(const char *path) { return !strncmp(ceiling_of_path(path), "mma", 3); }

static int cuda_has_path(const struct q_card *c, const char *path)
{
    if (!strcmp(path, "wgmma")) return !c->without_mma && c->cc == 90;
    if (is_mma(path)) return !c->without_mma && c->cc >= (strcmp(ceiling_of_path(path), "mma_i8") ? 70 : 75);
    if (!strcmp(path, "dp4a")) return c->cc >= 61 && !c->without_dp4a;
    return strcmp(path, "hfma2") || c->cc == 60 || c->cc == 62 || c->cc >= 70;
}

int store_path_fits(struct store *s, const char *card, const struct record *r, int believed)
{
    struct q_roofs here;
    ceilings_read(s, card, &here);
    double rate = ceiling_rate(&here, r->ceiling);
    if (!(rate > 0) || !(here.read > 0) || !(r->path_rate > 0) || !(r->read_rate > 0)) return believed;
    return rate / here.read >= 0.5 * r->path_rate / r->read_rate;
}

/* Whether the card can run the winner, and fast. */
static int fits(struct store *s, const struct store_key *k, const struct q_card *here, const struct record *r)
{
    struct q_shape p;
    const char *path = shape_parse(&p, r->params, NULL) ? NULL : shape_find(&p, here->kind == Q_CARD_CUDA ? "path" : "isa");
    if (!path) return 1;          /* a choice without a kernel, or an op that has one path */
    if (here->kind == Q_CARD_CPU) return cpu_has_path(here, path);
    /* Unmeasured, plain units are believed, tensor cores not: they are what fuses take away. */
    return cuda_has_path(here, path) && store_path_fits(s, k->card, r, !is_mma(path));
}

/* --- the search -------------------------------------------------------------------------------------------------------- */

struct search {
    struct store *s;
    const struct store_key *k;
    struct q_card here;
    int nearest;
    struct record *r;
};

static int consider(void *arg, const struct record *other, const char *path)
{
    struct search *f = arg;
    struct q_card there;
    (void)path;
    int good = store_answers(other, f->k) && strcmp(other->card, f->k->card) && !strcmp(other->origin, "tuned")
        && !card_parse(&there, other->card, NULL);
    if (good && distance(&f->here, &there) < f->nearest && fits(f->s, f->k, &f->here, other)) {
        f->nearest = distance(&f->here, &there);
        *f->r = *other;
    }
    return 0;
}

/* Where a file holds a record its name tells which. Damaged files of other cards are none of this card's concern: no line is said. */
static int consider_card(void *arg, int layer, const char *folder)
{
    struct search *f = arg;
    const struct store_layer *l = &f->s->layers[layer];
    char file[64], path[Q_PATH];
    if (l->lines) return store_each_in(f->s, layer, folder, f->k->op, consider, f);
    struct record *other = malloc(sizeof *other);
    store_file_name(file, f->k);
    if (other && !path_join(path, NULL, l->dir, folder, f->k->op, file, NULL) && !store_read(other, l, path, NULL)) consider(f, other, path);
    free(other);
    return 0;
}

int store_borrow(struct store *s, const struct store_key *k, struct record *r)
{
    struct store_key any = *k;
    struct search f = { .s = s, .k = k, .nearest = FAR, .r = r };
    if (card_parse(&f.here, k->card, NULL)) return Q_EMISS;
    for (int i = 0; i < s->n_layers; i++)
        if (i != s->defaults) store_cards_in(s, i, consider_card, &f);
    any.rows = any.ctx = 0;
    if (f.nearest == FAR) return k->rows || k->ctx ? store_borrow(s, &any, r) : Q_EMISS;
    strcpy(r->origin, "borrowed");
    strcpy(r->from, r->card);
    strcpy(r->card, k->card);
    /* A cubin is of its own card, and so is its launch: both are made anew. */
    if (f.here.kind == Q_CARD_CUDA) r->n_objects = 0;
    return Q_OK;
}
