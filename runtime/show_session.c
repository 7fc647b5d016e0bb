/* `show` of a session's file: of which model and formats its states are, how far they go, what they take. Never its text. */
#include "show.h"
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The value of KEY in a state id, "model=.. kv=f16+f16 numerics=..". */
static const char *value_of(const char *id, const char *key, char value[SESSION_STATE_ID])
{
    size_t n = strlen(key);
    *value = 0;
    for (const char *at = id; *at; at += strcspn(at, " "), at += *at == ' ')
        if (!strncmp(at, key, n) && at[n] == '=') {
            snprintf(value, SESSION_STATE_ID, "%.*s", (int)strcspn(at + n + 1, " "), at + n + 1);
            break;
        }
    return value;
}
#define OF(key) value_of(h->state_id, key, (char[SESSION_STATE_ID]){ 0 })

static void print_if(FILE *out, const char *what, const char *value)
{
    if (*value) fprintf(out, "%-14s%s\n", what, value);
}

int show_session_text(const char *path, const struct session_head *h, FILE *out)
{
    char made[40] = "";
    time_t at = (time_t)h->made;
    struct tm t;
    if (localtime_r(&at, &t)) strftime(made, sizeof made, "%Y-%m-%d %H:%M:%S", &t);
    fprintf(out, "session       %s\n              %.1f MB, written %s\n", path, (double)h->bytes / 1e6, made);
    fprintf(out, "model         %s%s%s\n", h->model, *h->model ? ", " : "", OF("model"));
    fprintf(out, "KV            %s\nnumerics      %s\n", OF("kv"), OF("numerics"));
    print_if(out, "rope", OF("rope"));
    print_if(out, "sparse", OF("sparse"));
    fprintf(out, "tokens        %d; %d byte%s of its writer's text\ncheckpoints   at", h->n_ids, h->n_text, h->n_text == 1 ? "" : "s");
    for (int i = 0; i < h->n_parts; i++) fprintf(out, " %d", h->part[i].length);
    fprintf(out, "\nsizes         a state %.1f MB, KV %.1f kB a token\n", (double)h->state_bytes / 1e6, (double)h->page_bytes / h->page_tokens / 1e3);
    return Q_OK;
}

int show_session_json(const char *path, const struct session_head *h, FILE *out)
{
    static const char *const keys[] = { "model", "kv", "numerics", "rope", "sparse" };
    char value[SESSION_STATE_ID];
    cJSON *o = cJSON_CreateObject(), *s = cJSON_AddObjectToObject(o, "session");
    cJSON_AddStringToObject(s, "file", path);
    cJSON_AddNumberToObject(s, "bytes", (double)h->bytes);
    cJSON_AddNumberToObject(s, "made", (double)h->made);
    cJSON_AddStringToObject(s, "model_name", h->model);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (*value_of(h->state_id, keys[i], value)) cJSON_AddStringToObject(s, keys[i], value);
    cJSON_AddNumberToObject(s, "tokens", h->n_ids);
    cJSON_AddNumberToObject(s, "text_bytes", h->n_text);
    cJSON *at = cJSON_AddArrayToObject(s, "checkpoints");
    for (int i = 0; i < h->n_parts; i++) cJSON_AddItemToArray(at, cJSON_CreateNumber(h->part[i].length));
    cJSON_AddNumberToObject(s, "state_bytes", (double)h->state_bytes);
    cJSON_AddNumberToObject(s, "page_bytes", (double)h->page_bytes);
    cJSON_AddNumberToObject(s, "page_tokens", h->page_tokens);
    char *text = cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    if (!text) return Q_EMEM;
    fprintf(out, "%s\n", text);
    free(text);
    return Q_OK;
}
