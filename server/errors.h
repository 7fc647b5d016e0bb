/* What a client is told when it cannot have what it asked for: an HTTP status and OpenAI's error object.
 *
 *   {"error": {"message": TEXT, "type": TEXT, "param": TEXT or null, "code": TEXT or null}}
 *
 * `code` is a text or null, never a number: client libraries fail inside their own error handling otherwise.
 */
#ifndef S_ERRORS_H
#define S_ERRORS_H

#include "runtime/err.h"
#include "json_text.h"

struct api_error {
    int status;         /* HTTP; 0: no error */
    const char *code;   /* static, or NULL */
    char param[96];     /* the field, or "" */
    char message[1200];
};

/* Fills *x and returns -1. */
int api_fail(struct api_error *x, int status, const char *code, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* What the runtime said about something the client sent: 400, or 500 where it was not the client's doing. */
int api_fail_err(struct api_error *x, const char *param, const struct q_err *e);
void api_error_json(const struct api_error *x, struct text *t);

#endif
