/* Grammars bound to a vocabulary and shared: by the constraints that use them, and by later requests that state the same.
 *
 * A program is read-only but for its states, which grow as texts are met and are under their own lock. When they are full, constraints go on with
 * new ones; the old live until nobody uses them.
 */
#ifndef Q_CONSTRAIN_PROGRAM_H
#define Q_CONSTRAIN_PROGRAM_H

#include "constrain_impl.h"
#include "constrain_mask.h"
#include <pthread.h>
#include <stdatomic.h>

/* What a tokenizer's constraints share; made at first use, freed with the tokenizer. */
struct vocabulary {
    struct trees trees;
    pthread_mutex_t lock; /* of what follows */
    struct kept {
        unsigned char key[32];
        struct shared_program *program; /* held; NULL */
        unsigned used;  /* 0: it is empty */
        size_t bytes;   /* of the program, when it was put here */
    } kept[16];
    unsigned clock;
};
int constrain_vocabulary(struct vocabulary **v, const struct tokenizer *t, struct q_err *e);

struct shared_program {
    struct program p;
    const struct trees *trees; /* borrowed from the vocabulary */
    atomic_int holders;
    pthread_mutex_t lock;    /* of `states` */
    struct shared_pda *states; /* held: those that new constraints begin with */
};

struct shared_pda {
    struct pda s;
    atomic_int holders;
    pthread_mutex_t lock;
};

int constrain_program_open(struct shared_program **p, struct grammar *g, const struct trees *trees, struct q_err *e);
/* Memory that it takes now. */
size_t constrain_program_bytes(struct shared_program *p);
void constrain_program_hold(struct shared_program *p);
void constrain_program_drop(struct shared_program *p);
/* Held: the program's states, new ones if those are full. */
int constrain_program_states(struct shared_program *p, struct shared_pda **s, struct q_err *e);
void pda_drop(struct shared_pda *s);

#endif
