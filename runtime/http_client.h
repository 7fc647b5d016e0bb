/* Requests to an OpenAI-compatible server, from the client's side: JSON out, JSON or a stream in. By libcurl (curl_lib.h).
 *
 * A client is one connection that is kept between requests; one thread at a time uses it. A stream's bytes are handed over as they come.
 * What goes wrong is one line that names the address: no connection, a status that is not 2xx with the server's own message, silence.
 */
#ifndef Q_HTTP_CLIENT_H
#define Q_HTTP_CLIENT_H

#include "err.h"
#include "tokenizer.h"

struct http_client;

struct http_client_opts {
    const char *url;         /* with or without the trailing /v1 */
    const char *key;         /* sent as a bearer token; NULL: none */
    int silent_s;            /* seconds without a byte after which a request is given up; 0: 600 */
    int (*cancelled)(void *arg);   /* NULL, or asked once a second at least, and after a signal; non-zero: the request is given up */
    void *arg;
};

int http_client_open(struct http_client **c, const struct http_client_opts *o, struct q_err *e);
void http_client_close(struct http_client *c);
/* "http://host:port/v1" */
const char *http_client_base(const struct http_client *c);

/* Bytes of the answer; non-zero: no more are wanted, and the connection is closed. */
typedef int (*http_bytes)(void *arg, const char *s, size_t n);

/* path: "/models", below the base. json NULL: a GET. Waits for the whole answer; *status is the server's, 0 if there was none. Q_EIO: no
 * connection or a broken one; Q_EINPUT: a status from 400 on (*e holds the server's own message); Q_ELIMIT: the answer is unreasonably large.
 * After `bytes` or `cancelled` has stopped it: Q_OK. */
int http_client_stream(struct http_client *c, const char *path, const char *json, http_bytes bytes, void *arg, long *status, struct q_err *e);
/* The same, the whole answer into *out (to be freed). */
int http_client_ask(struct http_client *c, const char *path, const char *json, struct tok_text *out, long *status, struct q_err *e);

#endif
