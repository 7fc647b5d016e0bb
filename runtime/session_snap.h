/* Sessions and snapshots: what an engine holds goes into a session file, and what a file holds into an engine.
 *
 * The ids are the timeline's, the snapshots beginnings of it, shortest first. No step may be in flight.
 */
#ifndef Q_SESSION_SNAP_H
#define Q_SESSION_SNAP_H

#include "engine.h"
#include "session_file.h"

/* text: NULL or zero-terminated; snaps: [n], 1 to SESSION_PARTS, of ascending lengths, at most n_ids. lock and written: session_write's. */
int session_save(const char *path, const struct q_engine *en, const int32_t *ids, int n_ids, const char *text,
                 const struct q_snap *const *snaps, int n, int *lock, size_t *written, struct q_err *e);
/* Q_OK if the file is of such an engine: state id, sizes, token ids. */
int session_is_of(const struct session *s, const struct q_engine *en, struct q_err *e);
/* The same, and the context has room for the shortest checkpoint. */
int session_fits(const struct session *s, const struct q_engine *en, struct q_err *e);
/* The last checkpoint that is a beginning of ids[0, n) of at most n - 1 tokens, and that the context has room for; -1: none. */
int session_find(const struct session *s, const int32_t *ids, int n, int ctx);
/* A snapshot of a checkpoint. base: what has the pages before the first part's `from`; NULL where that is 0. */
int session_load(struct session *s, struct q_engine *en, int part, const struct q_snap *base, struct q_snap **out, struct q_err *e);
/* All bytes of a snapshot as long as the checkpoint that shares the pages before `from` with another (q_snap_new, q_seq_snap_new). */
int session_fill(struct session *s, int part, struct q_snap *snap, int from, struct q_err *e);
/* The same into a sequence, which is empty after an error; no snapshot is needed. The file has all pages, and all of it up to there is checked. */
int session_load_seq(struct session *s, struct q_engine *en, int part, struct q_seq *seq, struct q_err *e);
/* What a head says of the engine: page_tokens, sizes, state id. */
void session_head_of(const struct q_engine *en, struct session_head *h);

#endif
