/* cp.async: a copy leaves at its issue and arrives when its thread waits for its group; nothing may touch its target
 * meanwhile. */
#include "impl.h"
#include <string.h>

void simt_cp_async(void *shared, const void *global, int bytes, int valid);
void simt_cp_commit(void);
void simt_cp_wait(int left);

void simt_cp_async(void *shared, const void *global, int bytes, int valid)
{
    struct thread *t = m.now;
    const void *pc = __builtin_return_address(0);
    if ((size_t)shared % (size_t)bytes || (size_t)global % (size_t)bytes)
        thread_fail(pc, "a cp_async of %d bytes between addresses not multiples of that", bytes);
    if (t->n_async == MOST_ASYNC) thread_fail(pc, "more than %d copies in flight", MOST_ASYNC);
    if (valid) memory_access(global, (size_t)bytes, READ, pc);
    memory_access(shared, (size_t)bytes, WRITE, pc);
    memory_flight(shared, bytes, 1);
    t->async[t->n_async++] = (struct async){shared, valid ? global : NULL, bytes, t->group};
}

void simt_cp_commit(void) { m.now->group++; }

static void land(const struct async *a, const void *pc)
{
    memory_flight(a->to, a->bytes, 0);
    memory_access(a->to, (size_t)a->bytes, WRITE, pc);
    if (a->from) memcpy(a->to, a->from, (size_t)a->bytes);
    else memset(a->to, 0, (size_t)a->bytes);
}

/* All groups but the last `left` that were committed. */
void simt_cp_wait(int left)
{
    struct thread *t = m.now;
    int kept = 0;
    for (int i = 0; i < t->n_async; i++) {
        if (t->async[i].group < t->group - left) land(&t->async[i], __builtin_return_address(0));
        else t->async[kept++] = t->async[i];
    }
    t->n_async = kept;
}

/* What a block leaves in flight is gone with it. */
void async_drop(void)
{
    for (int i = 0; i < m.threads; i++)
        for (int j = 0; j < m.thread[i].n_async; j++) memory_flight(m.thread[i].async[j].to, m.thread[i].async[j].bytes, 0);
}
