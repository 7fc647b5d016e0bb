#include "scheduler_session.h"
#include "scheduler_impl.h"
#include "session_snap.h"
#include <string.h>

int q_sched_check_slot(const struct q_sched *s, int slot, struct q_err *e)
{
    if (slot < 0 || slot >= s->en.max_seqs) return q_fail(e, Q_EINPUT, "there is no slot %d: expected 0 to %d", slot, s->en.max_seqs - 1);
    return s->slot[slot].task ? q_fail(e, Q_ELIMIT, "slot %d is at work", slot) : Q_OK;
}

/* ---- saving ---- */

/* The slot's end is read as it is, beginnings from the tree, which may bring them to the device for it. */
struct saving {
    struct q_sched *sched;
    struct sched_slot *slot;
    const struct session_head *h;
    const struct q_snap *snap;       /* the tree's, of the part being read; NULL */
    int part;
};

/* Takes the tree's snapshot of exactly n tokens. */
static int get_snap(struct saving *g, int n, struct q_err *e)
{
    struct q_tree_found f;
    int rc = q_tree_get(g->sched->tree, g->slot->ids, n, &g->snap, &f, e);
    if (!rc && (!g->snap || f.n != n)) rc = q_fail(e, Q_ELIMIT, "the state at token %d cannot be brought to the device", n);
    if (rc) g->snap = NULL;
    return rc;
}

static void drop_snap(struct saving *g)
{
    if (g->snap) q_tree_done(g->sched->tree);
    g->snap = NULL;
}

static int read_part(void *arg, int part, size_t at, void *dst, size_t n, struct q_err *e)
{
    struct saving *g = arg;
    const struct session_part *p = &g->h->part[part];
    if (part == g->h->n_parts - 1) return q_seq_read_piece(g->slot->seq, p->from, at, dst, n, e);
    if (g->part != part) {
        drop_snap(g);
        int rc = get_snap(g, p->length, e);
        if (rc) return rc;
        g->part = part;
    }
    return q_snap_read_piece(g->snap, p->from, at, dst, n, e);
}

/* Lengths of the longest beginnings that the tree has and can bring, longest first; their number. */
static int find_kept(struct saving *g, int kept[SCHED_SESSION_KEPT])
{
    int n = 0;
    struct q_err e;
    for (int below = g->slot->n - 1; n < SCHED_SESSION_KEPT && below > 0; below = kept[n++] - 1) {
        kept[n] = q_tree_find(g->sched->tree, g->slot->ids, below).n;
        if (!kept[n] || get_snap(g, kept[n], &e)) break;
        drop_snap(g);
    }
    return n;
}

static void fill_parts(struct saving *g, struct session_head *h)
{
    int kept[SCHED_SESSION_KEPT], n = find_kept(g, kept), before = 0;
    h->n_parts = n + 1;
    for (int i = 0; i <= n; i++) {
        int length = i < n ? kept[n - 1 - i] : g->slot->n;
        h->part[i] = (struct session_part){before / h->page_tokens * h->page_tokens, length};
        before = length;
    }
}

static int check_ids(const struct sched_slot *l, const struct q_sched_save *save, struct q_err *e)
{
    if (!l->n) return q_fail(e, Q_EINPUT, "the slot is empty: there is nothing to save");
    if (!save->ids || (save->n >= (size_t)l->n && !memcmp(save->ids, l->ids, (size_t)l->n * sizeof *l->ids))) return Q_OK;
    return q_fail(e, Q_EINTERNAL, "a session of %zu tokens that the slot's %d do not begin", save->n, l->n);
}

int q_sched_save(struct q_sched *s, int slot, struct q_sched_save *save, struct q_err *e)
{
    int rc = q_sched_check_slot(s, slot, e);
    if (!rc) rc = check_ids(&s->slot[slot], save, e);
    if (rc) return rc;
    struct sched_slot *l = &s->slot[slot];
    struct session_source src = {.ids = save->ids ? save->ids : l->ids, .text = save->text, .read = read_part};
    struct saving g = {.sched = s, .slot = l, .h = &src.h, .part = -1};
    session_head_of(s->en.engine, &src.h);
    src.h.n_ids = save->ids ? (int)save->n : l->n;
    src.h.n_text = save->text ? (int)strlen(save->text) : 0;
    src.arg = &g;
    fill_parts(&g, &src.h);
    rc = session_write(save->path, &src, save->lock, &save->written, e);
    drop_snap(&g);
    save->saved = l->n;
    return rc;
}

/* ---- loading ---- */

int q_sched_load(struct q_sched *s, int slot, struct session *file, int part, struct q_err *e)
{
    int rc = q_sched_check_slot(s, slot, e);
    if (rc) return rc;
    struct sched_slot *l = &s->slot[slot];
    sched_keep_end(s, l);
    sched_forget_slot(s, l);
    do rc = session_load_seq(file, s->en.engine, part, l->seq, e);
    while (rc == Q_ELIMIT && !session_fits(file, s->en.engine, e) && sched_forget_one(s));
    if (rc) return rc;
    l->n = session_head(file)->part[part].length;
    memcpy(l->ids, session_ids(file), (size_t)l->n * sizeof *l->ids);
    l->used = ++s->tick;
    l->used_s = s->en.seconds();
    sched_keep_now(s, l, part == session_head(file)->n_parts - 1 ? Q_TREE_END : Q_TREE_MARK);
    return Q_OK;
}

/* A beginning of what the slot holds becomes the tree's, and shares the slot's pages. Only damage is an error: the tree need not have room. */
static int keep_part(struct q_sched *s, struct sched_slot *l, struct session *file, int part, struct q_err *e)
{
    struct q_snap *snap;
    int n = session_head(file)->part[part].length, from = n / s->en.page_tokens * s->en.page_tokens;
    if (q_tree_find(s->tree, l->ids, n).n == n || !q_tree_room(s->tree, l->ids, n, Q_TREE_MARK, 0)) return Q_OK;
    if (q_seq_snap_new(l->seq, from, n, &snap, e)) return Q_OK;
    int rc = session_fill(file, part, snap, from, e);
    if (!rc) return q_tree_put(s->tree, l->ids, n, Q_TREE_MARK, snap, s->counts.row_s, e);
    q_snap_close(snap);
    return rc;
}

int q_sched_restore(struct q_sched *s, int slot, struct session *file, struct q_sched_restored *done, struct q_err *e)
{
    const struct session_head *h = session_head(file);
    int last = h->n_parts - 1, rc = session_fits(file, s->en.engine, e);
    while (last > 0 && h->part[last].length > s->en.ctx) last--;
    *done = (struct q_sched_restored){.parts = last + 1};
    if (!rc) rc = q_sched_load(s, slot, file, last, e);
    for (int i = 0; i < last && !rc; i++) rc = keep_part(s, &s->slot[slot], file, i, e);
    for (int i = 0; i <= last && !rc; i++) done->kept += q_tree_find(s->tree, s->slot[slot].ids, h->part[i].length).n == h->part[i].length;
    if (!rc) done->tokens = s->slot[slot].n;
    return rc;
}

int q_sched_erase(struct q_sched *s, int slot, int *erased, struct q_err *e)
{
    int rc = q_sched_check_slot(s, slot, e);
    if (rc) return rc;
    *erased = s->slot[slot].n;
    sched_forget_slot(s, &s->slot[slot]);
    return Q_OK;
}
