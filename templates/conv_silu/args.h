/* conv_silu: y[r][c] = silu(sum_j w[c][j] * u[r - (taps-1) + j][c]), a causal depthwise filter along each sequence; rows before a
 * segment come from the slot's state, which afterwards holds the last taps-1 rows of u (not convolved).
 * shape: channels, taps */
#ifndef CONV_SILU_ARGS_H
#define CONV_SILU_ARGS_H
struct conv_silu_args {
    const struct step *step;
    const f32 *u;          /* [n_rows][channels] */
    const f32 *w;          /* [channels][taps]; tap taps-1 multiplies the row itself */
    f32 *state;            /* [slots][taps-1][channels], oldest row first */
    f32 *y;                /* [n_rows][channels] */
};
#endif
