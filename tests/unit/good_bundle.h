/* For tests of kernel sets: a set that is good, made in memory from the generator's own kernels; its objects are no machine code. And a place
 * to import into: a store in a folder, and a measurer that finds every kernel right. */
#ifndef GOOD_BUNDLE_H
#define GOOD_BUNDLE_H

#include "autotune/import.h"
#include "autotune/target.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU_CARD "cpu:amd-25-17,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=1024,l3=32768,t=2"
#define GPU_CARD "cuda:sm_70,sms=80,l2=6144,bus=4096,smem=96"

enum { GOOD_PROBLEMS = 8 };

static const char *const good_problems[GOOD_PROBLEMS][2] = {
    { "layout", "type=q8_0,n=512,k=256" },
    { "rmsnorm", "n=256,out=q8" },
    { "matvec", "type=q8_0,act=q8,layout=r16u,n=512,k=256,epi=none" },
    { "matmul", "type=q8_0,act=q8,layout=r16u,n=512,k=256,epi=none" },
    { "swiglu", "n=512,out=q8" },
    { "quantize", "n=256" },
    { "embed", "type=q8_0,layout=r16u,n=256,vocab=4096" },
    { "topk", "vocab=4096,k=16" },
};

/* A winner of default params, with evidence. *k is the caller's. Returns 0 where the card has no such problem. */
static int good_record(struct gen *g, const char *card, int i, const char *origin, struct record *r, struct gen_kernel *k)
{
    struct target t = { .numerics = Q_PINNED, .kv_k = "f16", .kv_v = "f16" };
    struct q_problem p = { .rows = i == 3 ? 64 : 0, .ctx = 0 };      /* products have winners of their own for steps of few rows */
    struct store_key key;
    struct q_err e;
    char generator[65];
    strcpy(p.op, good_problems[i][0]);
    strcpy(p.shape, good_problems[i][1]);
    if (card_parse(&t.card, card, &e) || target_key(&t, g, &p, generator, &key, &e) || target_emit(&t, g, &p, NULL, k, &e)) return 0;
    target_record(r, g, &key, &p, k);
    strcpy(r->origin, origin);
    strcpy(r->effort, "normal");
    r->time[0] = (struct record_time){ 1, 0, 20, 12.5, 0.25 };
    r->n_times = 1;
    strcpy(r->base_params, r->params);
    r->base_us = 12.5;
    return 1;
}

static void good_path(char path[BUNDLE_PATH], const struct record *r)
{
    struct store_key key = { r->op, r->shape, r->rows, r->ctx, r->profile, r->card, r->generator };
    char file[64];
    store_file_name(file, &key);
    snprintf(path, BUNDLE_PATH, "records/%s/%s", r->op, file);
}

static void good_add_text(struct bundle *b, const char *path, const char *text)
{
    struct q_err e;
    if (bundle_add(b, path, text, strlen(text), &e)) printf("%s\n", e.text), abort();
}

/* The record, its text and its object. */
static void good_add(struct bundle *b, struct record *r, const struct gen_kernel *k)
{
    struct compiler compiler = { 0 };
    char path[BUNDLE_PATH], object[200];
    strcpy(compiler.version, strcmp(k->kind, "cubin") ? "cc (Debian) 12.2.0" : "NVRTC 12.9");
    if (k->unit && *k->unit) {
        struct build_task t = build_task_of(k, &compiler);
        snprintf(object, sizeof object, "object of %.150s", k->name);
        t.object.size = (long)strlen(object);
        sha_bytes(t.object.content, object, strlen(object));
        r->objects[0] = t.object;
        r->n_objects = 1;
        snprintf(path, sizeof path, "objects/%s.%s", t.object.name, t.object.kind);
        good_add_text(b, path, object);
        snprintf(path, sizeof path, "src/%.150s.%s", k->name, strcmp(k->kind, "cubin") ? "c" : "cu");
        good_add_text(b, path, k->source);
    }
    char *text = record_print(r);
    good_path(path, r);
    good_add_text(b, path, text);
    free(text);
}

static void good_head(struct bundle *b, const char *card)
{
    memset(b, 0, sizeof *b);
    strcpy(b->creator, "quarry 0.1.0");
    strcpy(b->model[0], "tiny q8_0");
    b->n_models = 1;
    snprintf(b->card, sizeof b->card, "%s", card);
}

/* --- where it goes ----------------------------------------------------------------------------------------------------- */

static int right_problem(void *arg, int slot, const struct measure_problem *p, struct q_err *e) { return Q_OK; }
static int right_ready(void *arg, struct q_err *e) { return Q_OK; }
static int right_check(void *arg, int slot, const struct measure_kernel *k, char hash[17], struct q_err *e)
{
    FILE *f = fopen(k->object, "r");
    assert(f);                     /* what is tested is in the store */
    fclose(f);
    strcpy(hash, "0123456789abcdef");
    return Q_OK;
}

struct place {
    char dir[200], tunes[240], cache[240];
    struct store *store;
    struct compiler compiler;      /* none */
    struct build_opts build;
    struct q_card here;
    struct measurer m;
    struct import_opts o;
};

static void place_open(struct place *p, struct gen *g, const char *card)
{
    memset(p, 0, sizeof *p);
    strcpy(p->dir, "/tmp/quarry-bundle-XXXXXX");
    assert(mkdtemp(p->dir));
    setenv("HOME", p->dir, 1);         /* the user's own store is none of the test's */
    unsetenv("XDG_DATA_HOME");
    snprintf(p->tunes, sizeof p->tunes, "%s/tunes", p->dir);
    snprintf(p->cache, sizeof p->cache, "%s/cache", p->dir);
    struct store_opts so = { .tunes = p->tunes, .cache = p->cache, .shipped = "" };
    struct q_err e;
    int rc = store_open(&p->store, &so, &e) || card_parse(&p->here, card, &e);
    assert(!rc);
    p->build = (struct build_opts){ .store = p->store, .compiler = &p->compiler, .jobs = 1, .deadline_s = 10, .signal_fd = -1 };
    p->m = (struct measurer){ .problem = right_problem, .ready = right_ready, .check = right_check };
    p->o = (struct import_opts){ .g = g, .build = &p->build, .here = &p->here, .m = &p->m, .trusted = 1, .driver = 12090,
                                 .no_compiler = "no compiler" };
}

static void place_close(struct place *p)
{
    store_close(p->store);
    dir_remove(p->dir);
}

#endif
