/* GET /openapi.json: the description of this API, openapi.json as it lies beside this file. */
#include "api.h"

extern const char openapi_json[];
extern const size_t openapi_json_size;

void api_openapi(struct http_request *rq)
{
    static const char *const headers[] = {"Content-Type", "application/json", NULL};
    http_reply_static(rq, openapi_json, openapi_json_size, headers);
}
