#define _GNU_SOURCE
#include "store_impl.h"
#include "xdg.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SITE_TUNES "/usr/share/quarry/tunes"

void store_say(const struct store *s, const char *fmt, ...)
{
    char line[1200];
    va_list ap;
    if (!s->say) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    s->say(s->say_arg, line);
}

/* --- opening ----------------------------------------------------------------------------------------------------------- */

/* Returns the new layer's index, -1 when its path is too long. */
static int add_layer(struct store *s, const char *base, const char *below, const char *variable)
{
    struct store_layer *l = &s->layers[s->n_layers];
    l->variable = variable;
    if (path_join(l->dir, NULL, base, below, NULL)) return -1;
    return s->n_layers++;
}

static int add_lines(struct store *s, const char *base, const char *below)
{
    char dir[Q_PATH];
    int layer = path_join(dir, NULL, base, below, NULL) || access(dir, R_OK) ? -1 : add_layer(s, base, below, NULL);
    if (layer >= 0) s->layers[layer].lines = 1;
    return layer >= 0;
}

/* Where the program is installed, or in the source tree that build/ lies in. */
static void add_shipped(struct store *s, const char *given)
{
    char program[Q_PATH] = "";
    if (given) {
        if (*given) add_lines(s, given, ".");
        return;
    }
    if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0) return;
    *strrchr(program, '/') = 0;
    if (!add_lines(s, program, "../share/quarry/tuned")) add_lines(s, program, "../tuned");
}

static int find_cache(struct store *s, const char *given, struct q_err *e)
{
    if (!given) return xdg_dir(XDG_CACHE, s->cache, sizeof s->cache, e);
    return path_join(s->cache, e, given, NULL);
}

int store_open(struct store **out, const struct store_opts *o, struct q_err *e)
{
    char data[Q_PATH];
    struct store *s = calloc(1, sizeof *s);
    *out = s;
    if (!s) return q_fail(e, Q_EMEM, "store: out of memory");
    s->say = o->say;
    s->say_arg = o->say_arg;
    s->tuned = s->defaults = -1;
    if (o->tunes && (s->tuned = add_layer(s, o->tunes, "v1", "--tunes")) >= 0) s->layers[s->tuned].shared = 1;
    if (!xdg_dir(XDG_DATA, data, sizeof data, NULL)) {
        int user = add_layer(s, data, "tunes/v1", xdg_variable(XDG_DATA));
        if (!o->tunes) s->tuned = user;
    }
    add_layer(s, SITE_TUNES, "v1", NULL);
    add_shipped(s, o->shipped);
    if (find_cache(s, o->cache, &s->no_cache)) s->cache[0] = 0;
    else s->defaults = add_layer(s, s->cache, "defaults/v1", xdg_variable(XDG_CACHE));
    return Q_OK;
}

void store_close(struct store *s)
{
    if (!s) return;
    store_tell(s);
    store_remove_work(s);
    free(s->damaged);
    free(s);
}

int store_cache(const struct store *s, const char **dir, struct q_err *e)
{
    *dir = s->cache;
    return s->cache[0] ? Q_OK : q_fail(e, s->no_cache.code, "%s", s->no_cache.text);
}

/* Room for the objects of a large set: 100 kernels of 40 KiB. */
enum { SET_BYTES = 4 << 20 };

static int other_cache(int r, const struct q_err *why, struct q_err *e)
{
    return r ? q_fail(e, r, "%.900s (%s names another place)", why->text, xdg_variable(XDG_CACHE)) : Q_OK;
}

int store_can_run(const struct store *s, struct q_err *e)
{
    const char *dir;
    struct q_err why;
    int r = store_cache(s, &dir, e);
    return r ? r : other_cache(dir_may_run(dir, &why), &why, e);
}

int store_can_write(const struct store *s, enum q_card_kind kind, struct q_err *e)
{
    const char *dir;
    struct q_err why;
    int r = store_cache(s, &dir, e);
    if (r) return r;
    r = other_cache(dir_probe(dir, SET_BYTES, &why), &why, e);
    return r || kind != Q_CARD_CPU ? r : store_can_run(s, e);
}

/* A record takes 2 KiB, a large set has a hundred. */
enum { RECORDS_BYTES = 256 << 10 };

int store_can_put(const struct store *s, struct q_err *e)
{
    struct q_err why;
    if (s->tuned < 0) return q_fail(e, Q_EIO, "no place for records: set %s", xdg_variable(XDG_DATA));
    int r = dir_probe(s->layers[s->tuned].dir, RECORDS_BYTES, &why);
    return r ? q_fail(e, r, "%.900s (%s names another place)", why.text, s->layers[s->tuned].variable) : Q_OK;
}

/* --- paths ------------------------------------------------------------------------------------------------------------- */

void store_file_name(char file[64], const struct store_key *k)
{
    char buckets[48], problem[65];
    snprintf(buckets, sizeof buckets, "rows=%d,ctx=%d", k->rows, k->ctx);
    sha_texts(problem, (const char *const[]){ k->op, k->shape, buckets, k->profile }, 4);
    snprintf(file, 64, "%.24s-%.12s.json", problem, k->generator);
}

static int record_path(char path[Q_PATH], const struct store_layer *l, const struct store_key *k, struct q_err *e)
{
    char card[STORE_FOLDER], file[64];
    store_file_name(file, k);
    store_folder(card, k->card);
    return path_join(path, e, l->dir, card, k->op, file, NULL);
}

/* --- records ----------------------------------------------------------------------------------------------------------- */

int store_read(struct record *r, const struct store_layer *l, const char *path, struct q_err *e)
{
    char *text;
    size_t n;
    int bad = file_read(path, RECORD_BYTES, &text, &n, e);
    if (bad) return bad;
    bad = l->shared || file_is_ours(path) ? record_parse(r, text, n, path, e) : q_fail(e, Q_EINPUT, "%s: others may write it", path);
    free(text);
    return bad ? bad : record_check(r, path, e);
}

int store_answers(const struct record *r, const struct store_key *k)
{
    return !strcmp(r->op, k->op) && !strcmp(r->shape, k->shape) && r->rows == k->rows && r->ctx == k->ctx && !strcmp(r->profile, k->profile)
           && !strcmp(r->generator, k->generator);
}

struct search {
    const struct store_key *k;
    struct record *r;
};

static int is_sought(void *arg, const struct record *r, const char *path)
{
    struct search *f = arg;
    (void)path;
    if (!store_answers(r, f->k) || strcmp(r->card, f->k->card)) return 0;
    *f->r = *r;
    return 1;
}

static int find_exact(struct store *s, int layer, const struct store_key *k, struct record *r, int quiet);

/* A shipped record whose object was built here is kept beside the default ones. */
static void use_built(struct store *s, const struct store_key *k, struct record *r)
{
    struct record *built = malloc(sizeof *built);
    int there = built && s->defaults >= 0 && !find_exact(s, s->defaults, k, built, 1);
    if (there && !strcmp(built->origin, "shipped") && !strcmp(built->params, r->params) && !strcmp(built->source, r->source)) *r = *built;
    free(built);
}

static int find_line(struct store *s, int layer, const struct store_key *k, struct record *r)
{
    struct search f = { k, r };
    char folder[STORE_FOLDER];
    store_folder(folder, k->card);
    if (!store_each_in(s, layer, folder, k->op, is_sought, &f) || !store_path_fits(s, k->card, r, 1)) return Q_EMISS;
    strcpy(r->origin, "shipped");
    r->n_objects = 0;
    use_built(s, k, r);
    return Q_OK;
}

/* The card's own record in one layer, of exactly the key's buckets; what is wrong with it is noted unless quiet. */
static int find_exact(struct store *s, int layer, const struct store_key *k, struct record *r, int quiet)
{
    const struct store_layer *l = &s->layers[layer];
    char path[Q_PATH];
    struct q_err why;
    if (l->lines) return find_line(s, layer, k, r);
    if (record_path(path, l, k, NULL)) return Q_EMISS;
    int bad = store_read(r, l, path, &why);
    if (!bad && store_answers(r, k) && !strcmp(r->card, k->card)) return Q_OK;
    if (!bad) q_fail(&why, Q_EINPUT, "%s: damaged record: it is for %s %s", path, r->op, r->shape);
    if (bad != Q_EMISS && !quiet) store_damaged(s, layer, path, why.text);
    return Q_EMISS;
}

/* A winner for steps of the key's size goes before one for steps of any. */
static int find_in(struct store *s, int layer, const struct store_key *k, struct record *r, int quiet)
{
    struct store_key any = *k;
    if (!find_exact(s, layer, k, r, quiet)) return Q_OK;
    any.rows = any.ctx = 0;
    return k->rows || k->ctx ? find_exact(s, layer, &any, r, quiet) : Q_EMISS;
}

/* What was borrowed before, and built with this machine's compiler, goes before what can be borrowed now. */
static int find_borrowed(struct store *s, const struct store_key *k, struct record *r)
{
    int built = s->defaults >= 0 && !find_in(s, s->defaults, k, r, 1) && !strcmp(r->origin, "borrowed");
    return built ? Q_OK : store_borrow(s, k, r);
}

/* Places in order: the layers of winners, other cards' winners, the layer of default params. */
int store_find(struct store *s, const struct store_key *k, int *layer, struct record *r, struct q_err *e)
{
    int winners = s->n_layers - (s->defaults >= 0);
    while (*layer < winners)
        if (!find_in(s, (*layer)++, k, r, 0)) return Q_OK;
    if (*layer == winners && ++*layer && !find_borrowed(s, k, r)) return Q_OK;
    if (*layer == winners + 1 && ++*layer && s->defaults >= 0 && !find_in(s, s->defaults, k, r, 0)) return Q_OK;
    return q_fail(e, Q_EMISS, "no record for %s %s on %s", k->op, k->shape, k->card);
}

/* What is written must be readable: a text cut by short memory must not replace a good record. */
static int print_checked(const struct record *r, char **text, struct q_err *e)
{
    struct record again;
    *text = record_print(r);
    if (!*text) return q_fail(e, Q_EMEM, "record: out of memory");
    int bad = record_parse(&again, *text, strlen(*text), "new record", e);
    if (bad) free(*text);
    return bad;
}

int store_put(struct store *s, const struct record *r, struct q_err *e)
{
    int tuned = !strcmp(r->origin, "tuned"), layer = tuned ? s->tuned : s->defaults;
    if (layer < 0) return q_fail(e, Q_EIO, "no place for records: set %s", xdg_variable(tuned ? XDG_DATA : XDG_CACHE));
    struct store_key k = { r->op, r->shape, r->rows, r->ctx, r->profile, r->card, r->generator };
    char path[Q_PATH], *text;
    struct q_err why;
    int bad = record_path(path, &s->layers[layer], &k, e);
    if (bad) return bad;
    if ((bad = print_checked(r, &text, e))) return bad;
    bad = dir_make_for(path, &why);
    if (!bad) bad = file_write(path, text, strlen(text), &why);
    free(text);
    return bad ? q_fail(e, bad, "%.900s (%s names another place)", why.text, s->layers[layer].variable) : Q_OK;
}

int store_set_aside(struct store *s, const struct store_key *k, char path[Q_PATH], struct q_err *e)
{
    char from[Q_PATH];
    if (s->tuned < 0 || record_path(from, &s->layers[s->tuned], k, e)) return q_fail(e, Q_EMISS, "no place of winners");
    snprintf(path, Q_PATH, "%.*s.wrong", (int)(strlen(from) - strlen(".json")), from);
    if (!rename(from, path)) return Q_OK;
    return q_fail(e, errno == ENOENT ? Q_EMISS : Q_EIO, "%s: cannot be set aside: %s", from, strerror(errno));
}

/* --- listing ----------------------------------------------------------------------------------------------------------- */

int store_each(struct store *s, const char *card, int (*fn)(void *, const struct record *, const char *), void *arg, struct q_err *e)
{
    char folder[STORE_FOLDER];
    int stop = 0;
    store_folder(folder, card);
    for (int l = 0; l < s->n_layers && !stop; l++) stop = store_each_in(s, l, folder, NULL, fn, arg);
    store_tell(s);
    return Q_OK;
}
