#include "record.h"
#include "shape.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- reading ----------------------------------------------------------------------------------------------------------- */

#define WORD "abcdefghijklmnopqrstuvwxyz0123456789_"
#define HEX "0123456789abcdef"

struct reader {
    const char *where;
    struct q_err *e;
    int failed;
};

/* Copies the text field `name`: at most cap - 1 bytes, made of `alphabet` (NULL: any printable). The first failure is kept. */
static void take(struct reader *rd, const cJSON *o, const char *name, char *dst, size_t cap, const char *alphabet, int may_be_empty)
{
    if (rd->failed) return;
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    if (!s) rd->failed = q_fail(rd->e, Q_EINPUT, "%s: expected a text '%s'", rd->where, name);
    else if (strlen(s) >= cap) rd->failed = q_fail(rd->e, Q_EINPUT, "%s: '%s' is longer than %zu bytes", rd->where, name, cap - 1);
    else if (!*s && !may_be_empty) rd->failed = q_fail(rd->e, Q_EINPUT, "%s: '%s' is empty", rd->where, name);
    else if (alphabet && s[strspn(s, alphabet)]) rd->failed = q_fail(rd->e, Q_EINPUT, "%s: '%s' holds '%s'", rd->where, name, s);
    else strcpy(dst, s);
}

static void take_hash(struct reader *rd, const cJSON *o, const char *name, char dst[65], int may_be_empty)
{
    take(rd, o, name, dst, 65, HEX, may_be_empty);
    if (!rd->failed && strlen(dst) != 64 && !(may_be_empty && !*dst))
        rd->failed = q_fail(rd->e, Q_EINPUT, "%s: '%s' is not a SHA-256: '%s'", rd->where, name, dst);
}

static void take_int(struct reader *rd, const cJSON *o, const char *name, long max, long *v)
{
    if (rd->failed) return;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);
    double d = cJSON_IsNumber(item) ? item->valuedouble : -1;
    if (d >= 0 && d <= (double)max && d == (double)(long)d) *v = (long)d;
    else rd->failed = q_fail(rd->e, Q_EINPUT, "%s: expected an integer '%s' in 0..%ld", rd->where, name, max);
}

static void take_object(struct reader *rd, const cJSON *o, struct record_object *b)
{
    take(rd, o, "kind", b->kind, sizeof b->kind, WORD, 0);
    take(rd, o, "arch", b->arch, sizeof b->arch, WORD, 0);
    take(rd, o, "compiler", b->compiler, sizeof b->compiler, NULL, 1);
    take(rd, o, "flags", b->flags, sizeof b->flags, NULL, 1);
    take_hash(rd, o, "name", b->name, 0);
    take_hash(rd, o, "content", b->content, 0);
    take_int(rd, o, "size", 1L << 30, &b->size);
    if (strcmp(b->kind, "cubin")) return;
    long regs = 0, spill = 0;
    take_int(rd, o, "regs", 1024, &regs);
    take_int(rd, o, "spill", 1 << 20, &spill);
    b->regs = (int)regs;
    b->spill = (int)spill;
}

static void take_objects(struct reader *rd, const cJSON *o, struct record *r)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "objects"), *item;
    if (!rd->failed && !cJSON_IsArray(list)) rd->failed = q_fail(rd->e, Q_EINPUT, "%s: expected a list 'objects'", rd->where);
    if (rd->failed) return;
    cJSON_ArrayForEach(item, list) {
        if (r->n_objects == RECORD_OBJECTS || rd->failed) break;
        take_object(rd, item, &r->objects[r->n_objects++]);
    }
}

/* --- launch: what goes to a driver is checked number by number ---------------------------------------------------------------- */

enum { MOST_THREADS = 1024, WARP = 32, MOST_SMEM = 228 * 1024, MOST_BLOCKS = 0x7FFFFFFF };

static void take_axis(struct reader *rd, const cJSON *list, struct q_axis *a)
{
    int *const out[] = { &a->mul, &a->per_rows, &a->per_seqs, &a->per_ctx };
    if (!rd->failed && cJSON_GetArraySize(list) != 4) rd->failed = q_fail(rd->e, Q_EINPUT, "%s: an axis of 'grid' is not four numbers", rd->where);
    for (int i = 0; i < 4 && !rd->failed; i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i);
        double d = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (d >= (i ? 0 : 1) && d <= MOST_BLOCKS && d == (double)(long)d) *out[i] = (int)d;
        else rd->failed = q_fail(rd->e, Q_EINPUT, "%s: 'grid' holds a number that no grid has", rd->where);
    }
}

static void take_phase(struct reader *rd, const cJSON *o, struct q_phase *p)
{
    long threads = 0, smem = 0;
    const cJSON *grid = cJSON_GetObjectItemCaseSensitive(o, "grid");
    take_int(rd, o, "threads", MOST_THREADS, &threads);
    take_int(rd, o, "smem", MOST_SMEM, &smem);
    if (!rd->failed && (threads < 1 || threads % WARP))
        rd->failed = q_fail(rd->e, Q_EINPUT, "%s: %ld threads are no whole warps", rd->where, threads);
    if (!rd->failed && cJSON_GetArraySize(grid) != 3) rd->failed = q_fail(rd->e, Q_EINPUT, "%s: 'grid' has no three axes", rd->where);
    for (int i = 0; i < 3; i++) take_axis(rd, cJSON_GetArrayItem(grid, i), &p->grid[i]);
    p->threads = (int)threads;
    p->smem = (int)smem;
}

static int has_cubin(const struct record *r)
{
    for (int i = 0; i < r->n_objects; i++)
        if (!strcmp(r->objects[i].kind, "cubin")) return 1;
    return 0;
}

static void take_launch(struct reader *rd, const cJSON *o, struct record *r)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, "launch");
    int n = cJSON_GetArraySize(list);
    if (rd->failed) return;
    if (list && (!cJSON_IsArray(list) || n < 1 || n > Q_PHASES))
        rd->failed = q_fail(rd->e, Q_EINPUT, "%s: 'launch' is not a list of 1..%d phases", rd->where, Q_PHASES);
    else if (!n && has_cubin(r)) rd->failed = q_fail(rd->e, Q_EINPUT, "%s: a cubin without 'launch'", rd->where);
    for (int i = 0; i < n && !rd->failed; i++) take_phase(rd, cJSON_GetArrayItem(list, i), &r->launch.phase[i]);
    r->launch.n = rd->failed ? 0 : n;
}

static void take_shape(struct reader *rd, const cJSON *o, const char *name, char *dst, size_t cap)
{
    struct q_shape s;
    struct q_err why;
    take(rd, o, name, dst, cap, NULL, 1);
    if (!rd->failed && shape_parse(&s, dst, &why)) rd->failed = q_fail(rd->e, Q_EINPUT, "%s: '%s': %.300s", rd->where, name, why.text);
}

static void take_all(struct reader *rd, const cJSON *o, struct record *r)
{
    long rows = 0, ctx = 0;
    take(rd, o, "op", r->op, sizeof r->op, WORD, 0);
    take_shape(rd, o, "shape", r->shape, sizeof r->shape);
    take_int(rd, o, "rows", 1 << 20, &rows);
    take_int(rd, o, "ctx", 1 << 30, &ctx);
    take(rd, o, "profile", r->profile, sizeof r->profile, WORD, 0);
    take(rd, o, "card", r->card, sizeof r->card, NULL, 0);
    take_hash(rd, o, "generator", r->generator, 0);
    take_shape(rd, o, "params", r->params, sizeof r->params);
    take(rd, o, "kernel", r->kernel, sizeof r->kernel, WORD, 1);
    take(rd, o, "layout", r->layout, sizeof r->layout, WORD, 1);
    take(rd, o, "numerics", r->numerics, sizeof r->numerics, WORD, 0);
    take(rd, o, "origin", r->origin, sizeof r->origin, WORD, 0);
    take_hash(rd, o, "source", r->source, 1);
    take(rd, o, "version", r->version, sizeof r->version, NULL, 1);
    take_objects(rd, o, r);
    take_launch(rd, o, r);
    r->rows = (int)rows;
    r->ctx = (int)ctx;
}

/* --- evidence: what is missing or of another form is left out, a record is not worse for it ------------------------------- */

static double number(const cJSON *o, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 1e18 ? item->valuedouble : 0;
}

static void word(const cJSON *o, const char *name, char *dst, size_t cap)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    if (s && strlen(s) < cap && !s[strspn(s, WORD ",=.:+-")]) strcpy(dst, s);
}

static int four(const cJSON *o, const char *name, double v[4])
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, name);
    for (int i = 0; i < 4; i++) {
        const cJSON *item = cJSON_GetArrayItem(list, i);
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 1e18)) return 0;
        v[i] = item->valuedouble;
    }
    return 1;
}

static void take_times(const cJSON *list, struct record *r)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        if (r->n_times == RECORD_TIMES) break;
        struct record_time *t = &r->time[r->n_times++];
        t->rows = (int)fmin(number(item, "rows"), 1 << 20);
        t->past = (int)fmin(number(item, "past"), 1 << 30);
        t->n = (int)fmin(number(item, "n"), 1 << 20);
        t->median_us = number(item, "median_us");
        t->mad_us = number(item, "mad_us");
    }
}

static void take_clocks(const cJSON *o, struct record_clocks *c)
{
    c->sm_mhz = (int)fmin(number(o, "sm_mhz"), 1 << 20);
    c->mem_mhz = (int)fmin(number(o, "mem_mhz"), 1 << 20);
    c->watts = (int)fmin(number(o, "watts"), 1 << 20);
    c->celsius = (int)fmin(number(o, "celsius"), 1 << 20);
    word(o, "slowed", c->slowed, sizeof c->slowed);
}

static void take_evidence(const cJSON *o, struct record *r)
{
    const cJSON *cost = cJSON_GetObjectItemCaseSensitive(o, "cost"), *base = cJSON_GetObjectItemCaseSensitive(o, "baseline");
    const cJSON *roof = cJSON_GetObjectItemCaseSensitive(o, "roof"), *times = cJSON_GetObjectItemCaseSensitive(o, "measured");
    const cJSON *ceiling = cJSON_GetObjectItemCaseSensitive(o, "ceiling");
    r->cost.known = four(cost, "bytes", r->cost.bytes) && four(cost, "ops", r->cost.ops);
    word(o, "driver", r->driver, sizeof r->driver);
    word(o, "from", r->from, sizeof r->from);
    word(o, "effort", r->effort, sizeof r->effort);
    if (cJSON_IsArray(times)) take_times(times, r);
    word(base, "params", r->base_params, sizeof r->base_params);
    r->base_us = number(base, "us");
    r->gain = number(o, "gain");
    take_clocks(cJSON_GetObjectItemCaseSensitive(o, "clocks"), &r->clocks);
    word(roof, "bound", r->bound, sizeof r->bound);
    r->roof_pct = number(roof, "pct");
    r->roof_doubtful = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(roof, "doubtful"));
    word(ceiling, "path", r->ceiling, sizeof r->ceiling);
    r->path_rate = round(number(ceiling, "rate"));
    r->read_rate = round(number(ceiling, "read"));
}

/* Bilinear in rows and past through the four known corners. */
static double between(const double v[4], double rows, double past)
{
    double x = (rows - 1) / 511, y = past / 1024;
    return (v[0] * (1 - x) + v[1] * x) * (1 - y) + (v[2] * (1 - x) + v[3] * x) * y;
}

void record_cost(const struct record_cost *c, double rows, double past, double *bytes, double *ops)
{
    *bytes = c->known ? between(c->bytes, rows, past) : 0;
    *ops = c->known ? between(c->ops, rows, past) : 0;
}

static int is_blank(const char *p, const char *end)
{
    while (p < end && (*p == '\n' || *p == ' ')) p++;
    return p == end;
}

int record_parse(struct record *r, const char *text, size_t n, const char *where, struct q_err *e)
{
    struct reader rd = { where, e, 0 };
    memset(r, 0, sizeof *r);
    const char *end = text;
    cJSON *o = cJSON_ParseWithLengthOpts(text, n, &end, 0);
    if (!cJSON_IsObject(o) || !is_blank(end, text + n)) {
        cJSON_Delete(o);
        return q_fail(e, Q_EINPUT, "%s: damaged record: not one JSON object", where);
    }
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(o, "format");
    if (!cJSON_IsNumber(format)) rd.failed = q_fail(e, Q_EINPUT, "%s: damaged record: no format number", where);
    else if (format->valuedouble != RECORD_FORMAT)
        rd.failed = q_fail(e, Q_EUNSUP, "%s: record of format %g, this version reads %d", where, format->valuedouble, RECORD_FORMAT);
    take_all(&rd, o, r);
    if (!rd.failed) take_evidence(o, r);
    cJSON_Delete(o);
    return rd.failed;
}

int record_object_cuda(const struct record_object *o)
{
    int major;
    return sscanf(o->compiler, "NVRTC %4d.", &major) == 1 ? major : 0;
}
