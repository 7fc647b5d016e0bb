/* A record as its line. Keys are in ascending order, so the same record is the same bytes. */
#include "record.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static cJSON *object_json(const struct record_object *b)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "arch", b->arch);
    cJSON_AddStringToObject(o, "compiler", b->compiler);
    cJSON_AddStringToObject(o, "content", b->content);
    cJSON_AddStringToObject(o, "flags", b->flags);
    cJSON_AddStringToObject(o, "kind", b->kind);
    cJSON_AddStringToObject(o, "name", b->name);
    if (!strcmp(b->kind, "cubin")) cJSON_AddNumberToObject(o, "regs", b->regs);
    cJSON_AddNumberToObject(o, "size", (double)b->size);
    if (!strcmp(b->kind, "cubin")) cJSON_AddNumberToObject(o, "spill", b->spill);
    return o;
}

static cJSON *phase_json(const struct q_phase *p)
{
    cJSON *o = cJSON_CreateObject(), *grid = cJSON_AddArrayToObject(o, "grid");
    for (int i = 0; i < 3; i++) {
        const struct q_axis *a = &p->grid[i];
        cJSON_AddItemToArray(grid, cJSON_CreateIntArray((const int[]){ a->mul, a->per_rows, a->per_seqs, a->per_ctx }, 4));
    }
    cJSON_AddNumberToObject(o, "smem", p->smem);
    cJSON_AddNumberToObject(o, "threads", p->threads);
    return o;
}

static void add_launch(cJSON *o, const struct q_phases *launch)
{
    if (!launch->n) return;
    cJSON *list = cJSON_AddArrayToObject(o, "launch");
    for (int i = 0; i < launch->n; i++) cJSON_AddItemToArray(list, phase_json(&launch->phase[i]));
}

/* Three decimals: a nanosecond, a thousandth of a percent. */
static double rounded(double v) { return round(v * 1000) / 1000; }

static void add_cost(cJSON *o, const struct record_cost *c)
{
    if (!c->known) return;
    cJSON *cost = cJSON_AddObjectToObject(o, "cost");
    cJSON_AddItemToObject(cost, "bytes", cJSON_CreateDoubleArray(c->bytes, 4));
    cJSON_AddItemToObject(cost, "ops", cJSON_CreateDoubleArray(c->ops, 4));
}

static void add_baseline(cJSON *o, const struct record *r)
{
    if (!r->effort[0]) return;
    cJSON *base = cJSON_AddObjectToObject(o, "baseline");
    cJSON_AddStringToObject(base, "params", r->base_params);
    cJSON_AddNumberToObject(base, "us", rounded(r->base_us));
}

static void add_times(cJSON *o, const struct record *r)
{
    if (!r->effort[0]) return;
    cJSON *list = cJSON_AddArrayToObject(o, "measured");
    for (int i = 0; i < r->n_times; i++) {
        const struct record_time *t = &r->time[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "mad_us", rounded(t->mad_us));
        cJSON_AddNumberToObject(one, "median_us", rounded(t->median_us));
        cJSON_AddNumberToObject(one, "n", t->n);
        cJSON_AddNumberToObject(one, "past", t->past);
        cJSON_AddNumberToObject(one, "rows", t->rows);
        cJSON_AddItemToArray(list, one);
    }
}

static void add_roof(cJSON *o, const struct record *r)
{
    if (!r->effort[0] || !r->bound[0]) return;
    cJSON *roof = cJSON_AddObjectToObject(o, "roof");
    cJSON_AddStringToObject(roof, "bound", r->bound);
    if (r->roof_doubtful) cJSON_AddTrueToObject(roof, "doubtful");
    cJSON_AddNumberToObject(roof, "pct", rounded(r->roof_pct));
}

static void add_ceiling(cJSON *o, const struct record *r)
{
    if (!r->effort[0] || !r->ceiling[0]) return;
    cJSON *ceiling = cJSON_AddObjectToObject(o, "ceiling");
    cJSON_AddStringToObject(ceiling, "path", r->ceiling);
    cJSON_AddNumberToObject(ceiling, "rate", round(r->path_rate));
    cJSON_AddNumberToObject(ceiling, "read", round(r->read_rate));
}

static void add_clocks(cJSON *o, const struct record *r)
{
    const struct record_clocks *c = &r->clocks;
    if (!r->effort[0] || !(c->sm_mhz || c->mem_mhz || c->watts || c->celsius)) return;
    cJSON *clocks = cJSON_AddObjectToObject(o, "clocks");
    cJSON_AddNumberToObject(clocks, "celsius", c->celsius);
    cJSON_AddNumberToObject(clocks, "mem_mhz", c->mem_mhz);
    cJSON_AddStringToObject(clocks, "slowed", c->slowed);
    cJSON_AddNumberToObject(clocks, "sm_mhz", c->sm_mhz);
    cJSON_AddNumberToObject(clocks, "watts", c->watts);
}

static cJSON *record_json(const struct record *r)
{
    cJSON *o = cJSON_CreateObject();
    add_baseline(o, r);
    cJSON_AddStringToObject(o, "card", r->card);
    add_ceiling(o, r);
    add_clocks(o, r);
    add_cost(o, &r->cost);
    cJSON_AddNumberToObject(o, "ctx", r->ctx);
    if (r->effort[0] && r->driver[0]) cJSON_AddStringToObject(o, "driver", r->driver);
    if (r->effort[0]) cJSON_AddStringToObject(o, "effort", r->effort);
    cJSON_AddNumberToObject(o, "format", RECORD_FORMAT);
    if (r->from[0]) cJSON_AddStringToObject(o, "from", r->from);
    if (r->effort[0]) cJSON_AddNumberToObject(o, "gain", rounded(r->gain));
    cJSON_AddStringToObject(o, "generator", r->generator);
    cJSON_AddStringToObject(o, "kernel", r->kernel);
    add_launch(o, &r->launch);
    cJSON_AddStringToObject(o, "layout", r->layout);
    add_times(o, r);
    cJSON_AddStringToObject(o, "numerics", r->numerics);
    cJSON *list = cJSON_AddArrayToObject(o, "objects");
    for (int i = 0; i < r->n_objects; i++) cJSON_AddItemToArray(list, object_json(&r->objects[i]));
    cJSON_AddStringToObject(o, "op", r->op);
    cJSON_AddStringToObject(o, "origin", r->origin);
    cJSON_AddStringToObject(o, "params", r->params);
    cJSON_AddStringToObject(o, "profile", r->profile);
    add_roof(o, r);
    cJSON_AddNumberToObject(o, "rows", r->rows);
    cJSON_AddStringToObject(o, "shape", r->shape);
    cJSON_AddStringToObject(o, "source", r->source);
    cJSON_AddStringToObject(o, "version", r->version);
    return o;
}

char *record_print(const struct record *r)
{
    cJSON *o = record_json(r);
    char *text = cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    if (!text) return NULL;
    size_t n = strlen(text);
    char *line = malloc(n + 2);
    if (line) {
        memcpy(line, text, n);
        memcpy(line + n, "\n", 2);
    }
    cJSON_free(text);
    return line;
}
