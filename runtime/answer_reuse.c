#include "answer_reuse.h"
#include <stdlib.h>
#include <string.h>

int timeline_open(struct q_timeline *t, struct q_engine *en, struct q_err *e)
{
    memset(t, 0, sizeof *t);
    t->engine = en;
    t->ids = malloc((size_t)q_engine_ctx(en) * sizeof *t->ids);
    t->rows = malloc((size_t)q_engine_max_rows(en) * sizeof *t->rows);
    int rc = t->ids && t->rows ? q_seq_open(en, &t->seq, e) : q_fail(e, Q_EMEM, "no memory for the tokens of a context of %d", q_engine_ctx(en));
    if (rc) timeline_close(t);
    return rc;
}

static void place_close(struct q_place *p)
{
    q_snap_close(p->snap);
    free(p->ids);
    free(p);
}

/* Drops the place whose last use is longest ago; 0 when there is none. */
static int drop_place(struct q_timeline *t)
{
    struct q_place **last = &t->places;
    if (!*last) return 0;
    while ((*last)->next) last = &(*last)->next;
    place_close(*last);
    *last = NULL;
    return 1;
}

void timeline_close(struct q_timeline *t)
{
    while (drop_place(t)) continue;
    q_seq_close(t->seq);
    free(t->ids);
    free(t->rows);
    memset(t, 0, sizeof *t);
}

static int begins_with(const int32_t *ids, int n, const int32_t *head, int n_head)
{
    return n_head <= n && (!n_head || !memcmp(ids, head, (size_t)n_head * sizeof *ids));
}

/* Moves the place to the front of the list. */
static void use(struct q_timeline *t, struct q_place *p)
{
    struct q_place **at = &t->places;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    p->next = t->places;
    t->places = p;
}

static struct q_place *longest_place(struct q_timeline *t, const int32_t *ids, int n)
{
    struct q_place *best = NULL;
    for (struct q_place *p = t->places; p; p = p->next)
        if ((!best || p->n > best->n) && begins_with(ids, n, p->ids, p->n)) best = p;
    return best;
}

static void forget(struct q_timeline *t)
{
    q_seq_clear(t->seq);
    t->n = 0;
}

int timeline_reach(struct q_timeline *t, const int32_t *ids, int n, struct q_err *e)
{
    struct q_place *p = longest_place(t, ids, n - 1);
    int live = begins_with(ids, n - 1, t->ids, t->n) ? t->n : 0;
    if (p) use(t, p);
    if (t->n && live == t->n && (!p || live >= p->n)) return Q_OK;
    if (!p) {
        forget(t);
        return Q_OK;
    }
    int rc = q_seq_restore(t->seq, p->snap, e);
    if (rc) {
        forget(t);
        return rc;
    }
    memcpy(t->ids, p->ids, (size_t)p->n * sizeof *t->ids);
    t->n = p->n;
    return Q_OK;
}

/* A place `keep` tokens from the start, still without its snapshot; NULL when this step does not get there, or memory is short. */
static struct q_place *new_place(struct q_timeline *t, const int32_t *ids, int n, int keep)
{
    if (keep <= t->n || keep > t->n + n) return NULL;
    struct q_place *p = calloc(1, sizeof *p);
    if (!p || !(p->ids = malloc((size_t)keep * sizeof *p->ids))) {
        free(p);
        return NULL;
    }
    memcpy(p->ids, t->ids, (size_t)t->n * sizeof *ids);
    memcpy(p->ids + t->n, ids, (size_t)(keep - t->n) * sizeof *ids);
    p->n = keep;
    return p;
}

/* Submits; where something is used up, makes room and tries again, at last without keeping anything. */
static int submit(struct q_timeline *t, struct q_step *step, q_ticket *ticket, struct q_err *e)
{
    for (;;) {
        int rc = q_step_submit(t->engine, step, ticket, e);
        if (rc != Q_ELIMIT) return rc;
        if (drop_place(t)) continue;
        if (!step->n_keeps) return rc;
        step->n_keeps = 0;
    }
}

static void keep_place(struct q_timeline *t, struct q_place *p)
{
    if (!p) return;
    if (!p->snap) {
        place_close(p);
        return;
    }
    p->next = t->places;
    t->places = p;
}

int timeline_feed(struct q_timeline *t, const int32_t *ids, int n, int keep, unsigned want, const struct q_sampling *sampling,
                  struct q_result *r, struct q_err *e)
{
    struct q_place *place = new_place(t, ids, n, keep);
    struct q_keep k = {keep - t->n - 1, place ? &place->snap : NULL};
    struct q_step step = {.rows = t->rows, .n_rows = n, .keeps = &k, .n_keeps = place != NULL};
    q_ticket ticket;
    for (int i = 0; i < n; i++) t->rows[i] = (struct q_row){.seq = t->seq, .token = ids[i], .pos = {-1, -1, -1}, .parent = -1};
    t->rows[n - 1].want = want;
    t->rows[n - 1].sampling = sampling;
    int rc = submit(t, &step, &ticket, e), submitted = !rc;
    if (!rc) rc = q_step_wait(t->engine, ticket, r, e);
    if (!rc) {
        memcpy(t->ids + t->n, ids, (size_t)n * sizeof *ids);
        t->n += n;
    } else if (submitted || q_seq_length(t->seq) != t->n) {
        forget(t);   /* nobody knows what it holds now, or what was kept */
        if (place) q_snap_close(place->snap);
        if (place) place->snap = NULL;
    }
    keep_place(t, place);
    return rc;
}

int place_to_keep(const struct tokenizer *t, const int32_t *ids, int n)
{
    int32_t end_of_turn = t ? tok_find(t, "<|im_end|>", 10) : -1;
    for (int i = n; i > 0; i--)
        if (ids[i - 1] == end_of_turn) return i;
    return n - 1;
}
