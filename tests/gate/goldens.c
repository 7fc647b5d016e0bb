#include "goldens.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int *append_ids(int *ids, int *n, const cJSON *list)
{
    int more = cJSON_GetArraySize(list);
    int *p = realloc(ids, (size_t)(*n + more + 1) * sizeof *p);
    const cJSON *item;
    cJSON_ArrayForEach(item, list) p[(*n)++] = item->valueint;
    return p;
}

static void read_step(struct golden_step *s, const cJSON *step)
{
    for (int j = 0; j < GOLDEN_TOP; j++) {
        const cJSON *pair = cJSON_GetArrayItem(step, j);
        s->id[j] = cJSON_GetArrayItem(pair, 0)->valueint;
        s->logit[j] = (float)cJSON_GetArrayItem(pair, 1)->valuedouble;
    }
    s->lse = (float)cJSON_GetArrayItem(step, GOLDEN_TOP)->valuedouble;
}

/* The end of the last message's text, from a character's start, as a name for humans. */
static void read_label(struct golden *g, const cJSON *messages)
{
    const cJSON *last = cJSON_GetArrayItem(messages, cJSON_GetArraySize(messages) - 1);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(last, "content"));
    if (!text) text = "";
    size_t n = strlen(text), from = n > 60 ? n - 60 : 0;
    while (from < n && ((unsigned char)text[from] & 0xC0) == 0x80) from++;
    snprintf(g->label, sizeof g->label, "%s%s", from ? ".." : "", text + from);
    for (char *p = g->label; *p; p++)
        if (*p == '\n') *p = ' ';
}

static int read_golden(struct golden *g, const char *line, struct q_err *e)
{
    cJSON *o = cJSON_Parse(line);
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(o, "steps"), *step;
    if (!o || !steps) {
        cJSON_Delete(o);
        return q_fail(e, Q_EINPUT, "goldens: a line is not a chat");
    }
    memset(g, 0, sizeof *g);
    g->ids = append_ids(NULL, &g->n, cJSON_GetObjectItemCaseSensitive(o, "prompt_ids"));
    g->n_prompt = g->n;
    g->ids = append_ids(g->ids, &g->n, cJSON_GetObjectItemCaseSensitive(o, "ids"));
    g->margin = (float)cJSON_GetObjectItemCaseSensitive(o, "margin_min")->valuedouble;
    g->steps = calloc((size_t)cJSON_GetArraySize(steps) + 1, sizeof *g->steps);
    int i = 0;
    cJSON_ArrayForEach(step, steps) read_step(&g->steps[i++], step);
    read_label(g, cJSON_GetObjectItemCaseSensitive(o, "messages"));
    cJSON_Delete(o);
    return i == g->n - g->n_prompt ? Q_OK : q_fail(e, Q_EINPUT, "goldens: %d steps for %d ids", i, g->n - g->n_prompt);
}

int goldens_open(struct goldens *gs, const char *path, int limit, struct q_err *e)
{
    char *line = NULL;
    size_t cap = 0;
    int rc = Q_OK;
    memset(gs, 0, sizeof *gs);
    FILE *f = fopen(path, "r");
    if (!f) return q_fail(e, Q_EIO, "%s: cannot open", path);
    while (!rc && (limit <= 0 || gs->n < limit) && getline(&line, &cap, f) > 0) {
        gs->g = realloc(gs->g, (size_t)(gs->n + 1) * sizeof *gs->g);
        rc = read_golden(&gs->g[gs->n], line, e);
        if (!rc && gs->g[gs->n].n > gs->longest) gs->longest = gs->g[gs->n].n;
        gs->n += !rc;
    }
    free(line);
    fclose(f);
    return rc;
}

void goldens_close(struct goldens *gs)
{
    for (int i = 0; i < gs->n; i++) {
        free(gs->g[i].ids);
        free(gs->g[i].steps);
    }
    free(gs->g);
}
