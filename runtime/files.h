/* Small files written whole: what the store is made of. A reader sees the old file or the new one, never a part of it.
 * Directories are made 0700, files 0600. Errors name the path and the system's reason. */
#ifndef Q_FILES_H
#define Q_FILES_H

#include "err.h"
#include <stddef.h>

enum { Q_PATH = 4096 };

/* dst = the parts joined by '/'; Q_ELIMIT when it is longer than Q_PATH. End the parts with NULL. */
int path_join(char dst[Q_PATH], struct q_err *e, ...) __attribute__((sentinel));
/* dst = the directory that the path's last name is in: "." where it has no other. */
int path_dir(char dst[Q_PATH], const char *path, struct q_err *e);
/* Makes the directory and those above it. */
int dir_make(const char *path, struct q_err *e);
/* Makes the directory that the path's last name is in. */
int dir_make_for(const char *path, struct q_err *e);
/* Whether `bytes` can be written in the directory (made if need be): finds read-only and full disks before work is done. */
int dir_probe(const char *path, long bytes, struct q_err *e);
/* Whether what is in the directory can be mapped as code: not on a disk that is mounted noexec. One that is not there yet may. */
int dir_may_run(const char *path, struct q_err *e);
/* A new private directory PREFIXxxxxxx. */
int dir_temp(char dst[Q_PATH], const char *prefix, struct q_err *e);
/* Removes a directory and all in it. Best effort. */
void dir_remove(const char *path);

/* A descriptor for reading a regular file, or minus a code: Q_EMISS when there is none, Q_EINPUT for a FIFO, a device, a folder, none of
 * which it waits for. *bytes (may be NULL): its size. */
int file_open(const char *path, size_t *bytes, struct q_err *e);
/* The whole regular file, NUL-terminated, owned by the caller. Q_EMISS when there is none, Q_ELIMIT when it has more than `max` bytes. */
int file_read(const char *path, size_t max, char **data, size_t *n, struct q_err *e);
/* Temp file beside it, fsync, rename, which also replaces a link; Q_EINPUT where a folder, a FIFO or a device has the name. */
int file_write(const char *path, const void *data, size_t n, struct q_err *e);
/* A file made by file_write gets the mode of files that are meant for others: 0666 less the umask (read and set: not beside threads that make
 * files). */
int file_let_read(const char *path, struct q_err *e);
/* All that comes, at most max + 1 bytes, and a zero byte behind them: *data [*n], malloc'd. Else -1 and errno. */
int file_get_all(int fd, size_t max, char **data, size_t *n);
/* All n bytes; else -1 and errno. */
int file_put_all(int fd, const void *data, size_t n);
/* Gives a file that is on the disk another name, whole or not at all: as file_write does at last. */
int file_rename(const char *from, const char *to, struct q_err *e);
/* Moves a finished file to its place on the same disk: mode 0600, fsync, file_rename. */
int file_publish(const char *from, const char *to, struct q_err *e);
/* 1 when only this user or root can have written the file. */
int file_is_ours(const char *path);

/* SHA-256 in hex over the texts, each ended by a NUL byte (so that "ab","c" differs from "a","bc"). */
void sha_texts(char hex[65], const char *const *texts, int n);
void sha_bytes(char hex[65], const void *data, size_t n);
int sha_file(char hex[65], const char *path, long *size, struct q_err *e);

#endif
