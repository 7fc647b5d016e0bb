#include "sse.h"

void sse_comment(struct text *out) { text_put(out, ": waiting\n\n"); }

void sse_error(const struct api_error *x, struct text *out)
{
    text_put(out, "data: ");
    api_error_json(x, out);
    text_put(out, "\n\n");
}
