/* fault_probe: y = x, with a fault on demand, so that op_check can show that it finds each kind.  shape: n */
#ifndef FAULT_PROBE_ARGS_H
#define FAULT_PROBE_ARGS_H
struct fault_probe_args {
    const i32 *n_rows;
    f32 *x;                /* [n_rows][n]; an input, though this kernel may break the rule */
    f32 *y;                /* [n_rows][n] */
};
#endif
