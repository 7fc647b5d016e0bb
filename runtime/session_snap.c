#include "session_snap.h"
#include "kernel.h"
#include "model.h"
#include <stdio.h>
#include <string.h>

_Static_assert((int)SESSION_STATE_ID == (int)Q_STATE_ID, "a file has room for every engine's id");

/* Sizes of one state and one page, from those of snapshots. */
void session_head_of(const struct q_engine *en, struct session_head *h)
{
    h->page_tokens = KV_PAGE;
    h->state_bytes = q_snap_bytes_of(en, 0, 0);
    h->page_bytes = q_snap_bytes_of(en, 0, 1) - h->state_bytes;
    snprintf(h->state_id, sizeof h->state_id, "%s", q_engine_state_id(en));
    session_name_model(h, q_engine_model(en)->config.name);
}

int session_is_of(const struct session *s, const struct q_engine *en, struct q_err *e)
{
    const struct session_head *h = session_head(s);
    struct session_head want = {0};
    const char *path = session_path(s);
    int rc = session_check_id(path, h, q_engine_state_id(en), e), n_vocab = q_engine_model(en)->config.n_vocab;
    if (rc) return rc;
    session_head_of(en, &want);
    if (h->state_bytes != want.state_bytes || h->page_bytes != want.page_bytes || h->page_tokens != want.page_tokens)
        return q_fail(e, Q_EINPUT, "%s: states of %zu bytes and pages of %zu; this engine has %zu and %zu", path, (size_t)h->state_bytes,
                      (size_t)h->page_bytes, (size_t)want.state_bytes, (size_t)want.page_bytes);
    for (int i = 0; i < h->n_ids; i++)
        if (session_ids(s)[i] < 0 || session_ids(s)[i] >= n_vocab)
            return q_fail(e, Q_EINPUT, "%s: token %d is %d and the model has %d", path, i, session_ids(s)[i], n_vocab);
    return Q_OK;
}

int session_fits(const struct session *s, const struct q_engine *en, struct q_err *e)
{
    int rc = session_is_of(s, en, e), first = session_head(s)->part[0].length, ctx = q_engine_ctx(en);
    if (rc || first <= ctx) return rc;
    return q_fail(e, Q_ELIMIT, "%s: the session has %d tokens and the context is %d; -c raises it", session_path(s), first, ctx);
}

int session_find(const struct session *s, const int32_t *ids, int n, int ctx)
{
    const struct session_head *h = session_head(s);
    for (int i = h->n_parts; i--;) {
        int length = h->part[i].length;
        if (length < n && length <= ctx && !memcmp(ids, session_ids(s), (size_t)length * sizeof *ids)) return i;
    }
    return -1;
}

/* Where a part's bytes go among those of the snapshot or sequence: its state if it is the one wanted, its pages from those that the target lacks
 * up to those that the next part has. Bytes of pages are counted from the timeline's first. */
struct loading {
    struct q_snap *snap;     /* or: */
    struct q_seq *seq;
    int from;                /* tokens whose pages the target shares with another */
    size_t state;            /* bytes of a state */
    size_t first;            /* of this part's pages */
    size_t begin, end;       /* of the pages that are wanted */
    int last;                /* it is the one wanted */
    int all;                 /* parts of which nothing is wanted are read too, for their hashes */
};

static int put(const struct loading *l, size_t at, const void *src, size_t n, struct q_err *e)
{
    return l->snap ? q_snap_write_piece(l->snap, l->from, at, src, n, e) : q_seq_write_piece(l->seq, at, src, n, e);
}

static int put_piece(void *arg, size_t at, const void *src, size_t n, struct q_err *e)
{
    const struct loading *l = arg;
    const char *p = src;
    size_t head = at < l->state ? (l->state - at < n ? l->state - at : n) : 0;
    int rc = head && l->last ? put(l, at, p, head, e) : Q_OK;
    if (rc || head == n) return rc;
    size_t lo = at + head - l->state + l->first, hi = lo + n - head;
    p += head;
    if (lo < l->begin) p += (hi < l->begin ? hi : l->begin) - lo, lo = hi < l->begin ? hi : l->begin;
    if (hi > l->end) hi = l->end > lo ? l->end : lo;
    return hi > lo ? put(l, l->state + lo - l->begin, p, hi - lo, e) : Q_OK;
}

static int load_part(struct session *s, int i, int wanted, struct loading l, struct q_err *e)
{
    const struct session_head *h = session_head(s);
    const struct session_part *p = &h->part[i];
    size_t page = h->page_bytes, tokens = (size_t)h->page_tokens;
    l.last = i == wanted;
    if (!l.last && p[1].from <= l.from && !l.all) return Q_OK;
    l.state = h->state_bytes;
    l.first = (size_t)p->from / tokens * page;
    l.begin = (size_t)l.from / tokens * page;
    l.end = l.last ? SIZE_MAX : (size_t)p[1].from / tokens * page;
    return session_read(s, i, put_piece, &l, e);
}

int session_fill(struct session *s, int part, struct q_snap *snap, int from, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i <= part && !rc; i++) rc = load_part(s, i, part, (struct loading){.snap = snap, .from = from}, e);
    return rc;
}

int session_load_seq(struct session *s, struct q_engine *en, int part, struct q_seq *seq, struct q_err *e)
{
    const struct session_head *h = session_head(s);
    int rc = session_fits(s, en, e);
    if (!rc && h->part[0].from) rc = q_fail(e, Q_EINPUT, "%s: holds no pages before token %d", session_path(s), h->part[0].from);
    q_seq_clear(seq);
    if (!rc) rc = q_seq_pretend(seq, h->part[part].length, e);
    for (int i = 0; i <= part && !rc; i++) rc = load_part(s, i, part, (struct loading){.seq = seq, .all = 1}, e);
    if (rc) q_seq_clear(seq);
    return rc;
}
