/* The log on stderr: a line a request, facts ("# ...") or, with --log-json, one JSON object a line. With -q nothing.
 * What people wrote and were answered is in it only with --log-text. Any thread. */
#ifndef S_LOG_H
#define S_LOG_H

#include "json_text.h"

struct options;

struct log_request {
    const char *id, *client, *method, *path, *note;  /* note may be "" */
    int status;
    double seconds;
    size_t body_bytes;
};

void log_line(const struct options *o, const char *line);
void log_request(const struct options *o, const struct log_request *r);
/* what: "body" or "answer". */
void log_text(const struct options *o, const char *id, const char *what, const struct text *text);

#endif
