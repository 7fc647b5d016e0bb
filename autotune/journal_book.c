#define _GNU_SOURCE
#include "journal_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOOK_MOST = 1 << 16 };      /* entries of a kind: no journal of ours comes near */

/* What is known of an object. */
struct thing {
    char object[65];
    char why[400];            /* kind and reason; "": nothing bad */
    int proven;               /* bad beyond suspicion */
    int deaths;               /* ends of a tune in the middle of it, in a row */
    int open;                 /* started in the session that is being read, and nothing since */
};

struct win {
    struct journal_won w;
    char session[JOURNAL_NUMBER + 1];
    int recorded;             /* its tune wrote records, or is still at it, or the gate refused it */
};

struct journal_book {
    char card[192], boot[64];
    struct thing *thing;      /* owned */
    struct win *win;          /* owned */
    int n_things, cap_things, n_wins, cap_wins;
    struct journal_foreign foreign;
    /* the session that is being read */
    char session[JOURNAL_NUMBER + 1];
    int alive, same_boot;
};

static int make_room(void **list, int n, int *cap, size_t size)
{
    if (n < *cap) return 1;
    int more = *cap ? 2 * *cap : 64;
    void *p = n < BOOK_MOST ? realloc(*list, (size_t)more * size) : NULL;
    if (!p) return 0;
    *list = p;
    *cap = more;
    return 1;
}

static struct thing *find_thing(const struct journal_book *b, const char *object)
{
    for (int i = 0; i < b->n_things; i++)
        if (!strcmp(b->thing[i].object, object)) return &b->thing[i];
    return NULL;
}

/* The object an event is about, entered if it is new; NULL where it names none. */
static struct thing *thing_of(struct journal_book *b, const cJSON *o)
{
    char object[65];
    if (journal_text(o, "object", object, sizeof object) || !*object) return NULL;
    struct thing *t = find_thing(b, object);
    if (t || !make_room((void **)&b->thing, b->n_things, &b->cap_things, sizeof *b->thing)) return t;
    t = &b->thing[b->n_things++];
    memset(t, 0, sizeof *t);
    strcpy(t->object, object);
    return t;
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

/* What a session left open when its writer ended. */
static void end_session(struct journal_book *b)
{
    for (int i = 0; i < b->n_things; i++) {
        struct thing *t = &b->thing[i];
        int died = t->open && !b->alive;
        t->open = 0;
        t->deaths += died;
        t->proven |= died && !b->same_boot;
        if (t->why[0]) continue;
        if (t->proven) strcpy(t->why, "died: the machine went down while it ran");
        else if (t->deaths >= JOURNAL_DEATHS) strcpy(t->why, "died: each tune that ran it came to its end with it");
    }
}

static void begin_session(struct journal_book *b, const struct journal_event *ev)
{
    char boot[64];
    end_session(b);
    snprintf(b->session, sizeof b->session, "%s", ev->session);
    b->alive = ev->alive;
    b->same_boot = journal_text(ev->o, "boot", boot, sizeof boot) || !strcmp(boot, b->boot);
}

static void take_bad(struct thing *t, const cJSON *o)
{
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "kind"));
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "why"));
    snprintf(t->why, sizeof t->why, "%.16s: %.370s", kind ? kind : "bad", why ? why : "");
    t->proven = 1;
}

static int same_key(const struct record *r, const struct store_key *k)
{
    return !strcmp(r->op, k->op) && !strcmp(r->shape, k->shape) && r->rows == k->rows && r->ctx == k->ctx && !strcmp(r->profile, k->profile)
           && !strcmp(r->generator, k->generator);
}

static struct win *find_win(const struct journal_book *b, const struct store_key *k)
{
    for (int i = 0; i < b->n_wins; i++)
        if (same_key(&b->win[i].w.record, k)) return &b->win[i];
    return NULL;
}

static struct store_key key_of(const struct record *r)
{
    return (struct store_key){ r->op, r->shape, r->rows, r->ctx, r->profile, r->card, r->generator };
}

static int take_record(const cJSON *o, const char *name, struct record *r)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);
    char *text = item ? cJSON_PrintUnformatted(item) : NULL;
    int bad = !text || record_parse(r, text, strlen(text), name, NULL);
    cJSON_free(text);
    return bad;
}

static double number(const cJSON *o, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* The newest of a problem takes the place of those before it. */
static void take_won(struct journal_book *b, const cJSON *o)
{
    struct win w = { 0 };
    const cJSON *duel = cJSON_GetObjectItemCaseSensitive(o, "duel");
    if (take_record(o, "record", &w.w.record) || strcmp(w.w.record.card, b->card)) return;
    if (take_record(o, "base", &w.w.base)) memset(&w.w.base, 0, sizeof w.w.base);
    w.w.gain = number(duel, "gain");
    w.w.band = number(duel, "band");
    w.w.accepted = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(duel, "accepted"));
    w.recorded = b->alive || cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "recorded"));
    strcpy(w.session, b->session);
    struct store_key k = key_of(&w.w.record);
    struct win *old = find_win(b, &k);
    if (!old && make_room((void **)&b->win, b->n_wins, &b->cap_wins, sizeof *b->win)) old = &b->win[b->n_wins++];
    if (old) *old = w;
}

static void settle_wins(struct journal_book *b)
{
    for (int i = 0; i < b->n_wins; i++) b->win[i].recorded |= !strcmp(b->win[i].session, b->session);
}

/* A set that failed as a whole is measured anew. */
static void take_gate(struct journal_book *b, const cJSON *o)
{
    if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(o, "passed"))) settle_wins(b);
}

static void take_close(struct journal_book *b, const cJSON *o)
{
    const cJSON *left = cJSON_GetObjectItemCaseSensitive(o, "left");
    for (int i = 0; i < b->n_things; i++) b->thing[i].open = 0;
    if (cJSON_IsNumber(left) && left->valuedouble == 0) settle_wins(b);
}

static int visit(void *arg, const struct journal_event *ev)
{
    struct journal_book *b = arg;
    if (!strcmp(ev->ev, "open")) begin_session(b, ev);
    else if (!strcmp(ev->ev, "close")) take_close(b, ev->o);
    else if (!strcmp(ev->ev, "won")) take_won(b, ev->o);
    else if (!strcmp(ev->ev, "gate")) take_gate(b, ev->o);
    struct thing *t = thing_of(b, ev->o);
    if (!t) return 0;
    t->open = !strcmp(ev->ev, "start");
    if (!strcmp(ev->ev, "bad")) take_bad(t, ev->o);
    else if (!strcmp(ev->ev, "suspect")) t->deaths++;
    else if (!t->open) t->deaths = 0;
    return 0;
}

/* --- the book ---------------------------------------------------------------------------------------------------------- */

int book_open(struct journal_book **out, const char *dir, const char *card, struct q_err *e)
{
    struct journal_book *b = calloc(1, sizeof *b);
    *out = NULL;
    if (!b) return q_fail(e, Q_EMEM, "no memory for a journal");
    snprintf(b->card, sizeof b->card, "%s", card);
    journal_boot(b->boot);
    int rc = journal_each(dir, card, visit, b, &b->foreign, e);
    end_session(b);
    if (rc) book_close(b);
    else *out = b;
    return rc;
}

void book_close(struct journal_book *b)
{
    if (!b) return;
    free(b->thing);
    free(b->win);
    free(b);
}

const char *book_bad(const struct journal_book *b, const char *object, int proven)
{
    const struct thing *t = b ? find_thing(b, object) : NULL;
    return t && t->why[0] && (t->proven || !proven) ? t->why : NULL;
}

const struct journal_won *book_won(const struct journal_book *b, const struct store_key *k)
{
    const struct win *w = b ? find_win(b, k) : NULL;
    return w && !w->recorded ? &w->w : NULL;
}

const struct journal_foreign *book_foreign(const struct journal_book *b) { return &b->foreign; }
