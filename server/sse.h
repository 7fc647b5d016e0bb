/* Server-sent events: a line that keeps proxies from cutting a quiet stream, and an error inside one. */
#ifndef S_SSE_H
#define S_SSE_H

#include "errors.h"

/* Silence after which a comment is sent: below the 15 s that the strictest readers bear. */
#define SSE_QUIET_S 10.0

void sse_comment(struct text *out);
/* OpenAI's clients raise their own error for it. */
void sse_error(const struct api_error *x, struct text *out);

#endif
