#include "import.h"
#include "judge.h"
#include "runtime/json_check.h"
#include "selftest.h"
#include "tune.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels that are worked on at a time: their texts are held in memory. */
enum { BATCH = 256, DEPTH = 8 };

/* What becomes of a record. */
enum use { LEFT_OUT, AS_DATA, MADE_HERE, AS_IT_CAME };

struct item {
    struct record record;                /* this build's, for the card that it is written for */
    struct gen_kernel kernel;            /* owned texts */
    const struct bundle_member *binary;  /* AS_IT_CAME; NULL: the store has the object */
    struct record_object object;         /* its description */
    enum use use;
    char path[Q_PATH];                   /* of the object; "": a choice without a kernel */
    char ref[24];                        /* of its op */
};

struct import {
    const struct bundle *b;
    const struct import_opts *o;
    struct import_result *result;
    struct q_card card;                  /* the bundle's */
    int same;                            /* it is this machine's */
    struct item *items;                  /* owned: [BATCH] */
    int n;
    char dir[Q_PATH];                    /* a directory to hand objects over in, "" until one is needed */
    struct selftest test;
};

static void say(const struct import *im, const char *line)
{
    if (im->o->say) im->o->say(im->o->say_arg, line);
}

/* --- judging ----------------------------------------------------------------------------------------------------------- */

static int is_kernel(const struct item *it) { return it->kernel.unit && *it->kernel.unit; }

/* The file's name is the key's, so that a record is one for its problem. */
static int check_name(const struct record *r, const char *path, struct q_err *e)
{
    struct store_key k = { r->op, r->shape, r->rows, r->ctx, r->profile, r->card, r->generator };
    char file[64], want[BUNDLE_PATH];
    store_file_name(file, &k);
    snprintf(want, sizeof want, "records/%s/%s", r->op, file);
    return strcmp(want, path) ? q_fail(e, Q_EINPUT, "%s: the record in it is for another problem: %s", path, want) : Q_OK;
}

/* CUDA: objects of the same generation run on its later cards, and in drivers of their CUDA version or a newer one. */
static int fits_here(const struct import *im, const struct record_object *o)
{
    const struct q_card *here = im->o->here;
    int cc, major;
    if (here->kind == Q_CARD_CPU) return !strcmp(o->kind, "so") && !strcmp(o->arch, build_arch());
    if (strcmp(o->kind, "cubin") || sscanf(o->arch, "sm_%d", &cc) != 1 || sscanf(o->compiler, "NVRTC %d", &major) != 1) return 0;
    return cc / 10 == here->cc / 10 && cc <= here->cc && major <= im->o->driver / 1000;
}

/* The member that holds the record's object, where it may be used. It must be what the record says. */
static int find_binary(const struct import *im, const struct record *r, struct item *it, struct q_err *e)
{
    char path[BUNDLE_PATH];
    const struct record_object *o = im->o->trusted ? judge_object(r, &it->kernel) : NULL;
    it->binary = NULL;
    if (!o || !is_kernel(it) || !fits_here(im, o)) return Q_OK;
    snprintf(path, sizeof path, "objects/%s.%s", o->name, o->kind);
    const struct bundle_member *m = bundle_find(im->b, path);
    if (!m) return Q_OK;
    if (strcmp(m->sha, o->content) || (long)m->n != o->size) return q_fail(e, Q_EINPUT, "%s: it is not the object that the record names", path);
    it->binary = m;
    it->object = *o;
    return Q_OK;
}

static int has_objects(const struct import *im, const struct record *r)
{
    char path[Q_PATH];
    for (int i = 0; i < r->n_objects; i++)
        if (store_object(im->o->build->store, r->objects[i].name, path, NULL)) return 0;
    return 1;
}

/* Whether a winner that was measured with as much effort is there. */
static int is_kept(const struct import *im, const struct record *r)
{
    struct store_key k = { r->op, r->shape, r->rows, r->ctx, r->profile, r->card, r->generator };
    struct record *have = malloc(sizeof *have);
    int layer = 0;
    int kept = have && !store_find(im->o->build->store, &k, &layer, have, NULL) && !strcmp(have->origin, "tuned") && !strcmp(have->card, r->card)
               && effort_find(have->effort) >= effort_find(r->effort) && has_objects(im, have);
    free(have);
    return kept;
}

/* Of the bundle's own card. */
static enum use use_here(const struct import *im, const struct item *it)
{
    if (!im->o->m) return LEFT_OUT;
    return it->binary ? AS_IT_CAME : MADE_HERE;
}

/* Of another card: for this one only what nothing here could make. */
static enum use use_moved(const struct import *im, struct item *it)
{
    struct record *moved = malloc(sizeof *moved);
    struct gen_kernel k;
    enum use use = LEFT_OUT;
    int fits = moved && im->o->m && !im->o->build->compiler->program[0] && (it->binary || !is_kernel(it)) && im->o->trusted;
    if (fits) {
        *moved = it->record;
        if (!judge_move(im->o->g, im->o->here, moved, &k, NULL)) {
            gen_kernel_free(&it->kernel);
            it->kernel = k;
            it->record = *moved;
            use = it->binary ? AS_IT_CAME : MADE_HERE;
        }
    }
    free(moved);
    return use;
}

/* One record, to an item. Q_EUNSUP: of other templates. */
static int judge(const struct import *im, const struct bundle_member *m, struct item *it, struct q_err *e)
{
    struct record *r = malloc(sizeof *r);
    memset(it, 0, sizeof *it);
    if (!r) return q_fail(e, Q_EMEM, "no memory for a record");
    int rc = json_check(m->data, m->n, DEPTH, m->path, e);
    if (!rc) rc = record_parse(r, m->data, m->n, m->path, e);
    if (!rc) rc = check_name(r, m->path, e);
    if (!rc) rc = judge_record(im->o->g, &im->card, r, &it->record, &it->kernel, e);
    if (!rc && (rc = find_binary(im, r, it, e))) gen_kernel_free(&it->kernel);
    free(r);
    return rc;
}

static int is_record(const struct bundle_member *m)
{
    size_t most;
    return bundle_kind_of(m->path, &most) == BUNDLE_RECORD;
}

/* All records, before anything is done: what they are, and whether a compiler is needed. */
static int judge_all(struct import *im, int *need_compiler, struct q_err *e)
{
    struct item *it = &im->items[0];
    int rc = Q_OK;
    *need_compiler = 0;
    for (int i = 0; i < im->b->n && !rc; i++) {
        if (!is_record(&im->b->m[i])) continue;
        im->result->records++;
        rc = judge(im, &im->b->m[i], it, e);
        if (rc == Q_EUNSUP) {
            if (!im->result->stale++) say(im, e->text);
            rc = Q_OK;
            continue;
        }
        if (rc) break;
        *need_compiler |= im->same && is_kernel(it) && use_here(im, it) == MADE_HERE && !is_kept(im, &it->record);
        gen_kernel_free(&it->kernel);
    }
    return rc;
}

/* --- objects ----------------------------------------------------------------------------------------------------------- */

static void leave_out(struct import *im, struct item *it, const char *why)
{
    char line[700];
    snprintf(line, sizeof line, "left out: %.150s: %.500s", it->record.kernel, why);
    say(im, line);
    it->use = LEFT_OUT;
    im->result->failed++;
}

/* The bytes that came, to a file of their own: into the store they go when they are found right, since there they would stand for what the
 * kernel's text compiles to. An object that the store has is preferred. */
static int stage(struct import *im, int i, struct q_err *e)
{
    struct item *it = &im->items[i];
    struct store *s = im->o->build->store;
    char file[200];
    if (!store_object(s, it->object.name, it->path, NULL)) {
        it->binary = NULL;
        return sha_file(it->object.content, it->path, &it->object.size, e);
    }
    snprintf(file, sizeof file, "%d-%.150s.%s", i, it->kernel.name, it->kernel.kind);
    int rc = im->dir[0] ? Q_OK : store_workdir(s, im->dir, e);
    if (!rc) rc = path_join(it->path, e, im->dir, file, NULL);
    return rc ? rc : file_write(it->path, it->binary->data, it->binary->n, e);
}

static int publish(struct import *im, struct item *it, struct q_err *e)
{
    struct record_object *o = &it->object;
    int rc = it->binary ? store_publish(im->o->build->store, it->path, o->name, o->content, &o->size, e) : Q_OK;
    it->record.objects[0] = *o;
    it->record.n_objects = 1;
    im->result->taken += !rc;
    return rc;
}

/* Enters a kernel whose object is in the store. */
static int enter(const struct import *im, struct item *it, struct build_task *t, struct q_err *e)
{
    int rc = store_object(im->o->build->store, t->object.name, it->path, e);
    if (!rc) rc = sha_file(t->object.content, it->path, &t->object.size, e);
    it->record.objects[0] = t->object;
    it->record.n_objects = 1;
    return rc;
}

/* The task of that name, once: buckets and profiles may share a kernel. */
static int task_for(struct build_task *task, int *n, const struct build_task *t)
{
    int i = 0;
    while (i < *n && strcmp(task[i].object.name, t->object.name)) i++;
    if (i == *n) task[(*n)++] = *t;
    return i;
}

static int compile_batch(struct import *im, struct q_err *e)
{
    struct build_task task[BATCH];
    int of[BATCH], n = 0, rc = Q_OK;
    for (int i = 0; i < im->n && !rc; i++) {
        struct item *it = &im->items[i];
        of[i] = -1;
        if (it->use != MADE_HERE || !is_kernel(it)) continue;
        struct build_task t = build_task_of(&it->kernel, im->o->build->compiler);
        if (!store_object(im->o->build->store, t.object.name, it->path, NULL)) rc = enter(im, it, &t, e);
        else of[i] = task_for(task, &n, &t);
    }
    if (!rc && n) rc = build_all(im->o->build, task, n, e);
    for (int i = 0; i < n && !rc; i++) im->result->compiled += !task[i].rc;
    for (int i = 0; i < im->n && !rc; i++) {
        struct item *it = &im->items[i];
        if (of[i] < 0) continue;
        if (task[of[i]].rc) leave_out(im, it, task[of[i]].why);
        else rc = enter(im, it, &task[of[i]], e);
    }
    return rc;
}

/* --- a batch ----------------------------------------------------------------------------------------------------------- */

static int test_item(struct import *im, struct item *it, struct q_err *e)
{
    struct q_err why;
    int rc = selftest_run(&im->test, &it->record, it->path, &why);
    if (rc == Q_EINTERNAL) leave_out(im, it, why.text);
    else if (rc) return q_fail(e, rc, "%s", why.text);
    else im->result->tested++;
    return !rc && it->use == AS_IT_CAME ? publish(im, it, e) : Q_OK;
}

static int write_item(struct import *im, struct item *it, struct q_err *e)
{
    int rc = store_put(im->o->build->store, &it->record, e);
    im->result->data += !rc && it->use == AS_DATA;
    im->result->written += !rc && it->use != AS_DATA;
    return rc;
}

/* Those that are held against the same truth stand together. */
static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int c = strcmp(x->ref, y->ref);
    if (!c) c = strcmp(x->record.shape, y->record.shape);
    return c ? c : strcmp(x->record.op, y->record.op);
}

static int do_batch(struct import *im, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < im->n && !rc; i++)
        if (im->items[i].use != AS_DATA && is_kernel(&im->items[i])) rc = gen_ref(im->o->g, im->items[i].record.op, im->items[i].ref, e);
    if (!rc) qsort(im->items, (size_t)im->n, sizeof *im->items, compare_items);
    for (int i = 0; i < im->n && !rc; i++)
        if (im->items[i].use == AS_IT_CAME) rc = stage(im, i, e);
    if (!rc) rc = compile_batch(im, e);
    for (int i = 0; i < im->n && !rc; i++) {
        struct item *it = &im->items[i];
        if (it->use > AS_DATA && is_kernel(it)) rc = test_item(im, it, e);
        if (!rc && it->use != LEFT_OUT) rc = write_item(im, it, e);
    }
    for (int i = 0; i < im->n; i++) gen_kernel_free(&im->items[i].kernel);
    im->n = 0;
    return rc;
}

/* A place for one more item; a full batch is worked off first. */
static int next_item(struct import *im, struct item **it, struct q_err *e)
{
    int rc = im->n == BATCH ? do_batch(im, e) : Q_OK;
    *it = &im->items[im->n];
    return rc;
}

/* For another card: its measured winners as they are, without objects. */
static int plan_data(struct import *im, const struct item *it, struct q_err *e)
{
    struct item *data;
    struct record *r = malloc(sizeof *r);
    if (!r) return q_fail(e, Q_EMEM, "no memory for a record");
    *r = it->record;
    int rc = strcmp(r->origin, "tuned") ? Q_EMISS : Q_OK;
    if (!rc && is_kept(im, r)) {
        im->result->kept++;
        rc = Q_EMISS;
    }
    if (!rc && !(rc = next_item(im, &data, e))) {
        memset(data, 0, sizeof *data);
        data->record = *r;
        data->use = AS_DATA;
        im->n++;
    }
    free(r);
    return rc == Q_EMISS ? Q_OK : rc;
}

static int plan_here(struct import *im, struct item *it, struct q_err *e)
{
    struct item *to;
    enum use use = im->same ? use_here(im, it) : use_moved(im, it);
    int kept = use != LEFT_OUT && is_kept(im, &it->record);
    im->result->kept += kept;
    im->result->idle += use == LEFT_OUT && !im->same && strcmp(it->record.origin, "tuned");
    if (kept) use = LEFT_OUT;
    int rc = use == LEFT_OUT ? Q_OK : next_item(im, &to, e);
    if (use == LEFT_OUT || rc) {
        gen_kernel_free(&it->kernel);
        return rc;
    }
    *to = *it;
    to->use = use;
    im->n++;
    return Q_OK;
}

static int plan(struct import *im, struct item *it, struct q_err *e)
{
    int rc = im->same ? Q_OK : plan_data(im, it, e);
    if (!rc) return plan_here(im, it, e);
    gen_kernel_free(&it->kernel);
    return rc;
}

static int do_all(struct import *im, struct q_err *e)
{
    struct item *it = malloc(sizeof *it);
    int rc = it ? Q_OK : q_fail(e, Q_EMEM, "no memory for a record");
    for (int i = 0; i < im->b->n && !rc; i++) {
        if (!is_record(&im->b->m[i])) continue;
        rc = judge(im, &im->b->m[i], it, e);
        if (rc == Q_EUNSUP) rc = Q_OK;
        else if (!rc) rc = plan(im, it, e);
    }
    if (!rc) rc = do_batch(im, e);
    for (int i = 0; i < im->n; i++) gen_kernel_free(&im->items[i].kernel);
    free(it);
    return rc;
}

/* The set's key must be one that this version would write. */
static int find_card(struct import *im, struct q_err *e)
{
    int rc = card_parse(&im->card, im->b->card, e);
    if (!rc && strcmp(im->card.key, im->b->card)) rc = q_fail(e, Q_EINPUT, "card '%.190s': expected a full key: %s", im->b->card, im->card.key);
    im->same = !rc && !strcmp(im->card.key, im->o->here->key);
    return rc;
}

int import_bundle(const struct bundle *b, const struct import_opts *o, struct import_result *result, struct q_err *e)
{
    struct import im = { .b = b, .o = o, .result = result, .test = { .m = o->m, .g = o->g, .card = o->here } };
    int need_compiler;
    memset(result, 0, sizeof *result);
    int rc = find_card(&im, e);
    if (rc) return rc;
    if (!(im.items = calloc(BATCH, sizeof *im.items))) return q_fail(e, Q_EMEM, "no memory for records");
    rc = judge_all(&im, &need_compiler, e);
    if (!rc && need_compiler && !o->build->compiler->program[0]) rc = q_fail(e, Q_EMISS, "%s", o->no_compiler);
    if (!rc) rc = do_all(&im, e);
    if (im.dir[0]) dir_remove(im.dir);
    free(im.items);
    return rc;
}
