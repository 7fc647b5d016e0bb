/* The step's metadata: checked rows in, tables in device memory out (struct step of kernel.h).
 *
 * The device block is taken once at fixed addresses, so that launch lists can point into it; each step overwrites what it uses. A
 * step is checked whole before anything is changed: pages are taken, sequences grow and snapshots appear only when all rows are good.
 */
#ifndef Q_STEP_TABLE_H
#define Q_STEP_TABLE_H

#include "seq.h"

struct q_step_size {
    int max_rows, max_out, max_seqs, max_snaps, ctx, n_embd, n_vocab;
};

struct q_step_table {
    struct q_device *device;
    struct q_step_size size;
    struct step *step;             /* device */
    struct step host;              /* the same with host arrays: */
    void *device_block, *host_block;
    char *image;                   /* owned: what is sent of a step, arrays behind one another */
    struct q_seq **seqs;           /* owned: [max_seqs] of the step being built */
    int n_seqs, ctx;               /* of the step; ctx: KV tokens of its longest sequence, with its rows */
    int *out_row;                  /* owned: [max_out] wanted rows, host */
    unsigned want;                 /* all wants of the step, or-ed */
};

int step_table_open(struct q_step_table *t, struct q_device *d, const struct q_step_size *size, struct q_err *e);
void step_table_close(struct q_step_table *t);
/* Checks `s` against the table's sizes and the sequences' state. */
int step_table_check(struct q_step_table *t, const struct q_step *s, struct q_err *e);
/* After a good check: grows the sequences, reserves snapshots, writes the device's tables. */
int step_table_fill(struct q_step_table *t, const struct q_step *s, struct q_err *e);
/* Where the device's list of wanted rows lies, for ever. */
const i32 *step_table_out(const struct q_step_table *t);
/* Bytes that step_table_open takes on the device. Of it page tables alone (4 bytes for KV_PAGE tokens of each
 * sequence) grow with the context. */
size_t step_table_bytes(const struct q_step_size *size);

#endif
