/* A model's matrices on a device: each once, in the layout that its kernel set asks for, all of them in one block of memory.
 *
 * On a device that shares the host's memory the layout `rows` is the mapped file itself; every other layout is packed by its team, and
 * the file's pages of that tensor are released. A card's are read in the file's order, sent through a bounded stage and repacked there;
 * a preset's are made there (weights_upload.c). A tied head is the embedding, not a copy.
 */
#ifndef Q_WEIGHTS_H
#define Q_WEIGHTS_H

#include "device.h"
#include "kset.h"
#include "layout.h"
#include "model.h"

enum { WEIGHTS_STAGE = 64 << 20 };    /* device bytes that file rows pass through on their way to another layout */

struct q_weight {
    const struct q_tensor *tensor;    /* borrowed */
    const struct q_layout *layout;
    const void *data;                 /* device memory, or the mapped file; of a part of a joint, the joint's */
    int whole;                        /* index of the joint that it is a part of; -1: it is none */
    int64_t row0;                     /* its first row there */
    int parts;                        /* a joint: how many; they follow it in the table */
    enum q_act act;                   /* activations it is multiplied with */
};

struct q_weights {
    struct q_device *device;
    struct q_weight *w;               /* owned: [n] */
    int n, cap;
    struct q_tensor *joints;          /* owned: the tensors of joints */
    size_t mapped_bytes, packed_bytes;
    char *block;                      /* device memory of packed_bytes, all weights that are not mapped */
};

struct q_weights_opts {
    struct q_model *model;
    const struct kset *kernels;
    enum q_numerics numerics;
    void (*say)(void *arg, const char *line);   /* progress of a long load; may be NULL */
    void *say_arg;
    void (*progress)(void *arg, double fraction);   /* 0 to 1 of the bytes; may be NULL */
    void *progress_arg;
};

int weights_open(struct q_weights *ws, struct q_device *d, const struct q_weights_opts *o, struct q_err *e);
/* The joint that a tensor is a part of; NULL: it is multiplied alone. */
const struct q_weight *weights_joint(const struct q_weights *ws, const struct q_tensor *t);
/* The weight whose data this one shares (a tied head), among those before it; NULL for the first of its data. */
const struct q_weight *weights_twin(const struct q_weights *ws, const struct q_weight *w);
/* For weights_open: fills the places of all weights on a device with memory of its own. */
int weights_upload(struct q_weights *ws, const struct q_weights_opts *o, struct q_err *e);
void weights_close(struct q_weights *ws);
/* The device weight of a tensor of the model; never NULL for one that weights_open saw. */
const struct q_weight *weights_find(const struct q_weights *ws, const struct q_tensor *t);

#endif
