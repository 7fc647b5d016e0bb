/* The door of the GGUF reader: opens and maps a regular file without ever blocking, and says what a file that is not
 * GGUF seems to be. A download page saved as a model is the commonest fault there is, so it gets a plain answer. */
#define _GNU_SOURCE
#include "gguf_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *name_mode(mode_t mode)
{
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO (a pipe)";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "no regular file";
}

/* O_NONBLOCK: opening a FIFO for reading would else wait for a writer. It does not change how regular files behave. */
static int open_regular(const char *path, size_t *size, struct q_err *e)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return -q_fail(e, Q_EIO, "%s: cannot open: %s", path, strerror(errno));
    struct stat st;
    int rc = 0;
    if (fstat(fd, &st) < 0)
        rc = q_fail(e, Q_EIO, "%s: cannot read its size: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = q_fail(e, Q_EINPUT, "%s: expected a GGUF file, found %s", path, name_mode(st.st_mode));
    else if (st.st_size == 0)
        rc = q_fail(e, Q_EINPUT, "%s: not a GGUF file: it is empty; download it again", path);
    else if ((uintmax_t)st.st_size > SIZE_MAX / 2)
        rc = q_fail(e, Q_ELIMIT, "%s: too large for this machine's address space", path);
    if (rc) {
        close(fd);
        return -rc;
    }
    *size = (size_t)st.st_size;
    return fd;
}

int gguf_map(struct gguf_shard *s, const char *path, struct q_err *e)
{
    int fd = open_regular(path, &s->size, e);
    if (fd < 0) return -fd;
    void *map = mmap(NULL, s->size, PROT_READ, MAP_PRIVATE, fd, 0);
    int why = errno;
    close(fd);
    if (map == MAP_FAILED)
        return q_fail(e, Q_EIO, "%s: cannot map %zu bytes: %s", path, s->size, strerror(why));
    s->path = strdup(path);
    s->map = map;
    s->mapped = 1;
    return s->path ? Q_OK : q_fail(e, Q_EMEM, "%s: out of memory", path);
}

void gguf_unmap(struct gguf_shard *s)
{
    if (s->mapped) munmap((void *)(uintptr_t)s->map, s->size);
    s->mapped = 0;
    s->map = NULL;
}

/* Beginnings that are enough to know a file by. */
static const struct magic {
    const char *bytes;
    unsigned char n;
    const char *kind;
} magics[] = {
    { "version https://git-lfs", 23,
      "looks like a Git LFS pointer, not the file itself; run `git lfs pull`, or download the raw file" },
    { "FUGG", 4, "looks like a big-endian GGUF; convert it for little-endian machines" },
    { "lmgg", 4, "looks like an old GGML file from before GGUF; convert it or download a GGUF" },
    { "fmgg", 4, "looks like an old GGML file (ggmf) from before GGUF; convert it or download a GGUF" },
    { "tjgg", 4, "looks like an old GGML file (ggjt) from before GGUF; convert it or download a GGUF" },
    { "algg", 4, "looks like a GGLA adapter file; this needs a model" },
    { "PK\3\4", 4, "looks like a zip archive or a PyTorch checkpoint; this needs a GGUF" },
    { "\x80\2", 2, "looks like a Python pickle (PyTorch checkpoint); this needs a GGUF" },
    { "\x1f\x8b", 2, "looks like a gzip archive; unpack it first" },
    { "\x28\xb5\x2f\xfd", 4, "looks like a zstd archive; unpack it first" },
    { "\xfd""7zXZ", 5, "looks like an xz archive; unpack it first" },
    { "7z\xbc\xaf", 4, "looks like a 7z archive; unpack it first" },
    { "Rar!", 4, "looks like a rar archive; unpack it first" },
    { "BZh", 3, "looks like a bzip2 archive; unpack it first" },
    { "\x7f""ELF", 4, "looks like a program" },
    { "%PDF", 4, "looks like a PDF" },
    { "\x89HDF", 4, "looks like an HDF5 file (Keras); this needs a GGUF" },
    { "\x89PNG", 4, "looks like a picture" },
    { "#!", 2, "looks like a script" },
};

static int begins_nocase(const unsigned char *p, size_t n, const char *with)
{
    size_t m = strlen(with);
    if (n < m) return 0;
    for (size_t i = 0; i < m; i++) {
        unsigned char c = p[i] >= 'A' && p[i] <= 'Z' ? p[i] + 32 : p[i];
        if (c != (unsigned char)with[i]) return 0;
    }
    return 1;
}

/* The kinds that are text: known by their first word after white space and a byte-order mark. */
static const char *guess_text(const unsigned char *p, size_t n)
{
    if (n >= 3 && !memcmp(p, "\xef\xbb\xbf", 3)) p += 3, n -= 3;
    while (n && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++, n--;
    if (begins_nocase(p, n, "<!doctype html") || begins_nocase(p, n, "<html") || begins_nocase(p, n, "<head"))
        return "looks like an HTML page; download the raw file (a hub's \"resolve\" link, not its \"blob\" link)";
    if (begins_nocase(p, n, "<?xml") || begins_nocase(p, n, "<"))
        return "looks like an XML or HTML page, perhaps a server's error; download the raw file";
    if (n && (*p == '{' || *p == '[')) return "looks like JSON, perhaps a server's error or a config; download the raw file";
    for (size_t i = 0; i < n && i < 256; i++)
        if (p[i] < 0x20 && p[i] != '\n' && p[i] != '\r' && p[i] != '\t') return NULL;
    return n ? "looks like a text file, perhaps a server's answer; download the raw file" : NULL;
}

static int is_safetensors(const unsigned char *p, size_t n)
{
    return n >= 9 && p[8] == '{' && load_u64(p) < (1u << 30);
}

static int all_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n && i < 4096; i++)
        if (p[i]) return 0;
    return 1;
}

const char *gguf_guess_kind(const unsigned char *p, size_t n)
{
    if (!n) return "it is empty; download it again";
    if (all_zero(p, n)) return "it begins with zero bytes, as an unfinished download does; download it again";
    if (is_safetensors(p, n)) return "looks like a safetensors file; convert it, or download a GGUF";
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (n >= magics[i].n && !memcmp(p, magics[i].bytes, magics[i].n)) return magics[i].kind;
    const char *text = guess_text(p, n);
    if (text) return text;
    return "its first bytes are of no kind known here (a later part of a cut file, or a damaged download?)";
}
