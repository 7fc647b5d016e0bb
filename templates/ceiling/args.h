/* ceiling: what a card's units do when nothing else limits them: loops over independent sums in registers, or one read of a buffer.
 * shape: what = dp4a | hfma2 | ffma | mma_f16 | mma_i8 | read
 * A loop is what one warp does between two looks at its sums:
 *     dp4a      2^18 multiply-adds of bytes in int32       mma_f16   2^20 of halves in fp32, by matrix instructions
 *     hfma2     2^17 of halves                             mma_i8    2^21 of bytes in int32, by matrix instructions
 *     ffma      2^16 of floats                             read      8 KiB of the buffer
 * All operands are 1, so that the sums are the number of multiply-adds done; of a read the sum of its 32-bit words.
 * The warps of any grid share the loops, so that operations (2 a multiply-add) and bytes of a call are fixed numbers: those of space.lua
 * at the counts below. */
#ifndef CEILING_ARGS_H
#define CEILING_ARGS_H
enum { CEILING_LOOPS = 1 << 20 };
static const i64 CEILING_BYTES = 1ll << 30;
struct ceiling_args {
    const void *buf;       /* read: `bytes` bytes, 16-byte aligned; otherwise NULL */
    i64 bytes, loops;      /* bytes: a multiple of 8 KiB; loops: of all but read */
    u64 *out;              /* [1], the sum is added to it */
};
#endif
