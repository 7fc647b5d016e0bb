#include "transcript.h"
#include <stdlib.h>
#include <string.h>

static void free_call(struct call *c)
{
    free(c->id);
    text_free(&c->name);
    text_free(&c->arguments);
}

static void begin_call(struct choice *c, const struct event *ev)
{
    struct call *more = realloc(c->call, (size_t)(c->n_calls + 1) * sizeof *more);
    char *id = more ? strdup(ev->call_id) : NULL;
    if (more) c->call = more;
    if (!id) {
        c->content.bad = 1;
        return;
    }
    more[c->n_calls] = (struct call){.id = id};
    text_add(&more[c->n_calls++].name, ev->text, ev->n);
}

static void keep_tokens_of(struct choice *c, const struct event *ev)
{
    size_t n = (size_t)(c->n_tokens + ev->n_tokens);
    struct q_token *more = ev->n_tokens ? realloc(c->token, n * sizeof *more) : NULL;
    if (!ev->n_tokens) return;
    if (!more) {
        c->content.bad = 1;
        return;
    }
    memcpy(more + c->n_tokens, ev->token, (size_t)ev->n_tokens * sizeof *more);
    c->token = more;
    c->n_tokens += ev->n_tokens;
}

void transcript_add(struct choice *choices, const struct event *ev)
{
    struct choice *c = &choices[ev->choice];
    keep_tokens_of(c, ev);
    switch (ev->kind) {
    case EVENT_THINKING: text_add(&c->thinking, ev->text, ev->n); break;
    case EVENT_TEXT: text_add(&c->content, ev->text, ev->n); break;
    case EVENT_CALL: begin_call(c, ev); break;
    case EVENT_ARGUMENTS:
        if (ev->call < c->n_calls) text_add(&c->call[ev->call].arguments, ev->text, ev->n);
        break;
    case EVENT_CALL_END:
        /* Half a call is never shown as whole. */
        if (!ev->complete && c->n_calls) free_call(&c->call[--c->n_calls]);
        break;
    case EVENT_END:
        c->finish = ev->finish;
        c->stopped_by = ev->stopped_by;
    }
}

int transcript_ok(const struct choice *choices, int n)
{
    int bad = 0;
    for (const struct choice *c = choices; c < choices + n; c++) {
        bad |= c->content.bad | c->thinking.bad;
        for (int i = 0; i < c->n_calls; i++) bad |= c->call[i].name.bad | c->call[i].arguments.bad;
    }
    return !bad;
}

void transcript_free(struct choice *choices, int n)
{
    for (struct choice *c = choices; c < choices + n; c++) {
        text_free(&c->content);
        text_free(&c->thinking);
        for (int i = 0; i < c->n_calls; i++) free_call(&c->call[i]);
        free(c->call);
        free(c->token);
    }
}
