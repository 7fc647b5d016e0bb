/* The bound of a directory of checkpoints: bytes of all files tree-*.session there, whosever.
 *
 * The tree's own files are kept in its budget by the tree, which says here which they are. All others (of other models, KV formats, numerics, of
 * other servers on the same directory) have what is left of it: before a file is written, the longest unused of them go. The directory is
 * looked at anew every few seconds at most, so other writers may be beyond the bound for that long. Safe for several threads.
 */
#ifndef Q_PREFIX_TREE_BOUND_H
#define Q_PREFIX_TREE_BOUND_H

#include "prefix_tree.h"

struct tree_bound;
/* dir: borrowed. most: bytes. NULL: no memory. */
struct tree_bound *tree_bound_new(const char *dir, size_t most);
void tree_bound_free(struct tree_bound *b);
/* The file is the tree's own; it is no longer, and is gone. */
void tree_bound_add(struct tree_bound *b, const char *name, size_t bytes);
void tree_bound_forget(struct tree_bound *b, const char *name);
/* Makes room for `bytes` more in the file `name`, from files that are not the tree's own. Q_EIO: the directory cannot be read, or files in it cannot
 * be removed. now: looks at the directory whenever that was done last. */
int tree_bound_room(struct tree_bound *b, const char *name, size_t bytes, int now, struct q_err *e);
/* It is a checkpoint's name: files that people made have others, and are left alone. */
int tree_bound_is_name(const char *name);

#define TREE_FILE_PREFIX "tree-"

#endif
