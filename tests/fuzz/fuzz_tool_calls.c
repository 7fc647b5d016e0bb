#define _GNU_SOURCE /* memmem */
/* Any text as an answer with tool calls. Input: a byte of flags, a byte that seeds the cuts, text in which a byte from 0x80 on stands for a
 * piece of a call, so that structure is found soon.
 *
 * However it is cut the events are the same; arguments are JSON if and only if the call is complete; without a call all text comes out,
 * with calls all text that comes out is of the answer, in its order. */
#include "json_check.h"
#include "text.h"
#include "tool_calls.h"
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pieces[] = {
    "<tool_call>", "</tool_call>", "<function=f>", "</function>", "<parameter=s>", "</parameter>", "<parameter=i>", "<parameter=a>", "<parameter=zzz>", "\n",
    "<function=g>", "<function=no>", "\n</parameter>\n", "\n</parameter>\n</function>\n</tool_call>", "<tool_call>\n<function=f>\n<parameter=s>\n",
    "<tool_call>\n<function=g>\n</function>\n</tool_call>", "{\"name\":\"f\",\"arguments\":", "{\"s\":\"", "\"}", "}", "[1,2]", "null", "12", " ", "<", "\\", "\"",
    "</parameter>\n<parameter=i>\n", "\n</function>\n</tool_call>\n", "True", "생각", "<tool_call>{\"name\":\"g\"}</tool_call>",
};

static const char TOOLS[] = "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":\"string\"},\"i\":{\"type\":[\"integer\",\"null\"]},\"a\":{},"
                            "\"n\":{\"type\":[\"string\",\"array\"]}},\"required\":[\"s\"]}},{\"name\":\"g\"}]";

static struct q_tools *tools;

static void require(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* ---- the answer ---- */

struct answer {
    struct tok_text text;
    size_t thinking; /* so much of it */
    int cut;
};

static void add(struct tok_text *t, const char *s, size_t n) { require(!q_text_add(t, s, n, NULL), "memory"); }

static void read_input(struct answer *a, const uint8_t *data, size_t size)
{
    a->cut = data[0] & 1;
    a->thinking = SIZE_MAX;
    if (!(data[0] & 2)) a->thinking = 0;
    for (size_t i = 2; i < size; i++) {
        char c = (char)data[i];
        if (data[i] == 1 && a->thinking == SIZE_MAX) a->thinking = a->text.n;
        else if (data[i] >= 0x80) add(&a->text, pieces[data[i] % (sizeof pieces / sizeof *pieces)], strlen(pieces[data[i] % (sizeof pieces / sizeof *pieces)]));
        else if (c) add(&a->text, &c, 1);
    }
    if (a->thinking > a->text.n) a->thinking = a->text.n;
}

/* ---- what comes out ---- */

struct heard {
    struct tok_text all, arguments, shown; /* one text of all events; the open call's arguments; text that is no call */
    const struct answer *of;
    size_t from;                           /* shown text was found in the answer up to here */
    int last, calls, open;
};

static void show(struct heard *h, const char *s, size_t n)
{
    const struct tok_text *t = &h->of->text;
    const char *found = memmem(t->at + h->from, t->n - h->from, s, n);
    require(found != NULL, "text that the answer does not have");
    h->from = (size_t)(found - t->at) + n;
    add(&h->shown, s, n);
}

static int hear(void *arg, const struct q_tool_event *ev, struct q_err *e)
{
    struct heard *h = arg;
    char kind = "tcBAE"[ev->kind];
    int text = ev->kind == Q_TOOL_THINKING || ev->kind == Q_TOOL_CONTENT;
    require(text || ev->kind == Q_TOOL_BEGIN ? !h->open : h->open, "events out of order");
    if (h->last != (int)ev->kind) add(&h->all, &kind, 1);
    add(&h->all, ev->text, ev->n);
    h->last = (int)ev->kind;
    if (text) show(h, ev->text, ev->n);
    if (ev->kind == Q_TOOL_BEGIN) h->open = 1, h->calls++, h->arguments.n = 0;
    if (ev->kind == Q_TOOL_ARGUMENTS) add(&h->arguments, ev->text, ev->n);
    if (ev->kind == Q_TOOL_END) {
        int json = h->arguments.n && !json_check(h->arguments.at, h->arguments.n, JSON_MAX_DEPTH, "", NULL);
        require(json == ev->complete, "arguments of a call");
        add(&h->all, ev->complete ? "!" : "?", 1);
        h->open = 0;
    }
    return Q_OK;
}

static void free_heard(struct heard *h) { free(h->all.at), free(h->arguments.at), free(h->shown.at); }

/* seed 0: whole parts. */
static void listen(const struct answer *a, unsigned seed, struct heard *h)
{
    struct q_tool_calls *p;
    *h = (struct heard){.of = a, .last = -1};
    require(!q_tool_calls_open(&p, tools, hear, h, NULL), "open");
    for (size_t i = 0; i < a->text.n;) {
        size_t end = i < a->thinking ? a->thinking : a->text.n, n = end - i;
        seed = seed * 1103515245 + 12345 * (seed > 0);
        if (seed && n > 1 + (seed >> 16) % 13) n = 1 + (seed >> 16) % 13;
        require(!q_tool_calls_push(p, i < a->thinking ? Q_PART_THINKING : Q_PART_CONTENT, a->text.at + i, n, NULL), "push");
        i += n;
    }
    require(!q_tool_calls_end(p, a->cut, NULL), "end");
    require(!h->open, "a call that does not end");
    q_tool_calls_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct answer a = {0};
    struct heard whole, cut;
    if (!tools) {
        cJSON *list = cJSON_Parse(TOOLS);
        require(!q_tools_open(&tools, list, NULL), "tools");
        cJSON_Delete(list);
    }
    if (size < 2) return 0;
    read_input(&a, data, size);
    listen(&a, 0, &whole);
    listen(&a, 1u + data[1], &cut);
    require(whole.all.n == cut.all.n && (!whole.all.n || !memcmp(whole.all.at, cut.all.at, cut.all.n)), "another cut, other events");
    if (!whole.calls) require(whole.shown.n == a.text.n && (!a.text.n || !memcmp(whole.shown.at, a.text.at, a.text.n)), "text was lost");
    free_heard(&whole);
    free_heard(&cut);
    free(a.text.at);
    return 0;
}
