#define _GNU_SOURCE
#include "gate_trace.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map(struct trace **t, int fd, size_t bytes, int protection, const char *path, struct q_err *e)
{
    void *at = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    *t = at == MAP_FAILED ? NULL : at;
    return *t ? Q_OK : q_fail(e, Q_EIO, "%s: cannot be mapped: %s", path, strerror(errno));
}

/* The file at its full size, every block of it taken. */
static int make(struct trace **t, const char *path, size_t bytes, struct q_err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return q_fail(e, Q_EIO, "%s: %s", path, strerror(errno));
    int bad = posix_fallocate(fd, 0, (off_t)bytes);
    int rc = bad ? q_fail(e, Q_EIO, "%s: no room for the gate's %.1f MB: %s", path, (double)bytes * 1e-6, strerror(bad))
                 : map(t, fd, bytes, PROT_READ | PROT_WRITE, path, e);
    close(fd);
    return rc;
}

int gate_trace_make(struct trace **t, const char *path, int vocab, struct q_err *e)
{
    unlink(path);               /* one that was begun and given up */
    int rc = make(t, path, sizeof **t, e);
    if (rc) return rc;
    (*t)->format = TRACE_FORMAT;
    (*t)->vocab = vocab;
    (*t)->stride = 1;
    (*t)->bytes = sizeof **t;
    return Q_OK;
}

int gate_trace_reserve(struct trace **t, const char *path, int rows, struct q_err *e)
{
    size_t row = (size_t)(*t)->vocab * sizeof(float), fit = TRACE_BYTES / row;
    size_t kept = (size_t)rows < fit ? (size_t)rows : fit;
    if (kept < 2) kept = 2;
    size_t bytes = sizeof **t + kept * row;
    munmap(*t, (*t)->bytes);
    *t = NULL;
    int rc = make(t, path, bytes, e);
    if (rc) return rc;
    (*t)->most_kept = (int)kept;
    (*t)->bytes = bytes;
    return Q_OK;
}

int gate_trace_open(const struct trace **out, const char *path, struct q_err *e)
{
    struct trace *t = NULL;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) return q_fail(e, Q_EIO, "%s: %s", path, strerror(errno));
    int rc = (size_t)st.st_size < sizeof *t ? q_fail(e, Q_EINTERNAL, "%s: cut short", path) : map(&t, fd, (size_t)st.st_size, PROT_READ, path, e);
    close(fd);
    if (!rc && (t->format != TRACE_FORMAT || t->bytes != (size_t)st.st_size)) {
        munmap(t, (size_t)st.st_size);
        return q_fail(e, Q_EINTERNAL, "%s: expected the gate's reference, format %d", path, TRACE_FORMAT);
    }
    *out = t;
    return rc;
}

void gate_trace_close(const struct trace *t)
{
    if (t) munmap((void *)t, t->bytes);
}

int gate_largest(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static float *slot(struct trace *t, int i) { return t->logits + (size_t)i * (size_t)t->vocab; }

/* Every second of the kept rows gives way. */
static void thin(struct trace *t)
{
    for (int i = 1; 2 * i < t->most_kept; i++) memcpy(slot(t, i), slot(t, 2 * i), (size_t)t->vocab * sizeof(float));
    t->stride *= 2;
}

void gate_trace_keep(struct trace *t, int text, int pos, const float *logits)
{
    if (t->n_rows == TRACE_ROWS) return;
    int first = gate_largest(logits, t->vocab), second = !first, row = t->n_rows++;
    for (int i = 0; i < t->vocab; i++)
        if (i != first && logits[i] > logits[second]) second = i;
    t->row[row] = (struct trace_row){ text, pos, first, second, logits[first] - logits[second] };
    if (row % t->stride) return;
    if (row / t->stride == t->most_kept) thin(t);
    if (row % t->stride == 0) memcpy(slot(t, row / t->stride), logits, (size_t)t->vocab * sizeof(float));
}

void gate_trace_cut(struct trace *t, int n) { t->n_rows = n; }

const float *gate_trace_logits(const struct trace *t, int row)
{
    return row % t->stride ? NULL : t->logits + (size_t)(row / t->stride) * (size_t)t->vocab;
}
