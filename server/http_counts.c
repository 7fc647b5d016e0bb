#include "http_counts.h"
#include "exposition.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Every status that this server sends; the last one stands for what should not be. */
static const int statuses[] = {200, 204, 400, 401, 403, 404, 405, 408, 413, 429, 431, 499, 500, 503, 0};
enum { STATUSES = sizeof statuses / sizeof *statuses };

struct route_count {
    unsigned long long by_status[STATUSES];
    struct expo_hist seconds;
};

struct http_counts {
    const struct http_route *routes;
    size_t n;
    pthread_mutex_t lock;
    struct route_count *count;   /* owned: [n + 1], the last for what has no route; guarded by lock */
};

int http_counts_open(struct http_counts **out, const struct http_route *routes, size_t n, struct q_err *e)
{
    struct http_counts *c = calloc(1, sizeof *c);
    struct route_count *count = calloc(n + 1, sizeof *count);
    if (!c || !count) {
        free(c);
        free(count);
        return q_fail(e, Q_EMEM, "no memory for counts of requests");
    }
    *c = (struct http_counts){.routes = routes, .n = n, .count = count};
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return Q_OK;
}

void http_counts_close(struct http_counts *c)
{
    if (!c) return;
    pthread_mutex_destroy(&c->lock);
    free(c->count);
    free(c);
}

void http_counts_add(struct http_counts *c, const struct http_route *route, int status, double seconds)
{
    int s = 0;
    while (s < STATUSES - 1 && statuses[s] != status) s++;
    pthread_mutex_lock(&c->lock);
    struct route_count *r = &c->count[route ? (size_t)(route - c->routes) : c->n];
    r->by_status[s]++;
    expo_hist_add(&r->seconds, seconds);
    pthread_mutex_unlock(&c->lock);
}

static void label_route(const struct http_counts *c, size_t i, struct text *labels)
{
    expo_label(labels, "method", i < c->n ? c->routes[i].method : "");
    expo_label(labels, "path", i < c->n ? c->routes[i].path : "");
}

static void put_statuses(const struct http_counts *c, struct text *t, struct text *labels)
{
    char code[8];
    expo_head(t, "http_requests_total", "counter", "HTTP requests by route and status; 499: the client left before the answer.");
    for (size_t i = 0; i <= c->n; i++) {
        for (int s = 0; s < STATUSES; s++) {
            if (!c->count[i].by_status[s]) continue;
            snprintf(code, sizeof code, "%d", statuses[s]);
            label_route(c, i, labels);
            expo_label(labels, "status", statuses[s] ? code : "other");
            expo_value(t, "http_requests_total", "", labels, (double)c->count[i].by_status[s]);
        }
    }
}

static int any(const struct expo_hist *h)
{
    for (int b = 0; b <= EXPO_BOUNDS; b++)
        if (h->n[b]) return 1;
    return 0;
}

static void put_seconds(const struct http_counts *c, struct text *t, struct text *labels)
{
    const char *name = "http_request_seconds";
    expo_head(t, name, "histogram", "Seconds from a request's headers to the end of its answer.");
    for (size_t i = 0; i <= c->n; i++) {
        if (!any(&c->count[i].seconds)) continue;
        label_route(c, i, labels);
        if (text_ok(labels)) expo_hist_put(t, name, &c->count[i].seconds, labels->at);
        labels->n = 0;
    }
    t->bad |= labels->bad;
}

void http_counts_put(struct http_counts *c, struct text *t)
{
    struct text labels = {0};
    pthread_mutex_lock(&c->lock);
    put_statuses(c, t, &labels);
    put_seconds(c, t, &labels);
    pthread_mutex_unlock(&c->lock);
    text_free(&labels);
}
