/* libarchive, opened when a kernel set is read or written and not before: linked, its other formats' libraries (thirty megabytes) would come
 * with every start of this program, so with every compiling child. Its header gives the types; nothing is declared again here. */
#ifndef Q_ARCHIVE_LIB_H
#define Q_ARCHIVE_LIB_H

#include "runtime/err.h"
#include <archive.h>
#include <archive_entry.h>

#define ARCHIVE_FUNCTIONS(F)                                                                                                                \
    F(archive_error_string)                                                                                                                 \
    F(archive_read_new) F(archive_read_support_filter_zstd) F(archive_read_support_format_tar) F(archive_read_open_memory)                  \
    F(archive_read_next_header) F(archive_read_data) F(archive_read_free)                                                                   \
    F(archive_write_new) F(archive_write_set_format_pax_restricted) F(archive_write_add_filter_zstd) F(archive_write_set_filter_option)     \
    F(archive_write_set_bytes_in_last_block) F(archive_write_open) F(archive_write_header) F(archive_write_data) F(archive_write_close)     \
    F(archive_write_free)                                                                                                                   \
    F(archive_entry_new) F(archive_entry_free) F(archive_entry_set_pathname) F(archive_entry_set_filetype) F(archive_entry_set_perm)        \
    F(archive_entry_set_size) F(archive_entry_set_mtime) F(archive_entry_pathname) F(archive_entry_filetype) F(archive_entry_hardlink)      \
    F(archive_entry_symlink) F(archive_entry_sparse_count)

struct archive_lib {
    void *library;                 /* owned */
#define ARCHIVE_MEMBER(name) __typeof__(&name) name;
    ARCHIVE_FUNCTIONS(ARCHIVE_MEMBER)
#undef ARCHIVE_MEMBER
};

/* Q_EMISS: it is not installed, with what to do. */
int archive_lib_open(struct archive_lib *l, struct q_err *e);
void archive_lib_close(struct archive_lib *l);

#endif
