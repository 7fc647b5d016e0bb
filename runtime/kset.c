#define _GNU_SOURCE
#include "device.h"
#include "kset_child.h"
#include "kset_ops.h"
#include "kset_shapes.h"
#include "layout.h"
#include "store.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What answers one problem. A problem of op "layout" has a record and no function. */
struct answer {
    struct record *record;   /* owned; NULL: missing */
    struct q_kernel kernel;  /* owned; empty where `shared` */
    int shared;              /* 1: for larger steps the kernel of the answer before it serves too */
};

struct kset {
    struct kset_opts o;
    struct store *store;
    struct q_problem_list problems;
    struct answer *answers;  /* [problems.n] */
    char temp[Q_PATH];       /* cache of this process alone, "" if none */
    char *notes;             /* owned: lines about damaged files, '\n'-separated */
    int child_spoke;         /* it has told of damaged files, if there are any */
    int missing, refused;    /* refused: whole objects that the driver does not load */
    char first_missing[300], first_refused[900];
    char id[16];
};

/* --- what is said ------------------------------------------------------------------------------------------------------ */

static void say(struct kset *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct kset *k, const char *fmt, ...)
{
    char line[1200];
    va_list ap;
    if (!k->o.say) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    k->o.say(k->o.say_arg, line);
}

/* Lines about what is damaged are kept to the end: a child meets the same files and tells of them first, so the store's are then dropped,
 * also where it has not mended the file (a winner's record: only a tune does). */
static void keep_note(void *arg, const char *line)
{
    struct kset *k = arg;
    if (k->notes && strstr(k->notes, line)) return;
    size_t have = k->notes ? strlen(k->notes) : 0, n = strlen(line);
    char *more = realloc(k->notes, have + n + 2);
    if (!more) return;
    memcpy(more + have, line, n);
    memcpy(more + have + n, "\n", 2);
    k->notes = more;
}

static void keep_damage(void *arg, const char *line)
{
    const struct kset *k = arg;
    if (!k->child_spoke) keep_note(arg, line);
}

static void pass_child(void *arg, const char *line)
{
    struct kset *k = arg;
    k->child_spoke = 1;
    say(k, "%s", line);
}

static void say_notes(struct kset *k)
{
    if (k->store) store_tell(k->store);
    char *rest = k->notes, *line;
    while (rest && (line = strsep(&rest, "\n")))
        if (*line) say(k, "%s", line);
    free(k->notes);
    k->notes = NULL;
}

/* --- looking up -------------------------------------------------------------------------------------------------------- */

/* The generator hash of an op in this build; "" for one that it does not have. */
static const char *generator_of(const char *op)
{
    for (const struct q_op_hash *h = q_op_hashes; h->op; h++)
        if (!strcmp(h->op, op)) return h->hash;
    return "";
}

static struct store_key key_of(const struct kset *k, const struct q_problem *p)
{
    return (struct store_key){ p->op, p->shape, p->rows, p->ctx, q_numerics_name(k->o.numerics), k->o.device->card.key, generator_of(p->op) };
}

/* strict admits the canonical class alone, whatever a record says. */
static int admitted(const struct kset *k, const struct record *r)
{
    return k->o.numerics != Q_STRICT || !strcmp(r->numerics, "canonical");
}

static const struct record_object *object_for(const struct q_device *d, const struct record *r)
{
    for (int i = 0; i < r->n_objects; i++)
        if (!strcmp(r->objects[i].kind, d->ops->object_kind)) return &r->objects[i];
    return NULL;
}

/* Built again with the same compiler it would be the same object: that is no help. */
static void note_refused(struct kset *k, const struct record_object *o, char path[Q_PATH], const char *why)
{
    int cuda = k->o.device->cuda;
    if (k->refused++) return;
    int n = snprintf(k->first_refused, sizeof k->first_refused, "%.600s", why);
    for (int up = 0; up < 2; up++) *strrchr(path, '/') = 0;   /* OBJECTS/AA/NAME */
    snprintf(k->first_refused + n, sizeof k->first_refused - (size_t)n,
             "; it was built by %.40s and the driver is of CUDA %d.%d: install a newer driver, or remove %.150s and build with an older NVRTC "
             "(`quarry tune --effort none --nvrtc PATH`)", o->compiler, cuda / 1000, cuda % 1000 / 10, path);
}

static int load(struct kset *k, const struct record *r, struct answer *a, struct q_err *e)
{
    struct q_device *d = k->o.device;
    const struct record_object *o = object_for(d, r);
    char path[Q_PATH];
    struct q_err why;
    if (!o) return q_fail(e, Q_EMISS, "%s: the record names no object", r->kernel);
    if (d->cuda && record_object_cuda(o) > d->cuda / 1000)
        return q_fail(e, Q_EMISS, "%s: its object is of %s, and the driver is older", r->kernel, o->compiler);
    int bad = store_object(k->store, o->name, path, e);
    if (bad) return bad;
    if (!d->ops->load(d, path, r->kernel, &r->launch, &a->kernel, &why)) return Q_OK;
    if (why.code == Q_EUNSUP) note_refused(k, o, path, why.text);
    else keep_note(k, why.text);
    if (!d->cuda) unlink(path);      /* whole by its hash, and yet not this kernel: whatever took its place, it is built again */
    return q_fail(e, Q_EMISS, "%s: the object does not load", r->kernel);
}

/* Problems that differ in their buckets alone: the answer for smaller steps, or NULL. */
static const struct answer *smaller(const struct kset *k, int i)
{
    const struct q_problem *p = k->problems.p;
    return i && !strcmp(p[i].op, p[i - 1].op) && !strcmp(p[i].shape, p[i - 1].shape) ? &k->answers[i - 1] : NULL;
}

static int is_same_kernel(const struct kset *k, const struct record *a, const struct record *b)
{
    const struct record_object *x = object_for(k->o.device, a), *y = object_for(k->o.device, b);
    return x && y && !strcmp(a->kernel, b->kernel) && !strcmp(x->name, y->name);
}

/* The first record, down the layers, that is admitted and loads. `any` 0: only the first admitted counts, so that the child is
 * asked to build a winner's object before a default takes its place. before: the answer for smaller steps, or NULL. */
static int find_answer(struct kset *k, const struct q_problem *p, int any, const struct answer *before, struct answer *a, struct q_err *e)
{
    struct store_key key = key_of(k, p);
    struct record *r = malloc(sizeof *r);
    int layer = 0, bad;
    if (!r) return q_fail(e, Q_EMEM, "no memory for a record");
    while (!(bad = store_find(k->store, &key, &layer, r, e))) {
        if (!admitted(k, r)) continue;
        a->shared = before && before->record && is_same_kernel(k, before->record, r);
        if (strcmp(p->op, "layout") && !a->shared) bad = load(k, r, a, e);
        if (!bad || !any) break;
    }
    if (bad) free(r);
    else a->record = r;
    return bad;
}

/* For kset_problems: the record of the weight's layout, or NULL. */
static const char *chosen_layout(void *arg, const char *type, long n, long n_k)
{
    struct kset *k = arg;
    struct q_problem p = { .op = "layout" };
    struct answer a = { 0 };
    shape_layout(p.shape, sizeof p.shape, type, n, n_k);
    if (find_answer(k, &p, 1, NULL, &a, NULL)) return NULL;
    const struct q_layout *layout = q_layout_find(a.record->layout);
    free(a.record);
    return layout ? layout->name : NULL;
}

static void drop_answers(struct kset *k)
{
    for (int i = 0; k->answers && i < k->problems.n; i++) {
        free(k->answers[i].record);
        k->o.device->ops->unload(k->o.device, &k->answers[i].kernel);
    }
    free(k->answers);
    free(k->problems.p);
    k->answers = NULL;
    memset(&k->problems, 0, sizeof k->problems);
}

static void note_missing(struct kset *k, const char *what)
{
    if (!k->missing++) snprintf(k->first_missing, sizeof k->first_missing, "%.290s", what);
}

/* Looks everything up afresh and counts what is missing. Without layouts the rest cannot be named: that is one miss. */
static int resolve(struct kset *k, const struct q_model *m, int any, struct q_err *e)
{
    struct q_err why;
    drop_answers(k);
    k->missing = k->refused = 0;
    int r = kset_problems(m, &k->o.device->card, k->o.numerics, k->o.kv_k, k->o.kv_v, k->o.sparse, chosen_layout, k, &k->problems, &why);
    if (r == Q_EMISS) note_missing(k, why.text);
    if (r) return r == Q_EMISS ? Q_OK : q_fail(e, r, "%s", why.text);
    k->answers = calloc((size_t)k->problems.n, sizeof *k->answers);
    if (!k->answers) return q_fail(e, Q_EMEM, "no memory for %d kernels", k->problems.n);
    for (int i = 0; i < k->problems.n; i++)
        if (find_answer(k, &k->problems.p[i], any, smaller(k, i), &k->answers[i], &why)) note_missing(k, why.text);
    return Q_OK;
}

/* Makes chains of the kernels for steps of several sizes. */
static void link_sizes(struct kset *k)
{
    struct q_kernel *last = NULL;
    for (int i = 0; i < k->problems.n; i++) {
        const struct q_problem *p = &k->problems.p[i];
        struct answer *a = &k->answers[i];
        if (!a->shared) {
            if (smaller(k, i)) last->larger = &a->kernel;
            last = &a->kernel;
        }
        last->most_rows = p->rows;
        last->most_ctx = p->ctx;
    }
}

/* --- opening ----------------------------------------------------------------------------------------------------------- */

static int reopen_store(struct kset *k, const char *cache, struct q_err *e)
{
    struct store_opts so = { .tunes = k->o.tunes, .cache = cache, .say = keep_damage, .say_arg = k };
    store_close(k->store);
    return store_open(&k->store, &so, e);
}

/* Where the cache cannot be written, or no code run from it, kernels are built into a directory of this process, removed once they are
 * loaded. */
static int use_temp(struct kset *k, const struct q_err *why, struct q_err *e)
{
    static const char *const prefixes[] = { "/tmp/quarry-", "/dev/shm/quarry-" };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (dir_temp(k->temp, prefixes[i], NULL)) continue;
        if (!dir_probe(k->temp, 1 << 20, NULL) && (k->o.device->card.kind != Q_CARD_CPU || !dir_may_run(k->temp, NULL))) {
            say(k, "%s; kernels are built in a temporary directory for this run only", why->text);
            return reopen_store(k, k->temp, e);
        }
        dir_remove(k->temp);
    }
    k->temp[0] = 0;
    return q_fail(e, Q_EIO, "%s; and neither /tmp nor /dev/shm will do", why->text);
}

/* Before anything is loaded: what does not load is removed, and a disk that runs nothing is no reason to. */
static int open_place(struct kset *k, struct q_err *e)
{
    struct q_err why;
    int r = reopen_store(k, NULL, e);
    if (r || k->o.device->card.kind != Q_CARD_CPU || store_can_run(k->store, &why) != Q_EIO) return r;
    return use_temp(k, &why, e);
}

static int build_missing(struct kset *k, struct q_err *e)
{
    struct q_err why;
    int r;
    if (store_can_write(k->store, k->o.device->card.kind, &why) && (r = use_temp(k, &why, e))) return r;
    if (k->answers) say(k, "%d of %d kernels are missing: building them with default params (quarry-tune --effort none)", k->missing, k->problems.n);
    else say(k, "no kernels for this model on this card yet: building them with default params (quarry-tune --effort none)");
    struct kset_opts o = k->o;
    o.say = pass_child;
    o.say_arg = k;
    return kset_run_tuner(&o, k->temp[0] ? k->temp : NULL, e);
}

static int complete(struct kset *k, const struct q_model *m, struct q_err *e)
{
    struct q_err why = { 0 };
    int r = resolve(k, m, 0, e);
    if (r || !k->missing) return r;
    int built = k->refused == k->missing ? Q_OK : build_missing(k, &why);
    if ((r = resolve(k, m, 1, e))) return r;
    if (!k->missing && k->refused)
        say(k, "default params take the place of %d winners that the driver refuses; the first: %s", k->refused, k->first_refused);
    else if (!k->missing && built) say(k, "default params take the place of winners that could not be built: %s", why.text);
    if (!k->missing) return Q_OK;
    if (k->refused) return q_fail(e, Q_EUNSUP, "the driver refuses %d of %d kernels; the first: %s", k->refused, k->problems.n, k->first_refused);
    if (built) return q_fail(e, Q_EMISS, "kernels are missing and could not be built: %s", why.text);
    return q_fail(e, Q_EMISS, "%d kernels are still missing after quarry-tune built them; the first: %s", k->missing, k->first_missing);
}

static int compare_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The id depends on what is computed and in which class, not on the order of the list. */
static int make_id(struct kset *k, struct q_err *e)
{
    int n = k->problems.n, failed = 0;
    char **texts = calloc((size_t)n, sizeof *texts), hex[65];
    if (!texts) return q_fail(e, Q_EMEM, "no memory for an id of %d kernels", n);
    for (int i = 0; i < n; i++) {
        const struct record *r = k->answers[i].record;
        if (asprintf(&texts[i], "%s %s %d %d %s %s", r->op, r->shape, k->problems.p[i].rows, k->problems.p[i].ctx, r->numerics, r->params) < 0) {
            texts[i] = NULL;
            failed = 1;
        }
    }
    if (!failed) {
        qsort(texts, (size_t)n, sizeof *texts, compare_text);
        sha_texts(hex, (const char *const *)texts, n);
        snprintf(k->id, sizeof k->id, "%.12s", hex);
    }
    for (int i = 0; i < n; i++) free(texts[i]);
    free(texts);
    return failed ? q_fail(e, Q_EMEM, "no memory for an id of %d kernels", n) : Q_OK;
}

int kset_open(struct kset **out, const struct q_model *m, const struct kset_opts *o, struct q_err *e)
{
    struct kset *k = calloc(1, sizeof *k);
    *out = NULL;
    if (!k) return q_fail(e, Q_EMEM, "no memory for a kernel set");
    k->o = *o;
    if (!k->o.kv_k) k->o.kv_k = "f16";
    if (!k->o.kv_v) k->o.kv_v = "f16";
    int r = open_place(k, e);
    if (!r) r = complete(k, m, e);
    if (!r) r = make_id(k, e);
    if (!r) link_sizes(k);
    say_notes(k);
    if (k->temp[0]) dir_remove(k->temp);   /* what is loaded stays mapped */
    if (r) kset_close(k);
    else *out = k;
    return r;
}

void kset_close(struct kset *k)
{
    if (!k) return;
    drop_answers(k);
    store_close(k->store);
    free(k->notes);
    free(k);
}

/* --- asking ------------------------------------------------------------------------------------------------------------ */

static const struct answer *answer_of(const struct kset *k, const char *op, const char *shape)
{
    for (int i = 0; i < k->problems.n; i++)
        if (!strcmp(k->problems.p[i].op, op) && !strcmp(k->problems.p[i].shape, shape)) return &k->answers[i];
    return NULL;
}

int kset_find(const struct kset *k, const char *op, const char *shape, const struct q_kernel **kernel, struct q_err *e)
{
    const struct answer *a = answer_of(k, op, shape);
    *kernel = a && a->kernel.library ? &a->kernel : NULL;
    return *kernel ? Q_OK : q_fail(e, Q_EMISS, "the kernel set has no %s %s", op, shape);
}

void kset_about(const struct kset *k, const char *op, const char *shape, const char **text, const struct record_cost **cost)
{
    const struct answer *a = answer_of(k, op, shape);
    *text = a ? k->problems.p[a - k->answers].shape : NULL;
    *cost = a ? &a->record->cost : NULL;
}

const char *kset_layout(const struct kset *k, const char *type, long n, long kk)
{
    char shape[Q_SHAPE_TEXT];
    shape_layout(shape, sizeof shape, type, n, kk);
    const struct answer *a = answer_of(k, "layout", shape);
    return a ? a->record->layout : "rows";
}

void kset_count(const struct kset *k, int *tuned, int *borrowed, int *defaults)
{
    *tuned = *borrowed = *defaults = 0;
    for (int i = 0; i < k->problems.n; i++) {
        const char *origin = k->answers[i].record->origin;
        if (k->answers[i].shared) continue;
        if (!strcmp(origin, "tuned") || !strcmp(origin, "shipped")) ++*tuned;
        else if (!strcmp(origin, "borrowed")) ++*borrowed;
        else ++*defaults;
    }
}

const char *kset_id(const struct kset *k) { return k->id; }
