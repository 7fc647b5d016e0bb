/* gdn_conv_prep: conv_silu and gdn_prep in one, for steps of few rows on a card, where a launch costs more than either. Per row: the causal
 * depthwise filter and silu of every channel; q and k heads then l2-normalised (q times 1/sqrt(dim) besides); g and b of every value head.
 * The filter's state is updated as by conv_silu.
 * shape: k_heads, v_heads, dim, taps; channels = (2*k_heads + v_heads) * dim */
#ifndef GDN_CONV_PREP_ARGS_H
#define GDN_CONV_PREP_ARGS_H
struct gdn_conv_prep_args {
    const struct step *step;
    const f32 *u;          /* [n_rows][channels] */
    const f32 *w;          /* [channels][taps]; tap taps-1 multiplies the row itself */
    f32 *state;            /* [slots][taps-1][channels], oldest row first */
    f32 *c;                /* [n_rows][channels] out: q heads, k heads, v heads, as gdn_step reads them */
    const f32 *alpha, *beta;  /* [n_rows][v_heads] */
    const f32 *a, *dt;     /* [v_heads]; a = -exp(A_log) */
    f32 *g, *b;            /* [n_rows][v_heads] */
};
#endif
