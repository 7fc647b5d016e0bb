/* sample: one id a row by step->sampling (see struct sampling in kernel.h for the order of the stages).
 * Penalties as llama-server defines them: repeat divides a positive logit and multiplies a negative one, for ids that occurred; then
 * logit -= count * frequency + presence. logprob is of the drawn id under softmax of the raw logits.
 * shape: n = vocab */
#ifndef SAMPLE_ARGS_H
#define SAMPLE_ARGS_H
struct sample_args {
    const struct step *step;   /* n_out rows */
    f32 *logits;               /* [n_out][n]; may be overwritten */
    i32 *id;                   /* [n_out] */
    f32 *logprob;              /* [n_out] */
    void *work;                /* sample_work() or sample_work_cuda() bytes, 64-byte aligned */
};
static inline i64 sample_work(i64 n, i64 parts) { return (n * 8 + 4096) * parts; }
/* rows: most rows. Of each the adjusted logits, 1024 bins and what at most 256 parts found. */
static inline i64 sample_work_cuda(i64 n, i64 rows) { return rows * ((n + 15) / 16 * 64 + 1024 * 8 + 256 * 64); }
#endif
