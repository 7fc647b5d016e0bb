#include "errors.h"
#include <stdarg.h>
#include <stdio.h>

static const char *type_of(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 503: return "unavailable_error";
    case 500: return "server_error";
    default: return "invalid_request_error";
    }
}

int api_fail(struct api_error *x, int status, const char *code, const char *param, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(x->message, sizeof x->message, fmt, ap);
    va_end(ap);
    snprintf(x->param, sizeof x->param, "%s", param ? param : "");
    x->status = status;
    x->code = code;
    return -1;
}

int api_fail_err(struct api_error *x, const char *param, const struct q_err *e)
{
    switch (e->code) {
    case Q_EMEM: return api_fail(x, 503, "no_memory", NULL, "%s", e->text);
    case Q_EIO:
    case Q_EINTERNAL: return api_fail(x, 500, "internal", NULL, "%s", e->text);
    default: return api_fail(x, 400, NULL, param, "%s", e->text);
    }
}

void api_error_json(const struct api_error *x, struct text *t)
{
    text_put(t, "{\"error\":{\"message\":");
    text_json_z(t, x->message);
    text_put(t, ",\"type\":");
    text_json_z(t, type_of(x->status));
    text_put(t, ",\"param\":");
    text_json_z(t, x->param[0] ? x->param : NULL);
    text_put(t, ",\"code\":");
    text_json_z(t, x->code);
    text_put(t, "}}");
}
