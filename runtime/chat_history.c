#include "chat_history.h"
#include "json_check.h"
#include "text.h"
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* Invariant: a system message, if there is one, is the first. */
struct chat_history {
    cJSON *list; /* owned */
    int has_system;
};

int chat_history_open(struct chat_history **out, struct q_err *e)
{
    struct chat_history *h = calloc(1, sizeof *h);
    if (!h || !(h->list = cJSON_CreateArray())) {
        free(h);
        return q_fail(e, Q_EMEM, "no memory for a conversation");
    }
    *out = h;
    return Q_OK;
}

void chat_history_close(struct chat_history *h)
{
    if (!h) return;
    cJSON_Delete(h->list);
    free(h);
}

static int make(cJSON **out, const char *role, const char *text, const char *thinking, struct q_err *e)
{
    cJSON *m = cJSON_CreateObject();
    int ok = m && cJSON_AddStringToObject(m, "role", role) && cJSON_AddStringToObject(m, "content", text);
    if (ok && thinking && *thinking) ok = cJSON_AddStringToObject(m, "reasoning_content", thinking) != NULL;
    if (!ok) {
        cJSON_Delete(m);
        return q_fail(e, Q_EMEM, "no memory for a message");
    }
    *out = m;
    return Q_OK;
}

static int add(struct chat_history *h, const char *role, const char *text, const char *thinking, struct q_err *e)
{
    cJSON *m;
    int rc = make(&m, role, text, thinking, e);
    if (!rc) cJSON_AddItemToArray(h->list, m);
    return rc;
}

int chat_history_system(struct chat_history *h, const char *text, struct q_err *e)
{
    cJSON *m = NULL;
    int rc = text ? make(&m, "system", text, NULL, e) : Q_OK;
    if (rc) return rc;
    if (h->has_system) cJSON_DeleteItemFromArray(h->list, 0);
    if (m) cJSON_InsertItemInArray(h->list, 0, m);
    h->has_system = m != NULL;
    return Q_OK;
}

int chat_history_user(struct chat_history *h, const char *text, struct q_err *e) { return add(h, "user", text, NULL, e); }

int chat_history_assistant(struct chat_history *h, const char *content, const char *thinking, struct q_err *e)
{
    return add(h, "assistant", content, thinking, e);
}

static const char *text_of(const cJSON *m, const char *name) { return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, name)); }

/* A message that this file would have made. */
static int is_message(const cJSON *m, int first)
{
    const char *role = text_of(m, "role");
    if (!cJSON_IsObject(m) || !role || !text_of(m, "content")) return 0;
    return !strcmp(role, "user") || !strcmp(role, "assistant") || (first && !strcmp(role, "system"));
}

int chat_history_load(struct chat_history *h, const char *json, const char *where, struct q_err *e)
{
    int rc = json_check(json, strlen(json), JSON_MAX_DEPTH, where, e);
    if (rc) return rc;
    cJSON *list = cJSON_Parse(json);
    if (!cJSON_IsArray(list)) rc = q_fail(e, Q_EINPUT, "%s: expected a list of messages", where);
    int i = 0;
    for (const cJSON *m = rc ? NULL : list->child; m && !rc; m = m->next, i++)
        if (!is_message(m, m == list->child)) rc = q_fail(e, Q_EINPUT, "%s: message %d: expected a role and a text", where, i);
    if (rc) {
        cJSON_Delete(list);
        return rc;
    }
    cJSON_Delete(h->list);
    h->list = list;
    h->has_system = list->child && !strcmp(text_of(list->child, "role"), "system");
    return Q_OK;
}

int chat_history_count(const struct chat_history *h) { return cJSON_GetArraySize(h->list); }

void chat_history_drop_last(struct chat_history *h)
{
    int n = cJSON_GetArraySize(h->list);
    if (n > h->has_system) cJSON_DeleteItemFromArray(h->list, n - 1);
}

void chat_history_clear(struct chat_history *h)
{
    while (cJSON_GetArraySize(h->list) > h->has_system) chat_history_drop_last(h);
}

int chat_history_json(const struct chat_history *h, char **text, struct q_err *e)
{
    *text = cJSON_PrintUnformatted(h->list);
    return *text ? Q_OK : q_fail(e, Q_EMEM, "no memory for the messages");
}

static int put(struct tok_text *to, const char *s, struct q_err *e) { return q_text_add(to, s, strlen(s), e); }

int chat_history_markdown(const struct chat_history *h, char **text, struct q_err *e)
{
    struct tok_text t = {0};
    int rc = Q_OK;
    for (const cJSON *m = h->list->child; m && !rc; m = m->next) {
        const char *role = cJSON_GetObjectItemCaseSensitive(m, "role")->valuestring;
        const char *name = !strcmp(role, "user") ? "## You\n\n" : !strcmp(role, "system") ? "## System\n\n" : "## Model\n\n";
        rc = put(&t, m == h->list->child ? "" : "\n", e);
        if (!rc) rc = put(&t, name, e);
        if (!rc) rc = put(&t, cJSON_GetObjectItemCaseSensitive(m, "content")->valuestring, e);
        if (!rc) rc = put(&t, "\n", e);
    }
    if (!rc) rc = q_text_add(&t, "", 1, e);
    if (rc) free(t.at);
    else *text = t.at;
    return rc;
}
