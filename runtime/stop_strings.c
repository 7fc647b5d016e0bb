#include "stop_strings.h"
#include "text.h"

int q_stops_open(struct q_stops *s, const char *const *stop, int n, struct q_err *e)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < n; i++)
        if (!stop[i][0]) return q_fail(e, Q_EINPUT, "stop string %d is empty", i);
    s->stop = stop;
    s->n = n;
    return Q_OK;
}

void q_stops_close(struct q_stops *s)
{
    free(s->held.at);
    memset(s, 0, sizeof *s);
}

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

/* Length of the longest beginning of `stop`, at most `most` bytes of it, that the text ends with. */
static size_t overlap(const struct tok_text *t, const char *stop, size_t most)
{
    size_t n = min_size(t->n, most);
    while (n && memcmp(t->at + t->n - n, stop, n)) n--;
    return n;
}

/* The longest stop string that the text ends with, and the longest part of one (a whole one is not a part of itself). */
static void look(struct q_stops *s, size_t *whole, size_t *part)
{
    *whole = *part = 0;
    for (int i = 0; i < s->n; i++) {
        size_t n = strlen(s->stop[i]), begun = overlap(&s->held, s->stop[i], n - 1);
        if (begun > *part) *part = begun;
        if (s->held.n < n || n <= *whole || memcmp(s->held.at + s->held.n - n, s->stop[i], n)) continue;
        *whole = n;
        s->which = i;
    }
}

/* Lets the first n bytes of what waits through. */
static int release(struct q_stops *s, size_t n, struct tok_text *out, struct q_err *e)
{
    int rc = q_text_add(out, s->held.at, n, e);
    if (rc || !n) return rc;
    s->held.n -= n;
    memmove(s->held.at, s->held.at + n, s->held.n);
    return Q_OK;
}

int q_stops_push(struct q_stops *s, const char *text, size_t n, struct tok_text *out, struct q_err *e)
{
    if (!s->n) return q_text_add(out, text, n, e);
    for (size_t i = 0; i < n && !s->met; i++) {
        size_t whole, part;
        int rc = q_text_add(&s->held, text + i, 1, e);
        if (rc) return rc;
        look(s, &whole, &part);
        s->met = whole > 0;
        rc = release(s, s->held.n - (whole ? whole : part), out, e);
        if (rc) return rc;
        if (s->met) s->held.n = 0;
    }
    return Q_OK;
}

int q_stops_flush(struct q_stops *s, struct tok_text *out, struct q_err *e) { return release(s, s->held.n, out, e); }
