/* Input: template text, a zero byte, messages as JSON, a zero byte, options as JSON (the last two may be missing).
 * No crash, no leak, no hang; and no error that says a promise of the program was broken. */
#include "chat_template.h"
#include "err.h"
#include "json_check.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void stop_on_internal(int err, const struct q_err *e)
{
    if (err != Q_EINTERNAL) return;
    fprintf(stderr, "%s\n", e->text);
    abort();
}

/* The next zero-ended piece of text, or NULL. */
static const char *next_piece(const char **at, const char *end)
{
    if (*at >= end) return NULL;
    const char *piece = *at;
    *at += strlen(piece) + 1;
    return piece;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);
    memcpy(copy, data, size);
    copy[size] = 0;
    const char *at = copy, *end = copy + size;
    const char *jinja = next_piece(&at, end), *messages = next_piece(&at, end), *options = next_piece(&at, end);
    struct chat_template *t = NULL;
    struct q_err e;
    json_check((const char *)data, size, JSON_MAX_DEPTH, "fuzz", &e);
    if (jinja) stop_on_internal(chat_template_open(&t, jinja, strlen(jinja), "fuzz", &e), &e);
    if (t) {
        struct chat_request r = {.messages = messages ? messages : "[{\"role\":\"user\",\"content\":\"hi\"}]", .options = options};
        char *text;
        size_t n;
        chat_template_limits(t, 16 << 20, 2 * 1000 * 1000);
        stop_on_internal(chat_template_render(t, &r, &text, &n, &e), &e);
        free(text);
    }
    chat_template_close(t);
    free(copy);
    return 0;
}
