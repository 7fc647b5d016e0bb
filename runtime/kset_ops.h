/* The ops this build knows and the generator hash of each (SHA-256, hex, over template, space, args.h and the shared parts).
 * The table is printed by quarry-gen when quarry is built, so the runtime can tell a record of another generator from its own
 * without having a generator. Ends with {NULL, NULL}. */
#ifndef Q_KSET_OPS_H
#define Q_KSET_OPS_H

struct q_op_hash {
    const char *op, *hash;
};
extern const struct q_op_hash q_op_hashes[];

#endif
