/* How often each route was asked, how it answered and how long that took, for /metrics. Any thread. */
#ifndef S_HTTP_COUNTS_H
#define S_HTTP_COUNTS_H

#include "http.h"

struct http_counts;
/* routes: borrowed. */
int http_counts_open(struct http_counts **c, const struct http_route *routes, size_t n, struct q_err *e);
void http_counts_close(struct http_counts *c);
/* route: one of them, or NULL where there was none. */
void http_counts_add(struct http_counts *c, const struct http_route *route, int status, double seconds);
void http_counts_put(struct http_counts *c, struct text *t);

#endif
