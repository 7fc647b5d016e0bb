/* Weights to a card: one reader in the order of the file, so that a disk streams; slices of whole rows through the device's pinned stage;
 * rows that want another layout are repacked there, out of a stage in device memory. What was read is dropped from the page cache, so that
 * loading 28 GB neither needs nor evicts 28 GB of host memory. A preset's weights are made on the card. */
#include "gguf.h"
#include "kernel.h"
#include "kset_shapes.h"
#include "model_parts.h"
#include "templates/repack/args.h"
#include "templates/synth/args.h"
#include "weights.h"
#include "clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct upload {
    struct q_weights *ws;
    const struct q_weights_opts *o;
    struct q_device *d;
    char *stage;                 /* device memory, owned: WEIGHTS_STAGE bytes; NULL while nothing is repacked */
    double start, told;          /* seconds */
    size_t done, total;          /* bytes */
};

/* A line every two seconds: how much, how fast, how long still. */
static void tell(struct upload *u, size_t bytes)
{
    char line[160];
    double t = clock_s(), took = t - u->start;
    u->done += bytes;
    if (u->o->progress && u->total) u->o->progress(u->o->progress_arg, (double)u->done / (double)u->total);
    if (!u->o->say || t - u->told < 2) return;
    u->told = t;
    double rate = (double)u->done / took;
    snprintf(line, sizeof line, "loading: %.1f of %.1f GB, %.2f GB/s, %.0f s left", (double)u->done * 1e-9, (double)u->total * 1e-9, rate * 1e-9,
             (double)(u->total - u->done) / rate);
    u->o->say(u->o->say_arg, line);
}

static int launch(struct upload *u, const char *op, const char *shape, const void *args, size_t bytes, struct q_err *e)
{
    const struct q_kernel *kernel;
    struct q_list list = {0};
    int rc = kset_find(u->o->kernels, op, shape, &kernel, e);
    if (!rc) rc = list_push(&list, kernel, op, args, bytes, e);
    if (!rc) rc = u->d->ops->submit(u->d, &list, &(struct q_extent){1, 1, 1}, NULL, e);
    if (!rc) rc = u->d->ops->wait(u->d, e);
    list_free(&list);
    return rc;
}

/* The matrix that a weight's rows are rows of. */
static const struct q_tensor *whole_of(const struct upload *u, const struct q_weight *w)
{
    return w->whole >= 0 ? u->ws->w[w->whole].tensor : w->tensor;
}

/* --- of a file --------------------------------------------------------------------------------------------------------- */

static int send_rows(struct upload *u, const struct q_weight *w, int64_t row0, int64_t rows, size_t row_bytes, struct q_err *e)
{
    const struct q_tensor *t = w->tensor;
    const char *src = (const char *)t->data + (size_t)row0 * row_bytes;
    char shape[Q_SHAPE_TEXT], *dst = (char *)(uintptr_t)w->data;
    size_t bytes = (size_t)rows * row_bytes;
    if (!w->layout->pack) return u->d->ops->write(u->d, dst + (size_t)(w->row0 + row0) * row_bytes, src, bytes, e);
    int rc = u->d->ops->write(u->d, u->stage, src, bytes, e);
    struct repack_args args = {.src = u->stage, .dst = dst, .row0 = w->row0 + row0, .n_rows = rows};
    shape_repack(shape, sizeof shape, whole_of(u, w), w->layout->name);
    return rc ? rc : launch(u, "repack", shape, &args, sizeof args, e);
}

static int send(struct upload *u, const struct q_weight *w, struct q_err *e)
{
    const struct q_tensor *t = w->tensor;
    size_t row_bytes = (size_t)q_row_bytes(t->format, t->k);
    int64_t most = WEIGHTS_STAGE / (int64_t)row_bytes;
    int rc = model_check_tensor(u->o->model, t, e);
    if (!rc && most < 1) rc = q_fail(e, Q_ELIMIT, "%s: a row of %zu bytes does not fit the stage of %d", t->name, row_bytes, WEIGHTS_STAGE);
    if (!rc && w->layout->pack && !u->stage && !(u->stage = u->d->ops->alloc(u->d, WEIGHTS_STAGE, e))) rc = e ? e->code : Q_EMEM;
    for (int64_t row = 0; row < t->n && !rc; row += most) {
        int64_t rows = t->n - row < most ? t->n - row : most;
        rc = send_rows(u, w, row, rows, row_bytes, e);
        gguf_drop_cache(u->o->model->file, (const char *)t->data + (size_t)row * row_bytes, (size_t)rows * row_bytes);
        if (!rc) tell(u, (size_t)rows * row_bytes);
    }
    return rc;
}

/* --- made up ----------------------------------------------------------------------------------------------------------- */

static int make(struct upload *u, const struct q_weight *w, struct q_err *e)
{
    char shape[Q_SHAPE_TEXT];
    struct q_recipe r;
    model_synth_recipe(w->tensor, &r);
    char *dst = (char *)(uintptr_t)w->data;
    const struct q_tensor *shaped = w->layout->pack ? whole_of(u, w) : w->tensor;
    if (!w->layout->pack) dst += w->row0 * q_row_bytes(w->tensor->format, w->tensor->k);
    struct synth_args args = {.dst = dst, .row0 = w->layout->pack ? w->row0 : 0, .n_rows = w->tensor->n, .seed = r.seed, .std = r.std, .from = r.from,
                              .to = r.to};
    shape_synth(shape, sizeof shape, shaped, w->layout->name);
    int rc = launch(u, "synth", shape, &args, sizeof args, e);
    if (!rc) tell(u, w->tensor->bytes);
    return rc;
}

/* --- all --------------------------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const char *x = (*(const struct q_weight *const *)a)->tensor->data, *y = (*(const struct q_weight *const *)b)->tensor->data;
    return (x > y) - (x < y);
}

static int upload_all(struct upload *u, const struct q_weight **order, struct q_err *e)
{
    int n = 0, rc = Q_OK;
    for (int i = 0; i < u->ws->n; i++) {
        if (u->ws->w[i].parts || weights_twin(u->ws, &u->ws->w[i])) continue;
        order[n++] = &u->ws->w[i];
        u->total += u->ws->w[i].tensor->bytes;
    }
    qsort(order, (size_t)n, sizeof *order, by_place);
    for (int i = 0; i < n && !rc; i++) rc = order[i]->tensor->data ? send(u, order[i], e) : make(u, order[i], e);
    return rc;
}

int weights_upload(struct q_weights *ws, const struct q_weights_opts *o, struct q_err *e)
{
    struct upload u = {.ws = ws, .o = o, .d = ws->device, .start = clock_s()};
    const struct q_weight **order = calloc((size_t)ws->n, sizeof *order);
    u.told = u.start;
    int rc = order ? upload_all(&u, order, e) : q_fail(e, Q_EMEM, "no memory for a table of %d weights", ws->n);
    if (!rc) rc = u.d->ops->wait(u.d, e);
    if (u.stage) u.d->ops->release(u.d, u.stage);
    free(order);
    return rc;
}
