#define _GNU_SOURCE
#include "build.h"
#include "child.h"
#include "cubin.h"
#include "runtime/clock.h"
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__aarch64__)
#define ARCH "aarch64"
#else
#define ARCH "x86_64"
#endif

enum { MAX_JOBS = 64, MAX_FLAGS = 24, OUTPUT = 16 * 1024 };
/* A unit may take this many times as long as the slowest before it, and less once one was late, but at least that long. */
enum { SLOWER = 20, SLOWER_AFTER_LATE = 5, SHORTER_AFTER_LATE = 3, LEAST_S = 10, OPEN_S = 10, MOST_LATE = 3 };

/* One compiler at work. */
struct job {
    struct build_task *task;     /* NULL: free */
    struct child child;
    double begin;
    char output[OUTPUT];
    size_t n;
    int late;                    /* seconds that it was given, once they are over */
    int opening;                 /* the unit is compiled, and a child of ours opens what came out */
};

struct pool {
    const struct build_opts *o;
    struct build_task **tasks;   /* owned: no object twice */
    int n, next, done, built;    /* done: also those that failed */
    char dir[Q_PATH];
    struct job *jobs;            /* owned: [o->jobs] */
    struct build_pace *pace;
};

const char *build_arch(void) { return ARCH; }

struct build_task build_task_of(const struct gen_kernel *k, const struct compiler *compiler)
{
    struct build_task t = { .kernel = k };
    struct record_object *o = &t.object;
    snprintf(o->kind, sizeof o->kind, "%s", k->kind);
    snprintf(o->arch, sizeof o->arch, "%s", k->arch[0] ? k->arch : ARCH);
    snprintf(o->compiler, sizeof o->compiler, "%s", compiler->version);
    snprintf(o->flags, sizeof o->flags, "%s", k->cflags);
    sha_texts(o->name, (const char *const[]){ k->unit, o->arch, o->compiler, o->flags }, 4);
    return t;
}

/* --- one unit ---------------------------------------------------------------------------------------------------------- */

static int fail_task(struct build_task *t, int rc, const char *why)
{
    t->rc = rc;
    snprintf(t->why, sizeof t->why, "%.150s: %.350s", t->kernel->name, why);
    return rc;
}

static int is_cubin(const struct build_task *t) { return !strcmp(t->kernel->kind, "cubin"); }

/* The unit's file and the object's, in the work directory. */
struct names {
    char in[200], out[200];
};

static struct names names_of(const struct build_task *t)
{
    struct names n;
    snprintf(n.in, sizeof n.in, "%s.%s", t->kernel->name, is_cubin(t) ? "cu" : "c");
    snprintf(n.out, sizeof n.out, "%s.%s", t->kernel->name, t->kernel->kind);
    return n;
}

static int write_unit(const struct pool *p, const struct build_task *t, struct q_err *e)
{
    char path[Q_PATH];
    int r = path_join(path, e, p->dir, names_of(t).in, NULL);
    return r ? r : file_write(path, t->kernel->unit, strlen(t->kernel->unit), e);
}

/* Adds the words of `flags`, which is cut up. */
static int add_flags(char **argv, int n, char *flags)
{
    char *word;
    for (int i = 0; (word = strsep(&flags, " ")) && i < MAX_FLAGS; i++)
        if (*word) argv[n++] = word;
    return n;
}

/* cc FLAGS -o KERNEL.so KERNEL.c, or our own child around NVRTC; in the work directory: the object must not hold a path. */
static int start_compiler(const struct pool *p, struct job *j, struct q_err *e)
{
    const struct compiler *c = p->o->compiler;
    struct names names = names_of(j->task);
    char flags[200], *argv[MAX_FLAGS + 8];
    int n = 0;
    snprintf(flags, sizeof flags, "%s", j->task->kernel->cflags);
    if (is_cubin(j->task)) {
        char *const nvrtc[] = { (char *)c->self, "--compile", (char *)c->program, names.in, names.out };
        while (n < 5) argv[n] = nvrtc[n], n++;
        n = add_flags(argv, n, flags);
    } else {
        char *const rest[] = { "-o", names.out, names.in, "-lm" };   /* -lm: fmaf, where a path has no instruction for it */
        argv[n++] = (char *)c->program;
        n = add_flags(argv, n, flags);
        for (int i = 0; i < 4; i++) argv[n++] = rest[i];
    }
    argv[n] = NULL;
    return child_start(&j->child, argv, p->dir, e);
}

/* An object that does not open, or lacks the function, must not enter the store; what opening it does is not ours to suffer. */
static int start_opening(const struct pool *p, struct job *j, struct q_err *e)
{
    struct names names = names_of(j->task);
    char *argv[] = { (char *)p->o->compiler->self, "--open", names.out, (char *)j->task->kernel->name, NULL };
    j->begin = clock_s();
    j->n = 0;
    j->opening = 1;
    return child_start(&j->child, argv, p->dir, e);
}

static int start_job(struct pool *p, struct job *j, struct build_task *t, struct q_err *e)
{
    memset(j, 0, sizeof *j);
    j->task = t;
    j->begin = clock_s();
    int r = write_unit(p, t, e);
    if (!r) r = start_compiler(p, j, e);
    if (r) j->task = NULL;
    return r;
}

static int limit_s(const struct pool *p, const struct job *j)
{
    const struct build_pace *pace = p->pace;
    double most = p->o->deadline_s, limit = most;
    if (j->opening) limit = OPEN_S;
    else if (pace->slowest > 0) limit = (pace->late ? SLOWER_AFTER_LATE : SLOWER) * pace->slowest;
    else if (pace->late) limit = most / SHORTER_AFTER_LATE;
    if (limit < LEAST_S) limit = LEAST_S;
    return (int)(limit < most ? limit : most);
}

/* The first line that says "error"; without one the first line at all. */
static const char *compiler_reason(struct job *j)
{
    j->output[j->n] = 0;
    char *found = strstr(j->output, "error:");
    char *line = j->output;
    if (found)
        for (line = found; line > j->output && line[-1] != '\n'; line--) {}
    line[strcspn(line, "\n")] = 0;
    return *line ? line : "the compiler failed without a word";
}

static int publish(const struct pool *p, struct build_task *t, struct q_err *e)
{
    char path[Q_PATH];
    struct q_err why;
    int r = path_join(path, e, p->dir, names_of(t).out, NULL);
    if (r) return r;
    if (is_cubin(t) && (r = cubin_check(path, t->kernel->name, t->kernel->launch.n, &why))) {
        fail_task(t, r, why.text);
        return Q_OK;
    }
    return store_publish(p->o->store, path, t->object.name, t->object.content, &t->object.size, e);
}

static const char *reason(struct job *j, int status)
{
    if (j->opening && status > 128) return "the object cannot be opened: it ended the process that did";
    return compiler_reason(j);
}

static int finish_job(struct pool *p, struct job *j, struct q_err *e)
{
    struct build_task *t = j->task;
    int status, r = child_end(&j->child, &status, e);
    char why[300];
    int compiled = !r && !j->late && !status && !j->opening;
    if (compiled && clock_s() - j->begin > p->pace->slowest) p->pace->slowest = clock_s() - j->begin;
    if (compiled && !is_cubin(t) && !(r = start_opening(p, j, e))) return Q_OK;
    j->task = NULL;
    if (r) return r;
    t->rc = Q_OK;
    if (j->late) {
        p->pace->late++;
        snprintf(why, sizeof why, "%.200s did not end within %d s", j->opening ? "opening the object" : p->o->compiler->program, j->late);
        fail_task(t, Q_EIO, why);
    } else if (status) fail_task(t, Q_EINTERNAL, reason(j, status));
    else {
        j->output[j->n] = 0;
        if (is_cubin(t)) cubin_log(j->output, &t->object.regs, &t->object.spill);
        r = publish(p, t, e);
    }
    p->done++;
    p->built += !r && !t->rc;
    if (p->o->progress) p->o->progress(p->o->progress_arg, p->done, p->n);
    return r;
}

int build_open_child(const char *object, const char *kernel)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    char path[Q_PATH];
    if (!realpath(object, path)) return perror(object), 1;
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) return puts(dlerror()), 1;
    if (dlsym(lib, kernel)) _exit(0);      /* what it does at its end is nobody's concern */
    printf("the object lacks the function %s\n", kernel);
    return 1;
}

/* --- the pool ---------------------------------------------------------------------------------------------------------- */

static int start_free(struct pool *p, struct q_err *e)
{
    int r = Q_OK;
    for (int i = 0; i < p->o->jobs && p->next < p->n && !r; i++)
        if (!p->jobs[i].task) r = start_job(p, &p->jobs[i], p->tasks[p->next++], e);
    return r;
}

/* Takes what a compiler printed; at its end the job is finished. Output beyond the buffer is read and dropped. */
static int read_job(struct pool *p, struct job *j, struct q_err *e)
{
    char buf[4096];
    ssize_t n = read(j->child.fd, buf, sizeof buf);
    if (n < 0 && errno == EINTR) return Q_OK;
    if (n <= 0) return finish_job(p, j, e);
    size_t room = OUTPUT - 1 - j->n, k = (size_t)n < room ? (size_t)n : room;
    memcpy(j->output + j->n, buf, k);
    j->n += k;
    return Q_OK;
}

static void kill_late(const struct pool *p, struct job *j)
{
    int limit = limit_s(p, j);
    if (j->late || clock_s() < j->begin + limit) return;
    j->late = limit;
    child_kill(&j->child);
}

/* Waits for output, an interrupt or a deadline. */
static int pump(struct pool *p, struct q_err *e)
{
    struct pollfd fds[MAX_JOBS + 1];
    struct job *of[MAX_JOBS];
    int n = 0, r = Q_OK;
    for (int i = 0; i < p->o->jobs; i++)
        if (p->jobs[i].task) {
            kill_late(p, &p->jobs[i]);
            of[n] = &p->jobs[i];
            fds[n++] = (struct pollfd){ .fd = p->jobs[i].child.fd, .events = POLLIN };
        }
    fds[n] = (struct pollfd){ .fd = p->o->signal_fd, .events = POLLIN };
    if (poll(fds, (nfds_t)n + 1, 200) < 0) return errno == EINTR ? Q_OK : q_fail(e, Q_EIO, "poll: %s", strerror(errno));
    if (fds[n].revents) return q_fail(e, Q_EIO, "interrupted: %d of %d kernels are built and kept", p->built, p->n);
    for (int i = 0; i < n && !r; i++)
        if (fds[i].revents) r = read_job(p, of[i], e);
    return r;
}

static void kill_jobs(struct pool *p)
{
    int status;
    for (int i = 0; i < p->o->jobs; i++) {
        if (!p->jobs[i].task) continue;
        child_kill(&p->jobs[i].child);
        child_end(&p->jobs[i].child, &status, NULL);
    }
}

/* With nothing built so far, late units are not those of a kind that the compiler cannot do. */
static int is_stuck(const struct pool *p, struct q_err *e)
{
    if (p->pace->slowest > 0 || p->pace->late < MOST_LATE) return Q_OK;
    return q_fail(e, Q_EIO, "%.300s: %d kernels did not end in their time (%d s at first) and none was built: it seems to wait for something",
                  p->o->compiler->program, p->pace->late, p->o->deadline_s);
}

/* The first of the tasks that ask for the same object as task i. */
static int first_of(const struct build_task *tasks, int i)
{
    int j = 0;
    while (strcmp(tasks[j].object.name, tasks[i].object.name)) j++;
    return j;
}

static void share_objects(struct build_task *tasks, int n)
{
    for (int i = 0; i < n; i++) {
        const struct build_task *first = &tasks[first_of(tasks, i)];
        if (first == &tasks[i]) continue;
        tasks[i].object = first->object;
        tasks[i].rc = first->rc;
        memcpy(tasks[i].why, first->why, sizeof first->why);
    }
}

static int run_pool(struct pool *p, struct q_err *e)
{
    int r = store_workdir(p->o->store, p->dir, e);
    if (r) return r;
    while (!r && p->done < p->n)
        if (!(r = is_stuck(p, e)) && !(r = start_free(p, e))) r = pump(p, e);
    kill_jobs(p);
    dir_remove(p->dir);
    return r;
}

int build_all(const struct build_opts *given, struct build_task *tasks, int n, struct q_err *e)
{
    struct build_opts o = *given;
    struct build_pace own = { 0 };
    struct pool p = { .o = &o, .pace = o.pace ? o.pace : &own };
    o.jobs = o.jobs < 1 ? 1 : o.jobs > MAX_JOBS ? MAX_JOBS : o.jobs;
    for (int i = 0; i < n; i++) fail_task(&tasks[i], Q_EMISS, "not built");
    p.jobs = calloc((size_t)o.jobs, sizeof *p.jobs);
    p.tasks = calloc((size_t)n + 1, sizeof *p.tasks);
    int r = p.jobs && p.tasks ? Q_OK : q_fail(e, Q_EMEM, "no memory for %d compilers", o.jobs);
    for (int i = 0; i < n && !r; i++)
        if (first_of(tasks, i) == i) p.tasks[p.n++] = &tasks[i];
    if (!r) r = run_pool(&p, e);
    share_objects(tasks, n);
    free(p.tasks);
    free(p.jobs);
    return r;
}
