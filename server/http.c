#include "http.h"
#include "runtime/cli.h"
#include "runtime/json_check.h"
#include <microhttpd.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    MAX_BODY = 16 << 20,          /* JSON of small values takes some 30 times its length when parsed */
    HEADER_MEMORY = 64 << 10,    /* a connection's request line and headers */
    THREAD_STACK = 1 << 20,
    IDLE_S = 120,                /* without a byte either way */
    BODY_S = 300,                /* for a whole body */
    CLIENT_LEFT = 499,           /* in the log: no answer was sent, as proxies write it */
    SPARE_CONNECTIONS = 128      /* above the queue's length, so that a full queue can answer 429 */
};

struct http {
    struct server *sv;
    struct MHD_Daemon *daemon;
    const struct http_route *routes;
    size_t n_routes;
    atomic_int active;           /* requests */
};

struct http_request {
    struct http *http;
    struct MHD_Connection *c;
    const struct http_route *route;
    const char *rest;
    int is_11;                   /* HTTP/1.1 */
    char method[16], path[256];  /* for the log */
    struct text body;
    size_t dropped;              /* bytes of a body that will not be used */
    struct api_error x;          /* why it is refused, once its body was read */
    char allow[64];              /* with 405 and OPTIONS */
    double began;
    int status;
    struct http_stream stream;   /* `more` NULL: none */
    struct text out;             /* the stream's, from out_at */
    size_t out_at;
    int last;
    char note[256];
};

struct server *http_server(struct http_request *rq) { return rq->http->sv; }
const char *http_rest(const struct http_request *rq) { return rq->rest ? rq->rest : ""; }

const char *http_body(const struct http_request *rq, size_t *n)
{
    *n = rq->body.n;
    return rq->body.at ? rq->body.at : "";
}

int http_fd(const struct http_request *rq)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(rq->c, MHD_CONNECTION_INFO_CONNECTION_FD);
    return i ? i->connect_fd : -1;
}

int http_takes_interim(const struct http_request *rq) { return rq->is_11; }

void http_patience(struct http_request *rq) { MHD_set_connection_option(rq->c, MHD_CONNECTION_OPTION_TIMEOUT, 0u); }

/* What came from outside may not write lines of its own into the log, nor bytes that are no text. */
static void plain_line(char *s)
{
    int utf8 = utf8_valid(s, strlen(s));
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7F || ((unsigned char)*s > 0x7F && !utf8)) *s = '?';
}

void http_note(struct http_request *rq, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(rq->note, sizeof rq->note, fmt, ap);
    va_end(ap);
    plain_line(rq->note);
}

/* ---- answers ---- */

static void queue_reply(struct http_request *rq, int status, struct MHD_Response *r)
{
    rq->status = status;
    MHD_set_connection_option(rq->c, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)IDLE_S);
    if (!r) return;
    MHD_queue_response(rq->c, (unsigned)status, r);
    MHD_destroy_response(r);
}

static struct MHD_Response *json_response(struct text *body)
{
    static char no_memory[] = "{\"error\":{\"message\":\"no memory\",\"type\":\"server_error\",\"param\":null,\"code\":null}}";
    struct MHD_Response *r;
    if (text_ok(body)) {
        r = MHD_create_response_from_buffer(body->n, body->at, MHD_RESPMEM_MUST_FREE);
        if (!r) free(body->at);
    } else {
        r = MHD_create_response_from_buffer(sizeof no_memory - 1, no_memory, MHD_RESPMEM_PERSISTENT);
        free(body->at);
    }
    *body = (struct text){0};
    if (r) MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    return r;
}

void http_reply_json(struct http_request *rq, int status, struct text *body)
{
    status = text_ok(body) ? status : 500;
    queue_reply(rq, status, json_response(body));
}

static struct MHD_Response *error_response(struct http_request *rq, const struct api_error *x)
{
    struct text t = {0};
    api_error_json(x, &t);
    struct MHD_Response *r = json_response(&t);
    if (!rq->note[0]) http_note(rq, "%.200s", x->message);
    if (r && x->status == 401) MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (r && x->status == 405) MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, rq->allow);
    if (r && x->status == 413) MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    return r;
}

void http_reply_error(struct http_request *rq, const struct api_error *x) { queue_reply(rq, x->status, error_response(rq, x)); }

void http_reply_later(struct http_request *rq, const struct api_error *x, int retry_after_s)
{
    char s[16];
    struct MHD_Response *r = error_response(rq, x);
    snprintf(s, sizeof s, "%d", retry_after_s);
    if (r) MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, s);
    queue_reply(rq, x->status, r);
}

/* Hands out what is there; asks for more when all is out. */
static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct http_request *rq = cls;
    while (rq->out_at == rq->out.n) {
        if (rq->last) return rq->last > 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
        rq->out.n = rq->out_at = 0;
        rq->last = rq->stream.more(rq->stream.arg, &rq->out);
        if (!text_ok(&rq->out)) return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    size_t n = rq->out.n - rq->out_at < max ? rq->out.n - rq->out_at : max;
    memcpy(buf, rq->out.at + rq->out_at, n);
    rq->out_at += n;
    return (ssize_t)n;
}

void http_reply_stream(struct http_request *rq, const struct http_stream *s)
{
    rq->stream = *s;
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 << 10, read_stream, rq, NULL);
    if (r) {
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
        MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
        MHD_add_response_header(r, "X-Accel-Buffering", "no");
    }
    queue_reply(rq, 200, r);
}

/* ---- requests: what is refused before a handler sees them ---- */

static int path_matches(const struct http_route *r, const char *path)
{
    size_t n = strlen(r->path);
    if (n && r->path[n - 1] == '*') return !strncmp(r->path, path, n - 1) && path[n - 1];
    return !strcmp(r->path, path);
}

/* HEAD is GET without the body, which libmicrohttpd leaves out. */
static void find_route(struct http_request *rq, const char *method, const char *path)
{
    const char *as = strcmp(method, "HEAD") ? method : "GET";
    size_t n = 0;
    int exists = 0;
    for (size_t i = 0; i < rq->http->n_routes; i++) {
        const struct http_route *r = &rq->http->routes[i];
        if (!path_matches(r, path)) continue;
        exists = 1;
        n += (size_t)snprintf(rq->allow + n, sizeof rq->allow - n, "%s%s%s", n ? ", " : "", r->method, strcmp(r->method, "GET") ? "" : ", HEAD");
        if (strcmp(r->method, as)) continue;
        rq->route = r;
        rq->rest = path + strlen(r->path) - (strchr(r->path, '*') ? 1 : 0);
    }
    if (exists) snprintf(rq->allow + n, sizeof rq->allow - n, ", OPTIONS");
    if (!exists) api_fail(&rq->x, 404, "not_found", NULL, "no endpoint %.200s in this version", path);
    else if (!rq->route && strcmp(method, "OPTIONS"))
        api_fail(&rq->x, 405, "method_not_allowed", NULL, "method %.20s is not allowed for %.200s, only %s", method, path, rq->allow);
}

static void check_key(struct http_request *rq)
{
    const struct keys *keys = rq->http->sv->keys;
    if (!keys || !rq->route || rq->route->open) return;
    const char *bearer = MHD_lookup_connection_value(rq->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    const char *plain = MHD_lookup_connection_value(rq->c, MHD_HEADER_KIND, "X-Api-Key");
    if (bearer && !strncasecmp(bearer, "Bearer ", 7) && keys_match(keys, bearer + 7 + strspn(bearer + 7, " "))) return;
    if (plain && keys_match(keys, plain)) return;
    api_fail(&rq->x, 401, "invalid_api_key", NULL, bearer || plain ? "this API key is not known here"
                                                                   : "expected an API key: Authorization: Bearer KEY, or X-Api-Key: KEY");
}

struct framing {
    int lengths, chunked;
    unsigned long long length;
};

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct framing *f = cls;
    if (!strcasecmp(key, "Content-Length")) {
        f->lengths++;
        f->length = strtoull(value ? value : "", NULL, 10);
    }
    if (!strcasecmp(key, "Transfer-Encoding")) f->chunked++;
    return MHD_YES;
}

/* Two lengths, or a length and chunks, are how requests are smuggled past a proxy; the library lets them pass. */
static void check_framing(struct http_request *rq)
{
    struct framing f = {0};
    MHD_get_connection_values(rq->c, MHD_HEADER_KIND, see_header, &f);
    if (f.lengths > 1 || (f.lengths && f.chunked)) api_fail(&rq->x, 400, NULL, NULL, "expected one Content-Length or chunks, found both or two");
    else if (f.length > MAX_BODY) api_fail(&rq->x, 413, "body_too_large", NULL, "the body has %llu bytes, at most %d are taken", f.length, MAX_BODY);
}

static void check_model(struct http_request *rq)
{
    if (!rq->route || rq->route->early || worker_state(rq->http->sv->worker) == WORKER_READY) return;
    api_fail(&rq->x, 503, "loading", NULL, "the model is being loaded");
}

static struct http_request *begin(struct http *h, struct MHD_Connection *c, const char *method, const char *path)
{
    struct http_request *rq = calloc(1, sizeof *rq);
    if (!rq) return NULL;
    rq->http = h;
    rq->c = c;
    rq->began = cli_seconds();
    atomic_fetch_add(&h->active, 1);
    snprintf(rq->method, sizeof rq->method, "%s", method);
    snprintf(rq->path, sizeof rq->path, "%s", path);
    plain_line(rq->path);
    check_framing(rq);
    if (!rq->x.status) find_route(rq, method, path);
    if (!rq->x.status) check_key(rq);
    return rq;
}

/* ---- the life of a request ---- */

static enum MHD_Result take_body(struct http_request *rq, const char *data, size_t *n)
{
    if (cli_seconds() - rq->began > BODY_S) return MHD_NO;
    if (!rq->x.status && rq->body.n + *n > MAX_BODY) {
        text_free(&rq->body);
        api_fail(&rq->x, 413, "body_too_large", NULL, "the body is larger than %d bytes", MAX_BODY);
    }
    if (rq->x.status) rq->dropped += *n;
    else text_add(&rq->body, data, *n);
    *n = 0;
    return rq->dropped > 2 * (size_t)MAX_BODY ? MHD_NO : MHD_YES;
}

static void reply_options(struct http_request *rq)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (r) MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, rq->allow);
    queue_reply(rq, 204, r);
}

static enum MHD_Result answer(struct http_request *rq)
{
    if (!rq->x.status) check_model(rq);
    if (!rq->x.status && !text_ok(&rq->body)) api_fail(&rq->x, 503, "no_memory", NULL, "no memory for the request's body");
    if (rq->x.status == 503) http_reply_later(rq, &rq->x, 2);
    else if (rq->x.status) http_reply_error(rq, &rq->x);
    else if (!rq->route) reply_options(rq);
    else rq->route->handler(rq);
    return rq->status ? MHD_YES : MHD_NO;
}

/* libmicrohttpd calls this once with the headers, then for each part of the body, then once with none. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *path, const char *method, const char *version,
                                  const char *data, size_t *n, void **state)
{
    struct http_request *rq = *state;
    if (!rq) {
        *state = rq = begin(cls, c, method, path);
        if (!rq) return MHD_NO;
        rq->is_11 = !strcmp(version, MHD_HTTP_VERSION_1_1);
        /* Nobody wants to read a body that is too large. */
        if (rq->x.status == 413) return answer(rq);
        return MHD_YES;
    }
    if (*n) return take_body(rq, data, n);
    return rq->status ? MHD_YES : answer(rq);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
    struct http_request *rq = *state;
    if (!rq) return;
    if (rq->stream.closed) rq->stream.closed(rq->stream.arg, rq);
    flockfile(stderr);
    cli_fact(&rq->http->sv->o.cli, "%s %s %d %.3f s%s%s", rq->method, rq->path, rq->status ? rq->status : CLIENT_LEFT,
             cli_seconds() - rq->began, rq->note[0] ? ": " : "", rq->note);
    funlockfile(stderr);
    text_free(&rq->body);
    text_free(&rq->out);
    atomic_fetch_sub(&rq->http->active, 1);
    free(rq);
    *state = NULL;
}

static void no_log(void *cls, const char *fmt, va_list ap) {}

int http_start(struct http **out, struct server *sv, int listen_fd, const struct http_route *routes, size_t n, struct q_err *e)
{
    struct http *h = calloc(1, sizeof *h);
    if (!h) return q_fail(e, Q_EMEM, "no memory for the HTTP server");
    h->sv = sv;
    h->routes = routes;
    h->n_routes = n;
    h->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ERROR_LOG | MHD_USE_ITC, 0, NULL, NULL,
        on_request, h, MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL, MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MEMORY,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(sv->o.queue + SPARE_CONNECTIONS), MHD_OPTION_END);
    if (!h->daemon) {
        free(h);
        return q_fail(e, Q_EIO, "cannot start the HTTP server");
    }
    *out = h;
    return Q_OK;
}

void http_quiet(struct http *h)
{
    MHD_socket fd = MHD_quiesce_daemon(h->daemon);
    if (fd != MHD_INVALID_SOCKET) close(fd);
}

int http_active(struct http *h) { return atomic_load(&h->active); }

void http_stop(struct http *h)
{
    if (!h) return;
    MHD_stop_daemon(h->daemon);
    free(h);
}
