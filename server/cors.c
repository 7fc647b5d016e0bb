#include "cors.h"
#include <microhttpd.h>
#include <string.h>

/* scheme://host[:port], nothing behind it. "null" is what sandboxed pages and files send: everybody's, so it is not taken. */
static int is_origin(const char *s, size_t n)
{
    const char *at = memchr(s, ':', n);
    if (!at || at == s || (size_t)(s + n - at) <= 3 || strncmp(at, "://", 3)) return 0;
    for (size_t i = 0; i < n; i++)
        if (s[i] <= ' ' || s[i] >= 0x7F || (s + i >= at + 3 && strchr("/?#@\"", s[i])) || (s[i] >= 'A' && s[i] <= 'Z')) return 0;
    return 1;
}

const char *cors_read(struct cors *c, const char *list)
{
    for (const char *s = list;; s++) {
        size_t n = strcspn(s, ",");
        if (n == 1 && *s == '*') c->any = 1;
        else if (!is_origin(s, n)) return "expected * or origins as browsers send them, https://page.example:8443,http://localhost:3000";
        else if (c->n == CORS_MOST) return "expected at most 64 origins";
        else {
            c->origin[c->n] = s;
            c->length[c->n++] = n;
        }
        s += n;
        if (!*s) return NULL;
    }
}

int cors_allows(const struct cors *c, const char *origin)
{
    if (c->any) return 1;
    for (int i = 0; i < c->n; i++)
        if (strlen(origin) == c->length[i] && !memcmp(origin, c->origin[i], c->length[i])) return 1;
    return 0;
}

static const char *header(struct MHD_Connection *c, const char *name) { return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name); }

/* Names of headers that a page wants to send; client libraries bring many of their own (X-Stainless-...), so what is asked for is allowed. */
static void add_preflight(struct MHD_Connection *connection, struct MHD_Response *r, const char *allow)
{
    const char *headers = header(connection, "Access-Control-Request-Headers");
    if (!header(connection, "Access-Control-Request-Method")) return;
    MHD_add_response_header(r, "Access-Control-Allow-Methods", allow);
    MHD_add_response_header(r, "Access-Control-Allow-Headers", headers ? headers : "Authorization, Content-Type, X-Api-Key");
    MHD_add_response_header(r, "Access-Control-Max-Age", "3600");
}

void cors_add(struct MHD_Connection *connection, struct MHD_Response *r, const struct cors *c, const char *allow)
{
    const char *origin = header(connection, MHD_HTTP_HEADER_ORIGIN);
    if (!c->n && !c->any) return;
    MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, "Origin");
    if (!origin || !cors_allows(c, origin)) return;
    MHD_add_response_header(r, "Access-Control-Allow-Origin", c->any ? "*" : origin);
    MHD_add_response_header(r, "Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
    if (*allow) add_preflight(connection, r, allow);
}
