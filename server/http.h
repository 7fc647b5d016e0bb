/* HTTP by libmicrohttpd: one thread a connection, so that a handler may wait.
 *
 * A request is read whole (within limits of size and time), its route found, its key checked, and then its route's handler answers.
 * Handlers are one file an endpoint (api_*.c); they call one of the reply functions once, or none, which breaks the connection.
 * Every answer of the API that is not a stream, and every error, is JSON. What libmicrohttpd's own parser refuses (no HTTP at all, a
 * header beyond its memory) is answered by it, in HTML, and reaches nobody here.
 */
#ifndef S_HTTP_H
#define S_HTTP_H

#include "errors.h"
#include "server.h"
#include <sys/types.h>

struct http;
struct http_request;

typedef void (*http_handler)(struct http_request *rq);

/* A path that ends with '*' stands for all that begin so. */
struct http_route {
    const char *method, *path;
    http_handler handler;
    int open;                    /* needs no key */
    int early;                   /* works while the model loads, and when there are too many connections */
};

int http_start(struct http **h, struct server *sv, int listen_fd, const struct http_route *routes, size_t n, struct q_err *e);
/* No new connections. */
void http_quiet(struct http *h);
/* Requests that are being read or answered; connections, idle ones included. */
int http_active(struct http *h);
int http_connections(struct http *h);
/* /metrics' part about requests. */
void http_put_metrics(struct http *h, struct text *t);
/* Breaks all connections and waits for their threads; the queue must have been shut. */
void http_stop(struct http *h);

struct server *http_server(struct http_request *rq);
const char *http_rest(const struct http_request *rq);                       /* what '*' stands for */
const char *http_body(const struct http_request *rq, size_t *n);            /* zero-terminated */
const char *http_header(const struct http_request *rq, const char *name);   /* its value, or NULL */
const char *http_query(const struct http_request *rq, const char *name);    /* ?name=value, or NULL */
int http_fd(const struct http_request *rq);
int http_takes_interim(const struct http_request *rq);                      /* HTTP/1.1: 1xx answers are skipped */
/* Whose request it is, for fairness: the same number for the same API key, without keys for the same address. */
unsigned http_client(const struct http_request *rq);
/* The connection may be silent for any time (a handler waits for the engine). */
void http_patience(struct http_request *rq);
/* For the log line. */
void http_note(struct http_request *rq, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Takes the text. */
void http_reply_json(struct http_request *rq, int status, struct text *body);
void http_reply_text(struct http_request *rq, int status, const char *type, struct text *body);
/* 200 with bytes that outlive the server; `headers` are names and values in turn, then NULL. */
void http_reply_static(struct http_request *rq, const void *body, size_t n, const char *const *headers);
void http_reply_error(struct http_request *rq, const struct api_error *x);
/* 429 and 503 say when to come again. */
void http_reply_later(struct http_request *rq, const struct api_error *x, int retry_after_s);
/* Server-sent events. `more` appends what there is to send, waiting for it; 0: go on, 1: that was the last, -1: break the connection.
 * `closed` is called once, when all is sent or the client is gone, and frees arg. */
struct http_stream {
    int (*more)(void *arg, struct text *out);
    void (*closed)(void *arg, struct http_request *rq);
    void *arg;
};
void http_reply_stream(struct http_request *rq, const struct http_stream *s);

#endif
