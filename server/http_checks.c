#include "absent.h"
#include "cors.h"
#include "http_impl.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- framing ---- */

struct framing {
    int lengths, chunked, bad;
    unsigned long long length;
};

/* Digits alone: strtoull would take a sign and stop at the first other byte. */
static int read_length(const char *s, unsigned long long *n)
{
    size_t digits = strspn(s, "0123456789");
    if (!digits || digits > 18 || s[digits]) return -1;
    *n = strtoull(s, NULL, 10);
    return 0;
}

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct framing *f = cls;
    if (!strcasecmp(key, "Content-Length")) {
        f->lengths++;
        f->bad |= read_length(value ? value : "", &f->length) != 0;
    }
    if (!strcasecmp(key, "Transfer-Encoding")) {
        f->chunked++;
        f->bad |= !value || strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

/* Two lengths, or a length and chunks, are how requests are smuggled past a proxy; the library lets them pass. Whoever sends such a thing
 * has lost track of where the next request begins, so the connection ends. A body somewhat too large is read and dropped: clients that are still
 * writing would meet a broken pipe before our answer. */
static void check_framing(struct http_request *rq)
{
    struct framing f = {0};
    MHD_get_connection_values(rq->c, MHD_HEADER_KIND, see_header, &f);
    if (f.lengths > 1 || f.chunked > 1 || (f.lengths && f.chunked))
        api_fail(&rq->x, 400, NULL, NULL, "expected one Content-Length or chunks, found both or two");
    else if (f.bad) api_fail(&rq->x, 400, NULL, NULL, "expected a Content-Length of digits, or Transfer-Encoding: chunked");
    else if (f.length > rq->http->max_body)
        api_fail(&rq->x, 413, "body_too_large", NULL, "the body has %llu bytes, at most %zu are taken", f.length, rq->http->max_body);
    rq->close = rq->x.status && (rq->x.status != 413 || f.length > 2 * (unsigned long long)rq->http->max_body);
}

/* ---- route ---- */

static int path_matches(const struct http_route *r, const char *path)
{
    size_t n = strlen(r->path);
    if (n && r->path[n - 1] == '*') return !strncmp(r->path, path, n - 1) && path[n - 1];
    return !strcmp(r->path, path);
}

/* The path's methods in rq->allow; its route, when there is one for `method`. Whether the path exists. */
static int find_route(struct http_request *rq, const char *method, const char *path)
{
    size_t n = 0;
    for (size_t i = 0; i < rq->http->n_routes; i++) {
        const struct http_route *r = &rq->http->routes[i];
        if (!path_matches(r, path)) continue;
        n += (size_t)snprintf(rq->allow + n, sizeof rq->allow - n, "%s%s%s", n ? ", " : "", r->method, strcmp(r->method, "GET") ? "" : ", HEAD");
        if (strcmp(r->method, method) || rq->route) continue;
        rq->route = r;
        rq->rest = path + strlen(r->path) - (strchr(r->path, '*') ? 1 : 0);
    }
    if (n) snprintf(rq->allow + n, sizeof rq->allow - n, ", OPTIONS");
    return n != 0;
}

/* HEAD is GET without the body, which libmicrohttpd leaves out. */
static void check_route(struct http_request *rq, const char *method, const char *path)
{
    const char *why;
    if (find_route(rq, strcmp(method, "HEAD") ? method : "GET", path)) {
        if (!rq->route && strcmp(method, "OPTIONS"))
            api_fail(&rq->x, 405, "method_not_allowed", NULL, "method %.20s is not allowed for %.200s, only %s", method, path, rq->allow);
    } else if ((why = absent_why(path))) {
        api_fail(&rq->x, 404, "unsupported_endpoint", NULL, "%.200s: %s", path, why);
    } else {
        api_fail(&rq->x, 404, "not_found", NULL, "no endpoint %.200s in this version", path);
    }
}

/* ---- who asks ---- */

/* FNV-1a of the peer's address without its port. */
static unsigned address_hash(struct http_request *rq)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(rq->c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = i ? i->client_addr : NULL;
    const unsigned char *at = NULL;
    unsigned h = 2166136261u, n = 0;
    if (a && a->sa_family == AF_INET) at = (const void *)&((const struct sockaddr_in *)(const void *)a)->sin_addr, n = 4;
    if (a && a->sa_family == AF_INET6) at = (const void *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, n = 16;
    for (unsigned k = 0; k < n; k++) h = (h ^ at[k]) * 16777619u;
    return h;
}

static int key_given(struct http_request *rq, const struct keys *keys)
{
    const char *bearer = http_header(rq, MHD_HTTP_HEADER_AUTHORIZATION), *plain = http_header(rq, "X-Api-Key");
    int which = 0;
    if (bearer && !strncasecmp(bearer, "Bearer ", 7)) which = keys_match(keys, bearer + 7 + strspn(bearer + 7, " "));
    return which || !plain ? which : keys_match(keys, plain);
}

static void check_key(struct http_request *rq)
{
    const struct keys *keys = rq->http->sv->keys;
    int given = http_header(rq, MHD_HTTP_HEADER_AUTHORIZATION) || http_header(rq, "X-Api-Key");
    if (!keys || !rq->route || rq->route->open) return;
    int which = key_given(rq, keys);
    if (which) rq->client = (unsigned)which;
    else api_fail(&rq->x, 401, "invalid_api_key", NULL, given ? "this API key is not known here"
                                                              : "expected an API key: Authorization: Bearer KEY, or X-Api-Key: KEY");
}

/* A page of another site may send a request that browsers call simple without asking; it may not read the answer, but it would have us work. */
static void check_site(struct http_request *rq)
{
    const char *site = http_header(rq, "Sec-Fetch-Site"), *origin = http_header(rq, MHD_HTTP_HEADER_ORIGIN);
    if (!rq->route || !strcmp(rq->route->method, "GET") || !site || strcmp(site, "cross-site")) return;
    if (cors_allows(&rq->http->sv->o.cors, origin ? origin : "")) return;
    api_fail(&rq->x, 403, "origin_not_allowed", NULL, "pages of %.200s may not use this server; it would have to be started with --cors",
             origin ? origin : "other sites");
}

/* ---- all ---- */

static void check_crowd(struct http_request *rq)
{
    if (!connections_crowded(rq->http->connections) || (rq->route && rq->route->early)) return;
    rq->close = 1;
    api_fail(&rq->x, 429, "too_many_connections", NULL, "%d connections are open; try again, and close those that are not needed",
             http_connections(rq->http));
}

void http_check(struct http_request *rq, const char *method, const char *path)
{
    rq->client = address_hash(rq);
    check_framing(rq);
    if (!rq->x.status) check_route(rq, method, path);
    if (!rq->x.status) check_crowd(rq);
    if (!rq->x.status) check_key(rq);
    if (!rq->x.status) check_site(rq);
}

void http_check_ready(struct http_request *rq)
{
    if (!rq->route || rq->route->early || worker_state(rq->http->sv->worker) == WORKER_READY) return;
    api_fail(&rq->x, 503, "loading", NULL, "the model is being loaded (%d %%)", load_percent(&rq->http->sv->load));
}
