#include "session_snap.h"
#include "kernel.h"
#include "model.h"
#include <stdio.h>
#include <string.h>

/* --- saving ------------------------------------------------------------------------------------------------------------ */

struct saving {
    const struct q_snap *const *snaps;
    const struct session_head *h;
};

static int read_snap(void *arg, int part, size_t at, void *dst, size_t n, struct q_err *e)
{
    const struct saving *s = arg;
    return q_snap_read_piece(s->snaps[part], s->h->part[part].from, at, dst, n, e);
}

/* Sizes of one state and one page, from those of snapshots. */
static void fill_sizes(struct session_head *h, const struct q_engine *en)
{
    h->page_tokens = KV_PAGE;
    h->state_bytes = q_snap_bytes_of(en, 0, 0);
    h->page_bytes = q_snap_bytes_of(en, 0, 1) - h->state_bytes;
    snprintf(h->state_id, sizeof h->state_id, "%s", q_engine_state_id(en));
}

static int fill_parts(struct session_head *h, const struct q_snap *const *snaps, int n, struct q_err *e)
{
    if (n < 1 || n > SESSION_PARTS) return q_fail(e, Q_EINTERNAL, "a session of %d checkpoints: expected 1 to %d", n, SESSION_PARTS);
    h->n_parts = n;
    for (int i = 0, before = 0; i < n; i++) {
        int length = q_snap_length(snaps[i]);
        if (length <= before || length > h->n_ids)
            return q_fail(e, Q_EINTERNAL, "a session's checkpoint at %d behind one at %d, of %d tokens", length, before, h->n_ids);
        h->part[i] = (struct session_part){before / KV_PAGE * KV_PAGE, length};
        before = length;
    }
    return Q_OK;
}

int session_save(const char *path, struct q_engine *en, const int32_t *ids, int n_ids, const struct q_snap *const *snaps, int n, int *lock,
                 size_t *written, struct q_err *e)
{
    struct session_source src = {.h.n_ids = n_ids, .ids = ids, .read = read_snap};
    struct saving saving = {snaps, &src.h};
    src.arg = &saving;
    fill_sizes(&src.h, en);
    int rc = fill_parts(&src.h, snaps, n, e);
    return rc ? rc : session_write(path, &src, lock, written, e);
}

/* --- loading ----------------------------------------------------------------------------------------------------------- */

int session_fits(const struct session *s, const struct q_engine *en, struct q_err *e)
{
    const struct session_head *h = session_head(s);
    struct session_head want = {0};
    const char *path = session_path(s);
    int rc = session_check_id(path, h, q_engine_state_id(en), e), n_vocab = q_engine_model(en)->config.n_vocab, ctx = q_engine_ctx(en);
    if (rc) return rc;
    fill_sizes(&want, en);
    if (h->state_bytes != want.state_bytes || h->page_bytes != want.page_bytes || h->page_tokens != want.page_tokens)
        return q_fail(e, Q_EINPUT, "%s: states of %llu bytes and pages of %llu; this engine has %llu and %llu", path, (unsigned long long)h->state_bytes,
                      (unsigned long long)h->page_bytes, (unsigned long long)want.state_bytes, (unsigned long long)want.page_bytes);
    for (int i = 0; i < h->n_ids; i++)
        if (session_ids(s)[i] < 0 || session_ids(s)[i] >= n_vocab)
            return q_fail(e, Q_EINPUT, "%s: token %d is %d and the model has %d", path, i, session_ids(s)[i], n_vocab);
    if (h->part[0].length <= ctx) return Q_OK;
    return q_fail(e, Q_ELIMIT, "%s: the session has %d tokens and the context is %d; -c raises it", path, h->part[0].length, ctx);
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

/* Where a part's bytes go among those of the snapshot: its state if it is the one wanted, its pages up to those that the next part has. */
struct loading {
    struct q_snap *snap;
    int from;                /* of the snapshot's bytes: the first part's */
    size_t state;            /* bytes */
    size_t shift;            /* of this part's pages, in bytes of pages */
    size_t end;              /* its bytes from here on are not wanted */
    int last;                /* it is the one wanted */
};

static int put_piece(void *arg, size_t at, const void *src, size_t n, struct q_err *e)
{
    const struct loading *l = arg;
    const char *p = src;
    size_t head = at < l->state ? (l->state - at < n ? l->state - at : n) : 0;
    int rc = head && l->last ? q_snap_write_piece(l->snap, l->from, at, p, head, e) : Q_OK;
    at += head;
    n -= head;
    if (at + n > l->end) n = at < l->end ? l->end - at : 0;
    return rc || !n ? rc : q_snap_write_piece(l->snap, l->from, at + l->shift, p + head, n, e);
}

static int load_part(struct session *s, int i, int wanted, struct q_snap *snap, struct q_err *e)
{
    const struct session_head *h = session_head(s);
    const struct session_part *p = &h->part[i];
    struct loading l = {.snap = snap, .from = h->part[0].from, .state = h->state_bytes, .last = i == wanted};
    l.shift = (size_t)((p->from - l.from) / h->page_tokens) * h->page_bytes;
    l.end = l.last ? session_part_bytes(h, i) : l.state + (size_t)((p[1].from - p->from) / h->page_tokens) * h->page_bytes;
    return session_read(s, i, put_piece, &l, e);
}

int session_load(struct session *s, struct q_engine *en, int part, const struct q_snap *base, struct q_snap **out, struct q_err *e)
{
    const struct session_head *h = session_head(s);
    *out = NULL;
    int rc = session_fits(s, en, e);
    if (!rc) rc = q_snap_new(en, base, h->part[0].from, h->part[part].length, out, e);
    for (int i = 0; i <= part && !rc; i++) rc = load_part(s, i, part, *out, e);
    if (!rc) return Q_OK;
    q_snap_close(*out);
    *out = NULL;
    return rc;
}
