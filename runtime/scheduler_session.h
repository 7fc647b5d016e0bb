/* Slots and session files (session_file.h): what an idle slot holds is saved, loaded, and forgotten.
 *
 * A file gets the slot's tokens and state, and behind the beginnings of them that the prefix tree has (the ends of turns) their states: a recurrent
 * state cannot be rewound, so a prompt that leaves the slot's tokens, or is a beginning of them, goes on from one of those. What is loaded
 * is used as what was read here: the slot holds the longest, the tree gets the others as far as it has room.
 *
 * Calls are for between steps; each moves all its bytes before it returns.
 */
#ifndef Q_SCHED_SESSION_H
#define Q_SCHED_SESSION_H

#include "scheduler.h"
#include "session_file.h"

/* Beginnings that are saved beside the slot's end. */
enum { SCHED_SESSION_KEPT = 2 };

struct q_sched_save {
    const char *path;
    const int32_t *ids;      /* [n] the session's tokens, which those of the slot begin; NULL: those */
    size_t n;
    const char *text;        /* session_source's, zero-terminated, or NULL */
    int *lock;               /* session_write's, or NULL */
    int saved;               /* out: tokens whose state is saved */
    size_t written;          /* out: bytes */
};

/* Q_OK, or Q_ELIMIT: it is at work; Q_EINPUT: there is no such slot. */
int q_sched_check_slot(const struct q_sched *s, int slot, struct q_err *e);
/* Q_EINPUT: the slot is empty. */
int q_sched_save(struct q_sched *s, int slot, struct q_sched_save *save, struct q_err *e);
/* The slot holds that checkpoint, or, after an error, nothing. */
int q_sched_load(struct q_sched *s, int slot, struct session *file, int part, struct q_err *e);
struct q_sched_restored {
    int tokens;              /* that the slot holds now */
    int parts, kept;         /* checkpoints that the context has room for, and that the tree keeps, which may have room for fewer */
};
/* All checkpoints that the context has room for. */
int q_sched_restore(struct q_sched *s, int slot, struct session *file, struct q_sched_restored *done, struct q_err *e);
/* *erased: tokens that it held. The tree keeps what it has. */
int q_sched_erase(struct q_sched *s, int slot, int *erased, struct q_err *e);

#endif
