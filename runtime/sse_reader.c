#include "sse_reader.h"
#include "text.h"

enum { MOST = 16 << 20 };

static int add(struct tok_text *t, const char *s, size_t n) { return t->n + n > MOST || q_text_add(t, s, n, NULL) ? -1 : 0; }

/* An empty line: the event is whole. */
static int dispatch(struct sse_reader *r, sse_event event, void *arg)
{
    int had = r->has_data;
    r->has_data = 0;
    if (!had) return 0;
    if (add(&r->data, "", 1)) return -1;
    size_t n = r->data.n - 1;
    r->data.n = 0;
    return event(arg, r->data.at, n);
}

static int take_line(struct sse_reader *r, sse_event event, void *arg)
{
    const char *s = r->line.at;
    size_t n = r->line.n;
    r->line.n = 0;
    if (!n) return dispatch(r, event, arg);
    if (n < 5 || memcmp(s, "data:", 5)) return 0;
    size_t skip = 5 + (n > 5 && s[5] == ' ');
    if (r->has_data && add(&r->data, "\n", 1)) return -1;
    r->has_data = 1;
    return add(&r->data, s + skip, n - skip);
}

/* Lines end with \n, \r\n or \r. */
int sse_push(struct sse_reader *r, const char *s, size_t n, sse_event event, void *arg)
{
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        int after_cr = r->after_cr;
        r->after_cr = s[i] == '\r';
        if (s[i] == '\n' && after_cr) continue;
        rc = s[i] == '\n' || s[i] == '\r' ? take_line(r, event, arg) : add(&r->line, s + i, 1);
    }
    return rc;
}

void sse_free(struct sse_reader *r)
{
    free(r->line.at);
    free(r->data.at);
}
