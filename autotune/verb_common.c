#include "verbs.h"
#include "runtime/clock.h"
#include "runtime/interrupts.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void verb_say(void *arg, const char *line)
{
    (void)arg;
    fprintf(stderr, "quarry-tune: %s\n", line);
}

int verb_store(const struct options *o, struct store **s, struct q_err *e)
{
    struct store_opts so = { .tunes = o->tunes, .cache = o->cache, .say = verb_say };
    return store_open(s, &so, e);
}

struct target verb_target(const struct options *o)
{
    return (struct target){ .card = o->card, .numerics = o->numerics, .kv_k = o->kv_k, .kv_v = o->kv_v, .sparse = o->sparse };
}

int verb_print_json(const cJSON *o, struct q_err *e)
{
    char *text = cJSON_PrintUnformatted(o);
    if (text) puts(text);
    cJSON_free(text);
    return text ? Q_OK : q_fail(e, Q_EMEM, "no memory for the list");
}

void verb_built(void *arg, int done, int n)
{
    double *last = arg;
    if (clock_s() - *last < 5 || done == n) return;
    *last = clock_s();
    fprintf(stderr, "quarry-tune: built %d of %d kernels\n", done, n);
}

int verb_jobs(const struct options *o)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return o->jobs ? o->jobs : n > 0 ? (int)n : 1;
}

void verb_hold_signals(int hold)
{
    sigset_t set = interrupts();
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

int verb_catch_signals(void)
{
    sigset_t set = interrupts();
    if (sigprocmask(SIG_BLOCK, &set, NULL)) return -1;
    signal(SIGPIPE, SIG_IGN);   /* whoever reads our lines may go away; the build goes on */
    return interrupts_open();
}

int verb_is_own(const struct record *r, const char *path)
{
    size_t n = strlen(path);
    return !strcmp(r->origin, "tuned") && strcmp(r->op, "ceiling") && n > 5 && !strcmp(path + n - 5, ".json");
}

int verb_interrupted(int signal_fd)
{
    struct pollfd p = { signal_fd, POLLIN, 0 };
    return poll(&p, 1, 0) > 0 && p.revents & POLLIN;
}
