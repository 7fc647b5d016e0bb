/* What http.c (the life of a request), http_checks.c (what is refused before a handler sees it) and http_reply.c (answers) share. */
#ifndef S_HTTP_IMPL_H
#define S_HTTP_IMPL_H

#include "connections.h"
#include "http.h"
#include "http_counts.h"
#include <microhttpd.h>
#include <stdatomic.h>

enum {
    HTTP_CLIENT_LEFT = 499,      /* in the log: no answer was sent, as proxies write it */
    HTTP_IDLE_S = 120,           /* without a byte either way */
    HTTP_TEXT_LOGGED = 1 << 20   /* bytes of an answer that --log-text keeps */
};

struct http {
    struct server *sv;
    struct MHD_Daemon *daemon;
    struct connections *connections; /* owned */
    struct http_counts *counts;      /* owned */
    const struct http_route *routes;
    size_t n_routes;
    size_t max_body;             /* bytes */
    atomic_size_t large;         /* bytes of large bodies in memory */
    atomic_int active;           /* requests */
    atomic_ullong count;         /* requests so far, for their ids */
    unsigned start;              /* random: ids of two runs differ */
};

struct http_request {
    struct http *http;
    struct MHD_Connection *c;
    struct connection *connection;
    const struct http_route *route;
    const char *rest;
    int is_11;                   /* HTTP/1.1 */
    char id[32], method[16], path[256];  /* for the log */
    struct text body;
    size_t charged;              /* bytes of it that count as large */
    size_t body_bytes;           /* as they came, for the log */
    size_t dropped;              /* bytes of a body that will not be used */
    struct api_error x;          /* why it is refused, once its body was read */
    int close;                   /* the connection ends with the answer */
    char allow[64];              /* with 405 and OPTIONS */
    unsigned client;
    double began;
    int status;
    struct http_stream stream;   /* `more` NULL: none */
    struct text out;             /* the stream's, from out_at */
    size_t out_at;
    int last;
    struct text said;            /* the answer, for --log-text */
    char note[256];
};

/* http_checks.c: with the headers read. Fills route, client, allow; x where it is refused. */
void http_check(struct http_request *rq, const char *method, const char *path);
/* With the body read: x where the model is not there yet. */
void http_check_ready(struct http_request *rq);

/* http_reply.c */
void http_reply_options(struct http_request *rq);
/* What came from outside may not write lines of its own into the log, nor bytes that are no text. */
void http_plain_line(char *s);

#endif
