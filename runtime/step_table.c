#include "step_table.h"
#include "carve.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BIAS = 1024, STEP_BYTES = (sizeof(struct step) + 63) / 64 * 64 };

static size_t mask_words(const struct q_step_size *z) { return ((size_t)z->n_vocab + 31) / 32; }

/* Lays the arrays of a step behind one another. */
static void carve_step(struct step *s, struct carve *c, const struct q_step_size *z)
{
    size_t rows = (size_t)z->max_rows, seqs = (size_t)z->max_seqs, outs = (size_t)z->max_out;
    memset(s, 0, sizeof *s);
    carve_take(c, STEP_BYTES);
    s->out = carve_take(c, outs * 4);
    s->page_stride = pages_for(z->ctx);
    s->token = carve_take(c, rows * 4);
    s->pos = carve_take(c, rows * 12);
    s->seq = carve_take(c, rows * 4);
    s->kv = carve_take(c, rows * 4);
    s->seq_row = carve_take(c, seqs * 4);
    s->seq_rows = carve_take(c, seqs * 4);
    s->pages = carve_take(c, seqs * (size_t)s->page_stride * 4);
    s->seq_segment = carve_take(c, (seqs + 1) * 4);
    s->segments = carve_take(c, (seqs + (size_t)z->max_snaps) * sizeof *s->segments);
    s->sampling = carve_take(c, outs * sizeof *s->sampling);
    s->embd = carve_take(c, rows * (size_t)z->n_embd * 4);
}

/* Per wanted row: history pairs (an id has one, so the context's length does not matter), bias ids and values, mask. */
static size_t sampling_bytes(const struct q_step_size *z) { return (size_t)z->n_vocab * 8 + MAX_BIAS * 8 + mask_words(z) * 4; }

size_t step_table_bytes(const struct q_step_size *z)
{
    struct step s;
    struct carve c = {0};
    carve_step(&s, &c, z);
    return c.at + (size_t)z->max_out * sampling_bytes(z);
}

int step_table_open(struct q_step_table *t, struct q_device *d, const struct q_step_size *size, struct q_err *e)
{
    memset(t, 0, sizeof *t);
    t->device = d;
    t->size = *size;
    size_t bytes = step_table_bytes(size);
    t->device_block = d->ops->alloc(d, bytes, e);
    t->seqs = calloc((size_t)size->max_seqs, sizeof(struct q_seq *));
    t->out_row = calloc((size_t)size->max_out, sizeof *t->out_row);
    t->host_block = calloc(1, bytes);
    t->image = calloc(1, bytes);
    if (!t->device_block || !t->host_block || !t->image || !t->seqs || !t->out_row) {
        step_table_close(t);
        return q_fail(e, Q_EMEM, "no memory for the tables of a step of %d rows", size->max_rows);
    }
    struct carve c = {t->host_block, 0};
    carve_step(&t->host, &c, size);
    t->step = t->device_block;
    return Q_OK;
}

void step_table_close(struct q_step_table *t)
{
    if (!t->device) return;
    t->device->ops->release(t->device, t->device_block);
    free(t->host_block);
    free(t->image);
    free(t->seqs);
    free(t->out_row);
    memset(t, 0, sizeof *t);
}

const i32 *step_table_out(const struct q_step_table *t) { return (const i32 *)((char *)t->device_block + STEP_BYTES); }

static int check_sampling(const struct q_step_table *t, const struct q_sampling *s, int row, struct q_err *e)
{
    if (!s) return Q_OK;
    if (s->n_bias > MAX_BIAS) return q_fail(e, Q_ELIMIT, "row %d has %d logit biases, at most %d are possible", row, s->n_bias, MAX_BIAS);
    for (int i = 0; i < s->n_bias; i++)
        if (s->bias_id[i] < 0 || s->bias_id[i] >= t->size.n_vocab || !isfinite(s->bias[i]))
            return q_fail(e, Q_EINPUT, "row %d: logit bias %d is for id %d of %d, value %g", row, i, s->bias_id[i], t->size.n_vocab,
                          (double)s->bias[i]);
    if (s->n_history > t->size.n_vocab)
        return q_fail(e, Q_ELIMIT, "row %d has %d ids of history, at most the vocabulary's %d are possible", row, s->n_history, t->size.n_vocab);
    return q_sampling_check(&s->p, e);
}

static int check_row(const struct q_step_table *t, const struct q_step *s, int i, struct q_err *e)
{
    const struct q_row *r = &s->rows[i];
    if (!r->seq) return q_fail(e, Q_EINPUT, "row %d belongs to no sequence", i);
    if (r->token < -1 || r->token >= t->size.n_vocab)
        return q_fail(e, Q_EINPUT, "row %d: token %d is not in the vocabulary of %d", i, r->token, t->size.n_vocab);
    if (r->token == -1 && !r->embd) return q_fail(e, Q_EINPUT, "row %d has neither a token nor an embedding", i);
    if (r->parent >= 0 && r->parent != i - 1) return q_fail(e, Q_EUNSUP, "row %d follows row %d; only chains of rows are supported", i, r->parent);
    if (r->pos[0] >= 1 << 24 || r->pos[1] >= 1 << 24 || r->pos[2] >= 1 << 24)
        return q_fail(e, Q_ELIMIT, "row %d has rope position %d, at most %d are possible", i, r->pos[0], (1 << 24) - 1);
    return r->want & Q_WANT_ID ? check_sampling(t, r->sampling, i, e) : Q_OK;
}

/* Gathers the step's sequences; in_step marks those seen, so that a sequence's rows are known to be contiguous. */
static int gather_seqs(struct q_step_table *t, const struct q_step *s, struct q_err *e)
{
    int rc = Q_OK, needed = 0;
    t->n_seqs = 0;
    for (int i = 0, n; i < s->n_rows && !rc; i += n) {
        struct q_seq *q = s->rows[i].seq;
        for (n = 1; i + n < s->n_rows && s->rows[i + n].seq == q;) n++;
        const struct q_memory *m = q->memory;
        needed += seq_pages_needed(q, n);
        if (q->in_step >= 0) rc = q_fail(e, Q_EINPUT, "the rows of a sequence must be contiguous; row %d returns to one that ended", i);
        else if (t->n_seqs == t->size.max_seqs) rc = q_fail(e, Q_ELIMIT, "a step of more than %d sequences", t->size.max_seqs);
        else if (q->length + n > m->ctx)
            rc = q_fail(e, Q_ELIMIT, "%d tokens do not fit: the sequence holds %d and the context is %d", n, q->length, m->ctx);
        else if (needed > m->kv->n_free) rc = q_fail(e, Q_ELIMIT, "%d KV pages are needed and %d are free", needed, m->kv->n_free);
        else {
            q->in_step = t->n_seqs;
            t->seqs[t->n_seqs++] = q;
        }
    }
    for (int i = 0; i < t->n_seqs; i++) t->seqs[i]->in_step = -1;
    return rc;
}

static int check_keeps(const struct q_step *s, struct q_err *e)
{
    for (int i = 0; i < s->n_keeps; i++)
        if (s->keeps[i].row < 0 || s->keeps[i].row >= s->n_rows || (i && s->keeps[i].row <= s->keeps[i - 1].row))
            return q_fail(e, Q_EINPUT, "snapshot %d is after row %d; rows must ascend and lie in the step's %d", i, s->keeps[i].row, s->n_rows);
    if (s->n_keeps && s->rows[0].seq->memory->snaps_left < s->n_keeps)
        return q_fail(e, Q_ELIMIT, "%d snapshots are wanted and %d are left", s->n_keeps, s->rows[0].seq->memory->snaps_left);
    return Q_OK;
}

int step_table_check(struct q_step_table *t, const struct q_step *s, struct q_err *e)
{
    int outs = 0;
    if (s->n_rows < 1 || s->n_rows > t->size.max_rows)
        return q_fail(e, Q_ELIMIT, "a step of %d rows; 1 to %d are possible", s->n_rows, t->size.max_rows);
    for (int i = 0; i < s->n_rows; i++) {
        int rc = check_row(t, s, i, e);
        if (rc) return rc;
        outs += s->rows[i].want != 0;
    }
    if (outs > t->size.max_out) return q_fail(e, Q_ELIMIT, "logits of %d rows are wanted; at most %d are possible", outs, t->size.max_out);
    int rc = check_keeps(s, e);
    return rc ? rc : gather_seqs(t, s, e);
}

/* The struct's arrays are const for kernels; here they are being written. */
#define PUT(array, i) (((i32 *)(array))[i])

static void put_row(struct step *h, const struct q_row *r, int i, int seq, int kv, int n_embd)
{
    PUT(h->token, i) = r->token;
    PUT(h->seq, i) = seq;
    PUT(h->kv, i) = kv;
    for (int j = 0; j < 3; j++) PUT(h->pos, i * 3 + j) = r->pos[0] < 0 ? kv : r->pos[j];
    if (r->token < 0) memcpy((f32 *)h->embd + (size_t)i * (size_t)n_embd, r->embd, (size_t)n_embd * sizeof(f32));
}

/* Cuts a sequence's rows [row, row + n) into segments after each row that is kept. */
static int put_segments(struct q_step_table *t, const struct q_step *s, struct q_seq *q, int row, int n, int *keep, struct q_err *e)
{
    struct step *h = &t->host;
    int from = row, load = q->length ? q->slot : -1, rc = Q_OK;
    while (from < row + n && !rc) {
        int kept = *keep < s->n_keeps && s->keeps[*keep].row < row + n;
        int end = kept ? s->keeps[*keep].row + 1 : row + n;
        struct segment g = {from, end - from, load, q->slot, -1};
        if (kept) {
            rc = snap_reserve(q, q->length + end - row, s->keeps[*keep].snap, e);
            if (!rc) g.copy = (*s->keeps[(*keep)++].snap)->slot;
        }
        ((struct segment *)h->segments)[h->n_segments++] = g;
        from = end;
        load = q->slot;
    }
    return rc;
}

static int put_seq(struct q_step_table *t, const struct q_step *s, int index, int row, int n, int *keep, struct q_err *e)
{
    struct step *h = &t->host;
    struct q_seq *q = t->seqs[index];
    int rc = seq_grow(q, n, e);
    if (rc) return rc;
    PUT(h->seq_row, index) = row;
    PUT(h->seq_rows, index) = n;
    PUT(h->seq_segment, index) = h->n_segments;
    memcpy(&PUT(h->pages, (size_t)index * (size_t)h->page_stride), q->page, (size_t)q->n_pages * sizeof(i32));
    for (int i = 0; i < n; i++) put_row(h, &s->rows[row + i], row + i, index, q->length + i, t->size.n_embd);
    rc = put_segments(t, s, q, row, n, keep, e);
    q->length += n;
    if (q->length > t->ctx) t->ctx = q->length;
    return rc;
}

/* Copies what a row's sampling points at behind the step block, and points the device's copy at that. */
static int put_sampling(struct q_step_table *t, const struct q_sampling *from, int out, struct q_err *e)
{
    static const struct q_sampling_params greedy = {.top_p = 1, .repeat = 1};
    const struct q_sampling_params *p = from ? &from->p : &greedy;
    size_t per_row = sampling_bytes(&t->size), words = mask_words(&t->size);
    char *area = (char *)t->device_block + step_table_bytes(&t->size) - (size_t)(t->size.max_out - out) * per_row;
    i32 *history = (i32 *)area, *bias_id = history + (size_t)t->size.n_vocab * 2;
    f32 *bias = (f32 *)(bias_id + MAX_BIAS);
    u32 *mask = (u32 *)(bias + MAX_BIAS);
    struct sampling g = {.temp = p->temp, .top_p = p->top_p, .min_p = p->min_p, .top_k = p->top_k, .repeat = p->repeat,
                         .frequency = p->frequency, .presence = p->presence, .seed = p->seed, .history = history,
                         .bias_id = bias_id, .bias = bias};
    const struct q_device_ops *ops = t->device->ops;
    int rc = Q_OK;
    if (from) {
        g.position = from->position;
        g.n_history = from->n_history;
        g.n_bias = from->n_bias;
        g.mask = from->mask ? mask : NULL;
        rc = ops->write(t->device, history, from->history, (size_t)from->n_history * 8, e);
        if (!rc) rc = ops->write(t->device, bias_id, from->bias_id, (size_t)from->n_bias * 4, e);
        if (!rc) rc = ops->write(t->device, bias, from->bias, (size_t)from->n_bias * 4, e);
        if (!rc && from->mask) rc = ops->write(t->device, mask, from->mask, words * 4, e);
    }
    ((struct sampling *)t->host.sampling)[out] = g;
    return rc;
}

static int put_outs(struct q_step_table *t, const struct q_step *s, struct q_err *e)
{
    int rc = Q_OK;
    t->want = 0;
    for (int i = 0; i < s->n_rows && !rc; i++) {
        const struct q_row *r = &s->rows[i];
        if (!r->want) continue;
        t->want |= r->want;
        t->out_row[t->host.n_out] = i;
        PUT(t->host.out, t->host.n_out) = i;
        rc = put_sampling(t, r->want & Q_WANT_ID ? r->sampling : NULL, t->host.n_out++, e);
    }
    return rc;
}

/* Appends an array to the image that is sent, and moves its pointer to where it will lie on the device. */
static void append(struct q_step_table *t, size_t *at, const void *array, size_t bytes)
{
    const void **pointer = (const void **)array;
    memcpy(t->image + *at, *pointer, bytes);
    *pointer = (const char *)t->device_block + *at;
    *at += (bytes + 15) / 16 * 16;
}

/* The struct, `out` at its fixed place, then every array at its length of this step: one write, short for a short step. Rows of images
 * follow in a write of their own. */
static int write_device(struct q_step_table *t, struct q_err *e)
{
    const struct step *h = &t->host;
    struct step d = *h;
    size_t rows = (size_t)h->n_rows, seqs = (size_t)h->n_seqs, at = STEP_BYTES + ((size_t)t->size.max_out * 4 + 15) / 16 * 16;
    size_t embd_bytes = 0;
    for (int i = 0; i < h->n_rows; i++)
        if (h->token[i] < 0) embd_bytes = rows * (size_t)t->size.n_embd * 4;
    d.out = step_table_out(t);
    memcpy(t->image + STEP_BYTES, h->out, (size_t)h->n_out * 4);
    append(t, &at, &d.token, rows * 4);
    append(t, &at, &d.pos, rows * 12);
    append(t, &at, &d.seq, rows * 4);
    append(t, &at, &d.kv, rows * 4);
    append(t, &at, &d.seq_row, seqs * 4);
    append(t, &at, &d.seq_rows, seqs * 4);
    append(t, &at, &d.pages, seqs * (size_t)h->page_stride * 4);
    append(t, &at, &d.seq_segment, (seqs + 1) * 4);
    append(t, &at, &d.segments, (size_t)h->n_segments * sizeof *h->segments);
    append(t, &at, &d.sampling, (size_t)h->n_out * sizeof *h->sampling);
    d.embd = (const f32 *)((char *)t->device_block + at);
    memcpy(t->image, &d, sizeof d);
    int rc = t->device->ops->write(t->device, t->device_block, t->image, at, e);
    return rc || !embd_bytes ? rc : t->device->ops->write(t->device, (void *)d.embd, h->embd, embd_bytes, e);
}

/* Pages of the step's longest sequence, its rows included, some more for a stride that changes seldom: what is sent stays short however
 * large the context is. */
static int page_stride(const struct q_step_table *t, const struct q_step *s)
{
    enum { GRANULE = 16 };
    int full = pages_for(t->size.ctx), most = 0;
    for (int i = 0, row = 0, n; i < t->n_seqs; i++, row += n) {
        for (n = 1; row + n < s->n_rows && s->rows[row + n].seq == t->seqs[i];) n++;
        int pages = pages_for(t->seqs[i]->length + n);
        if (pages > most) most = pages;
    }
    most = (most + GRANULE - 1) / GRANULE * GRANULE;
    return most < full ? most : full;
}

int step_table_fill(struct q_step_table *t, const struct q_step *s, struct q_err *e)
{
    struct step *h = &t->host;
    int rc = Q_OK, keep = 0, row = 0;
    h->n_rows = s->n_rows;
    h->n_seqs = t->n_seqs;
    h->n_segments = h->n_out = t->ctx = 0;
    h->page_stride = page_stride(t, s);
    for (int i = 0, n; i < t->n_seqs && !rc; i++, row += n) {
        for (n = 1; row + n < s->n_rows && s->rows[row + n].seq == t->seqs[i];) n++;
        rc = put_seq(t, s, i, row, n, &keep, e);
    }
    PUT(h->seq_segment, t->n_seqs) = h->n_segments;
    if (!rc) rc = put_outs(t, s, e);
    return rc ? rc : write_device(t, e);
}
