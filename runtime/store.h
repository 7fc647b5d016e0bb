/* The store: records in layers, objects by the hash of what they were built from.
 *
 *   <data>/tunes/v1/CARD/OP/PROBLEM-GENERATOR.json     winners that were measured (data: $XDG_DATA_HOME/quarry)
 *   <cache>/defaults/v1/...                            the same for default params: built again at no loss
 *   <cache>/objects/AA/HASH.so|.cubin, HASH.sum        immutable objects, the hash of their content beside them
 *
 * Layers of records, first wins: --tunes DIR, <data>/tunes, the site's (/usr/share/quarry/tunes), those shipped with the program
 * (tuned/CARD.jsonl, a record a line; built here, they lie in <cache>/defaults with origin "shipped"), <cache>/defaults; before the last, the
 * winner of another card that is near this one is borrowed (borrow.c). A record is
 * written whole and last, after the objects that it names, so no reader and no second writer meets half of a set. Whatever is damaged,
 * of another version, or writable by others (but in --tunes DIR, which the user named) is a miss. store_tell tells of those files
 * through `say`, in one line for each place that has any.
 */
#ifndef Q_STORE_H
#define Q_STORE_H

#include "card.h"
#include "err.h"
#include "files.h"
#include "record.h"

struct store_opts {
    const char *tunes;     /* --tunes DIR or NULL */
    const char *cache;     /* instead of $XDG_CACHE_HOME/quarry, or NULL */
    const char *shipped;   /* instead of the folder tuned/ that came with the program, or NULL; "": none */
    void (*say)(void *arg, const char *line);   /* may be NULL */
    void *say_arg;
};

struct store;
/* Touches no file. A place that the environment does not name is left out of the layers (store_cache then tells why). */
int store_open(struct store **s, const struct store_opts *o, struct q_err *e);
/* Tells what is not told yet. NULL is no store. */
void store_close(struct store *s);
/* One line for each layer of winners, and one for the cache, that had damaged files since the last call; no file is told twice. */
void store_tell(struct store *s);
/* The cache directory, or the error that it has none. */
int store_cache(const struct store *s, const char **dir, struct q_err *e);
/* Whether kernels for a CPU, which are mapped as code, can run from the cache; the line names the directory and the variable to set. */
int store_can_run(const struct store *s, struct q_err *e);
/* Whether a set of kernels can be written to the cache and, those of a CPU, run from there; the line as above. */
int store_can_write(const struct store *s, enum q_card_kind kind, struct q_err *e);
/* Whether winners can be written; the line names the directory and the variable to set. */
int store_can_put(const struct store *s, struct q_err *e);

/* What a record must answer. generator: the hash of this build's op. A record of rows 0 and ctx 0 is for steps of any size, and answers
 * where a layer has none of the key's own buckets. */
struct store_key {
    const char *op, *shape;
    int rows, ctx;
    const char *profile, *card, *generator;
};
/* The file's name in CARD/OP/: the same for every card. */
void store_file_name(char file[64], const struct store_key *k);
/* The first record for the key in layer *layer or a later one; *layer is left behind the one it came from, so that a caller can go on
 * to the next. Begin with 0. Q_EMISS: none. */
int store_find(struct store *s, const struct store_key *k, int *layer, struct record *r, struct q_err *e);
/* Writes a record: origin "tuned" to --tunes or the user's data, others to the cache. */
int store_put(struct store *s, const struct record *r, struct q_err *e);
/* Takes the user's own winner out of use: its file NAME.json is kept as NAME.wrong, which nothing reads; path: that. Q_EMISS: there is none in the
 * layer that store_put writes winners to. */
int store_set_aside(struct store *s, const struct store_key *k, char path[Q_PATH], struct q_err *e);
/* Every readable record for the card, layer by layer, names ascending. Non-zero from `visit` stops. */
int store_each(struct store *s, const char *card, int (*visit)(void *arg, const struct record *r, const char *path), void *arg,
               struct q_err *e);

/* A card's key as a folder's or a file's name: letters, digits, '-' and '.' stay, the rest is '_'. What lies there holds the key itself. */
enum { STORE_FOLDER = 200 };
void store_folder(char dst[STORE_FOLDER], const char *card);

/* --- objects.c, store_work.c --- */

/* The path of a whole and unchanged object. Q_EMISS otherwise; when it is there but damaged store_tell will tell so. */
int store_object(struct store *s, const char *name, char path[Q_PATH], struct q_err *e);
/* A private directory on the objects' disk to build in; the caller removes it (dir_remove), or the store's end does. Those of processes that were
 * killed are removed now. */
int store_workdir(struct store *s, char dir[Q_PATH], struct q_err *e);
/* Moves a built file, KERNEL.so or KERNEL.cubin, into the store; fills content and size. */
int store_publish(struct store *s, const char *built, const char *name, char content[65], long *size, struct q_err *e);

#endif
