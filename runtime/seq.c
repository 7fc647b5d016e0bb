#include "seq.h"
#include <stdlib.h>
#include <string.h>

int seq_open(struct q_memory *m, struct q_seq **out, struct q_err *e)
{
    struct q_seq *s = calloc(1, sizeof *s);
    if (!s || !(s->page = malloc(((size_t)pages_for(m->ctx) + 1) * sizeof *s->page))) {
        free(s);
        return q_fail(e, Q_EMEM, "no memory for a sequence");
    }
    s->memory = m;
    s->in_step = -1;
    if ((s->slot = states_take(m->states)) < 0) {
        free(s->page);
        free(s);
        return q_fail(e, Q_ELIMIT, "no state slot left: all %d are in use by sequences and snapshots", m->states->n_slots);
    }
    *out = s;
    return Q_OK;
}

void q_seq_clear(struct q_seq *s)
{
    struct q_memory *m = s->memory;
    for (int i = 0; i < s->n_pages; i++) kv_drop(m->kv, s->page[i]);
    s->n_pages = s->length = 0;
}

void q_seq_close(struct q_seq *s)
{
    if (!s) return;
    q_seq_clear(s);
    states_give(s->memory->states, s->slot);
    free(s->page);
    free(s);
}

int q_seq_length(const struct q_seq *s) { return s->length; }

/* The page that the next token goes to exists already and is also somebody else's. */
static int last_page_shared(const struct q_seq *s)
{
    const struct q_kv *kv = s->memory->kv;
    return s->length % KV_PAGE && kv->refs[s->page[s->length / KV_PAGE]] > 1;
}

int seq_pages_needed(const struct q_seq *s, int n)
{
    return n ? pages_for(s->length + n) - s->n_pages + last_page_shared(s) : 0;
}

int seq_grow(struct q_seq *s, int n, struct q_err *e)
{
    struct q_memory *m = s->memory;
    if (n && last_page_shared(s)) {
        int rc = kv_own(m->kv, &s->page[s->length / KV_PAGE], e);
        if (rc) return rc;
    }
    while (s->n_pages < pages_for(s->length + n)) {
        int page = kv_take(m->kv);
        if (page < 0) return q_fail(e, Q_ELIMIT, "no KV page left: all %d are in use", m->kv->n_pages);
        s->page[s->n_pages++] = page;
    }
    return Q_OK;
}

int snap_reserve(struct q_seq *s, int length, struct q_snap **out, struct q_err *e)
{
    struct q_memory *m = s->memory;
    struct q_snap *snap = calloc(1, sizeof *snap);
    int n = pages_for(length);
    if (!snap || !(snap->page = malloc(((size_t)n + 1) * sizeof *snap->page))) {
        free(snap);
        return q_fail(e, Q_EMEM, "no memory for a snapshot");
    }
    snap->slot = m->snaps_left > 0 ? states_take(m->states) : -1;
    if (snap->slot < 0) {
        free(snap->page);
        free(snap);
        return q_fail(e, Q_ELIMIT, "no snapshot left: the engine was opened with fewer than are in use now");
    }
    m->snaps_left--;
    snap->memory = m;
    snap->length = length;
    snap->n_pages = n;
    memcpy(snap->page, s->page, (size_t)n * sizeof *snap->page);
    for (int i = 0; i < n; i++) kv_share(m->kv, snap->page[i]);
    *out = snap;
    return Q_OK;
}

int q_seq_snapshot(struct q_seq *s, struct q_snap **out, struct q_err *e)
{
    int rc = snap_reserve(s, s->length, out, e);
    if (!rc && (rc = states_copy(s->memory->states, (*out)->slot, s->slot, e))) q_snap_close(*out);
    return rc;
}

int q_seq_restore(struct q_seq *s, const struct q_snap *snap, struct q_err *e)
{
    struct q_memory *m = s->memory;
    if (snap->memory != s->memory) return q_fail(e, Q_EINPUT, "a snapshot of one engine cannot be restored in another");
    int rc = states_copy(m->states, s->slot, snap->slot, e);
    if (rc) return rc;
    for (int i = 0; i < snap->n_pages; i++) kv_share(m->kv, snap->page[i]);
    q_seq_clear(s);
    memcpy(s->page, snap->page, (size_t)snap->n_pages * sizeof *s->page);
    s->n_pages = snap->n_pages;
    s->length = snap->length;
    return Q_OK;
}

int q_snap_length(const struct q_snap *snap) { return snap->length; }

void q_snap_close(struct q_snap *snap)
{
    if (!snap) return;
    struct q_memory *m = snap->memory;
    for (int i = 0; i < snap->n_pages; i++) kv_drop(m->kv, snap->page[i]);
    states_give(m->states, snap->slot);
    m->snaps_left++;
    free(snap->page);
    free(snap);
}

int q_seq_pretend(struct q_seq *s, int n, struct q_err *e)
{
    struct q_memory *m = s->memory;
    if (n < s->length || n > m->ctx)
        return q_fail(e, Q_ELIMIT, "a sequence of %d tokens cannot pretend to hold %d of at most %d", s->length, n, m->ctx);
    int rc = seq_grow(s, n - s->length, e);
    if (!rc) s->length = n;
    return rc;
}
