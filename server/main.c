/* quarry-serve: one model behind an OpenAI-compatible HTTP server.
 *
 * It listens first and loads then, so that /health can tell. SIGTERM or SIGINT: no new connections, requests may go on for --drain
 * seconds, then what is left is cancelled; a second signal cancels at once. */
#define _GNU_SOURCE /* pipe2 */
#include "api.h"
#include "listen.h"
#include "log.h"
#include "runtime/clock.h"
#include "runtime/session_file.h"
#include "service.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Each has its path in openapi.json. */
static const struct http_route routes[] = {
    {"GET", "/", api_page, 1, 1},
    {"POST", "/v1/chat/completions", api_chat, 0, 0},
    {"POST", "/chat/completions", api_chat, 0, 0},
    {"POST", "/v1/completions", api_completions, 0, 0},
    {"POST", "/completions", api_completions, 0, 0},
    {"POST", "/v1/messages", api_messages, 0, 0},
    {"POST", "/v1/messages/count_tokens", api_count_tokens, 0, 0},
    {"POST", "/v1/responses", api_responses, 0, 0},
    {"GET", "/v1/models", api_models, 0, 0},
    {"GET", "/v1/models/*", api_model, 0, 0},
    {"GET", "/health", api_health, 1, 1},
    {"GET", "/v1/health", api_health, 1, 1},
    {"GET", "/metrics", api_metrics, 0, 1},
    {"GET", "/props", api_props, 0, 0},
    {"GET", "/slots", api_slots, 0, 0},
    {"POST", "/slots/*", api_slot_action, 0, 0},
    {"GET", "/openapi.json", api_openapi, 1, 1},
    {"POST", "/apply-template", api_template, 0, 0},
    {"POST", "/v1/chat/completions/input_tokens", api_input_tokens, 0, 0},
    {"POST", "/tokenize", api_tokenize, 0, 0},
    {"POST", "/detokenize", api_detokenize, 0, 0},
};

/* A signal handler can reach nothing else: the writing end of the pipe that wakes main, set once before signals are taken. */
static int signal_fd = -1;

static void on_signal(int number)
{
    int kept = errno;
    if (write(signal_fd, "s", 1) < 0) { /* the pipe is full of signals: enough */
    }
    errno = kept;
}

static void on_worker(void *arg)
{
    struct server *sv = arg;
    if (write(sv->wake[1], "w", 1) < 0) { /* as above */
    }
}

static void say_line(void *arg, const char *line) { log_line(arg, line); }

static int take_signals(struct server *sv, struct q_err *e)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (pipe2(sv->wake, O_CLOEXEC | O_NONBLOCK)) return q_fail(e, Q_EIO, "no pipe: %s", strerror(errno));
    signal_fd = sv->wake[1];
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGINT, &a, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return Q_OK;
}

/* Waits up to `seconds` (< 0: for ever) for a byte; 's', 'w', or 0 when the time is over. */
static char wait_wake(struct server *sv, double seconds)
{
    struct pollfd p = {.fd = sv->wake[0], .events = POLLIN};
    char c = 0;
    poll(&p, 1, seconds < 0 ? -1 : (int)(seconds * 1000));
    return read(sv->wake[0], &c, 1) == 1 ? c : 0;
}

/* The file's name without its folder and ".gguf". */
static void name_model(struct server *sv)
{
    const struct options *o = &sv->o;
    const char *path = o->cli.engine.model, *slash = strrchr(path, '/');
    snprintf(sv->alias, sizeof sv->alias, "%.200s", o->alias ? o->alias : slash ? slash + 1 : path);
    char *end = strstr(sv->alias, ".gguf");
    if (!o->alias && end && end != sv->alias && !end[5]) *end = 0;
}

static int open_keys(struct server *sv, struct q_err *e)
{
    const struct options *o = &sv->o;
    if (!o->key_file && !o->n_keys) return Q_OK;
    int rc = keys_open(&sv->keys, e);
    for (int i = 0; i < o->n_keys && !rc; i++) rc = keys_add(sv->keys, o->key[i], e);
    return rc || !o->key_file ? rc : keys_add_file(sv->keys, o->key_file, e);
}

/* A connection is a file, and the default limit is made for programs that use select(). */
static void allow_files(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l)) return;
    l.rlim_cur = l.rlim_max;
    setrlimit(RLIMIT_NOFILE, &l);
}

/* Connections' threads come and go with requests of all sizes. By itself glibc gives each thread an arena and raises the size above which memory is
 * mapped, and so goes back when freed: a server that met many odd requests held twice the memory that it used. */
static void keep_memory_tight(void)
{
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    mallopt(M_TRIM_THRESHOLD, 256 << 10);
}

/* What no loading would mend is told before anybody hears of an address. */
static int check_model(const char *path, struct q_err *e)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return q_fail(e, Q_EIO, "%s: cannot open: %s", path, strerror(errno));
    close(fd);
    return Q_OK;
}

static int open_server(struct server *sv, struct listener *l, struct q_err *e)
{
    const struct options *o = &sv->o;
    size_t n;
    sv->created = time(NULL);
    sv->notify = getenv("NOTIFY_SOCKET");
    allow_files();
    keep_memory_tight();
    name_model(sv);
    int rc = sodium_init() < 0 ? q_fail(e, Q_EIO, "no random numbers from the system") : take_signals(sv, e);
    if (!rc) rc = check_model(o->cli.engine.model, e);
    if (!rc) rc = open_keys(sv, e);
    if (!rc && o->template_file) rc = cli_read_file(o->template_file, &sv->jinja, &n, e);
    if (!rc && o->slot_dir) rc = session_dir_open(o->slot_dir, e);
    if (!rc) rc = once_open(&sv->told, say_line, &sv->o, e);
    if (!rc) rc = queue_open(&sv->queue, o->queue, e);
    return rc ? rc : listen_open(l, o->host, o->port, e);
}

/* From here on the model is loaded, and requests are answered. */
static int start_threads(struct server *sv, const struct listener *l, struct q_err *e)
{
    const struct options *o = &sv->o;
    sv->o.cli.engine.progress = load_progress;
    sv->o.cli.engine.progress_arg = &sv->load;
    if (o->cache_device_given) sv->o.cli.engine.snap_bytes = &sv->o.cache_device;
    const struct cache_opts cache = {o->cache_host, o->cache_disk, o->cache_host_given, o->cache_dir, o->cache_every};
    const struct worker_opts w = {.engine = sv->o.cli.engine, .cache = cache, .jinja = sv->jinja, .queue = sv->queue, .changed = on_worker,
                                  .arg = sv};
    int rc = worker_start(&sv->worker, &w, e);
    return rc ? rc : http_start(&sv->http, sv, l->fd, routes, sizeof routes / sizeof *routes, e);
}

static void tell_where(const struct server *sv, const struct listener *l)
{
    printf("listening on http://%s\n", l->where);
    fflush(stdout);
    if (!l->loopback && !sv->keys) fprintf(stderr, "quarry serve: warning: anybody who reaches %s%s may use it: no API key was given\n",
                                          l->where, sv->o.cors.any ? ", and any page a browser shows," : "");
}

static void tell_memory(struct server *sv)
{
    size_t planned, taken;
    char line[100];
    worker_memory(sv->worker, &planned, &taken);
    snprintf(line, sizeof line, "memory: %.1f MiB were planned, %.1f MiB are taken", (double)planned / 1048576, (double)taken / 1048576);
    if (taken) say_line(&sv->o, line);
}

static void tell_ready(struct server *sv)
{
    char line[300];
    double took = load_end(&sv->load);
    snprintf(line, sizeof line, "loaded in %.1f s: %s", took, sv->load.stages);
    say_line(&sv->o, line);
    tell_memory(sv);
    say_line(&sv->o, "ready");
    service_tell(sv->notify, "READY=1");
}

/* Until a signal comes (0) or loading failed (1, after its line). */
static int serve(struct server *sv)
{
    struct q_err e;
    for (;;) {
        if (wait_wake(sv, -1) == 's') return 0;
        enum worker_state s = worker_state(sv->worker);
        if (s == WORKER_READY) tell_ready(sv);
        if (s != WORKER_FAILED) continue;
        worker_error(sv->worker, &e);
        return cli_fail(&sv->o.cli, &e);
    }
}

/* Whoever pressed Ctrl-C would wonder why nothing ends. */
static void tell_ending(struct server *sv)
{
    char line[160];
    int n = http_active(sv->http);
    if (!n || worker_state(sv->worker) != WORKER_READY) return;
    snprintf(line, sizeof line, "ending: %d request%s may go on for %d s; another signal or Ctrl-C ends at once", n, cli_s(n), sv->o.drain_s);
    say_line(&sv->o, line);
}

static void drain(struct server *sv)
{
    double end = clock_s() + sv->o.drain_s, now;
    atomic_store(&sv->ending, 1);
    service_tell(sv->notify, "STOPPING=1");
    tell_ending(sv);
    http_quiet(sv->http);
    queue_close(sv->queue);
    while (worker_state(sv->worker) == WORKER_READY && (now = clock_s()) < end)
        if (wait_wake(sv, end - now < 0.5 ? end - now : 0.5) == 's') break;
    queue_shut(sv->queue);
    /* Last answers are on their way out. */
    end = clock_s() + 2;
    while (http_active(sv->http) && clock_s() < end)
        if (wait_wake(sv, 0.01) == 's') break;
}

static void close_server(struct server *sv)
{
    http_stop(sv->http);
    worker_stop(sv->worker);
    queue_free(sv->queue);
    once_close(sv->told);
    keys_close(sv->keys);
    free(sv->jinja);
}

int main(int argc, char **argv)
{
    struct server sv = {.wake = {-1, -1}};
    struct listener l;
    struct q_err e;
    int status = options_read(&sv.o, argc, argv);
    if (status >= 0) return status;
    if (open_server(&sv, &l, &e) || start_threads(&sv, &l, &e)) {
        if (sv.queue) queue_shut(sv.queue);
        close_server(&sv);
        return cli_fail(&sv.o.cli, &e);
    }
    tell_where(&sv, &l);
    status = serve(&sv);
    if (worker_state(sv.worker) == WORKER_LOADING) {
        /* Loading cannot be broken off, and nothing is lost. */
        fflush(stderr);
        _exit(status);
    }
    drain(&sv);
    close_server(&sv);
    return status;
}
