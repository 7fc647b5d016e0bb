/* Who gets a slot next, and what is promised to it. */
#include "scheduler_impl.h"

enum { WORTH_WAITING = 32 };   /* tokens that a task need not read if it waits for another's */

static int pages_of(const struct q_sched *s, int tokens) { return (tokens + s->en.page_tokens - 1) / s->en.page_tokens; }

/* Pages for all it knows and may still write. A page more for the one that it shares with a snapshot. */
static int need(const struct q_sched *s, const struct sched_task *t)
{
    int known = (int)t->known.n, left = s->en.ctx - known, most = t->ask.o.max_tokens - t->answer.n_generated;
    if (t->ask.o.max_tokens >= 0 && most < left) left = most;
    int pages = pages_of(s, known + (left < s->en.promise ? left : s->en.promise)) + 1;
    return pages < s->en.pages ? pages : s->en.pages;
}

/* Tokens that `t` has in common with what a running task is about to keep. */
static int soon(const struct sched_task *t, const struct sched_task *running)
{
    size_t same = 0, most = t->known.n - 1 < running->known.n ? t->known.n - 1 : running->known.n;
    if (!sched_next_mark(running, running->slot->n, (int)most)) return 0;
    while (same < most && t->known.at[same] == running->known.at[same]) same++;
    return sched_next_mark(running, running->slot->n, (int)same);
}

/* Another task reads now what this one needs. */
static int had_better_wait(const struct q_sched *s, const struct sched_task *t)
{
    int best = 0;
    if (!s->en.cache.max_snaps) return 0;
    for (const struct sched_task *r = s->tasks; r; r = r->next)
        if (r->slot && !r->suspect && soon(t, r) > best) best = soon(t, r);
    return best >= WORTH_WAITING && best >= sched_held(s, t) + WORTH_WAITING;
}

/* Those who had a slot come first, then the client that has least, then who came first. */
static int before(const struct sched_task *a, const struct sched_task *b)
{
    const struct sched_client *x = a->client, *y = b->client;
    if (a->begun != b->begun) return a->begun;
    if (x == y) return a->number < b->number;
    if (x->running != y->running) return x->running < y->running;
    if (x->served < y->served || y->served < x->served) return x->served < y->served;
    return a->number < b->number;
}

static struct sched_task *next_task(const struct q_sched *s)
{
    struct sched_task *best = NULL;
    for (struct sched_task *t = s->tasks; t; t = t->next)
        if (!t->slot && (!best || before(t, best)) && !had_better_wait(s, t)) best = t;
    return best;
}

static void begin(struct q_sched *s, struct sched_task *t)
{
    if (t->begun) return;
    t->begun = 1;
    t->begun_s = s->en.seconds();
    t->answer.wait_s = t->begun_s - t->added_s;
    t->answer.n_cached = t->slot->n;
    s->counts.cached += (unsigned long long)t->slot->n;
    if (t->ask.begun) t->ask.begun(t->ask.arg);
}

int sched_admit(struct q_sched *s, struct sched_task **culprit, struct q_err *e)
{
    while (s->counts.running < s->en.max_seqs) {
        struct sched_task *t = next_task(s);
        int pages = t ? need(s, t) : 0;
        if (!t || s->counts.promised + pages > s->en.pages) return Q_OK;
        if (sched_bring(s, t)) return Q_OK;
        int rc = sched_reach(s, t, e);
        if (rc) {
            *culprit = t;
            return rc;
        }
        t->promised = pages;
        t->client->running++;
        s->counts.promised += pages;
        s->counts.running++;
        begin(s, t);
    }
    return Q_OK;
}

void sched_leave(struct q_sched *s, struct sched_task *t)
{
    if (!t->slot) return;
    t->slot->task = NULL;
    t->slot = NULL;
    t->client->running--;
    s->counts.promised -= t->promised;
    s->counts.running--;
    t->promised = 0;
}

static int preempt_youngest(struct q_sched *s)
{
    struct sched_task *youngest = NULL;
    int n = 0;
    for (struct sched_task *t = s->tasks; t; t = t->next) {
        if (!t->slot) continue;
        youngest = t;
        n++;
    }
    if (n < 2) return 0;
    struct sched_slot *slot = youngest->slot;
    sched_leave(s, youngest);
    sched_forget_slot(s, slot);
    s->counts.preempted++;
    return 1;
}

/* Who has written more than was thought is promised more; what is promised beyond all pages is taken from the youngest. */
void sched_keep_promises(struct q_sched *s)
{
    for (struct sched_task *t = s->tasks; t; t = t->next) {
        int pages = t->slot ? pages_of(s, (int)t->known.n) + 1 : 0;
        if (pages > s->en.pages) pages = s->en.pages;
        if (pages <= t->promised) continue;
        s->counts.promised += pages - t->promised;
        t->promised = pages;
    }
    while (s->counts.promised > s->en.pages && preempt_youngest(s)) continue;
}
