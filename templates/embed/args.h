/* embed: x[r] = row token[r] of the embedding, dequantised to fp32; rows with token -1 come from step->embd.
 * shape: type, layout (of w), n = n_embd, vocab */
#ifndef EMBED_ARGS_H
#define EMBED_ARGS_H
struct embed_args {
    const struct step *step;
    const void *w;         /* [vocab][n] in `layout` */
    f32 *x;                /* [n_rows][n] */
};
#endif
