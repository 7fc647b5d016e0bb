/* Chat templates: messages in, prompt text out, by the Jinja template that a model file carries.
 *
 * The template is compiled once to Lua closures, inside a Lua state of its own that has no files, no loading of code and
 * no clock but strftime_now, and whose memory and steps are bounded; then it is rendered any number of times.
 * What templates get is what Hugging Face's apply_chat_template gives them: trim_blocks, lstrip_blocks, break and
 * continue, {% generation %}, raise_exception, strftime_now, tojson without HTML escapes; variables messages, tools,
 * documents (none), add_generation_prompt, and the options. Integers have 64 bits.
 * Not supported, and refused with the line: inheritance, include, import, {% call %}, recursive loops, `*args`,
 * string formatting by %. An unknown filter or test is an error where it is reached.
 * How messages are normalised stands in chat_messages.lua.
 *
 * One template serves one thread at a time. It does not: tokenise, or check that roles alternate (the template does).
 */
#ifndef Q_CHAT_TEMPLATE_H
#define Q_CHAT_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct q_err;
struct chat_template;

/* A template longer than this is refused. */
#define CHAT_TEMPLATE_MAX (256 * 1024)

/* Applied once to every string and key of messages (normalised: a call's arguments are a mapping by then), tools and
 * options, before the template sees them. Sets *out to a malloc'd UTF-8 text, or leaves it NULL to keep s. Templates join
 * strings, so breaking a text that would become a control token by being joined (one that begins or ends with a part of
 * it) is up to the guard. */
struct chat_text_guard {
    int (*guard)(void *ctx, const char *s, size_t n, char **out, size_t *out_n, struct q_err *e);
    void *ctx;
};

struct chat_request {
    const char *messages;                /* JSON list of messages */
    const char *tools;                   /* JSON list, or NULL */
    const char *options;                 /* JSON object (enable_thinking, preserve_thinking, ...), or NULL */
    bool add_generation_prompt;          /* options may say otherwise */
    bool as_is;                          /* leave the messages as they came: for comparing with other renderers */
    const struct chat_text_guard *guard; /* or NULL */
};

/* Compiles jinja[0..n). `where` begins error lines ("FILE: chat template"); it is copied.
 * Q_EINPUT "WHERE, line N: ..." for a template that is wrong, Q_EUNSUP-like faults included; Q_ELIMIT, Q_EMEM. */
int chat_template_open(struct chat_template **out, const char *jinja, size_t n, const char *where, struct q_err *e);
void chat_template_close(struct chat_template *t);

/* Bounds of one open or render: bytes of Lua memory (16 bytes for each of the request's are added) and Lua
 * instructions (200 for each are added). Defaults: 256 MiB, 100 million (about a second). */
void chat_template_limits(struct chat_template *t, size_t memory, uint64_t steps);

/* Renders: *text is malloc'd, *n bytes and a zero byte. Errors leave the template usable.
 * Q_EINPUT: JSON or messages malformed ("messages[2]...: expected X, found Y"), or the template's own raise_exception
 * ("WHERE: ITS TEXT") or another error inside it ("WHERE, line N: ..."); Q_ELIMIT over a bound; Q_EMEM. */
int chat_template_render(struct chat_template *t, const struct chat_request *r, char **text, size_t *n, struct q_err *e);

#endif
