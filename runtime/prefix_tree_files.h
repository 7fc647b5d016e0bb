/* A prefix tree's disk tier: a directory of session files (session_file.h), one a checkpoint.
 *
 * A file has one part: the state, and the pages from the nearest checkpoint above that is on disk. Its name is a hash of state id and tokens, so the
 * same checkpoint is written to the same file whoever computes it. Files of other models, KV formats and numerics may lie beside: they
 * are not read. Where another program removes a file, this one finds a miss.
 */
#ifndef Q_PREFIX_TREE_FILES_H
#define Q_PREFIX_TREE_FILES_H

#include "prefix_tree.h"

struct q_tree_files;
/* Makes the directory if need be. most: bytes of this tree's files and those of others of its kind together; where there would be more, the others'
 * go, the longest unused first (prefix_tree_bound.h). When the tree opens, files of its kind that no tree will read (another version's, damaged
 * ones, those whose name is another's) go, and a line says how many and why. say: may be NULL. */
int q_tree_files_open(struct q_tree_files **f, const char *dir, size_t most, const struct q_tree_engine *en, const char *state_id,
                      void (*say)(void *arg, const char *line), void *say_arg, struct q_err *e);
void q_tree_files_close(struct q_tree_files *f);
const struct q_tree_disk *q_tree_files_disk(const struct q_tree_files *f);

#endif
