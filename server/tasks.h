/* The engine's thread at work: jobs of the queue become tasks of the scheduler, their answers go back into the jobs.
 *
 * One thread runs it; any may look (tasks_counts, tasks_view).
 */
#ifndef S_TASKS_H
#define S_TASKS_H

#include "cache.h"
#include "orders.h"
#include "queue.h"
#include "runtime/scheduler.h"

struct tasks;
int tasks_open(struct tasks **t, struct q_engine *en, struct queue *q, const struct cache_opts *cache, void (*say)(void *arg, const char *line),
               void *say_arg, struct q_err *e);
/* Until the queue is closed and all is done. While nobody asks, what was read is copied and written ahead of need. */
void tasks_run(struct tasks *t);
void tasks_close(struct tasks *t);
/* Any thread: see orders_give. */
int tasks_order(struct tasks *t, struct order *x);
/* As of the last step. */
struct sched_counts tasks_counts(struct tasks *t);
/* Fills at most n slots; returns their number. */
int tasks_view(struct tasks *t, struct sched_view *v, int n);

#endif
