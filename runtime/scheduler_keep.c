/* What slots and the prefix tree remember, so that it is not read again. */
#include "scheduler_impl.h"
#include <stdlib.h>
#include <string.h>

static const double BRING_S = 0.02;   /* of a round */

/* One token must be left to be read. */
static int most_of(const struct sched_task *t) { return (int)t->known.n - 1; }

static int common(const struct sched_task *t, const struct sched_slot *l)
{
    int i = 0, most = most_of(t) < l->n ? most_of(t) : l->n;
    while (i < most && t->known.at[i] == l->ids[i]) i++;
    return i;
}

/* The idle slot whose tokens are the longest beginning; NULL when all begin otherwise. */
static struct sched_slot *best_slot(const struct q_sched *s, const struct sched_task *t)
{
    struct sched_slot *best = NULL;
    for (int i = 0; i < s->en.max_seqs; i++) {
        struct sched_slot *l = &s->slot[i];
        if (!l->task && l->n && (!best || l->n > best->n) && common(t, l) == l->n) best = l;
    }
    return best;
}

int sched_held(const struct q_sched *s, const struct sched_task *t)
{
    struct q_tree_found f = q_tree_find(s->tree, t->known.at, most_of(t));
    const struct sched_slot *l = best_slot(s, t);
    return l && l->n > f.n ? l->n : f.n;
}

int sched_bring(struct q_sched *s, const struct sched_task *t)
{
    struct q_tree_found f = q_tree_find(s->tree, t->known.at, most_of(t));
    const struct sched_slot *l = best_slot(s, t);
    if (!s->counts.running || f.tier <= Q_TIER_DEVICE || (l && l->n >= f.n)) return 0;
    if (s->brought == s->round) return 1;
    s->brought = s->round;
    return q_tree_bring(s->tree, t->known.at, most_of(t), BRING_S);
}

/* ---- what was not re-used, and why ---- */

enum { ALIKE = 32 };   /* tokens that prompts of any two conversations may have in common: roles, a date */

/* What the task's tokens have in common with slots too. *busy: the longest is in a slot at work. */
static struct q_tree_found look(const struct q_sched *s, const struct sched_task *t, int *busy)
{
    struct q_tree_found f = q_tree_find(s->tree, t->known.at, most_of(t));
    *busy = 0;
    for (int i = 0; i < s->en.max_seqs; i++) {
        const struct sched_slot *l = &s->slot[i];
        int n = common(t, l);
        f.any |= l->n > 0;
        if (n < f.shared || (n == f.shared && (n == 0 || f.n == n || l->task))) continue;
        *busy = l->task != NULL;
        f.shared = n;
        f.other = n < l->n && n < most_of(t) ? l->ids[n] : -1;
    }
    return f;
}

static enum q_reuse reason(const struct q_tree_found *f, int busy)
{
    if (!f->any) return Q_REUSE_EMPTY;
    if (f->gone) return Q_REUSE_EVICTED;
    if (f->shared < ALIKE) return Q_REUSE_DIFFERENT;
    return busy ? Q_REUSE_BUSY : Q_REUSE_NO_PLACE;
}

static void tell_reuse(const struct q_sched *s, struct sched_task *t, const struct q_tree_found *f, int busy, int slot, enum q_tier tier)
{
    static const enum q_reuse from[Q_TIERS] = {[Q_TIER_DEVICE] = Q_REUSE_DEVICE, [Q_TIER_HOST] = Q_REUSE_HOST, [Q_TIER_DISK] = Q_REUSE_DISK};
    struct q_answer *a = &t->answer;
    a->n_shared = f->shared;
    a->reuse = slot ? Q_REUSE_SLOT : tier ? from[tier] : reason(f, busy);
    a->other = f->other;
    if (f->other >= 0) a->message = prompt_message(s->en.tokenizer, t->known.at, (int)t->known.n, f->shared, a->role);
}

/* ---- slots ---- */

/* How little is lost when an idle slot's tokens are: it is empty; it went on from what is restored, so the same conversation has left it
 * behind; the longer unused, the less. */
static int loses_less(const struct sched_slot *a, const struct sched_slot *b, const struct sched_task *t, int restored)
{
    if (!a->n || !b->n) return b->n && !a->n;   /* of empty ones the first: a first conversation is in slot 0 */
    int left_a = restored && common(t, a) >= restored, left_b = restored && common(t, b) >= restored;
    return left_a != left_b ? left_a : a->used < b->used;
}

static struct sched_slot *least_loss(const struct q_sched *s, const struct sched_task *t, int restored)
{
    struct sched_slot *best = NULL;
    for (int i = 0; i < s->en.max_seqs; i++) {
        struct sched_slot *l = &s->slot[i];
        if (!l->task && (!best || loses_less(l, best, t, restored))) best = l;
    }
    return best;
}

void sched_forget_slot(struct q_sched *s, struct sched_slot *slot)
{
    s->en.seq_clear(slot->seq);
    slot->n = slot->kept = 0;
}

void sched_keep_now(struct q_sched *s, struct sched_slot *l, enum q_tree_kind kind)
{
    struct q_snap *snap;
    struct q_err e;
    l->kept = l->n;
    if (!q_tree_room(s->tree, l->ids, l->n, kind, 0) || s->en.seq_snapshot(l->seq, &snap, &e)) return;
    q_tree_put(s->tree, l->ids, l->n, kind, snap, s->counts.row_s, &e);
}

/* The state is copied when its slot is wanted for something else, or nobody waits. */
void sched_keep_end(struct q_sched *s, struct sched_slot *l)
{
    if (l->n && l->kept != l->n && !l->task) sched_keep_now(s, l, Q_TREE_END);
}

static int restore(struct q_sched *s, struct sched_task *t, struct sched_slot *l, const struct q_snap *snap, int n, struct q_err *e)
{
    int rc = s->en.seq_restore(l->seq, snap, e);
    if (!rc && s->en.seq_length(l->seq) != n)
        rc = q_fail(e, Q_EINTERNAL, "a sequence holds %d tokens after a checkpoint of %d", s->en.seq_length(l->seq), n);
    if (rc) {
        sched_forget_slot(s, l);
        return rc;
    }
    memcpy(l->ids, t->known.at, (size_t)n * sizeof *l->ids);
    l->n = l->kept = n;
    return Q_OK;
}

/* The checkpoint, if it holds more than an idle slot: *snap, NULL: none. */
static int look_in_tree(struct q_sched *s, struct sched_task *t, int live, const struct q_snap **snap, struct q_tree_found *f, struct q_err *e)
{
    *f = q_tree_find(s->tree, t->known.at, most_of(t));
    *snap = NULL;
    if (f->n <= live) return Q_OK;
    int rc = q_tree_get(s->tree, t->known.at, most_of(t), snap, f, e);
    if (*snap && f->n <= live) *snap = NULL;
    return rc;
}

int sched_reach(struct q_sched *s, struct sched_task *t, struct q_err *e)
{
    int busy;
    const struct q_snap *snap;
    struct sched_slot *l = best_slot(s, t);
    struct q_tree_found seen = look(s, t, &busy), f;
    int rc = look_in_tree(s, t, l ? l->n : 0, &snap, &f, e), live = l && !snap;
    if (rc) {
        q_tree_done(s->tree);
        return rc;
    }
    if (!t->begun) tell_reuse(s, t, &seen, busy, live, snap ? f.tier : Q_TIER_NONE);
    if (!live) l = least_loss(s, t, snap ? f.n : 0);
    if (!live) sched_keep_end(s, l);
    if (snap) rc = restore(s, t, l, snap, f.n, e);
    else if (!live) sched_forget_slot(s, l);
    q_tree_done(s->tree);
    if (rc) return rc;
    l->task = t;
    l->used = ++s->tick;
    t->slot = l;
    return Q_OK;
}

int sched_forget_one(struct q_sched *s)
{
    struct sched_slot *slot = NULL;
    double tree = q_tree_give_age(s->tree);
    for (int i = 0; i < s->en.max_seqs; i++) {
        struct sched_slot *l = &s->slot[i];
        if (!l->task && l->n && (!slot || l->used < slot->used)) slot = l;
    }
    if (slot && (!(tree > 0) || slot->used_s < tree)) sched_forget_slot(s, slot);
    else return q_tree_give(s->tree);
    return 1;
}

/* ---- marks ---- */

int sched_next_mark(const struct sched_task *t, int after, int most)
{
    int best = 0;
    for (int i = 0; i < t->marks.n; i++)
        if (t->marks.mark[i].at > after && t->marks.mark[i].at <= most) best = t->marks.mark[i].at;
    return best;
}

static void want(struct q_sched *s, struct sched_task *t, int first_row, const struct prompt_mark *m)
{
    enum q_tree_kind kind = m->must ? Q_TREE_MUST : Q_TREE_MARK;
    if (s->n_keeps == s->en.cache.max_snaps || !q_tree_room(s->tree, t->known.at, m->at, kind, s->n_keeps)) return;
    /* Rows ascend; the marks of a task come in any order. */
    int at = s->n_keeps++, row = first_row + m->at - t->slot->n - 1;
    for (; at && s->keeps[at - 1].row > row; at--) {
        s->keeps[at].row = s->keeps[at - 1].row;
        s->keeping[at] = s->keeping[at - 1];
    }
    s->keeps[at].row = row;
    s->keeping[at] = (struct sched_keeping){t, m->at, kind, NULL};
}

void sched_want_keeps(struct q_sched *s, struct sched_task *t, int first_row)
{
    int from = t->slot->n, to = from + t->rows;
    if (s->no_keeps) return;
    for (int must = 1; must >= 0; must--)
        for (int i = t->marks.n; i-- > 0;) {
            const struct prompt_mark *m = &t->marks.mark[i];
            if (m->at > from && m->at <= to && m->must == must) want(s, t, first_row, m);
        }
}

int sched_put_keeps(struct q_sched *s, const struct sched_task *t, double token_s, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < s->n_keeps; i++) {
        struct sched_keeping *k = &s->keeping[i];
        if (k->task != t || !k->snap) continue;
        struct q_err bad;
        if (q_tree_put(s->tree, t->known.at, k->at, k->kind, k->snap, token_s, rc ? &bad : e)) rc = Q_EINTERNAL;
        k->snap = NULL;
    }
    return rc;
}

void sched_drop_keeps(struct q_sched *s)
{
    for (int i = 0; i < s->n_keeps; i++)
        if (s->keeping[i].snap) s->en.tree.close(s->keeping[i].snap);
    s->n_keeps = 0;
}
