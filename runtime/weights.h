/* A model's matrices on a device: each once, in the layout that its kernel set asks for.
 *
 * On a device that shares the host's memory the layout `rows` is the mapped file itself; every other layout is packed into memory
 * taken here, and the file's pages of that tensor are released. A tied head is the embedding, not a copy.
 */
#ifndef Q_WEIGHTS_H
#define Q_WEIGHTS_H

#include "device.h"
#include "kset.h"
#include "layout.h"
#include "model.h"

struct q_weight {
    const struct q_tensor *tensor;    /* borrowed */
    const struct q_layout *layout;
    const void *data;                 /* device memory, or the mapped file */
    enum q_act act;                   /* activations it is multiplied with */
};

struct q_weights {
    struct q_device *device;
    struct q_weight *w;               /* owned: [n] */
    int n, cap;
    size_t mapped_bytes, packed_bytes;
    void **chunks;                    /* owned: [n_chunks] device memory that packed matrices lie in, one behind another */
    int n_chunks;
    char *free;                       /* the rest of the last chunk */
    size_t n_free;
};

int weights_open(struct q_weights *ws, struct q_device *d, struct q_model *m, const struct kset *k, enum q_numerics numerics,
                 struct q_err *e);
void weights_close(struct q_weights *ws);
/* The device weight of a tensor of the model; never NULL for one that weights_open saw. */
const struct q_weight *weights_find(const struct q_weights *ws, const struct q_tensor *t);

#endif
