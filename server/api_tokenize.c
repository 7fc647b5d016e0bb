/* POST /tokenize {content, parse_special?, with_pieces?} gives {tokens}; POST /detokenize {tokens} gives {content}.
 *
 * with_pieces: not ids, but {id, piece}; a piece that is no whole text (a part of a character) is a list of its bytes.
 * parse_special (default true): control tokens in the text become their ids. add_special changes nothing: these models have no token
 * that begins a text. */
#include "api.h"
#include "request.h"
#include "runtime/json_check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct tokenizer *tokenizer_of(struct http_request *rq) { return q_engine_tokenizer(worker_engine(http_server(rq)->worker)); }

static void put_piece(const struct tokenizer *tk, int32_t id, struct text *out)
{
    struct tok_str s = tok_piece(tk, id);
    text_printf(out, "{\"id\":%d,\"piece\":", id);
    if (utf8_valid(s.at, s.n)) {
        text_json(out, s.at, s.n);
    } else {
        for (size_t i = 0; i < s.n; i++) text_printf(out, i ? ",%d" : "[%d", (unsigned char)s.at[i]);
        text_put(out, "]");
    }
    text_put(out, "}");
}

static void put_tokens(const struct tokenizer *tk, const struct tok_ids *ids, int pieces, struct text *out)
{
    text_put(out, "{\"tokens\":[");
    for (size_t i = 0; i < ids->n; i++) {
        if (i) text_put(out, ",");
        if (pieces) put_piece(tk, ids->at[i], out);
        else text_printf(out, "%d", ids->at[i]);
    }
    text_put(out, "]}");
}

static int tokenize(struct http_request *rq, struct fields *f, struct text *out)
{
    struct tok_ids ids = {0};
    struct q_err e;
    const char *content = field_string(f, "content");
    int control = field_bool(f, "parse_special", 1);
    int pieces = field_bool(f, "with_pieces", 0);
    field_bool(f, "add_special", 0);
    if (!content && !fields_bad(f)) api_fail(f->x, 400, NULL, "content", "field 'content': expected a string, found none");
    if (fields_finish(f, NULL, 0, http_server(rq)->told)) return -1;
    if (tok_encode(tokenizer_of(rq), content, strlen(content), control ? TOK_PARSE_CONTROL : 0, &ids, &e)) return api_fail_err(f->x, "content", &e);
    put_tokens(tokenizer_of(rq), &ids, pieces, out);
    free(ids.at);
    return 0;
}

/* Whole characters only: broken ones as U+FFFD, since JSON holds no others. */
static int decode(const struct tokenizer *t, const cJSON *tokens, struct tok_text *out, struct api_error *x)
{
    struct tok_stream s = {0};
    struct q_err e;
    for (const cJSON *v = tokens->child; v; v = v->next) {
        if (!cJSON_IsNumber(v) || v->valuedouble != floor(v->valuedouble) || !(v->valuedouble >= 0 && v->valuedouble < tok_count(t)))
            return api_fail(x, 400, NULL, "tokens", "field 'tokens': expected whole numbers from 0 to %d", tok_count(t) - 1);
        if (tok_stream_push(&s, t, v->valueint, out, &e)) return api_fail_err(x, "tokens", &e);
    }
    return tok_stream_flush(&s, out, &e) ? api_fail_err(x, "tokens", &e) : 0;
}

static int detokenize(struct http_request *rq, struct fields *f, struct text *out)
{
    struct tok_text content = {0};
    const cJSON *tokens = field_get(f, "tokens");
    if (!cJSON_IsArray(tokens)) return api_fail(f->x, 400, NULL, "tokens", "field 'tokens': expected a list of token ids");
    int rc = fields_finish(f, NULL, 0, http_server(rq)->told);
    if (!rc) rc = decode(tokenizer_of(rq), tokens, &content, f->x);
    if (!rc) {
        text_put(out, "{\"content\":");
        text_json(out, content.at ? content.at : "", content.n);
        text_put(out, "}");
    }
    free(content.at);
    return rc;
}

static void handle(struct http_request *rq, int (*run)(struct http_request *, struct fields *, struct text *))
{
    size_t n;
    const char *body = http_body(rq, &n);
    struct api_error x = {0};
    struct fields f;
    struct text out = {0};
    cJSON *root;
    int rc = body_parse(body, n, &root, &x);
    if (!rc) {
        fields_begin(&f, root, &x);
        rc = run(rq, &f, &out);
    }
    cJSON_Delete(root);
    if (!rc) {
        http_reply_json(rq, 200, &out);
        return;
    }
    text_free(&out);
    http_reply_error(rq, &x);
}

void api_tokenize(struct http_request *rq) { handle(rq, tokenize); }
void api_detokenize(struct http_request *rq) { handle(rq, detokenize); }
