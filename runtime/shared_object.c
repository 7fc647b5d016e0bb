/* What a file is that should be a library, by its ELF header and segments. shared_object_try.c runs it. */
#include "shared_object.h"
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_SEGMENTS = 256, ABI_BYTES = EI_OSABI };   /* the first bytes of e_ident: magic, word size, byte order, version */

/* This program's own header is what a library of this machine looks like. */
static int read_own(Elf64_Ehdr *own)
{
    int fd = file_open("/proc/self/exe", NULL, NULL);
    if (fd < 0) return -1;
    ssize_t got = read(fd, own, sizeof *own);
    close(fd);
    return got == sizeof *own ? 0 : -1;
}

static int check_kind(const char *path, const Elf64_Ehdr *h, struct q_err *e)
{
    Elf64_Ehdr own;
    if (memcmp(h->e_ident, ELFMAG, SELFMAG)) return q_fail(e, Q_EINPUT, "%s: it is no shared object (no ELF file)", path);
    if (!read_own(&own) && (memcmp(h->e_ident, own.e_ident, ABI_BYTES) || h->e_machine != own.e_machine))
        return q_fail(e, Q_EINPUT, "%s: it is a library for another kind of machine", path);
    if (h->e_type != ET_DYN) return q_fail(e, Q_EINPUT, "%s: it is an ELF file, but no shared object", path);
    return Q_OK;
}

static int cut_off(const char *path, unsigned long long needed, size_t bytes, struct q_err *e)
{
    return q_fail(e, Q_EINPUT, "%s: the file is cut off: it has %zu bytes and its ELF segments reach to byte %llu", path, bytes, needed);
}

/* What dlopen maps must lie in the file: to touch a page behind its end is a SIGBUS. */
static int check_segments(const char *path, int fd, const Elf64_Ehdr *h, size_t bytes, struct q_err *e)
{
    Elf64_Phdr p[MOST_SEGMENTS];
    size_t n = h->e_phnum, table = n * sizeof *p;
    int loads = 0;
    if (!n || n > MOST_SEGMENTS || h->e_phentsize != sizeof *p) return q_fail(e, Q_EINPUT, "%s: it is a damaged ELF file", path);
    if (h->e_phoff > bytes || table > bytes - h->e_phoff) return cut_off(path, h->e_phoff + table, bytes, e);
    if (pread(fd, p, table, (off_t)h->e_phoff) != (ssize_t)table) return q_fail(e, Q_EIO, "%s: cannot read its segments", path);
    for (size_t i = 0; i < n; i++) {
        if (p[i].p_type != PT_LOAD && p[i].p_type != PT_DYNAMIC) continue;
        if (p[i].p_offset > bytes || p[i].p_filesz > bytes - p[i].p_offset) return cut_off(path, p[i].p_offset + p[i].p_filesz, bytes, e);
        loads += p[i].p_type == PT_LOAD;
    }
    return loads ? Q_OK : q_fail(e, Q_EINPUT, "%s: it is a damaged ELF file", path);
}

int shared_object_check(const char *path, struct q_err *e)
{
    Elf64_Ehdr h;
    size_t bytes;
    if (!*path) return q_fail(e, Q_EMISS, "an empty name is no library");
    int fd = file_open(path, &bytes, e), rc;
    if (fd < 0) return -fd;
    if (!bytes) rc = q_fail(e, Q_EINPUT, "%s: the file is empty", path);
    else if (bytes < sizeof h) rc = q_fail(e, Q_EINPUT, "%s: it is no shared object (%zu bytes)", path, bytes);
    else if (read(fd, &h, sizeof h) != sizeof h) rc = q_fail(e, Q_EIO, "%s: cannot read it", path);
    else if (!(rc = check_kind(path, &h, e))) rc = check_segments(path, fd, &h, bytes, e);
    close(fd);
    return rc;
}

const char *shared_object_named(const char *given, char path[Q_PATH]) { return !strchr(given, '/') && realpath(given, path) ? path : given; }
