/* ceiling: what a card's units do when nothing else limits them: loops over independent chains in registers, or reads of a buffer.
 * shape: what = dp4a | hfma2 | ffma | mma_f16 | mma_i8 | read.  CEILING_BLOCKS blocks of 256 threads, on any card, so that the operations of a
 * call (2 a multiply-add) and the bytes it reads are fixed numbers: space.lua's ops and bytes, at the counts below. */
#ifndef CEILING_ARGS_H
#define CEILING_ARGS_H
enum { CEILING_BLOCKS = 8448, CEILING_LOOPS = 64 };
static const i64 CEILING_BYTES = 1ll << 30;
struct ceiling_args {
    const void *buf;       /* read: `bytes` bytes, a multiple of 64; otherwise NULL */
    i64 bytes, loops;
    i32 *out;              /* [CEILING_BLOCKS][256], so that nothing is optimised away */
};
#endif
