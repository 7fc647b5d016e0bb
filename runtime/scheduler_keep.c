/* What slots and snapshots remember, so that it is not read again. */
#include "scheduler_impl.h"
#include <stdlib.h>
#include <string.h>

static int begins_with(const struct tok_ids *ids, size_t most, const int32_t *head, int n)
{
    return (size_t)n <= most && !memcmp(ids->at, head, (size_t)n * sizeof *head);
}

/* One token must be left to be read. */
static size_t most_of(const struct sched_task *t) { return t->known.n - 1; }

static struct sched_place *best_place(const struct q_sched *s, const struct sched_task *t)
{
    struct sched_place *best = NULL;
    for (struct sched_place *p = s->places; p; p = p->next)
        if ((!best || p->n > best->n) && begins_with(&t->known, most_of(t), p->ids, p->n)) best = p;
    return best;
}

/* The idle slot whose tokens are the longest beginning; NULL when all begin otherwise. */
static struct sched_slot *best_slot(const struct q_sched *s, const struct sched_task *t)
{
    struct sched_slot *best = NULL;
    for (int i = 0; i < s->en.max_seqs; i++) {
        struct sched_slot *l = &s->slot[i];
        if (l->task || !l->n || (best && l->n <= best->n)) continue;
        if (begins_with(&t->known, most_of(t), l->ids, l->n)) best = l;
    }
    return best;
}

/* ---- what was not re-used, and why ---- */

enum { ALIKE = 32 };   /* tokens that prompts of any two conversations may have in common: roles, a date */

static int common(const struct tok_ids *ids, size_t most, const int32_t *other, int n)
{
    int i = 0;
    while (i < n && (size_t)i < most && ids->at[i] == other[i]) i++;
    return i;
}

/* The longest beginning that anything kept has in common with the task's tokens; *busy: it is in a slot at work. *any: something is kept. */
static int longest_common(const struct q_sched *s, const struct sched_task *t, int *busy, int *any)
{
    int best = 0;
    *busy = *any = 0;
    for (int i = 0; i < s->en.max_seqs; i++) {
        const struct sched_slot *l = &s->slot[i];
        int n = common(&t->known, most_of(t), l->ids, l->n);
        *any |= l->n > 0;
        if (n > best) best = n, *busy = l->task != NULL;
    }
    for (const struct sched_place *p = s->places; p; p = p->next) {
        int n = common(&t->known, most_of(t), p->ids, p->n);
        *any = 1;
        if (n > best) best = n, *busy = 0;
    }
    return best;
}

static void tell_reuse(const struct q_sched *s, struct sched_task *t, int from_slot, int from_place)
{
    int busy, any, n = longest_common(s, t, &busy, &any);
    t->answer.n_shared = n;
    t->answer.reuse = from_slot    ? Q_REUSE_SLOT
                      : from_place ? Q_REUSE_SNAPSHOT
                      : !any       ? Q_REUSE_EMPTY
                      : n < ALIKE  ? Q_REUSE_DIFFERENT
                      : busy       ? Q_REUSE_BUSY
                                   : Q_REUSE_NO_PLACE;
}

/* ---- slots ---- */

int sched_held(const struct q_sched *s, const struct sched_task *t)
{
    const struct sched_place *p = best_place(s, t);
    const struct sched_slot *l = best_slot(s, t);
    int by_place = p ? p->n : 0, by_slot = l ? l->n : 0;
    return by_place > by_slot ? by_place : by_slot;
}

/* How little is lost when an idle slot's tokens are: it is empty; it went on from the place that is restored, so the same
 * conversation has left it behind; the longer unused, the less. */
static int loses_less(const struct sched_slot *a, const struct sched_slot *b, const struct sched_place *p)
{
    if (!a->n || !b->n) return !a->n;
    int left_a = p && p->n <= a->n && !memcmp(a->ids, p->ids, (size_t)p->n * sizeof *p->ids);
    int left_b = p && p->n <= b->n && !memcmp(b->ids, p->ids, (size_t)p->n * sizeof *p->ids);
    return left_a != left_b ? left_a : a->used < b->used;
}

static struct sched_slot *least_loss(const struct q_sched *s, const struct sched_place *p)
{
    struct sched_slot *best = NULL;
    for (int i = 0; i < s->en.max_seqs; i++) {
        struct sched_slot *l = &s->slot[i];
        if (!l->task && (!best || loses_less(l, best, p))) best = l;
    }
    return best;
}

void sched_forget_slot(struct q_sched *s, struct sched_slot *slot)
{
    s->en.seq_clear(slot->seq);
    slot->n = 0;
}

static int restore(struct q_sched *s, struct sched_slot *slot, struct sched_place *p, struct q_err *e)
{
    int rc = s->en.seq_restore(slot->seq, p->snap, e);
    if (rc) {
        sched_forget_slot(s, slot);
        return rc;
    }
    memcpy(slot->ids, p->ids, (size_t)p->n * sizeof *p->ids);
    slot->n = p->n;
    p->used = ++s->tick;
    return Q_OK;
}

int sched_reach(struct q_sched *s, struct sched_task *t, struct q_err *e)
{
    struct sched_place *p = best_place(s, t);
    struct sched_slot *l = best_slot(s, t);
    int live = l && (!p || l->n >= p->n), rc = Q_OK;
    if (!t->begun) tell_reuse(s, t, live, p != NULL);
    if (!live) l = least_loss(s, p);
    if (!live && p) rc = restore(s, l, p, e);
    else if (!live) sched_forget_slot(s, l);
    if (rc) return rc;
    l->task = t;
    l->used = ++s->tick;
    t->slot = l;
    return Q_OK;
}

/* ---- places ---- */

static void close_place(struct q_sched *s, struct sched_place *p)
{
    if (p->snap) s->en.snap_close(p->snap);
    free(p->ids);
    free(p);
}

static struct sched_place **oldest_place(struct q_sched *s)
{
    struct sched_place **best = NULL;
    for (struct sched_place **at = &s->places; *at; at = &(*at)->next)
        if (!best || (*at)->used < (*best)->used) best = at;
    return best;
}

static void drop_place(struct q_sched *s, struct sched_place **at)
{
    struct sched_place *p = *at;
    *at = p->next;
    s->n_places--;
    close_place(s, p);
}

void sched_drop_places(struct q_sched *s)
{
    while (s->places) drop_place(s, &s->places);
}

int sched_forget_one(struct q_sched *s)
{
    struct sched_place **place = oldest_place(s);
    struct sched_slot *slot = NULL;
    for (int i = 0; i < s->en.max_seqs; i++) {
        struct sched_slot *l = &s->slot[i];
        if (!l->task && l->n && (!slot || l->used < slot->used)) slot = l;
    }
    if (!place && !slot) return 0;
    if (place && (!slot || (*place)->used < slot->used)) drop_place(s, place);
    else sched_forget_slot(s, slot);
    return 1;
}

/* Of the task's first n tokens; NULL: no memory, so nothing is kept. */
static struct sched_place *new_place(const struct sched_task *t, int n)
{
    struct sched_place *p = calloc(1, sizeof *p);
    if (!p || !(p->ids = malloc((size_t)n * sizeof *p->ids))) {
        free(p);
        return NULL;
    }
    memcpy(p->ids, t->known.at, (size_t)n * sizeof *p->ids);
    p->n = n;
    return p;
}

void sched_want_place(struct q_sched *s, struct sched_task *t, int first_row)
{
    int held = t->slot->n;
    if (t->keep <= held || t->keep > held + t->rows || s->n_keeps == s->en.max_snaps) return;
    if (!(t->place = new_place(t, t->keep))) return;
    if (s->n_places + s->n_keeps == s->en.max_snaps) drop_place(s, oldest_place(s));
    s->keeps[s->n_keeps++] = (struct q_keep){first_row + t->keep - held - 1, &t->place->snap};
}

void sched_keep_place(struct q_sched *s, struct sched_task *t, int good)
{
    struct sched_place *p = t->place;
    t->place = NULL;
    if (!p) return;
    if (!good || !p->snap) {
        close_place(s, p);
        return;
    }
    p->used = ++s->tick;
    p->next = s->places;
    s->places = p;
    s->n_places++;
}
