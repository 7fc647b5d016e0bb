#include "request.h"
#include "runtime/json_check.h"
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MEMBERS = 1000 };

int body_parse(const char *text, size_t n, cJSON **root, struct api_error *x)
{
    struct q_err e;
    *root = NULL;
    if (!n) return api_fail(x, 400, NULL, NULL, "request body: expected a JSON object, found nothing");
    if (json_check(text, n, JSON_MAX_DEPTH, "request body", &e)) return api_fail_err(x, NULL, &e);
    cJSON *v = cJSON_ParseWithLength(text, n);
    if (!v) return api_fail(x, 503, "no_memory", NULL, "no memory for the request");
    /* Each field is looked up by name, and each member by each name: many of them would cost seconds. */
    int n_members = cJSON_IsObject(v) ? cJSON_GetArraySize(v) : 0;
    if (!cJSON_IsObject(v) || n_members > MOST_MEMBERS) {
        cJSON_Delete(v);
        if (n_members) return api_fail(x, 400, NULL, NULL, "request body: expected at most %d fields, found %d", MOST_MEMBERS, n_members);
        return api_fail(x, 400, NULL, NULL, "request body: expected a JSON object, found another value");
    }
    *root = v;
    return 0;
}

void fields_begin(struct fields *f, const cJSON *root, struct api_error *x) { *f = (struct fields){.root = root, .x = x}; }
int fields_bad(const struct fields *f) { return f->x->status != 0; }

const cJSON *field_get(struct fields *f, const char *name)
{
    assert(f->n_read < (int)(sizeof f->read / sizeof *f->read)); /* a reader asks for less */
    f->read[f->n_read++] = name;
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(f->root, name);
    return cJSON_IsNull(v) || fields_bad(f) ? NULL : v;
}

double field_number(struct fields *f, const char *name, double lo, double hi, double absent)
{
    const cJSON *v = field_get(f, name);
    if (!v) return absent;
    if (!cJSON_IsNumber(v)) api_fail(f->x, 400, NULL, name, "field '%s': expected a number", name);
    else if (!(v->valuedouble >= lo && v->valuedouble <= hi))
        api_fail(f->x, 400, NULL, name, "field '%s': expected a number from %g to %g, found %g", name, lo, hi, v->valuedouble);
    else return v->valuedouble;
    return absent;
}

long long field_int(struct fields *f, const char *name, long long lo, long long hi, long long absent)
{
    const cJSON *v = field_get(f, name);
    if (!v) return absent;
    double d = v->valuedouble;
    if (!cJSON_IsNumber(v) || d != floor(d)) api_fail(f->x, 400, NULL, name, "field '%s': expected a whole number", name);
    else if (!(d >= (double)lo && d <= (double)hi))
        api_fail(f->x, 400, NULL, name, "field '%s': expected a whole number from %lld to %lld, found %.0f", name, lo, hi, d);
    else return (long long)d;
    return absent;
}

int field_bool(struct fields *f, const char *name, int absent)
{
    const cJSON *v = field_get(f, name);
    if (!v) return absent;
    if (cJSON_IsBool(v)) return cJSON_IsTrue(v);
    api_fail(f->x, 400, NULL, name, "field '%s': expected true or false", name);
    return absent;
}

const char *field_string(struct fields *f, const char *name)
{
    const cJSON *v = field_get(f, name);
    if (!v) return NULL;
    if (cJSON_IsString(v)) return v->valuestring;
    api_fail(f->x, 400, NULL, name, "field '%s': expected a string", name);
    return NULL;
}

/* ---- what was not read ---- */

enum { MOST_TOLD = 256, TOLD_NAME = 64 };

struct once {
    pthread_mutex_t lock;
    void (*say)(void *, const char *);
    void *arg;
    int n;
    char name[MOST_TOLD][TOLD_NAME];
};

int once_open(struct once **out, void (*say)(void *, const char *), void *arg, struct q_err *e)
{
    struct once *o = calloc(1, sizeof *o);
    if (!o) return q_fail(e, Q_EMEM, "no memory for the log");
    pthread_mutex_init(&o->lock, NULL);
    o->say = say;
    o->arg = arg;
    *out = o;
    return Q_OK;
}

void once_close(struct once *o)
{
    if (!o) return;
    pthread_mutex_destroy(&o->lock);
    free(o);
}

/* The name comes from outside: it is shown as plain ASCII. */
static void tell(struct once *o, const char *name)
{
    char shown[TOLD_NAME], line[TOLD_NAME + 64];
    int i = 0;
    for (; name[i] && i < TOLD_NAME - 1; i++) shown[i] = name[i] >= 0x20 && name[i] < 0x7F ? name[i] : '?';
    shown[i] = 0;
    pthread_mutex_lock(&o->lock);
    int known = o->n == MOST_TOLD;
    for (int k = 0; k < o->n && !known; k++) known = !strcmp(o->name[k], shown);
    if (!known) strcpy(o->name[o->n++], shown);
    pthread_mutex_unlock(&o->lock);
    if (known) return;
    snprintf(line, sizeof line, "request field '%s' is ignored (told once)", shown);
    o->say(o->arg, line);
}

static int is_harmless(const cJSON *v, const char *harmless)
{
    if (cJSON_IsNull(v) || cJSON_IsFalse(v)) return 1;
    if (cJSON_IsArray(v) || cJSON_IsObject(v)) return !v->child;
    if (cJSON_IsNumber(v)) return v->valuedouble == 0 || (harmless && v->valuedouble == strtod(harmless, NULL));
    if (cJSON_IsString(v)) return !*v->valuestring || (harmless && !strcmp(v->valuestring, harmless));
    return harmless && !strcmp(harmless, "true");
}

static int was_read(const struct fields *f, const char *name)
{
    for (int i = 0; i < f->n_read; i++)
        if (!strcmp(f->read[i], name)) return 1;
    return 0;
}

static const struct unsupported *find(const struct unsupported *table, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(table[i].name, name)) return &table[i];
    return NULL;
}

int fields_finish(struct fields *f, const struct unsupported *table, size_t n, struct once *told)
{
    if (fields_bad(f)) return -1;
    for (const cJSON *v = f->root->child; v; v = v->next) {
        if (was_read(f, v->string)) continue;
        const struct unsupported *u = find(table, n, v->string);
        if (!u) tell(told, v->string);
        else if (!is_harmless(v, u->harmless))
            return api_fail(f->x, 400, "unsupported_field", u->name, "field '%s' is not supported by this version", u->name);
    }
    return 0;
}
