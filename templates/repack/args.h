/* repack: rows [row0, row0 + n_rows) of a matrix as they lie in a file, into their places of the whole matrix in another layout.
 * shape: type = q8_0, layout = planes, n, k.  Runs on a card only: the host packs by runtime/layout.h, as its ref does. */
#ifndef REPACK_ARGS_H
#define REPACK_ARGS_H
struct repack_args {
    const void *src;       /* [n_rows] file rows, 2-byte aligned */
    void *dst;             /* [n][k] in `layout`, 64-byte aligned */
    i64 row0, n_rows;
};
#endif
