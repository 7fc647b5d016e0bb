#include "http_client.h"
#include "curl_lib.h"
#include "text.h"
#include <cjson/cJSON.h>
#include <stdio.h>

enum { MOST_BYTES = 64 << 20, MOST_ERROR_BYTES = 1 << 16, SILENT_S = 600, CONNECT_S = 30 };

struct http_client {
    struct curl_lib lib;
    int has_key;
    CURL *curl;                  /* owned */
    char base[1024];
    struct curl_slist *headers;  /* owned */
    int silent_s;
    int (*cancelled)(void *arg);
    void *cancel_arg;
};

/* One request on its way. */
struct exchange {
    struct http_client *client;
    http_bytes bytes;
    void *arg;
    size_t n;                    /* bytes so far */
    int stopped, too_large;
    struct tok_text refusal;     /* owned: the body of a status from 400 on */
};

static int set_base(struct http_client *c, const char *url, struct q_err *e)
{
    size_t n = strlen(url);
    if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8)) return q_fail(e, Q_EINPUT, "'%.200s': expected http://HOST:PORT or https://", url);
    while (n && url[n - 1] == '/') n--;
    int has = n > 3 && !strncmp(url + n - 3, "/v1", 3);
    int m = snprintf(c->base, sizeof c->base, "%.*s%s", (int)(n < 4096 ? n : 4096), url, has ? "" : "/v1");
    return m < (int)sizeof c->base ? Q_OK : q_fail(e, Q_EINPUT, "an address of more than %zu characters", sizeof c->base);
}

static int add_header(struct http_client *c, const char *line, struct q_err *e)
{
    struct curl_slist *l = c->lib.curl_slist_append(c->headers, line);
    if (!l) return q_fail(e, Q_EMEM, "no memory for a header");
    c->headers = l;
    return Q_OK;
}

static int set_headers(struct http_client *c, const char *key, struct q_err *e)
{
    char line[1100];
    int rc = add_header(c, "Content-Type: application/json", e);
    if (!rc) rc = add_header(c, "Expect:", e);   /* no 100-continue: it would be measured */
    if (rc || !key) return rc;
    if (strpbrk(key, "\r\n") || snprintf(line, sizeof line, "Authorization: Bearer %s", key) >= (int)sizeof line)
        return q_fail(e, Q_EINPUT, "the key is longer than 1000 characters or holds a line break");
    return add_header(c, line, e);
}

int http_client_open(struct http_client **out, const struct http_client_opts *o, struct q_err *e)
{
    struct http_client *c = calloc(1, sizeof *c);
    if (!c) return q_fail(e, Q_EMEM, "no memory for a connection");
    c->silent_s = o->silent_s ? o->silent_s : SILENT_S;
    c->cancelled = o->cancelled;
    c->cancel_arg = o->arg;
    int rc = set_base(c, o->url, e);
    if (!rc) rc = curl_lib_open(&c->lib, e);
    if (!rc && !(c->curl = c->lib.curl_easy_init())) rc = q_fail(e, Q_EMEM, "no memory for a connection");
    c->has_key = o->key != NULL;
    if (!rc) rc = set_headers(c, o->key, e);
    if (rc) http_client_close(c);
    else *out = c;
    return rc;
}

void http_client_close(struct http_client *c)
{
    if (!c) return;
    if (c->headers) c->lib.curl_slist_free_all(c->headers);
    if (c->curl) c->lib.curl_easy_cleanup(c->curl);
    curl_lib_close(&c->lib);
    free(c);
}

const char *http_client_base(const struct http_client *c) { return c->base; }

/* libcurl's write function: fewer bytes taken than given ends the transfer. */
static size_t take(char *s, size_t one, size_t n, void *arg)
{
    struct exchange *x = arg;
    long status = 0;
    n *= one;
    x->client->lib.curl_easy_getinfo(x->client->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 400) {
        if (x->refusal.n + n > MOST_ERROR_BYTES) n = 0;
        return q_text_add(&x->refusal, s, n, NULL) ? 0 : n;
    }
    x->n += n;
    if (x->n > MOST_BYTES) x->too_large = 1;
    else x->stopped = x->bytes(x->arg, s, n);
    return x->too_large || x->stopped ? 0 : n;
}

/* libcurl's progress function, which it also calls while it waits. */
static int progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    struct exchange *x = arg;
    if (x->client->cancelled(x->client->cancel_arg)) x->stopped = 1;
    return x->stopped;
}

static void prepare(struct http_client *c, const char *address, const char *json, struct exchange *x)
{
    struct curl_lib *l = &c->lib;
    l->curl_easy_reset(c->curl);     /* the connection stays */
    l->curl_easy_setopt(c->curl, CURLOPT_URL, address);
    l->curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    l->curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take);
    l->curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, x);
    l->curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    l->curl_easy_setopt(c->curl, CURLOPT_TCP_NODELAY, 1L);
    l->curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    l->curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    l->curl_easy_setopt(c->curl, CURLOPT_LOW_SPEED_TIME, (long)c->silent_s);
    if (c->cancelled) {
        l->curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, 0L);
        l->curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, progress);
        l->curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, x);
    }
    if (!json) return;
    l->curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, json);
    l->curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, (long)strlen(json));
}

/* OpenAI's form of an error, else the body's first line. */
static int refused(const struct http_client *c, const char *path, long status, const struct tok_text *body, struct q_err *e)
{
    cJSON *root = cJSON_ParseWithLength(body->at ? body->at : "", body->n);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(root, "error");
    const cJSON *text = cJSON_IsObject(error) ? cJSON_GetObjectItemCaseSensitive(error, "message") : error;
    const char *said = cJSON_IsString(text) ? text->valuestring : NULL;
    size_t line = body->n ? strcspn(body->at, "\r\n") : 0;
    const char *hint = status == 401 && !c->has_key ? " (--api-key KEY, or QUARRY_API_KEY in the environment)" : "";
    int rc = said ? q_fail(e, Q_EINPUT, "%s%s: status %ld: %.600s%s", c->base, path, status, said, hint)
                  : q_fail(e, Q_EINPUT, "%s%s: status %ld: %.*s", c->base, path, status, (int)(line < 200 ? line : 200), body->n ? body->at : "");
    cJSON_Delete(root);
    return rc;
}

int http_client_stream(struct http_client *c, const char *path, const char *json, http_bytes bytes, void *arg, long *status, struct q_err *e)
{
    char address[1200];
    struct exchange x = {.client = c, .bytes = bytes, .arg = arg};
    long got = 0;
    snprintf(address, sizeof address, "%s%s", c->base, path);
    prepare(c, address, json, &x);
    CURLcode how = c->lib.curl_easy_perform(c->curl);
    c->lib.curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &got);
    if (status) *status = got;
    int rc = Q_OK;
    if (got >= 400) {
        q_text_add(&x.refusal, "", 1, NULL);
        if (x.refusal.n) x.refusal.n--;
        rc = refused(c, path, got, &x.refusal, e);
    } else if (x.too_large) rc = q_fail(e, Q_ELIMIT, "%s%s: more than %d MiB came", c->base, path, MOST_BYTES >> 20);
    else if (how && !x.stopped) rc = q_fail(e, Q_EIO, "%s%s: %s", c->base, path, c->lib.curl_easy_strerror(how));
    free(x.refusal.at);
    return rc;
}

struct whole {
    struct tok_text *to;
    int rc;
};

static int collect(void *arg, const char *s, size_t n)
{
    struct whole *w = arg;
    return w->rc = q_text_add(w->to, s, n, NULL);
}

int http_client_ask(struct http_client *c, const char *path, const char *json, struct tok_text *out, long *status, struct q_err *e)
{
    struct whole w = {.to = out};
    int rc = http_client_stream(c, path, json, collect, &w, status, e);
    return !rc && w.rc ? q_fail(e, Q_EMEM, "no memory for an answer of %zu bytes", out->n) : rc;
}
