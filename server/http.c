#include "exposition.h"
#include "http_impl.h"
#include "log.h"
#include "runtime/clock.h"
#include <netdb.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    HEADER_MEMORY = 64 << 10,    /* a connection's request line and headers */
    THREAD_STACK = 1 << 20,
    MOST_HEADERS = 100,
    SMALL_BODY = 1 << 20,        /* always taken: as many as there are connections */
    LARGE_BODIES = 8,            /* that many of the largest size may be in memory at once */
    SPARE_CONNECTIONS = 128,     /* above the queue's length, so that a full queue can answer 429 */
    CROWD_CONNECTIONS = 64,      /* above those, so that whoever is one too many is told */
    SPARE_FILES = 24             /* what is open besides connections, or for a moment */
};

struct server *http_server(struct http_request *rq) { return rq->http->sv; }
const char *http_rest(const struct http_request *rq) { return rq->rest ? rq->rest : ""; }
unsigned http_client(const struct http_request *rq) { return rq->client; }
int http_takes_interim(const struct http_request *rq) { return rq->is_11; }
void http_patience(struct http_request *rq) { MHD_set_connection_option(rq->c, MHD_CONNECTION_OPTION_TIMEOUT, 0u); }

const char *http_body(const struct http_request *rq, size_t *n)
{
    *n = rq->body.n;
    return rq->body.at ? rq->body.at : "";
}

const char *http_header(const struct http_request *rq, const char *name) { return MHD_lookup_connection_value(rq->c, MHD_HEADER_KIND, name); }
const char *http_query(const struct http_request *rq, const char *name) { return MHD_lookup_connection_value(rq->c, MHD_GET_ARGUMENT_KIND, name); }

static int socket_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    return i ? i->connect_fd : -1;
}

int http_fd(const struct http_request *rq) { return socket_of(rq->c); }

static struct connection *connection_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return i ? i->socket_context : NULL;
}

/* ---- the life of a request ---- */

static struct http_request *begin(struct http *h, struct MHD_Connection *c, const char *method, const char *path, const char *version)
{
    struct http_request *rq = calloc(1, sizeof *rq);
    if (!rq) return NULL;
    rq->http = h;
    rq->c = c;
    rq->connection = connection_of(c);
    rq->is_11 = !strcmp(version, MHD_HTTP_VERSION_1_1);
    rq->began = clock_s();
    atomic_fetch_add(&h->active, 1);
    snprintf(rq->id, sizeof rq->id, "req-%08x-%llu", h->start, atomic_fetch_add(&h->count, 1) + 1);
    snprintf(rq->method, sizeof rq->method, "%s", method);
    snprintf(rq->path, sizeof rq->path, "%s", path);
    http_plain_line(rq->method);
    http_plain_line(rq->path);
    connection_phase(rq->connection, CONNECTION_BODY);
    if (MHD_get_connection_values(c, MHD_HEADER_KIND, NULL, NULL) > MOST_HEADERS) {
        rq->close = 1;
        api_fail(&rq->x, 431, "too_many_headers", NULL, "expected at most %d header lines", MOST_HEADERS);
    } else {
        http_check(rq, method, path);
    }
    return rq;
}

/* Room for n more bytes; non-zero: too many large bodies are in memory. */
static int charge(struct http_request *rq, size_t n)
{
    struct http *h = rq->http;
    size_t whole = rq->body.n + n;
    if (whole <= SMALL_BODY) return 0;
    size_t more = whole - rq->charged;
    if (atomic_fetch_add(&h->large, more) + more > LARGE_BODIES * h->max_body) {
        atomic_fetch_sub(&h->large, more);
        return -1;
    }
    rq->charged = whole;
    return 0;
}

static void free_body(struct http_request *rq)
{
    text_free(&rq->body);
    atomic_fetch_sub(&rq->http->large, rq->charged);
    rq->charged = 0;
}

static enum MHD_Result take_body(struct http_request *rq, const char *data, size_t *n)
{
    size_t most = rq->http->max_body;
    rq->body_bytes += *n;
    if (!rq->x.status && rq->body.n + *n > most) api_fail(&rq->x, 413, "body_too_large", NULL, "the body is larger than %zu bytes", most);
    else if (!rq->x.status && charge(rq, *n)) api_fail(&rq->x, 503, "no_memory", NULL, "too many large requests are being read; try again");
    if (rq->x.status) free_body(rq), rq->dropped += *n;
    else text_add(&rq->body, data, *n);
    *n = 0;
    return rq->dropped > 2 * most ? MHD_NO : MHD_YES;
}

static enum MHD_Result answer(struct http_request *rq)
{
    connection_phase(rq->connection, CONNECTION_ANSWER);
    if (!rq->x.status) http_check_ready(rq);
    if (!rq->x.status && !text_ok(&rq->body)) api_fail(&rq->x, 503, "no_memory", NULL, "no memory for the request's body");
    if (rq->x.status == 503 || rq->x.status == 429) http_reply_later(rq, &rq->x, 2);
    else if (rq->x.status) http_reply_error(rq, &rq->x);
    else if (!rq->route) http_reply_options(rq);
    else rq->route->handler(rq);
    /* A stream may go on for long, and has no need of its question's text. */
    if (!rq->http->sv->o.log_text) free_body(rq);
    return rq->status ? MHD_YES : MHD_NO;
}

/* What a request's state is before there is one, where its path holds a zero byte: decoded, the rest of it would be lost. */
static const char cut_path;

/* The request line is there. */
static void *on_line(void *cls, const char *uri, struct MHD_Connection *c)
{
    const char *nul = strstr(uri, "%00"), *query = strchr(uri, '?');
    connection_phase(connection_of(c), CONNECTION_HEADER);
    return nul && (!query || nul < query) ? (void *)(uintptr_t)&cut_path : NULL;
}

/* libmicrohttpd calls this once with the headers, then for each part of the body, then once with none. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *path, const char *method, const char *version,
                                  const char *data, size_t *n, void **state)
{
    int cut = *state == &cut_path;
    struct http_request *rq = cut ? NULL : *state;
    if (!rq) {
        *state = rq = begin(cls, c, method, cut ? "/%00" : path, version);
        if (!rq) return MHD_NO;
        /* Nobody wants to read a body that is far too large, or one without a known end. */
        return rq->close ? answer(rq) : MHD_YES;
    }
    if (*n) return take_body(rq, data, n);
    return rq->status ? MHD_YES : answer(rq);
}

static void count_and_log(struct http_request *rq)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(rq->c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct options *o = &rq->http->sv->o;
    char host[64] = "?";
    socklen_t size = i && i->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (i) getnameinfo(i->client_addr, size, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    int status = rq->status ? rq->status : connection_late(rq->connection) ? 408 : HTTP_CLIENT_LEFT;
    double took = clock_s() - rq->began;
    http_counts_add(rq->http->counts, rq->route, status, took);
    log_request(o, &(struct log_request){rq->id, host, rq->method, rq->path, rq->note, status, took, rq->body_bytes});
    if (!o->log_text || !rq->body.n) return;
    log_text(o, rq->id, "body", &rq->body);
    log_text(o, rq->id, "answer", &rq->said);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
    struct http_request *rq = *state == &cut_path ? NULL : *state;
    struct connection *connection = connection_of(c);
    if (rq) {
        if (rq->stream.closed) rq->stream.closed(rq->stream.arg, rq);
        count_and_log(rq);
        free_body(rq);
        text_free(&rq->out);
        text_free(&rq->said);
        atomic_fetch_sub(&rq->http->active, 1);
        free(rq);
    }
    connection_phase(connection, CONNECTION_IDLE);
    *state = NULL;
}

static void on_connection(void *cls, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what)
{
    struct http *h = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = connection_add(h->connections, socket_of(c));
    } else {
        connection_remove(*context);
        *context = NULL;
    }
}

/* ---- the whole ---- */

static void no_log(void *cls, const char *fmt, va_list ap) {}

static int start_daemon(struct http *h, int listen_fd, unsigned most, struct q_err *e)
{
    h->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ERROR_LOG | MHD_USE_ITC, 0, NULL, NULL,
        on_request, h, MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL, MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_URI_LOG_CALLBACK, on_line, h,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_IDLE_S, MHD_OPTION_CONNECTION_LIMIT, most, MHD_OPTION_END);
    return h->daemon ? Q_OK : q_fail(e, Q_EIO, "cannot start the HTTP server");
}

/* libmicrohttpd tries without a pause to accept a connection for which no file is left, and takes none above its own limit; so that one is the
 * lower. Of few, a quarter is to tell the others that they are too many. */
static int limit_connections(struct connection_limits *l, unsigned *most, struct q_err *e)
{
    struct rlimit files = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_NOFILE, &files);
    *most = (unsigned)(l->many + CROWD_CONNECTIONS);
    if (files.rlim_cur < SPARE_FILES + 8)
        return q_fail(e, Q_ELIMIT, "expected a limit of at least %d open files (ulimit -n), found %llu", SPARE_FILES + 8,
                      (unsigned long long)files.rlim_cur);
    if (files.rlim_cur - SPARE_FILES >= *most) return Q_OK;
    *most = (unsigned)files.rlim_cur - SPARE_FILES;
    l->many = (int)(*most - (*most / 4 < CROWD_CONNECTIONS ? *most / 4 : CROWD_CONNECTIONS));
    return Q_OK;
}

int http_start(struct http **out, struct server *sv, int listen_fd, const struct http_route *routes, size_t n, struct q_err *e)
{
    struct http *h = calloc(1, sizeof *h);
    if (!h) return q_fail(e, Q_EMEM, "no memory for the HTTP server");
    const struct options *o = &sv->o;
    struct connection_limits limits = {o->header_s, o->body_s, HTTP_IDLE_S, o->queue + SPARE_CONNECTIONS};
    h->sv = sv;
    h->routes = routes;
    h->n_routes = n;
    h->max_body = (size_t)o->max_body_mib << 20;
    h->start = randombytes_random();
    unsigned most;
    int rc = limit_connections(&limits, &most, e);
    if (!rc) rc = connections_open(&h->connections, &limits, e);
    if (!rc) rc = http_counts_open(&h->counts, routes, n, e);
    /* Before the daemon starts: its first requests may be served before it returns. */
    *out = h;
    if (!rc) rc = start_daemon(h, listen_fd, most, e);
    if (rc) {
        *out = NULL;
        http_counts_close(h->counts);
        connections_close(h->connections);
        free(h);
    }
    return rc;
}

void http_quiet(struct http *h)
{
    MHD_socket fd = MHD_quiesce_daemon(h->daemon);
    if (fd != MHD_INVALID_SOCKET) close(fd);
}

int http_active(struct http *h) { return atomic_load(&h->active); }
int http_connections(struct http *h) { return connections_count(h->connections); }

void http_put_metrics(struct http *h, struct text *t)
{
    expo_one(t, "connections", "gauge", "Open HTTP connections.", http_connections(h));
    expo_one(t, "http_requests_active", "gauge", "HTTP requests that are being read or answered.", http_active(h));
    http_counts_put(h->counts, t);
}

void http_stop(struct http *h)
{
    if (!h) return;
    MHD_stop_daemon(h->daemon);
    http_counts_close(h->counts);
    connections_close(h->connections);
    free(h);
}
