/* Work of a ref over all processors: what is made of random numbers, and truths, whose rows or heads do not depend on each other. Results are
 * the same for any number of threads. */
#define _GNU_SOURCE
#include "templates/ref.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST_THREADS = 64, PIECES = 8 };    /* pieces a thread: one that is put off its processor leaves its share to the others */

struct share {
    void (*part)(void *arg, i64 begin, i64 end);
    void *arg;
    i64 n, piece;
    atomic_llong next;
};

static void *take_pieces(void *arg)
{
    struct share *s = arg;
    for (i64 at; (at = atomic_fetch_add(&s->next, s->piece)) < s->n;) s->part(s->arg, at, at + s->piece < s->n ? at + s->piece : s->n);
    return NULL;
}

static int processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return n < MOST_THREADS ? n : MOST_THREADS;
}

void ref_share(i64 n, i64 least, void (*part)(void *arg, i64 begin, i64 end), void *arg)
{
    struct share s = { .part = part, .arg = arg, .n = n };
    pthread_t thread[MOST_THREADS];
    int threads = n < 2 * least ? 1 : processors(), started = 0;
    if (threads > n / least) threads = (int)(n / least);
    if (threads < 2) {
        if (n > 0) part(arg, 0, n);
        return;
    }
    s.piece = n / ((i64)threads * PIECES) > least ? n / ((i64)threads * PIECES) : least;
    while (started < threads - 1 && !pthread_create(&thread[started], NULL, take_pieces, &s)) started++;
    take_pieces(&s);
    while (started) pthread_join(thread[--started], NULL);
}
