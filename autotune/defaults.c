#include "defaults.h"
#include "runtime/kset_shapes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel to build: the record that will be written once its object is there. */
struct item {
    struct record record;
    struct gen_kernel kernel;    /* owned texts */
};

struct work {
    const struct target *t;
    struct gen *g;
    const struct build_opts *build;
    struct compiler *compiler;
    const struct compiler_given *given;
    void (*say)(void *arg, const char *line);
    void *say_arg;
    struct defaults_result *result;
    struct item *items;          /* owned */
    int n, cap;
    struct record *last;         /* owned: what answered the problem before */
    struct q_err err;            /* of choose_layout, which cannot return one */
    char layout[24];
    int driver;                  /* version of CUDA that the driver here speaks; 0: there is none, or no card is meant */
    int can_write;               /* the store was found writable */
};

/* Asked before the first write only: a whole set on a read-only disk is a whole set. */
static int need_write(struct work *w, struct q_err *e)
{
    int r = w->can_write ? Q_OK : store_can_write(w->build->store, w->t->card.kind, e);
    w->can_write = !r;
    return r;
}

/* The compiler is looked for when the first kernel must be built: with a whole store there need not be one. */
static int need_compiler(struct work *w, struct q_err *e)
{
    return w->compiler->program[0] ? Q_OK : compiler_find(w->compiler, &w->t->card, w->given, e);
}

/* --- records ----------------------------------------------------------------------------------------------------------- */

static int emit(const struct work *w, const struct q_problem *p, const char *params, struct gen_kernel *gk, struct q_err *e)
{
    return target_emit(w->t, w->g, p, params, gk, e);
}

/* --- layouts ----------------------------------------------------------------------------------------------------------- */

/* The first admitted record down the layers from *layer. */
static int find(const struct work *w, const struct store_key *k, int *layer, struct record *r, struct q_err *e)
{
    int bad;
    while (!(bad = store_find(w->build->store, k, layer, r, e)))
        if (target_admits(w->t, r->numerics)) break;
    return bad;
}

static int layout_record(struct work *w, const struct q_problem *p, struct record *r, struct q_err *e)
{
    char generator[65];
    struct store_key k;
    struct gen_kernel gk;
    int layer = 0, bad = target_key(w->t, w->g, p, generator, &k, e);
    if (bad) return bad;
    if (!(bad = find(w, &k, &layer, r, e)) || bad != Q_EMISS) return bad;
    /* No layout yet, so kernels must be built: a set that cannot be leaves nothing behind. */
    if ((bad = need_compiler(w, e)) || (bad = need_write(w, e)) || (bad = emit(w, p, NULL, &gk, e))) return bad;
    target_record(r, w->g, &k, p, &gk);
    strcpy(r->origin, "default");
    gen_kernel_free(&gk);
    return store_put(w->build->store, r, e);
}

/* For kset_problems. */
static const char *choose_layout(void *arg, const char *type, long n, long k)
{
    struct work *w = arg;
    struct q_problem p = { .op = "layout" };
    struct record r;
    shape_layout(p.shape, sizeof p.shape, type, n, k);
    if (layout_record(w, &p, &r, &w->err)) return NULL;
    strcpy(w->layout, r.layout);
    return w->layout;
}

/* --- kernels ----------------------------------------------------------------------------------------------------------- */

static int push(struct work *w, const struct record *r, struct gen_kernel *gk, struct q_err *e)
{
    if (w->n == w->cap) {
        int cap = w->cap ? 2 * w->cap : 64;
        struct item *more = realloc(w->items, (size_t)cap * sizeof *more);
        if (!more) return q_fail(e, Q_EMEM, "no memory for %d kernels", cap);
        w->items = more;
        w->cap = cap;
    }
    w->items[w->n].record = *r;
    w->items[w->n++].kernel = *gk;
    memset(gk, 0, sizeof *gk);
    return Q_OK;
}

/* An older driver than the one that it was built for does not load it: it is built again by an older NVRTC. */
static int is_for_driver(const struct work *w, const struct record_object *o) { return !w->driver || record_object_cuda(o) <= w->driver / 1000; }

static int has_object(const struct work *w, const struct record *r)
{
    char path[Q_PATH];
    const char *kind = w->t->card.kind == Q_CARD_CUDA ? "cubin" : "so";
    for (int i = 0; i < r->n_objects; i++)
        if (!strcmp(r->objects[i].kind, kind) && is_for_driver(w, &r->objects[i]) && !store_object(w->build->store, r->objects[i].name, path, NULL))
            return 1;
    return 0;
}

/* A record without its object: the same params must give the same text, else the record is not this generator's. A CUDA kernel borrowed
 * from another card is the same params' text for this one. */
static int rebuild(struct work *w, const struct q_problem *p, struct record *r, struct q_err *e)
{
    struct gen_kernel gk;
    char source[65];
    int bad = emit(w, p, r->params, &gk, e);
    if (bad) return bad;
    sha_bytes(source, gk.unit, strlen(gk.unit));
    if (!strcmp(r->origin, "borrowed") && w->t->card.kind == Q_CARD_CUDA) {
        strcpy(r->source, source);
        r->launch = gk.launch;
    }
    if (strcmp(source, r->source)) bad = q_fail(e, Q_EMISS, "%s: the record's source hash is not what this generator gives", r->kernel);
    else bad = push(w, r, &gk, e);
    gen_kernel_free(&gk);
    return bad;
}

/* Problems that differ in their buckets alone stand together: one record may answer several. */
static int is_last(struct work *w, const struct record *r)
{
    struct record *l = w->last;
    int same = !strcmp(l->op, r->op) && !strcmp(l->shape, r->shape) && l->rows == r->rows && l->ctx == r->ctx && !strcmp(l->params, r->params);
    *l = *r;
    return same;
}

/* Default params are for steps of any size. */
static int make_default(struct work *w, const struct q_problem *p, const struct store_key *k, struct q_err *e)
{
    struct gen_kernel gk;
    struct q_problem any = *p;
    struct record r;
    int bad = emit(w, p, NULL, &gk, e);
    if (bad) return bad;
    any.rows = any.ctx = 0;
    target_record(&r, w->g, k, &any, &gk);
    strcpy(r.origin, "default");
    if (!is_last(w, &r)) {
        w->result->kernels++;
        bad = push(w, &r, &gk, e);
    }
    gen_kernel_free(&gk);
    return bad;
}

static int plan_problem(struct work *w, const struct q_problem *p, struct q_err *e)
{
    char generator[65];
    struct store_key k;
    struct record r;
    int layer = 0, bad = target_key(w->t, w->g, p, generator, &k, e);
    if (bad || !strcmp(p->op, "layout")) return bad;
    while (!find(w, &k, &layer, &r, NULL)) {
        struct q_err why;
        if (is_last(w, &r)) return Q_OK;
        w->result->kernels++;
        if (has_object(w, &r)) {
            w->result->cached++;
            return Q_OK;
        }
        if (!rebuild(w, p, &r, &why)) return Q_OK;
        w->result->kernels--;
        w->last->op[0] = 0;
        if (w->say) w->say(w->say_arg, why.text);
    }
    return make_default(w, p, &k, e);
}

/* --- building ---------------------------------------------------------------------------------------------------------- */

/* Objects that are there under the same name (another card's record, a lost record) are not built again. */
static int keep_existing(struct work *w, struct build_task *tasks, int *of, int *n, struct q_err *e)
{
    *n = 0;
    for (int i = 0; i < w->n; i++) {
        struct item *it = &w->items[i];
        struct build_task t = build_task_of(&it->kernel, w->compiler);
        char path[Q_PATH];
        of[i] = -1;
        /* A record that is built again was looked at by plan_problem: the store has told about its object. */
        int known_missing = it->record.n_objects && !strcmp(it->record.objects[0].name, t.object.name);
        if (!known_missing && !store_object(w->build->store, t.object.name, path, NULL)) {
            int bad = sha_file(t.object.content, path, &t.object.size, e);
            if (bad) return bad;
            it->record.objects[0] = t.object;
            it->record.n_objects = 1;
            w->result->cached++;
        } else {
            of[i] = *n;
            tasks[(*n)++] = t;
        }
    }
    return Q_OK;
}

/* Records of all kernels whose object is there; the first failure of a unit is the error. */
static int write_records(struct work *w, const struct build_task *tasks, const int *of, struct q_err *e)
{
    int first = Q_OK;
    for (int i = 0; i < w->n; i++) {
        struct record *r = &w->items[i].record;
        const struct build_task *t = of[i] < 0 ? NULL : &tasks[of[i]];
        if (t && t->rc) {
            w->result->failed++;
            if (!first) first = q_fail(e, t->rc, "%s", t->why);
            continue;
        }
        if (t) {
            r->objects[0] = t->object;
            r->n_objects = 1;
            w->result->built++;
        }
        int bad = store_put(w->build->store, r, first ? NULL : e);
        if (bad && !first) first = bad;
    }
    return first;
}

static int build_items(struct work *w, struct q_err *e)
{
    struct build_task *tasks = calloc((size_t)w->n, sizeof *tasks);
    int *of = calloc((size_t)w->n, sizeof *of), n, r;
    struct q_err why = { 0 };
    if (!tasks || !of) r = q_fail(e, Q_EMEM, "no memory for %d kernels", w->n);
    else if (!(r = keep_existing(w, tasks, of, &n, e))) {
        store_tell(w->build->store);
        int stopped = n ? build_all(w->build, tasks, n, &why) : Q_OK;
        r = write_records(w, tasks, of, e);
        /* What stopped the build says more than the kernels that it left undone. */
        if (stopped) r = q_fail(e, stopped, "%s", why.text);
    }
    free(tasks);
    free(of);
    return r;
}

int defaults_make(const struct target *t, struct gen *g, const struct build_opts *build, struct compiler *compiler,
                  const struct compiler_given *given, void (*say)(void *, const char *), void *say_arg,
                  struct defaults_result *result, struct q_err *e)
{
    struct work w = { .t = t, .g = g, .build = build, .compiler = compiler, .given = given, .say = say, .say_arg = say_arg, .result = result };
    struct q_problem_list list;
    memset(result, 0, sizeof *result);
    if (!(w.last = calloc(1, sizeof *w.last))) return q_fail(e, Q_EMEM, "no memory for a record");
    if (t->card.kind == Q_CARD_CUDA) w.driver = nvrtc_driver();
    int r = kset_problems(t->model, &t->card, t->numerics, t->kv_k, t->kv_v, t->sparse, choose_layout, &w, &list, e);
    if (r == Q_EMISS && w.err.code) r = q_fail(e, w.err.code, "%s", w.err.text);
    for (int i = 0; i < list.n && !r; i++) r = plan_problem(&w, &list.p[i], e);
    free(list.p);
    if (!r && w.n && !(r = need_write(&w, e)) && !(r = need_compiler(&w, e))) r = build_items(&w, e);
    for (int i = 0; i < w.n; i++) gen_kernel_free(&w.items[i].kernel);
    free(w.items);
    free(w.last);
    return r;
}
