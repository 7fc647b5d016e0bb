/* ceiling: what a card's units do when nothing else limits them: loops over independent sums in registers, or reads of a buffer.
 * shape: what = dp4a | hfma2 | ffma | mma_f16 | mma_i8 | read
 * A loop is a number of multiply-adds:
 *     dp4a      2^18 of bytes in int32       mma_f16   2^20 of halves in fp32, by matrix instructions
 *     hfma2     2^17 of halves               mma_i8    2^21 of bytes in int32, by matrix instructions
 *     ffma      2^16 of floats
 * All operands are 1, so that the sums are the number of multiply-adds done. A read passes over the buffer CEILING_PASSES times and
 * sums its 32-bit words each time: start and end of a launch must weigh little, and small cards have no room for a larger buffer.
 * The warps of any grid share the loops evenly, so that operations (2 a multiply-add) and bytes of a call are fixed numbers: those
 * of space.lua at the counts below. */
#ifndef CEILING_ARGS_H
#define CEILING_ARGS_H
enum { CEILING_LOOPS = 1 << 20, CEILING_PASSES = 8, CEILING_PIECE = 1 << 16 };
static const i64 CEILING_BYTES = 1ll << 30;
struct ceiling_args {
    const void *buf;       /* read: `bytes` bytes, 16-byte aligned; otherwise NULL */
    i64 bytes, loops;      /* bytes: a multiple of CEILING_PIECE; loops: of all but read */
    u64 *out;              /* [1], the sum is added to it */
};
#endif
