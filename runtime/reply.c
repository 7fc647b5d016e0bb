#include "reply.h"
#include "text.h"

static const char OPEN[] = "<think>", CLOSE[] = "</think>";

void q_reply_start(struct q_reply *r, int thinking)
{
    *r = (struct q_reply){.at = thinking ? Q_REPLY_THINKING_START : Q_REPLY_START};
}

static int in_block(const struct q_reply *r) { return r->at == Q_REPLY_THINKING_START || r->at == Q_REPLY_THINKING; }

/* The tag that would end the present state; NULL: none can. */
static const char *awaited(const struct q_reply *r) { return r->at == Q_REPLY_START ? OPEN : in_block(r) ? CLOSE : NULL; }

/* What waited turned out to be text, and s follows it. */
static int put(struct q_reply *r, const char *s, size_t n, struct q_reply_text *out, struct q_err *e)
{
    struct tok_text *to = in_block(r) ? &out->thinking : &out->content;
    int rc = Q_OK;
    for (; r->newlines && !rc; r->newlines--) rc = q_text_add(to, "\n", 1, e);
    r->at = in_block(r) ? Q_REPLY_THINKING : Q_REPLY_CONTENT;
    return rc ? rc : q_text_add(to, s, n, e);
}

static int put_held(struct q_reply *r, struct q_reply_text *out, struct q_err *e)
{
    size_t n = (size_t)r->held;
    const char *tag = awaited(r);
    r->held = 0;
    return n ? put(r, tag, n, out, e) : Q_OK;
}

static void pass_tag(struct q_reply *r)
{
    r->at = r->at == Q_REPLY_START ? Q_REPLY_THINKING_START : Q_REPLY_CONTENT_START;
    r->newlines = 0;
    r->held = 0;
}

static int put_newline(struct q_reply *r, struct q_reply_text *out, struct q_err *e)
{
    switch (r->at) {
    case Q_REPLY_THINKING_START:
    case Q_REPLY_CONTENT_START: return Q_OK;
    case Q_REPLY_START:
    case Q_REPLY_THINKING: r->newlines++; return Q_OK;
    default: return put(r, "\n", 1, out, e);
    }
}

/* A tag begins with the only '<' in it, so a broken one needs no second look but at the byte that broke it. */
static int push_byte(struct q_reply *r, const char *c, struct q_reply_text *out, struct q_err *e)
{
    const char *tag = awaited(r);
    if (tag && *c != tag[r->held]) {
        int rc = put_held(r, out, e);
        if (rc) return rc;
        tag = awaited(r);
    }
    if (tag && *c == tag[r->held]) {
        if (!tag[++r->held]) pass_tag(r);
        return Q_OK;
    }
    return *c == '\n' ? put_newline(r, out, e) : put(r, c, 1, out, e);
}

int q_reply_push(struct q_reply *r, const char *s, size_t n, struct q_reply_text *out, struct q_err *e)
{
    int rc = Q_OK;
    for (size_t i = 0; i < n && !rc; i++) rc = push_byte(r, s + i, out, e);
    return rc;
}

int q_reply_end(struct q_reply *r, struct q_reply_text *out, struct q_err *e)
{
    int rc = put_held(r, out, e);
    return rc || !r->newlines ? rc : put(r, "", 0, out, e);
}

int q_reply_opens_thinking(const struct tokenizer *t, const int32_t *ids, size_t n)
{
    int32_t turn = tok_find(t, "<|im_start|>", 12), open = tok_find(t, OPEN, strlen(OPEN)), close = tok_find(t, CLOSE, strlen(CLOSE));
    if (open < 0) return 0;
    while (n-- > 0 && ids[n] != turn && ids[n] != close)
        if (ids[n] == open) return 1;
    return 0;
}
