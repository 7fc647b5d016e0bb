#include "evidence.h"
#include "race.h"
#include "runtime/plain.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct evidence *v;
    const struct store_key *k;
    int n;
};

/* --- fields ------------------------------------------------------------------------------------------------------------ */

static const char *text_of(const cJSON *o, const char *name)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    return s ? s : "";
}

/* dst: [cap]. For a terminal: a line of a journal may hold \u001b. */
static void copy_plain(char *dst, size_t cap, const char *text)
{
    snprintf(dst, cap, "%s", text);
    plain_line(dst);
}

static double number_of(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(v) && fabs(v->valuedouble) < 1e9 ? v->valuedouble : 0;
}

static int count_at(const cJSON *list, int i)
{
    const cJSON *v = cJSON_GetArrayItem(list, i);
    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble < 1e9 ? v->valueint : 0;
}

/* --- events ------------------------------------------------------------------------------------------------------------ */

static void clear(struct evidence *v)
{
    for (int i = 0; i < v->n; i++) free(v->c[i]);
    free(v->c);
    memset(v, 0, sizeof *v);
}

/* A search begins: what was written down before it is of an older one. */
static void take_problem(struct evidence *v, const cJSON *o)
{
    const cJSON *reasons = cJSON_GetObjectItemCaseSensitive(o, "reasons"), *one;
    clear(v);
    v->total = (int)number_of(o, "total");
    v->legal = (int)number_of(o, "legal");
    cJSON_ArrayForEach(one, reasons) {
        const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(one, 0));
        if (!text || v->n_reasons == SPACE_REASONS) continue;
        copy_plain(v->reason[v->n_reasons].text, sizeof v->reason[0].text, text);
        v->reason[v->n_reasons++].n = count_at(one, 1);
    }
}

static struct evidence_candidate *candidate(struct evidence *v, const cJSON *o)
{
    struct evidence_candidate *new, **more;
    char params[sizeof new->params];
    if (!*text_of(o, "params") || strlen(text_of(o, "params")) >= sizeof params) return NULL;
    copy_plain(params, sizeof params, text_of(o, "params"));
    for (int i = 0; i < v->n; i++)
        if (!strcmp(v->c[i]->params, params)) return v->c[i];
    if (v->n == EVIDENCE_MOST || !(new = calloc(1, sizeof *new))) return NULL;
    if (!(more = realloc(v->c, (size_t)(v->n + 1) * sizeof *more))) {
        free(new);
        return NULL;
    }
    strcpy(new->params, params);
    v->c = more;
    return v->c[v->n++] = new;
}

static struct evidence_size *size_of(struct evidence_candidate *c, int rows, int past)
{
    for (int i = 0; i < c->n_sizes; i++)
        if (c->size[i].rows == rows && c->size[i].past == past) return &c->size[i];
    if (c->n_sizes == EVIDENCE_SIZES) return NULL;
    c->size[c->n_sizes] = (struct evidence_size){ .rows = rows, .past = past };
    return &c->size[c->n_sizes++];
}

/* A later line of the same size holds the samples of a whole race, an earlier one those of its beginning. */
static void take_time(struct evidence_candidate *c, const cJSON *o)
{
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(o, "size"), *us = cJSON_GetObjectItemCaseSensitive(o, "us"), *one;
    struct evidence_size *z = size_of(c, count_at(size, 0), count_at(size, 2));
    if (!z) return;
    z->n = 0;
    cJSON_ArrayForEach(one, us)
        if (cJSON_IsNumber(one) && one->valuedouble > 0 && z->n < EVIDENCE_SAMPLES) z->us[z->n++] = one->valuedouble;
}

static void take_base(struct evidence *v, const cJSON *base)
{
    const cJSON *one;
    v->n_base = 0;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(base, "measured"))
        if (v->n_base < RECORD_TIMES)
            v->base[v->n_base++] = (struct record_time){ (int)number_of(one, "rows"), (int)number_of(one, "past"), (int)number_of(one, "n"),
                                                         number_of(one, "median_us"), number_of(one, "mad_us") };
}

static void take_won(struct evidence *v, const cJSON *o)
{
    const cJSON *duel = cJSON_GetObjectItemCaseSensitive(o, "duel"), *ties = cJSON_GetObjectItemCaseSensitive(o, "ties"), *one;
    v->won = 1;
    v->n_ties = 0;
    take_base(v, cJSON_GetObjectItemCaseSensitive(o, "base"));
    v->gain = number_of(duel, "gain");
    v->band = number_of(duel, "band");
    v->accepted = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(duel, "accepted"));
    cJSON_ArrayForEach(one, ties)
        if (cJSON_IsString(one) && v->n_ties < EVIDENCE_TIES) copy_plain(v->ties[v->n_ties++], sizeof v->ties[0], one->valuestring);
}

static int same_key(const struct store_key *a, const struct store_key *b)
{
    return !strcmp(a->op, b->op) && !strcmp(a->shape, b->shape) && a->rows == b->rows && a->ctx == b->ctx && !strcmp(a->profile, b->profile)
           && !strcmp(a->generator, b->generator);
}

static void take_event(struct evidence *v, const char *ev, const cJSON *o)
{
    if (!strcmp(ev, "problem")) take_problem(v, o);
    else if (!strcmp(ev, "won")) take_won(v, o);
    else {
        struct evidence_candidate *c = candidate(v, o);
        if (!c) return;
        if (!strcmp(ev, "bad") || !strcmp(ev, "suspect")) {
            snprintf(c->bad, sizeof c->bad, "%.15s%s%.300s", text_of(o, "kind"), *text_of(o, "kind") ? ": " : "", text_of(o, "why"));
            plain_line(c->bad);
        } else if (!strcmp(ev, "checked")) c->checked = 1;
        else if (!strcmp(ev, "time")) take_time(c, o);
    }
}

static int visit(void *arg, const struct journal_event *ev)
{
    struct reading *r = arg;
    struct store_key k;
    if (journal_key(ev->o, r->k[0].card, &k)) return 0;
    for (int i = 0; i < r->n; i++)
        if (same_key(&k, &r->k[i])) take_event(&r->v[i], ev->ev, ev->o);
    return 0;
}

int evidence_read(struct evidence *v, const struct store_key *k, int n, struct journal_foreign *foreign, struct q_err *e)
{
    char dir[Q_PATH];
    struct reading r = { v, k, n };
    memset(v, 0, (size_t)n * sizeof *v);
    memset(foreign, 0, sizeof *foreign);
    if (!n || journal_dir(dir, NULL, k[0].card, NULL)) return Q_OK;     /* no place for a journal: there is none */
    return journal_each(dir, k[0].card, visit, &r, foreign, e);
}

void evidence_free(struct evidence *v, int n)
{
    for (int i = 0; v && i < n; i++) clear(&v[i]);
}

double evidence_median(const struct evidence_candidate *c, int rows, int past)
{
    for (int i = 0; i < c->n_sizes; i++)
        if (c->size[i].rows == rows && c->size[i].past == past) return race_median(c->size[i].us, c->size[i].n);
    return INFINITY;
}
