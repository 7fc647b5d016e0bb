/* quarry's one public page: open a model, keep sequences, run steps.
 *
 * An engine is one model on its devices: weights, kernels, KV pages, state slots and scratch, all taken when it opens, from a
 * plan it prints. A sequence is one timeline of tokens. A step is one pass of the model over rows: prompt chunks, generated
 * tokens, drafts and images are all rows. Nothing here compiles, and nothing on the token path allocates.
 *
 * One thread at a time uses an engine; several engines may live in one process. Every call returns 0 or an error code with one
 * line in *e. After an error from q_step_submit nothing has changed.
 */
#ifndef Q_ENGINE_H
#define Q_ENGINE_H

#include "err.h"
#include "kset.h"
#include "rope.h"
#include "sampler.h"
#include "tokenizer.h"
#include <stddef.h>

struct q_engine;
struct q_seq;        /* a timeline: KV pages and a live state slot */
struct q_snap;       /* a copy of a sequence at one length: a state slot and references to pages */

/* Sparse prefill (templates/attn_pick/args.h). */
struct q_sparse {
    double mass;                        /* share of attention's mass that rows far behind keep, below 1; 0: all is read */
    int from;                           /* of rows that see more tokens than this; <= 0: SPARSE_FROM */
    double share;                       /* above 0, bench: instead this share of the pages, by chance */
};
enum { SPARSE_FROM = 8192 };

struct q_engine_opts {
    const char *model;                  /* a GGUF file, or: */
    const char *preset, *preset_type;   /* synthetic weights of a named shape; type "q8_0" */
    const struct q_config *config;      /* or of this shape (tests) */
    const char *device;                 /* "cpu", "cuda", "cuda:N", NULL or "auto": the card if there is one (device.h) */
    int threads;                        /* of a CPU; <= 0: all CPUs allowed */
    int ctx;                            /* KV tokens a sequence may hold; 0: 4096 or ctx_hint if that is more, at most what positions are good for */
    struct q_rope_ask rope;             /* whether they go beyond what the model was trained for (rope.h) */
    int ctx_hint;                       /* tokens that the caller expects to need; or, where that is open and there is a tokenizer, not NULL: */
    int (*count)(void *arg, const struct tokenizer *t, int *ctx_hint, struct q_err *e);
    void *count_arg;
    int max_seqs;                       /* 0: 1; < 0: a sensible number for many clients: 4 on a CPU, 8 on a card */
    int kv_tokens;                      /* that all sequences may hold together; 0: max_seqs full contexts; at least one */
    int fit;                            /* 1: where the plan does not fit, less of what was not chosen: KV tokens, context (to 4096), sequences */
    int max_snaps;                      /* snapshots that may exist at once; 0: none; < 0: four more than sequences */
    const size_t *snap_bytes;           /* NULL, or instead of max_snaps: as many as these bytes hold, with two KV pages each; 0: none */
    int max_rows;                       /* rows a step; 0: 512 */
    int max_out;                        /* rows a step whose logits are wanted; 0: max_seqs */
    int debug_launch;                   /* 1: every launch on a card is waited for, so that a fault names its kernel */
    enum q_numerics numerics;
    const char *kv_k, *kv_v;            /* of kv_formats (kv_format.h), "f16" by default; numerics reference: always f32 */
    struct q_sparse sparse;
    const char *tunes;                  /* --tunes DIR */
    const char *program_dir;            /* where quarry-tune lies */
    void (*say)(void *arg, const char *line);   /* facts and progress; may be NULL */
    void *say_arg;
    /* How far opening is, 0 to 1, with a static word for what is done now; may be NULL. Weights are most of it. */
    void (*progress)(void *arg, const char *stage, double fraction);
    void *progress_arg;
    /* The formats of K and V are settled and no kernel is built yet: an error ends the opening; may be NULL. */
    int (*formats)(void *arg, const char *kv_k, const char *kv_v, struct q_err *e);
    void *formats_arg;
};

int q_engine_open(struct q_engine **en, const struct q_engine_opts *o, struct q_err *e);
void q_engine_close(struct q_engine *en);

struct q_model;
const struct q_model *q_engine_model(const struct q_engine *en);
/* NULL for a preset. */
struct tokenizer *q_engine_tokenizer(const struct q_engine *en);
int q_engine_ctx(const struct q_engine *en);
int q_engine_max_rows(const struct q_engine *en);
int q_engine_max_seqs(const struct q_engine *en);
int q_engine_max_snaps(const struct q_engine *en);
/* KV pages of all sequences and snapshots. */
int q_engine_pages(const struct q_engine *en);
int q_engine_threads(const struct q_engine *en);
/* The plan that it was opened by (plan.h): what `quarry show --fit` says of this device. */
struct q_plan;
const struct q_plan *q_engine_plan(const struct q_engine *en);
/* Bytes that the plan said and that are taken of the device's memory now; taken 0 where the device does not tell (a CPU's pages come as they
 * are touched). What other programs take meanwhile counts as taken. */
void q_engine_memory(const struct q_engine *en, size_t *planned, size_t *taken);
/* Of stored K and V, by name. */
void q_engine_kv_formats(const struct q_engine *en, const char **k, const char **v);
/* Measures the ceilings of the device (roof.h). */
struct q_roofs;
int q_engine_roofs(struct q_engine *en, struct q_roofs *r, struct q_err *e);
/* The device, for people: "NVIDIA H200 (sm_90), driver 580.159, CUDA 13.0". */
const char *q_engine_about(const struct q_engine *en);
const struct q_card *q_engine_card(const struct q_engine *en);
/* Id of the numerics in use: kernel set and mode, for logs and system_fingerprint. */
const char *q_engine_numerics_id(const struct q_engine *en);

/* bench: from now on the kernels of every step without taps are timed (on 0: no longer); what was summed before is forgotten. */
int q_engine_trace(struct q_engine *en, int on, struct q_err *e);
/* bench: pages that the last step's last attention read, of those that it saw, where it was sparse and of more than a few rows. */
int q_engine_sparse_share(struct q_engine *en, double *share, struct q_err *e);
struct q_trace_line;
/* The sums so far, one line an op and shape, longest first (trace.h); valid until the next step. */
const struct q_trace_line *q_engine_trace_lines(struct q_engine *en, int *n);

int q_seq_open(struct q_engine *en, struct q_seq **s, struct q_err *e);
void q_seq_close(struct q_seq *s);
/* Tokens (KV entries) in the sequence. */
int q_seq_length(const struct q_seq *s);
/* Back to length 0. */
void q_seq_clear(struct q_seq *s);

/* Copies the sequence's state; its pages are shared and copied when somebody writes to them. Q_ELIMIT when no slot is left. */
int q_seq_snapshot(struct q_seq *s, struct q_snap **snap, struct q_err *e);
/* Makes `s` what the snapshot is, whatever it was. The snapshot stays. */
int q_seq_restore(struct q_seq *s, const struct q_snap *snap, struct q_err *e);
int q_snap_length(const struct q_snap *snap);
void q_snap_close(struct q_snap *snap);

/* Snapshots as bytes, for host memory and files; made again they continue bit for bit. `from` leaves out the KV pages of tokens [0, from),
 * which a snapshot at hand has: a multiple of KV_PAGE up to the length. No step may be in flight. */
size_t q_snap_bytes(const struct q_snap *s, int from);
size_t q_snap_bytes_of(const struct q_engine *en, int from, int length);
/* A snapshot of `length` tokens whose bytes are to be written: what an engine of the same state id read, with this `from`. It may be used when
 * all were; else it is closed. The pages before `from` are shared with `base` (NULL where from is 0). Q_ELIMIT: no snapshot or page is left. */
int q_snap_new(struct q_engine *en, const struct q_snap *base, int from, int length, struct q_snap **out, struct q_err *e);
/* Pieces [at, at + n) of those bytes. */
int q_snap_read_piece(const struct q_snap *s, int from, size_t at, void *dst, size_t n, struct q_err *e);
int q_snap_write_piece(struct q_snap *s, int from, size_t at, const void *src, size_t n, struct q_err *e);
/* The same of a sequence as it is now. Writing is for one that was cleared and pretends since (q_seq_pretend): its
 * pages are nobody else's. */
int q_seq_read_piece(struct q_seq *s, int from, size_t at, void *dst, size_t n, struct q_err *e);
int q_seq_write_piece(struct q_seq *s, size_t at, const void *src, size_t n, struct q_err *e);
/* A new snapshot of fewer tokens whose pages before `from` are the sequence's; the rest is to be written, as after q_snap_new. */
int q_seq_snap_new(struct q_seq *s, int from, int length, struct q_snap **out, struct q_err *e);
/* What a stored state must match: "model=HEX kv=f16+f16 numerics=strict". The model is the SHA-256 of its file's header or of its shape's
 * name and sizes. strict promises the same bits from every kernel; with pinned the kernel set's id follows. */
enum { Q_STATE_ID = 320 };            /* bytes of one, at most */
const char *q_engine_state_id(const struct q_engine *en);

/* bench: pretends that the sequence holds n tokens, whatever lies in its pages. */
int q_seq_pretend(struct q_seq *s, int n, struct q_err *e);

enum q_want {
    Q_WANT_ID = 1,        /* a sampled id */
    Q_WANT_LOGITS = 2,    /* all logits */
    Q_WANT_TOP = 4        /* the Q_TOP largest, and logsumexp */
};
enum { Q_TOP = 16 };

/* One row. Rows of a sequence are contiguous and in order in the step's list. */
struct q_row {
    struct q_seq *seq;
    int token;                       /* an id, or -1 with `embd` */
    const float *embd;               /* [n_embd] */
    int pos[3];                      /* rope positions t, h, w; pos[0] < 0: the row's KV index for all three */
    int parent;                      /* row of this step it follows; < 0: the one before it (the only kind this version runs) */
    unsigned want;                   /* enum q_want */
    const struct q_sampling *sampling;   /* with Q_WANT_ID; NULL: greedy */
};

/* After row `row` of the step the sequence is also kept in *snap (delta-net chunks are cut there). */
struct q_keep {
    int row;
    struct q_snap **snap;
};

struct q_step {
    const struct q_row *rows;
    int n_rows;
    const struct q_keep *keeps;      /* ascending rows */
    int n_keeps;
    const int *taps;                 /* layers after which all residual rows are copied out */
    int n_taps;
    float *tap_out;                  /* host, [n_taps][n_rows][n_embd], filled by q_step_wait */
    float *hidden_out;               /* host or NULL: rows after the output norm, [wanted rows][n_embd] */
};

typedef unsigned long long q_ticket;
int q_step_submit(struct q_engine *en, const struct q_step *step, q_ticket *t, struct q_err *e);

/* Valid until the next submit. Arrays have one entry a wanted row, in order. */
struct q_result {
    int n_out, n_vocab;
    const int *row;                  /* index in the step's rows */
    const int *id;                   /* Q_WANT_ID, else -1 */
    const float *logprob;
    const float *logits;             /* [n_out][n_vocab] when any row wanted logits, else NULL */
    const int *top_id;               /* [n_out][Q_TOP] when any row wanted them */
    const float *top_value, *lse;    /* [n_out][Q_TOP], [n_out] */
};
int q_step_wait(struct q_engine *en, q_ticket t, struct q_result *r, struct q_err *e);

/* Rows [0, n) of `ids` appended in steps of at most `chunk` (0: max_rows); the last row wants `want`. */
int q_prefill(struct q_engine *en, struct q_seq *s, const int *ids, int n, int chunk, unsigned want, const struct q_sampling *sampling,
              struct q_result *r, struct q_err *e);

#endif
