/* A snapshot as bytes, for host memory and files: what q_snap_read_piece and q_snap_write_piece move (engine.h).
 *
 * The bytes are the state of each delta-net layer (S, then conv), then page after page, each with K and V of every attention layer. So
 * the bytes of a longer snapshot of the same timeline, from a page on, are those that a reader lacks who has the pages before it. They
 * are moved as they lie on the device, in any pieces a caller likes: nobody needs them whole in memory. Rows of the last page behind the
 * snapshot's length are whatever is there.
 */
#include "seq.h"
#include <stdlib.h>
#include <string.h>

static size_t state_bytes(const struct q_memory *m)
{
    return (size_t)m->states->n_layers * (m->states->s_bytes + m->states->conv_bytes);
}

static size_t page_bytes(const struct q_memory *m) { return (size_t)m->kv->n_layers * (m->kv->k_bytes + m->kv->v_bytes); }

size_t snap_bytes(const struct q_memory *m, int from, int length)
{
    return state_bytes(m) + (size_t)(pages_for(length) - from / KV_PAGE) * page_bytes(m);
}

size_t q_snap_bytes(const struct q_snap *s, int from) { return snap_bytes(s->memory, from, s->length); }

static struct q_run state_run(const struct q_states *st, int slot, size_t at)
{
    size_t one = st->s_bytes + st->conv_bytes, layer = at / one, in = at % one;
    if (in < st->s_bytes) return (struct q_run){(char *)st->s[layer] + (size_t)slot * st->s_bytes + in, st->s_bytes - in};
    in -= st->s_bytes;
    return (struct q_run){(char *)st->conv[layer] + (size_t)slot * st->conv_bytes + in, st->conv_bytes - in};
}

static struct q_run page_run(const struct q_kv *kv, int page, size_t at)
{
    size_t one = kv->k_bytes + kv->v_bytes, layer = at / one, in = at % one;
    if (in < kv->k_bytes) return (struct q_run){(char *)kv->k[layer] + (size_t)page * kv->k_bytes + in, kv->k_bytes - in};
    in -= kv->k_bytes;
    return (struct q_run){(char *)kv->v[layer] + (size_t)page * kv->v_bytes + in, kv->v_bytes - in};
}

/* From byte `at` of the snapshot's bytes to the end of the run that it is in. */
static struct q_run run_at(const struct q_snap *s, int from, size_t at)
{
    const struct q_memory *m = s->memory;
    size_t states = state_bytes(m);
    if (at < states) return state_run(m->states, s->slot, at);
    at -= states;
    return page_run(m->kv, s->page[(size_t)(from / KV_PAGE) + at / page_bytes(m)], at % page_bytes(m));
}

static int check_from(const struct q_snap *s, int from, struct q_err *e)
{
    if (from >= 0 && from <= s->length && from % KV_PAGE == 0) return Q_OK;
    return q_fail(e, Q_EINPUT, "bytes of a snapshot of %d tokens are asked for from token %d: expected a multiple of %d up to its length", s->length,
                  from, KV_PAGE);
}

static int check_piece(const struct q_snap *s, int from, size_t at, size_t n, struct q_err *e)
{
    int rc = check_from(s, from, e);
    size_t all = rc ? 0 : q_snap_bytes(s, from);
    if (rc || (at <= all && n <= all - at)) return rc;
    return q_fail(e, Q_EINPUT, "a piece of %zu bytes at %zu is asked for of a snapshot's %zu bytes", n, at, all);
}

enum { RUNS = 128 };   /* read at once */

int q_snap_read_piece(const struct q_snap *s, int from, size_t at, void *dst, size_t n, struct q_err *e)
{
    struct q_run runs[RUNS];
    int rc = check_piece(s, from, at, n, e);
    for (size_t done = 0, begin = 0; done < n && !rc; begin = done) {
        int k = 0;
        for (; k < RUNS && done < n; done += runs[k++].bytes) {
            runs[k] = run_at(s, from, at + done);
            if (runs[k].bytes > n - done) runs[k].bytes = n - done;
        }
        rc = device_gather(s->memory->kv->device, (char *)dst + begin, runs, k, e);
    }
    return rc;
}

int q_snap_write_piece(struct q_snap *s, int from, size_t at, const void *src, size_t n, struct q_err *e)
{
    struct q_device *d = s->memory->kv->device;
    int rc = check_piece(s, from, at, n, e);
    for (size_t done = 0; done < n && !rc;) {
        struct q_run r = run_at(s, from, at + done);
        size_t take = r.bytes < n - done ? r.bytes : n - done;
        rc = d->ops->write(d, r.at, (const char *)src + done, take, e);
        done += take;
    }
    return rc;
}

/* A sequence has what a snapshot of it would have. */
static struct q_snap view_of(struct q_seq *s) { return (struct q_snap){s->memory, s->length, s->slot, s->n_pages, s->page}; }

int q_seq_read_piece(struct q_seq *s, int from, size_t at, void *dst, size_t n, struct q_err *e)
{
    struct q_snap view = view_of(s);
    return q_snap_read_piece(&view, from, at, dst, n, e);
}

int q_seq_write_piece(struct q_seq *s, size_t at, const void *src, size_t n, struct q_err *e)
{
    struct q_snap view = view_of(s);
    for (int i = 0; i < s->n_pages; i++)
        if (s->memory->kv->refs[s->page[i]] > 1) return q_fail(e, Q_EINTERNAL, "a sequence's bytes are to be written to pages that others share");
    return q_snap_write_piece(&view, 0, at, src, n, e);
}

/* --- a snapshot from bytes ---------------------------------------------------------------------------------------------- */

static int check_new(const struct q_memory *m, const struct q_snap *base, int from, int length, struct q_err *e)
{
    if (length < 1 || length > m->ctx)
        return q_fail(e, Q_ELIMIT, "a snapshot of %d tokens is to be made: expected 1 to %d, a sequence's context", length, m->ctx);
    if (from < 0 || from > length || from % KV_PAGE)
        return q_fail(e, Q_EINPUT, "a snapshot of %d tokens is to share %d: expected a multiple of %d up to its length", length, from, KV_PAGE);
    if (!base) return from ? q_fail(e, Q_EINPUT, "a snapshot is to share %d tokens with none", from) : Q_OK;
    if (base->memory != m) return q_fail(e, Q_EINPUT, "a snapshot cannot share pages with one of another engine");
    if (base->length >= from) return Q_OK;
    return q_fail(e, Q_EINPUT, "a snapshot is to share %d tokens with one of %d", from, base->length);
}

/* A snapshot without slot and pages. */
static struct q_snap *empty_snap(struct q_memory *m, int length, struct q_err *e)
{
    struct q_snap *s = calloc(1, sizeof *s);
    if (s && (s->page = malloc((size_t)pages_for(length) * sizeof *s->page))) {
        s->memory = m;
        s->length = length;
        return s;
    }
    free(s);
    q_fail(e, Q_EMEM, "no memory for a snapshot");
    return NULL;
}

int snap_new(struct q_memory *m, const struct q_snap *base, int from, int length, struct q_snap **out, struct q_err *e)
{
    *out = NULL;
    int rc = check_new(m, base, from, length, e), n = pages_for(length), shared = from / KV_PAGE;
    if (rc) return rc;
    if (n - shared > m->kv->n_free) return q_fail(e, Q_ELIMIT, "no KV page left: %d are needed, %d are free", n - shared, m->kv->n_free);
    struct q_snap *s = empty_snap(m, length, e);
    if (!s) return Q_EMEM;
    if ((s->slot = m->snaps_left > 0 ? states_take(m->states) : -1) < 0) {
        free(s->page);
        free(s);
        return q_fail(e, Q_ELIMIT, "no snapshot left: the engine was opened with fewer than are in use now");
    }
    m->snaps_left--;
    for (; s->n_pages < shared; s->n_pages++) kv_share(m->kv, s->page[s->n_pages] = base->page[s->n_pages]);
    while (s->n_pages < n) s->page[s->n_pages++] = kv_take(m->kv);
    *out = s;
    return Q_OK;
}

int q_seq_snap_new(struct q_seq *s, int from, int length, struct q_snap **out, struct q_err *e)
{
    struct q_snap view = view_of(s);
    return snap_new(s->memory, &view, from, length, out, e);
}
