/* Inside the store: shared by store.c (records) and objects.c (objects). */
#ifndef Q_STORE_IMPL_H
#define Q_STORE_IMPL_H

#include "roof.h"
#include "store.h"

enum { STORE_LAYERS = 5, STORE_CACHE = STORE_LAYERS };

struct store_layer {
    char dir[Q_PATH];      /* holds CARD/OP/...json, or with `lines` CARD.jsonl */
    int lines;
    const char *variable;  /* what to set when it cannot be written; NULL: read only */
    int shared;            /* named by the user: files that others may write are read too */
};

/* Files of one place that were met damaged and are not told yet. */
struct store_damage {
    int n;
    char first[1101];      /* "PATH: why" */
};

struct store {
    struct store_layer layers[STORE_LAYERS];
    int n_layers;
    char cache[Q_PATH];    /* "" if there is none */
    struct q_err no_cache; /* and why */
    int tuned, defaults;   /* layer that each kind of record is written to; -1: none */
    void (*say)(void *arg, const char *line);
    void *say_arg;
    struct store_damage damage[STORE_LAYERS + 1];   /* of each layer of winners, and of the cache */
    struct q_roofs roofs;  /* ceilings.c: of card roofs_of */
    char roofs_of[192];
    int n_roofs;
    char work[Q_PATH];     /* this store's work directory, "" until one is needed */
    int work_lock;         /* the descriptor that holds it */
    char *damaged;         /* owned: all paths so far, each with '\n' behind it; NULL: none */
};

int store_read(struct record *r, const struct store_layer *l, const char *path, struct q_err *e);
/* Whether the record is about the key's problem, on any card. */
int store_answers(const struct record *r, const struct store_key *k);
/* Every readable record of an op (NULL: of all) that a layer has for a card's folder, names or lines ascending. Non-zero from fn stops. */
int store_each_in(struct store *s, int layer, const char *folder, const char *op, int (*fn)(void *arg, const struct record *r, const char *path),
                  void *arg);
int store_cards_in(const struct store *s, int layer, int (*fn)(void *arg, int layer, const char *folder), void *arg);

/* store_work.c: at the end of a store */
void store_remove_work(struct store *s);
/* borrow.c: whether the card's units still do, in relation to its read bandwidth, half of what they did where the record is from. What was
 * not measured on either is `believed`. */
int store_path_fits(struct store *s, const char *card, const struct record *r, int believed);
/* borrow.c: the winner of the nearest other card, origin "borrowed", card the key's. Q_EMISS: none. */
int store_borrow(struct store *s, const struct store_key *k, struct record *r);

void store_say(const struct store *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* store_damage.c: counts a file that is not used, once. place: a layer's index or STORE_CACHE; why begins with the path. */
void store_damaged(struct store *s, int place, const char *path, const char *why);

#endif
