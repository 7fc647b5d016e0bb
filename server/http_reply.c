#include "cors.h"
#include "http_impl.h"
#include "messages_form.h"
#include "runtime/json_check.h"
#include "runtime/plain.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void http_plain_line(char *s)
{
    int utf8 = utf8_valid(s, strlen(s));
    plain_line(s);
    for (; *s; s++)
        if ((unsigned char)*s > 0x7F && !utf8) *s = '?';
}

void http_note(struct http_request *rq, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(rq->note, sizeof rq->note, fmt, ap);
    va_end(ap);
    http_plain_line(rq->note);
}

/* cors.c's headers and those of every answer are added here. */
static void send_off(struct http_request *rq, int status, struct MHD_Response *r)
{
    rq->status = status;
    MHD_set_connection_option(rq->c, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)HTTP_IDLE_S);
    if (!r) return;
    MHD_add_response_header(r, "X-Request-Id", rq->id);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (rq->close || atomic_load(&rq->http->sv->ending)) MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    cors_add(rq->c, r, &rq->http->sv->o.cors, rq->allow);
    MHD_queue_response(rq->c, (unsigned)status, r);
    MHD_destroy_response(r);
}

static void keep_for_log(struct http_request *rq, const char *s, size_t n)
{
    size_t room = HTTP_TEXT_LOGGED > rq->said.n ? HTTP_TEXT_LOGGED - rq->said.n : 0;
    if (rq->http->sv->o.log_text) text_add(&rq->said, s, n < room ? n : room);
}

static struct MHD_Response *text_response(struct http_request *rq, struct text *body, const char *type)
{
    static char no_memory[] = "{\"error\":{\"message\":\"no memory\",\"type\":\"server_error\",\"param\":null,\"code\":null}}";
    struct MHD_Response *r;
    if (text_ok(body)) {
        keep_for_log(rq, body->at ? body->at : "", body->n);
        r = MHD_create_response_from_buffer(body->n, body->at, MHD_RESPMEM_MUST_FREE);
        if (!r) free(body->at);
    } else {
        r = MHD_create_response_from_buffer(sizeof no_memory - 1, no_memory, MHD_RESPMEM_PERSISTENT);
        type = "application/json";
        free(body->at);
    }
    *body = (struct text){0};
    if (r) MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    return r;
}

void http_reply_text(struct http_request *rq, int status, const char *type, struct text *body)
{
    status = text_ok(body) ? status : 500;
    send_off(rq, status, text_response(rq, body, type));
}

void http_reply_json(struct http_request *rq, int status, struct text *body) { http_reply_text(rq, status, "application/json", body); }

void http_reply_static(struct http_request *rq, const void *body, size_t n, const char *const *headers)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(n, (void *)(uintptr_t)body, MHD_RESPMEM_PERSISTENT);
    for (; r && headers[0]; headers += 2) MHD_add_response_header(r, headers[0], headers[1]);
    send_off(rq, 200, r);
}

static struct MHD_Response *error_response(struct http_request *rq, const struct api_error *x)
{
    struct text t = {0};
    if (!strncmp(rq->path, "/v1/messages", 12)) messages_error_json(x, &t);   /* absent ones below it too */
    else api_error_json(x, &t);
    struct MHD_Response *r = text_response(rq, &t, "application/json");
    if (!rq->note[0]) http_note(rq, "%.200s", x->message);
    if (r && x->status == 401) MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (r && x->status == 405) MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, rq->allow);
    return r;
}

void http_reply_error(struct http_request *rq, const struct api_error *x) { send_off(rq, x->status, error_response(rq, x)); }

void http_reply_later(struct http_request *rq, const struct api_error *x, int retry_after_s)
{
    char s[16];
    struct MHD_Response *r = error_response(rq, x);
    snprintf(s, sizeof s, "%d", retry_after_s);
    if (r) MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, s);
    send_off(rq, x->status, r);
}

void http_reply_options(struct http_request *rq)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (r) MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, rq->allow);
    send_off(rq, 204, r);
}

/* Hands out what is there; asks for more when all is out. */
static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct http_request *rq = cls;
    while (rq->out_at == rq->out.n) {
        if (rq->last) return rq->last > 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
        rq->out.n = rq->out_at = 0;
        rq->last = rq->stream.more(rq->stream.arg, &rq->out);
        if (!text_ok(&rq->out)) return MHD_CONTENT_READER_END_WITH_ERROR;
        keep_for_log(rq, rq->out.at ? rq->out.at : "", rq->out.n);
    }
    size_t n = rq->out.n - rq->out_at < max ? rq->out.n - rq->out_at : max;
    memcpy(buf, rq->out.at + rq->out_at, n);
    rq->out_at += n;
    return (ssize_t)n;
}

void http_reply_stream(struct http_request *rq, const struct http_stream *s)
{
    rq->stream = *s;
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 << 10, read_stream, rq, NULL);
    if (r) {
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
        MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
        MHD_add_response_header(r, "X-Accel-Buffering", "no");
    }
    send_off(rq, 200, r);
}
