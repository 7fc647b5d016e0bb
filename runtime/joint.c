#include "joint.h"
#include "kset_shapes.h"
#include <stdio.h>
#include <string.h>

static int take_parts(struct q_joint *j, const struct q_layer *l, enum q_joint_kind kind)
{
    const struct q_tensor *ffn[] = {&l->ffn_gate, &l->ffn_up}, *attn[] = {&l->wq, &l->wk, &l->wv},
                          *delta[] = {&l->qkv, &l->z, &l->alpha, &l->beta};
    const struct q_tensor **from = kind == Q_JOINT_FFN ? ffn : l->kind == Q_LAYER_ATTN ? attn : delta;
    int n = kind == Q_JOINT_FFN ? 2 : l->kind == Q_LAYER_ATTN ? 3 : 4;
    memcpy(j->part, from, (size_t)n * sizeof *from);
    return n;
}

/* Only what meets int8 in one format: kernels for several outputs are of that kind. */
static int fit(const struct q_joint *j, enum q_numerics numerics)
{
    for (int i = 0; i < j->n; i++)
        if (kset_act(j->part[i], numerics) != Q_ACT_Q8 || j->part[i]->format != j->part[0]->format || j->part[i]->k != j->part[0]->k) return 0;
    return 1;
}

void joint_make(struct q_joint *j, const struct q_layer *l, enum q_joint_kind kind, const struct q_card *card, enum q_numerics numerics)
{
    memset(j, 0, sizeof *j);
    j->n = take_parts(j, l, kind);
    j->joined = card->kind == Q_CARD_CUDA && fit(j, numerics);
    if (!j->joined) return;
    j->whole = (struct q_tensor){.format = j->part[0]->format, .k = j->part[0]->k};
    snprintf(j->whole.name, sizeof j->whole.name, "%.61s+", j->part[0]->name);
    for (int i = 0; i < j->n; i++) {
        j->whole.n += j->part[i]->n;
        j->whole.bytes += j->part[i]->bytes;
    }
}
