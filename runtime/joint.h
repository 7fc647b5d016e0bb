/* Joints: matrices of a layer that read the same rows. On a card they lie behind one another as one matrix, so that one launch multiplies
 * them all: every launch that follows another costs a decode step about two microseconds, whatever it does. On a CPU, where a launch
 * is a barrier of threads that q_launch.with_next leaves out, they stay apart.
 */
#ifndef Q_JOINT_H
#define Q_JOINT_H

#include "kset.h"
#include "model.h"

enum q_joint_kind { Q_JOINT_INPUT, Q_JOINT_FFN, Q_JOINTS };   /* wq wk wv, or qkv z alpha beta; ffn_gate ffn_up */
enum { Q_JOINT_MOST = 4 };

struct q_joint {
    const struct q_tensor *part[Q_JOINT_MOST];   /* borrowed, in the order of their rows */
    int n, joined;               /* joined 0: they are multiplied one by one */
    struct q_tensor whole;       /* joined: rows of all, no data; its name is the first part's with "+" behind it */
};

void joint_make(struct q_joint *j, const struct q_layer *l, enum q_joint_kind kind, const struct q_card *card, enum q_numerics numerics);

#endif
