/* tok: the tokenizer as a filter, for tests/py/test_tokenizer.py.
 *
 *   tok FILE.gguf            records on stdin, answers on stdout
 *   tok FILE.gguf --time S   encodes all of stdin again and again for S seconds; prints bytes, ids and MB/s of the best pass
 *
 * A record is u32 flags, u32 length, bytes; its answer i32 code, u32 length, bytes (all little endian): ids as i32 if the
 * code is 0, else the error's line. Flags are tok_encode's, and: 256 guards the text first; 512 answers with the decoded
 * bytes; 1024 decodes by stream, one chunk an id, each preceded by its u32 length. All work runs on a 256 KB stack.
 */
#include "gguf.h"
#include "tokenizer.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GUARD = 256, DECODE = 512, STREAM = 1024, STACK = 256 * 1024 };

struct job {
    const struct tokenizer *t;
    double seconds; /* 0: records */
};

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void answer(int code, const void *at, size_t n)
{
    int32_t rc = code;
    uint32_t len = (uint32_t)n;
    fwrite(&rc, 4, 1, stdout);
    fwrite(&len, 4, 1, stdout);
    if (n) fwrite(at, 1, n, stdout);
    fflush(stdout);
}

static int append(struct tok_text *out, const void *at, size_t n)
{
    char *p = realloc(out->at, out->n + n + 1);
    if (!p) return Q_EMEM;
    out->at = p;
    memcpy(p + out->n, at, n);
    out->cap = out->n + n + 1;
    out->n += n;
    return Q_OK;
}

static int stream(const struct tokenizer *t, const struct tok_ids *ids, struct tok_text *out, struct q_err *e)
{
    struct tok_stream s = {0};
    for (size_t i = 0; i <= ids->n; i++) {
        struct tok_text chunk = {0};
        int rc = i < ids->n ? tok_stream_push(&s, t, ids->at[i], &chunk, e) : tok_stream_flush(&s, &chunk, e);
        uint32_t len = (uint32_t)chunk.n;
        if (!rc) rc = append(out, &len, 4);
        if (!rc && len) rc = append(out, chunk.at, len);
        free(chunk.at);
        if (rc) return rc;
    }
    return Q_OK;
}

static int encode(const struct tokenizer *t, const char *text, size_t n, unsigned flags, struct tok_ids *ids, struct q_err *e)
{
    char *guarded = NULL;
    size_t len = n;
    int rc = flags & GUARD ? tok_guard(t, text, n, &guarded, &len, e) : Q_OK;
    if (!rc) rc = tok_encode(t, guarded ? guarded : text, len, flags & 255, ids, e);
    free(guarded);
    return rc;
}

static void one_record(const struct tokenizer *t, const char *text, size_t n, unsigned flags)
{
    struct tok_ids ids = {0};
    struct tok_text out = {0};
    struct q_err e = {0};
    int rc = encode(t, text, n, flags, &ids, &e);
    if (!rc && (flags & DECODE)) rc = tok_decode(t, ids.at, ids.n, &out, &e);
    if (!rc && (flags & STREAM)) rc = stream(t, &ids, &out, &e);
    if (rc) answer(rc, e.text, strlen(e.text));
    else if (flags & (DECODE | STREAM)) answer(0, out.at, out.n);
    else answer(0, ids.at, ids.n * sizeof *ids.at);
    free(ids.at);
    free(out.at);
}

static void records(const struct tokenizer *t)
{
    uint32_t head[2];
    while (fread(head, 4, 2, stdin) == 2) {
        char *text = malloc(head[1] + 1u);
        if (!text || fread(text, 1, head[1], stdin) != head[1]) exit(1);
        one_record(t, text, head[1], head[0]);
        free(text);
    }
}

static char *read_all(size_t *n)
{
    struct tok_text all = {0};
    char *block = malloc(1 << 20);
    size_t k;
    while (block && (k = fread(block, 1, 1 << 20, stdin)) > 0)
        if (append(&all, block, k)) exit(1);
    free(block);
    *n = all.n;
    return all.at;
}

static void timed(const struct tokenizer *t, double seconds)
{
    size_t n;
    char *text = read_all(&n);
    struct tok_ids ids = {0};
    struct q_err e;
    double best = 1e9, end = now() + seconds;
    do {
        double start = now();
        ids.n = 0;
        if (tok_encode(t, text, n, 0, &ids, &e)) {
            fprintf(stderr, "%s\n", e.text);
            exit(1);
        }
        if (now() - start < best) best = now() - start;
    } while (now() < end);
    printf("%zu bytes %zu ids %.2f MB/s\n", n, ids.n, 1e-6 * (double)n / best);
    free(ids.at);
    free(text);
}

static void *work(void *arg)
{
    const struct job *j = arg;
    if (j->seconds > 0) timed(j->t, j->seconds);
    else records(j->t);
    return NULL;
}

static int on_small_stack(struct job *j)
{
    pthread_attr_t a;
    pthread_t thread;
    pthread_attr_init(&a);
    if (pthread_attr_setstacksize(&a, STACK) || pthread_create(&thread, &a, work, j)) return 1;
    pthread_join(thread, NULL);
    pthread_attr_destroy(&a);
    return 0;
}

int main(int argc, char **argv)
{
    struct gguf *g = NULL;
    struct tokenizer *t = NULL;
    struct q_err e = {0};
    if (argc != 2 && !(argc == 4 && !strcmp(argv[2], "--time"))) return fputs("usage: tok FILE [--time SECONDS]\n", stderr), 2;
    double start = now();
    int rc = gguf_open(&g, argv[1], &e);
    if (!rc) rc = tok_open_gguf(&t, g, &e);
    if (rc) {
        fprintf(stderr, "%s\n", e.text);
    } else {
        fprintf(stderr, "opened in %.3f s\n", now() - start);
        struct job j = {t, argc == 4 ? atof(argv[3]) : 0};
        rc = on_small_stack(&j);
    }
    tok_close(t);
    gguf_close(g);
    return rc ? 1 : 0;
}
