/* Session files and engines: whether a file is of an engine, and its checkpoints into one. Saving is scheduler_session.h's.
 * No step may be in flight.
 */
#ifndef Q_SESSION_SNAP_H
#define Q_SESSION_SNAP_H

#include "engine.h"
#include "session_file.h"

/* Q_OK if the file is of such an engine: state id, sizes, token ids. */
int session_is_of(const struct session *s, const struct q_engine *en, struct q_err *e);
/* The same, and the context has room for the shortest checkpoint. */
int session_fits(const struct session *s, const struct q_engine *en, struct q_err *e);
/* The last checkpoint that is a beginning of ids[0, n) of at most n - 1 tokens, and that the context has room for; -1: none. */
int session_find(const struct session *s, const int32_t *ids, int n, int ctx);
/* All bytes of a snapshot as long as the checkpoint that shares the pages before `from` with another (q_snap_new, q_seq_snap_new). */
int session_fill(struct session *s, int part, struct q_snap *snap, int from, struct q_err *e);
/* A checkpoint into a sequence, which is empty after an error. The file has all pages, and all of it up to there is checked. */
int session_load_seq(struct session *s, struct q_engine *en, int part, struct q_seq *seq, struct q_err *e);
/* What a head says of the engine: page_tokens, sizes, state id, the model's name. */
void session_head_of(const struct q_engine *en, struct session_head *h);

#endif
