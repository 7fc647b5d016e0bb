/* gdn_prep: what the delta rule needs of one row: q, k of each key head l2-normalised in place, x * rsqrt(sum x^2 + 1e-6), q times
 * 1/sqrt(dim) besides; g = a * softplus(alpha + dt) (a log decay, <= 0), b = sigmoid(beta).  softplus(x) = x for x > 20.
 * shape: k_heads, v_heads, dim */
#ifndef GDN_PREP_ARGS_H
#define GDN_PREP_ARGS_H
struct gdn_prep_args {
    const i32 *n_rows;
    f32 *c;                /* [n_rows][2*k_heads*dim + v_heads*dim]: q heads, k heads, v heads */
    const f32 *alpha, *beta;  /* [n_rows][v_heads] */
    const f32 *a, *dt;     /* [v_heads]; a = -exp(A_log) */
    f32 *g, *b;            /* [n_rows][v_heads] */
};
#endif
