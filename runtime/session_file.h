/* Sessions on disk: the tokens of one timeline and what the model made of them at some of its places, in a file.
 *
 * A file holds ids[0, n) and up to SESSION_PARTS checkpoints at ascending lengths, each a beginning of the ids: so a prompt that leaves the
 * tokens on the way (a chat template writes the last answer in another way) still goes on from the checkpoint before. A part is what
 * q_snap_read_piece gives (engine.h): the state at its length, and the KV pages from `from` on; those before it are the part's before, so nothing
 * is there twice. The first part's `from` is 0, unless the file is of somebody who keeps the pages before elsewhere.
 *
 *     head: magic, format number, counts, sizes, state id, parts | its BLAKE2b-256 | ids | theirs | text | its | bytes of part 0 | theirs | ...
 *
 * The text is its writer's: what a conversation's messages are, which tokens do not tell.
 *
 * Numbers are little endian. Promises:
 *  - Whole or not at all: written beside the file under another name, synced, then renamed. A writer that is killed leaves the old file, and a
 *    temporary one that session_clean knows as nobody's.
 *  - Whatever was changed, cut off, or comes from another model, KV format, numerics or version is refused with one line that says which.
 *  - Files are 0600. No more memory than ids and a piece of SESSION_PIECE bytes is taken, whatever the size.
 *  - Room on the disk is looked for, and taken, before the first byte is computed.
 * It knows bytes and no engine; session_snap.h joins both. What a file claims is held against its size before anything is allocated.
 */
#ifndef Q_SESSION_FILE_H
#define Q_SESSION_FILE_H

#include "err.h"
#include "files.h"
#include <stddef.h>
#include <stdint.h>

enum { SESSION_PARTS = 8, SESSION_PIECE = 4 << 20, SESSION_STATE_ID = 320, SESSION_MODEL = 44 };

struct session_part {
    int from, length;        /* tokens; from: a multiple of page_tokens */
};

struct session_head {
    char state_id[SESSION_STATE_ID];   /* q_engine_state_id */
    char model[SESSION_MODEL];         /* its name, for people: printable, cut where it is longer; "" where nobody named it */
    int n_ids, n_parts, n_text;
    struct session_part part[SESSION_PARTS];
    int page_tokens;
    uint64_t state_bytes, page_bytes;  /* of one state, of one page over all layers */
    uint64_t bytes;                    /* of the file */
    int64_t made;                      /* seconds since 1970 */
};

/* Bytes of a part, without its hash. */
uint64_t session_part_bytes(const struct session_head *h, int part);
/* And of the whole file. */
uint64_t session_file_bytes(const struct session_head *h);

/* --- writing (session_write.c) --- */

/* Sets h->model. */
void session_name_model(struct session_head *h, const char *name);
/* h: state_id, model, n_ids, n_text, parts, page_tokens and the two sizes; the rest is filled in. */
struct session_source {
    struct session_head h;
    const int32_t *ids;
    const char *text;        /* [h.n_text] */
    const char *what;        /* what lines call it; NULL: session */
    /* Bytes [at, at + n) of a part, asked for in order. */
    int (*read)(void *arg, int part, size_t at, void *dst, size_t n, struct q_err *e);
    void *arg;
};
/* Makes or replaces the file. *lock (may be NULL): a descriptor of session_lock, which becomes one of the new file. *written: bytes of the file. */
int session_write(const char *path, const struct session_source *src, int *lock, size_t *written, struct q_err *e);

/* --- reading (session_read.c) --- */

struct session;
/* Head, ids and text, checked, and that the file has the size it claims. Q_EMISS: there is no file. */
int session_open(struct session **s, const char *path, struct q_err *e);
void session_close(struct session *s);
const struct session_head *session_head(const struct session *s);
const int32_t *session_ids(const struct session *s);      /* [n_ids] */
const char *session_text(const struct session *s);        /* [n_text], and a zero byte */
const char *session_path(const struct session *s);
/* All bytes of a part, in pieces, in order, to `put`. What was put is worth nothing unless this returns 0. */
typedef int (*session_put)(void *arg, size_t at, const void *src, size_t n, struct q_err *e);
int session_read(struct session *s, int part, session_put put, void *arg, struct q_err *e);
/* Only the head, checked by itself: some 500 bytes are read. */
int session_read_head(const char *path, struct session_head *h, struct q_err *e);
/* Whether a file begins as a session does, sound or not. */
int session_claims(const char *path);
/* Q_OK if a state of the head fits an engine of this id, or, known before there is one, these formats of K and V; else one line that says what
 * differs. */
int session_check_kv(const char *path, const struct session_head *h, const char *kv_k, const char *kv_v, struct q_err *e);
int session_check_id(const char *path, const struct session_head *h, const char *state_id, struct q_err *e);

/* --- a file that a process works with (session_lock.c) --- */

/* The file that a name leads to over links, there or not: a link stays when its file is replaced. */
int session_target(char target[Q_PATH], const char *path, struct q_err *e);
/* Q_EIO: a session cannot be put at the path, for a new file is made beside it. */
int session_can_write(const char *path, struct q_err *e);
/* Makes an empty file if there is none, and keeps every other process out until the descriptor is closed. Minus a code: Q_ELIMIT where
 * another has it. An empty file is a session that has not begun. */
int session_lock(const char *path, struct q_err *e);
/* Closes it; a file that is still empty goes. */
void session_unlock(int lock, const char *path);

/* --- directories (session_dir.c) --- */

/* A file *.session of the directory, as the system knows it, whatever is in it. */
struct session_found {
    char *name;              /* owned */
    uint64_t bytes;
    double used;             /* last change of its times, seconds since 1970: session_touch */
};
/* All of them, least recently used first. */
int session_find_files(const char *dir, struct session_found **list, int *n, struct q_err *e);
void session_found_free(struct session_found *list, int n);
/* Makes the directory (0700) and removes what killed writers left in it. */
int session_dir_open(const char *dir, struct q_err *e);
/* It was used now. */
void session_touch(const char *path);
/* Removes temporary files whose writers are gone; session_clean_beside: those in a file's directory. */
void session_clean(const char *dir);
void session_clean_beside(const char *path);

#endif
