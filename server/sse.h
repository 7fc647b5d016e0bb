/* Server-sent events: a line that keeps proxies from cutting a quiet stream, and an error inside one. */
#ifndef S_SSE_H
#define S_SSE_H

#include "errors.h"

void sse_comment(struct text *out);
/* OpenAI's clients raise their own error for it. */
void sse_error(const struct api_error *x, struct text *out);

#endif
