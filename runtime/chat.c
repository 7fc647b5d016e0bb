#include "chat.h"
#include "chat_template.h"
#include "gguf.h"
#include "model.h"
#include "unicode.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct q_chat {
    const struct tokenizer *tokenizer;   /* borrowed */
    struct chat_template *template;
};

/* The file's name alone: what is said of a template reaches clients of a server. */
static const char *file_name(const struct q_model *m)
{
    const char *slash = strrchr(m->path, '/');
    return slash ? slash + 1 : m->path;
}

int q_chat_open(struct q_chat **out, const struct q_engine *en, const char *jinja, struct q_err *e)
{
    const struct q_model *m = q_engine_model(en);
    struct gguf_str file = {0};
    char where[4160];
    if (!q_engine_tokenizer(en)) return q_fail(e, Q_EMISS, "%s has no tokenizer, so it cannot chat", file_name(m));
    int rc = jinja ? Q_OK : gguf_get_str(m->file, "tokenizer.chat_template", &file, e);
    if (rc == Q_EMISS) return q_fail(e, Q_EMISS, "%s has no chat template (key tokenizer.chat_template)", file_name(m));
    if (rc) return rc;
    struct q_chat *c = calloc(1, sizeof *c);
    if (!c) return q_fail(e, Q_EMEM, "no memory for a chat");
    c->tokenizer = q_engine_tokenizer(en);
    snprintf(where, sizeof where, "%s: chat template", jinja ? "given" : file_name(m));
    rc = chat_template_open(&c->template, jinja ? jinja : file.s, jinja ? strlen(jinja) : file.n, where, e);
    if (rc) free(c);
    else *out = c;
    return rc;
}

void q_chat_close(struct q_chat *c)
{
    if (!c) return;
    chat_template_close(c->template);
    free(c);
}

static int guard(void *ctx, const char *s, size_t n, char **out, size_t *out_n, struct q_err *e)
{
    const struct q_chat *c = ctx;
    return tok_guard(c->tokenizer, s, n, out, out_n, e);
}

/* A prompt's text as it grows; at[0..n] with a zero byte at its end. */
struct prompt {
    char *at; /* owned */
    size_t n;
};

static int append(struct prompt *p, const char *s, size_t n, struct q_err *e)
{
    char *at = realloc(p->at, p->n + n + 1);
    if (!at) return q_fail(e, Q_EMEM, "no memory for a prompt");
    memcpy(at + p->n, s, n);
    p->at = at;
    p->n += n;
    at[p->n] = 0;
    return Q_OK;
}

/* Text of a message: no part of it becomes a control token. */
static int append_guarded(struct q_chat *c, struct prompt *p, const char *s, struct q_err *e)
{
    char *marked = NULL;
    size_t n = strlen(s);
    int rc = tok_guard(c->tokenizer, s, n, &marked, &n, e);
    if (!rc) rc = append(p, marked ? marked : s, n, e);
    free(marked);
    return rc;
}

static int ends_with(const struct prompt *p, const char *s)
{
    size_t n = strlen(s);
    return p->n >= n && !memcmp(p->at + p->n - n, s, n);
}

/* As the templates write a finished think block (reply.h). */
static int append_begun(struct q_chat *c, struct prompt *p, const struct q_chat_begun *b, struct q_err *e)
{
    int rc = Q_OK;
    if (ends_with(p, "<think>\n")) {
        rc = append_guarded(c, p, b->thinking, e);
        if (!rc && *b->content) rc = append(p, "\n</think>\n\n", 11, e);
    }
    return rc ? rc : append_guarded(c, p, b->content, e);
}

int q_chat_render(struct q_chat *c, const char *messages, const char *tools, const char *options, const struct q_chat_begun *begun,
                  char **text, size_t *n, struct q_err *e)
{
    struct chat_text_guard g = {guard, c};
    struct chat_request r = {.messages = messages, .tools = tools, .options = options, .add_generation_prompt = true, .guard = &g};
    struct prompt p = {0};
    int rc = chat_template_render(c->template, &r, &p.at, &p.n, e);
    if (!rc && begun) rc = append_begun(c, &p, begun, e);
    if (rc) free(p.at);
    else *text = p.at, *n = p.n;
    return rc;
}

int q_chat_ids(const struct q_chat *c, const char *text, size_t n, struct tok_ids *ids, struct q_err *e)
{
    return tok_encode(c->tokenizer, text, n, TOK_PARSE_CONTROL | TOK_GUARDED, ids, e);
}

int q_chat_encode(struct q_chat *c, const char *messages, const char *tools, const char *options, struct tok_ids *ids, struct q_err *e)
{
    char *text;
    size_t n;
    int rc = q_chat_render(c, messages, tools, options, NULL, &text, &n, e);
    if (rc) return rc;
    rc = q_chat_ids(c, text, n, ids, e);
    free(text);
    return rc;
}

int q_chat_check_text(const char *what, const char *text, size_t n, struct q_err *e)
{
    const char *nul = memchr(text, 0, n);
    size_t bad = utf8_check(text, n);
    if (nul) return q_fail(e, Q_EINPUT, "%s has a NUL byte at offset %zu; a chat message cannot hold one", what, (size_t)(nul - text));
    return bad == n ? Q_OK : q_fail(e, Q_EINPUT, "%s is not valid UTF-8: byte %zu is 0x%02X", what, bad, (unsigned char)text[bad]);
}

static int add_message(cJSON *list, const char *role, const char *text)
{
    cJSON *m = cJSON_CreateObject();
    int ok = m && cJSON_AddStringToObject(m, "role", role) && cJSON_AddStringToObject(m, "content", text) && cJSON_AddItemToArray(list, m);
    if (!ok) cJSON_Delete(m);
    return ok;
}

char *q_chat_messages(const char *system, const char *user)
{
    cJSON *list = cJSON_CreateArray();
    int ok = list && (!system || add_message(list, "system", system)) && add_message(list, "user", user);
    char *text = ok ? cJSON_PrintUnformatted(list) : NULL;
    cJSON_Delete(list);
    return text;
}
