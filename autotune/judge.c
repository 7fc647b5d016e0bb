#include "judge.h"
#include "runtime/kset.h"
#include "runtime/shape.h"
#include "target.h"
#include "tune.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beyond these no model's sizes lie; they bound what the generator's loops and a self-test's cases take. */
enum { SIZE = 1 << 20, TEXT = 2 << 20 };
#define CALL_BYTES 8e9

/* "" where the op is a choice. */
static const char *unit_of(const struct gen_kernel *k) { return k->unit ? k->unit : ""; }

static int bad(struct q_err *e, const struct record *r, const char *what)
{
    return q_fail(e, Q_EINPUT, "record %s %.224s: %s", r->op, r->shape, what);
}

static int has_op(struct gen *g, const char *op)
{
    for (const char *const *o = gen_ops(g); *o; o++)
        if (!strcmp(*o, op)) return 1;
    return 0;
}

/* Sizes before the generator sees them: numbers of at most seven digits. */
static int check_sizes(const struct record *r, struct q_err *e)
{
    struct q_shape s;
    int rc = shape_parse(&s, r->shape, e);
    for (int i = 0; i < s.n && !rc; i++) {
        const char *v = s.pair[i].value;
        int digits = !v[strspn(v, "0123456789")];
        if (digits && (strlen(v) > 7 || atol(v) > SIZE)) rc = bad(e, r, "a size is beyond 1048576");
    }
    return rc;
}

/* A bucket is a power of two; 0 is any. */
static int is_bucket(int v, int most) { return v >= 0 && v <= most && !(v & (v - 1)); }

static int is_one_of(const char *word, const char *const *list)
{
    while (*list && strcmp(*list, word)) list++;
    return *list != NULL;
}

static int check_words(const struct record *r, const struct q_card *card, struct q_err *e)
{
    static const char *const origins[] = { "tuned", "borrowed", "shipped", "default", NULL };
    if (strcmp(r->card, card->key)) return bad(e, r, "it is for another card than the set");
    if (q_numerics_parse(r->profile) < 0) return bad(e, r, "its profile is no numerics profile");
    if (!is_one_of(r->origin, origins)) return bad(e, r, "its origin is none");
    if (!is_bucket(r->rows, 4096) || !is_bucket(r->ctx, 1 << 24)) return bad(e, r, "its buckets of rows and context are none");
    if (!strcmp(r->op, "ceiling") && strcmp(r->origin, "default")) return bad(e, r, "a card's ceilings are measured where it is");
    return Q_OK;
}

static struct q_problem problem_of(const struct record *r)
{
    struct q_problem p = { .rows = r->rows, .ctx = r->ctx };
    strcpy(p.op, r->op);
    strcpy(p.shape, r->shape);
    return p;
}

static struct target target_of(const struct record *r, const struct q_card *card)
{
    return (struct target){ .card = *card, .numerics = (enum q_numerics)q_numerics_parse(r->profile), .kv_k = "f16", .kv_v = "f16" };
}

/* The record that this build makes of the same problem and params. */
static int make_own(struct gen *g, const struct q_card *card, const struct record *r, struct record *own, struct gen_kernel *k, struct q_err *e)
{
    struct target t = target_of(r, card);
    struct q_problem p = problem_of(r);
    struct store_key key;
    struct q_err why;
    char generator[65];
    int rc = target_key(&t, g, &p, generator, &key, e);
    if (rc) return rc;
    if (strcmp(generator, r->generator)) return q_fail(e, Q_EUNSUP, "%s: made with other templates than this version's", r->op);
    if (target_emit(&t, g, &p, r->params, k, &why)) return q_fail(e, Q_EINPUT, "record %s: %.900s", r->op, why.text);
    target_record(own, g, &key, &p, k);
    return Q_OK;
}

static int is_same(const struct record *a, const struct record *b)
{
    return !strcmp(a->params, b->params) && !strcmp(a->layout, b->layout) && !strcmp(a->numerics, b->numerics) && !strcmp(a->kernel, b->kernel)
           && !strcmp(a->source, b->source) && a->launch.n == b->launch.n && !memcmp(&a->launch, &b->launch, sizeof a->launch);
}

/* Printed one day: nothing that a terminal obeys. */
static int is_plain(const char *s)
{
    while (*s >= 0x20 && *s < 0x7F) s++;
    return !*s;
}

/* Evidence, in the record's own words. */
static void take_evidence(struct record *own, const struct record *r)
{
    strcpy(own->origin, r->origin);
    strcpy(own->version, is_plain(r->version) ? r->version : "");
    strcpy(own->from, r->from);
    if (effort_find(r->effort)) strcpy(own->effort, r->effort);
    memcpy(own->time, r->time, sizeof own->time);
    own->n_times = r->n_times;
    strcpy(own->base_params, r->base_params);
    strcpy(own->bound, r->bound);
    strcpy(own->ceiling, r->ceiling);
    own->base_us = r->base_us;
    own->gain = r->gain;
    own->roof_pct = r->roof_pct;
    own->roof_doubtful = r->roof_doubtful;
    own->path_rate = r->path_rate;
    own->read_rate = r->read_rate;
}

/* A ceiling has no sizes, and moves what it must. */
static int is_huge(struct gen *g, const struct record *r)
{
    double bytes = 0, ops = 0;
    return strcmp(r->op, "ceiling") && (gen_cost(g, r->op, r->shape, 1, 0, &bytes, &ops, NULL) || !(bytes <= CALL_BYTES));
}

static int check_limits(struct gen *g, const struct record *r, struct record *own, const struct gen_kernel *k, struct q_err *e)
{
    size_t n = strlen(unit_of(k));
    if (!strcmp(r->profile, "strict") && strcmp(own->numerics, "canonical")) return bad(e, r, "strict numerics admit the canonical class alone");
    if (n > TEXT) return bad(e, r, "its text is longer than 2 MiB");
    if (n && is_huge(g, r)) return bad(e, r, "a call of it would move more than 8 GB");
    take_evidence(own, r);
    return Q_OK;
}

int judge_own(struct gen *g, const struct q_card *card, const struct record *r, struct record *own, struct gen_kernel *k, struct q_err *e)
{
    memset(k, 0, sizeof *k);
    int rc = make_own(g, card, r, own, k, e);
    if (rc || is_same(own, r)) return rc;
    gen_kernel_free(k);
    return bad(e, r, "it is not what this version's generator makes of its params");
}

int judge_record(struct gen *g, const struct q_card *card, const struct record *r, struct record *own, struct gen_kernel *k, struct q_err *e)
{
    memset(k, 0, sizeof *k);
    if (!has_op(g, r->op)) return q_fail(e, Q_EUNSUP, "%s: this version has no such op", r->op);
    int rc = check_words(r, card, e);
    if (!rc) rc = check_sizes(r, e);
    if (!rc) rc = judge_own(g, card, r, own, k, e);
    if (rc) return rc;
    if ((rc = check_limits(g, r, own, k, e))) gen_kernel_free(k);
    return rc;
}

int judge_move(struct gen *g, const struct q_card *card, struct record *own, struct gen_kernel *k, struct q_err *e)
{
    struct target t = target_of(own, card);
    struct q_problem p = problem_of(own);
    char source[65] = "";
    int rc = target_emit(&t, g, &p, own->params, k, e);
    if (rc) return q_fail(e, Q_EUNSUP, "%s %s: its params are not legal here", own->op, own->shape);
    if (*unit_of(k)) sha_bytes(source, k->unit, strlen(k->unit));
    if (strcmp(source, own->source)) {
        gen_kernel_free(k);
        return q_fail(e, Q_EUNSUP, "%s %s: its params give another kernel here", own->op, own->shape);
    }
    if (!own->from[0] && strcmp(own->origin, "default")) strcpy(own->from, own->card);
    strcpy(own->card, card->key);
    own->launch = k->launch;
    if (strcmp(own->origin, "default")) strcpy(own->origin, "borrowed");
    return Q_OK;
}

const struct record_object *judge_object(const struct record *r, const struct gen_kernel *k)
{
    char name[65];
    for (int i = 0; i < r->n_objects; i++) {
        const struct record_object *o = &r->objects[i];
        sha_texts(name, (const char *const[]){ unit_of(k), o->arch, o->compiler, o->flags }, 4);
        if (!strcmp(o->kind, k->kind) && !strcmp(o->flags, k->cflags) && !strcmp(o->name, name) && (!k->arch[0] || !strcmp(o->arch, k->arch)))
            return o;
    }
    return NULL;
}
