#include "completions_form.h"
#include "openai.h"
#include "sse.h"
#include "runtime/json_check.h"
#include <stdlib.h>
#include <string.h>

struct completions {
    struct openai_head head;
    int logprobs;
    size_t *offset;              /* owned: [choices] characters of the tokens so far */
};

static const char OBJECT[] = "text_completion";

void *completions_form_open(struct server *sv, const struct ask *ask)
{
    struct completions *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->offset = calloc((size_t)ask_choices(ask), sizeof *f->offset);
    if (!f->offset) return free(f), NULL;
    openai_head_init(&f->head, "cmpl-", sv, ask);
    f->logprobs = ask->job.logprobs >= 0;
    return f;
}

static void close_form(void *state)
{
    struct completions *f = state;
    free(f->offset);
    free(f);
}

/* ---- logprobs ---- */

static size_t characters(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)s[i] & 0xC0) != 0x80;
    return count;
}

static void put_bytes(const struct tok_text *t, struct text *out)
{
    text_put(out, "\"bytes:");
    for (size_t i = 0; i < t->n; i++) text_printf(out, "\\\\x%02x", (unsigned char)t->at[i]);
    text_put(out, "\"");
}

/* Its length in characters. */
static size_t put_name(const struct completions *f, int id, struct text *out)
{
    struct tok_text t = {0};
    openai_token(&f->head, id, &t);
    size_t n = characters(t.n ? t.at : "", t.n);
    if (t.n && !utf8_valid(t.at, t.n)) put_bytes(&t, out);
    else text_json(out, t.n ? t.at : "", t.n);
    free(t.at);
    return n;
}

static void put_pair(const struct completions *f, int first, int id, float logprob, struct text *out)
{
    if (!first) text_put(out, ",");
    put_name(f, id, out);
    text_put(out, ":");
    openai_put_logprob(logprob, out);
}

static void put_top(const struct completions *f, const struct q_token *t, struct text *out)
{
    int seen = 0;
    text_put(out, "{");
    for (int k = 0; k < t->n_top; k++) {
        seen |= t->top_id[k] == t->id;
        put_pair(f, !k, t->top_id[k], t->top_logprob[k], out);
    }
    if (!seen) put_pair(f, !t->n_top, t->id, t->logprob, out);
    text_put(out, "}");
}

/* offset moves on. */
static void put_logprobs(const struct completions *f, const struct q_token *t, int n, size_t *offset, struct text *out)
{
    struct text offsets = {0};
    text_put(out, "{\"tokens\":[");
    for (int i = 0; i < n; i++) {
        if (i) text_put(out, ",");
        text_printf(&offsets, i ? ",%zu" : "%zu", *offset);
        *offset += put_name(f, t[i].id, out);
    }
    text_put(out, "],\"token_logprobs\":[");
    for (int i = 0; i < n; i++) {
        if (i) text_put(out, ",");
        openai_put_logprob(t[i].logprob, out);
    }
    text_put(out, "],\"top_logprobs\":[");
    for (int i = 0; i < n; i++) {
        if (i) text_put(out, ",");
        put_top(f, &t[i], out);
    }
    text_put(out, "],\"text_offset\":[");
    if (offsets.n) text_add(out, offsets.at, offsets.n);
    out->bad |= offsets.bad;
    text_put(out, "]}");
    text_free(&offsets);
}

/* ---- choices ---- */

struct shown {
    int index;
    const char *text;
    size_t n;
    const struct q_token *token;
    int n_tokens;
    int finished;
    enum finish finish;
};

static void put_choice(const struct completions *f, const struct shown *s, struct text *out)
{
    text_printf(out, "{\"index\":%d,\"text\":", s->index);
    text_json(out, s->text, s->n);
    text_put(out, ",\"logprobs\":");
    if (f->logprobs) put_logprobs(f, s->token, s->n_tokens, &f->offset[s->index], out);
    else text_put(out, "null");
    text_put(out, ",\"finish_reason\":");
    if (s->finished) openai_put_finish(s->finish, out);
    else text_put(out, "null");
    text_put(out, "}");
}

static void begin(void *state, struct text *out) { sse_comment(out); }

static void put_event(void *state, const struct event *ev, struct text *out)
{
    const struct completions *f = state;
    const struct shown s = {ev->choice, ev->n ? ev->text : "", ev->n, ev->token, ev->n_tokens, ev->kind == EVENT_END, ev->finish};
    openai_begin_chunk(&f->head, OBJECT, out);
    put_choice(f, &s, out);
    openai_end_chunk(&f->head, out);
}

static void end(void *state, const struct usage *u, struct text *out) { openai_put_done(&((const struct completions *)state)->head, OBJECT, u, out); }

static void whole(void *state, const struct choice *c, int n, const struct usage *u, struct text *out)
{
    const struct completions *f = state;
    openai_put_head(&f->head, OBJECT, out);
    text_put(out, ",\"choices\":[");
    for (int i = 0; i < n; i++) {
        const struct shown s = {i, text_of(&c[i].content), c[i].content.n, c[i].token, c[i].n_tokens, 1, c[i].finish};
        if (i) text_put(out, ",");
        put_choice(f, &s, out);
    }
    text_put(out, "],");
    openai_put_counts(u, out);
    text_put(out, "}");
}

const struct form completions_form = {begin, put_event, end, openai_fault, whole, close_form};
