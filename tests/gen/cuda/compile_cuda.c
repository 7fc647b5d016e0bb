/* compile_cuda: what a model needs on a card, compiled for cards from sm_60 to sm_120 without one. Of every op's problems a few shapes are
 * drawn for each architecture; of each shape the default must compile, spill nothing and fit the card, and so must a drawn candidate,
 * but for spills. --all: every shape. Prints a line for each op and architecture; ends with 1 after any failure. */
#include "autotune/target.h"
#include "runtime/kset_shapes.h"
#include "templates/ref.h"
#include "tests/ops/args.h"
#include "tests/ops/trials.h"
#include "units.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int archs[] = {60, 61, 70, 75, 80, 86, 89, 90, 120};
static const char *const models[] = {"qwen3.5-9b", "qwen3.5-0.8b", "tiny"};
enum { ARCHS = sizeof archs / sizeof *archs, MODELS = sizeof models / sizeof *models, MOST_UNITS = 16384, MOST_PROBLEMS = 1024 };

struct options {
    const char *nvrtc, *op;
    int shapes, candidates, jobs, cc, verbose;
    unsigned long long seed;
};

struct plan {
    struct options o;
    struct gen *g;
    struct nvrtc_list found;
    struct target target;          /* of the card and model that are being listed */
    char layout[24];
    struct q_problem problem[MOST_PROBLEMS];
    const char *numerics[MOST_PROBLEMS];
    int n_problems;
    struct unit *unit;             /* owned: [MOST_UNITS] */
    int n, failed;
};

static void report(struct plan *p, const char *op, int cc, const char *shape, const char *params, const char *why)
{
    printf("FAIL sm_%d %s %s %s: %s\n", cc, op, shape, params, why);
    p->failed++;
}

/* --- problems -------------------------------------------------------------------------------------------------------------- */

/* For kset_problems: the default layout. */
static const char *choose_layout(void *arg, const char *type, long n, long k)
{
    struct plan *p = arg;
    struct gen_kernel gk;
    struct q_err e = {0};
    char shape[Q_SHAPE_TEXT];
    shape_layout(shape, sizeof shape, type, n, k);
    if (gen_emit(p->g, "layout", shape, "", p->target.card.key, "pinned", &gk, &e)) {
        report(p, "layout", p->target.card.cc, shape, "", e.text);
        return "rows";
    }
    snprintf(p->layout, sizeof p->layout, "%s", gk.layout);
    gen_kernel_free(&gk);
    return p->layout;
}

static void add_problem(struct plan *p, const struct q_problem *q, const char *numerics)
{
    if (!strcmp(q->op, "layout") || !args_want(p->o.op, q->op)) return;
    for (int i = 0; i < p->n_problems; i++)
        if (!strcmp(p->problem[i].op, q->op) && !strcmp(p->problem[i].shape, q->shape) && !strcmp(p->numerics[i], numerics)) return;
    if (p->n_problems == MOST_PROBLEMS) abort();
    p->problem[p->n_problems] = *q;
    p->numerics[p->n_problems++] = numerics;
}

/* Those of one model; strict asks for the shapes of pinned, but has defaults of its own. */
static int list_model(struct plan *p, const char *model, struct q_err *e)
{
    static const enum q_numerics all[] = {Q_PINNED, Q_REFERENCE};
    int rc = target_open(&p->target, NULL, model, "q8_0", e);
    for (int i = 0; i < 2 && !rc; i++) {
        struct q_problem_list l;
        rc = kset_problems(p->target.model, &p->target.card, all[i], "f16", "f16", 1, choose_layout, p, &l, e);
        for (int j = 0; j < l.n && !rc; j++) {
            add_problem(p, &l.p[j], q_numerics_name(all[i]));
            if (all[i] == Q_PINNED) add_problem(p, &l.p[j], "strict");
        }
        if (!rc) free(l.p);
    }
    target_close(&p->target);
    return rc;
}

/* What no preset asks for (repack: its weights are made on the card) takes the shapes that the op is checked on. */
static void list_others(struct plan *p)
{
    static struct trial trials[MOST_LINES];
    for (const char *const *op = gen_ops(p->g); *op; op++) {
        char ref[24], file[4096];
        struct q_err e = {0};
        int n = 0, known = p->o.op && strcmp(p->o.op, *op);
        for (int i = 0; i < p->n_problems; i++) known |= !strcmp(p->problem[i].op, *op);
        if (known || gen_ref(p->g, *op, ref, &e) || !ref[0]) continue;
        snprintf(file, sizeof file, TEST_SOURCE_DIR "/tests/ops/%s.txt", *op);
        if ((n = trials_read(trials, file, "cuda", &e)) < 0) report(p, *op, p->target.card.cc, "", "", e.text);
        for (int i = 0; i < n; i++) {
            struct q_problem q = {.rows = 0};
            snprintf(q.op, sizeof q.op, "%s", *op);
            memcpy(q.shape, trials[i].shape, sizeof q.shape);
            add_problem(p, &q, "pinned");
        }
    }
}

/* --- units ----------------------------------------------------------------------------------------------------------------- */

static int has_unit(const struct plan *p, const struct q_problem *q, int cc, const char *params)
{
    for (int i = p->n - 1; i >= 0 && p->unit[i].cc == cc; i--)
        if (!strcmp(p->unit[i].op, q->op) && !strcmp(p->unit[i].shape, q->shape) && !strcmp(p->unit[i].kernel.params, params)) return 1;
    return 0;
}

/* The generator's own copy of an op's name. */
static const char *lasting(const struct plan *p, const char *op)
{
    const char *const *name = gen_ops(p->g);
    while (*name && strcmp(*name, op)) name++;
    return *name;
}

static void add_unit(struct plan *p, const struct nvrtc *nvrtc, const struct q_problem *q, const char *params, const char *numerics)
{
    struct q_err e = {0};
    struct unit *u = &p->unit[p->n];
    const struct q_card *c = &p->target.card;
    if (p->n == MOST_UNITS) abort();
    if (gen_emit(p->g, q->op, q->shape, params, c->key, numerics, &u->kernel, &e)) return report(p, q->op, c->cc, q->shape, params, e.text);
    if (has_unit(p, q, c->cc, u->kernel.params)) return gen_kernel_free(&u->kernel);
    u->op = lasting(p, q->op);
    u->cc = c->cc;
    u->is_default = !params[0];
    u->nvrtc = nvrtc;
    strcpy(u->shape, q->shape);
    p->n++;
}

struct draw {
    unsigned long long seed;
    int seen;
    char params[256];
};

/* Each legal candidate is equally likely to be the one that stays. */
static int draw_one(void *arg, const char *params, int legal, const char *reason)
{
    struct draw *d = arg;
    (void)reason;
    if (legal && ref_next(&d->seed) % (unsigned)++d->seen == 0) snprintf(d->params, sizeof d->params, "%s", params);
    return 0;
}

static void add_shape(struct plan *p, const struct nvrtc *nvrtc, int i)
{
    const struct q_problem *q = &p->problem[i];
    add_unit(p, nvrtc, q, "", p->numerics[i]);
    for (int j = 0; j < p->o.candidates; j++) {
        struct q_err e = {0};
        struct draw d = {.seed = p->o.seed + 1000u * (unsigned)i + 31u * (unsigned)p->target.card.cc + (unsigned)j};
        if (gen_space(p->g, q->op, q->shape, p->target.card.key, p->numerics[i], draw_one, &d, &e) || !d.seen)
            report(p, q->op, p->target.card.cc, q->shape, "", e.code ? e.text : "no legal candidate");
        else add_unit(p, nvrtc, q, d.params, p->numerics[i]);
    }
}

/* Whether problem i is among those drawn: the k-th of its op's m, from a start that goes on with the architecture. */
static int is_drawn(const struct plan *p, int i, int arch)
{
    int m = 0, k = 0;
    for (int j = 0; j < p->n_problems; j++) {
        if (strcmp(p->problem[j].op, p->problem[i].op)) continue;
        k = j == i ? m : k;
        m++;
    }
    if (!p->o.shapes || p->o.shapes >= m) return 1;
    int stride = m / p->o.shapes, first = (int)((p->o.seed + (unsigned)arch * 5u) % (unsigned)m);
    int at = (k - first + m) % m;
    return at % stride == 0 && at / stride < p->o.shapes;
}

static int add_arch(struct plan *p, int arch, struct q_err *e)
{
    const struct nvrtc *nvrtc;
    char key[32];
    snprintf(key, sizeof key, "cuda:sm_%d", archs[arch]);
    int rc = card_parse(&p->target.card, key, e);
    if (!rc) rc = nvrtc_choose(&p->found, 0, archs[arch], &nvrtc, e);
    p->n_problems = 0;
    for (int i = 0; i < MODELS && !rc; i++) rc = list_model(p, models[i], e);
    if (!rc) list_others(p);
    for (int i = 0; i < p->n_problems && !rc; i++)
        if (is_drawn(p, i, arch)) add_shape(p, nvrtc, i);
    return rc;
}

/* --- results --------------------------------------------------------------------------------------------------------------- */

static void judge(struct plan *p, const struct unit *u, struct verdict *v)
{
    char text[200] = "";
    int smem = card_cuda_smem(u->cc) * 1024;
    if (!v->failed && v->spill && u->is_default) snprintf(text, sizeof text, "a default that spills %d bytes", v->spill);
    if (!v->failed && v->fixed > 48 * 1024) snprintf(text, sizeof text, "%d bytes of static shared memory, 49152 are possible", v->fixed);
    if (!v->failed && v->smem > smem) snprintf(text, sizeof text, "%d bytes of shared memory a block, the card has %d", v->smem, smem);
    if (!v->failed && v->block_regs > 65536) snprintf(text, sizeof text, "%d registers a block, 65536 are possible", v->block_regs);
    if (v->failed) report(p, u->op, u->cc, u->shape, u->kernel.params, v->why);
    else if (text[0]) report(p, u->op, u->cc, u->shape, u->kernel.params, text);
    if (p->o.verbose)
        printf("sm_%-3d %s %s: %d registers, %d spilled, %d smem, %.2f s\n", u->cc, u->op, u->kernel.name, v->regs, v->spill, v->smem, v->seconds);
}

static int most(int a, int b) { return a > b ? a : b; }

/* One op on one architecture. */
static void print_row(const struct plan *p, const struct verdict *v, const char *op, int cc)
{
    int n = 0, defaults = 0, regs[2] = {0}, spill[2] = {0}, smem = 0;
    double seconds = 0;
    for (int i = 0; i < p->n; i++) {
        const struct unit *u = &p->unit[i];
        if (u->cc != cc || strcmp(u->op, op)) continue;
        n++;
        defaults += u->is_default;
        regs[u->is_default] = most(regs[u->is_default], v[i].regs);
        spill[u->is_default] = most(spill[u->is_default], v[i].spill);
        smem = most(smem, v[i].smem);
        seconds += v[i].seconds;
    }
    if (n) printf("%-14s sm_%-4d %4d %9d %7d %11d %7d %9d %7.1f\n", op, cc, defaults, regs[1], spill[1], regs[0], spill[0], smem, seconds);
}

static void print_table(const struct plan *p, const struct verdict *v)
{
    printf("%-14s %-7s %4s %9s %7s %11s %7s %9s %7s\n", "op", "arch", "n", "registers", "spills", "candidates:", "spills", "smem", "seconds");
    for (const char *const *op = gen_ops(p->g); *op; op++)
        for (int i = 0; i < ARCHS; i++) print_row(p, v, *op, archs[i]);
}

static int run(struct plan *p, struct q_err *e)
{
    struct nvrtc_places places = {.given = p->o.nvrtc};
    int rc = gen_open(&p->g, NULL, e);
    if (!rc) rc = args_ops(p->o.op, p->g, e);
    if (!rc) rc = nvrtc_search(&p->found, &places, e);
    for (int i = 0; i < ARCHS && !rc; i++)
        if (!p->o.cc || p->o.cc == archs[i]) rc = add_arch(p, i, e);
    struct verdict *v = rc ? NULL : verdicts_open(p->n + 1, e);
    if (!v) return e->code;
    rc = units_compile(p->unit, v, p->n, p->o.jobs, e);
    for (int i = 0; i < p->n && !rc; i++) judge(p, &p->unit[i], &v[i]);
    if (!rc) print_table(p, v);
    if (!rc) printf("%d units, %d failures\n", p->n, p->failed);
    return rc;
}

static int parse(struct options *o, int argc, char **argv, struct q_err *e)
{
    int all_shapes = 0, i = 0;
    const struct arg all[] = {
        {"--nvrtc", ARG_TEXT, &o->nvrtc, 0, 0}, {"--op", ARG_TEXT, &o->op, 0, 0}, {"--arch", ARG_INT, &o->cc, archs[0], archs[ARCHS - 1]},
        {"--shapes", ARG_INT, &o->shapes, 1, MOST_PROBLEMS}, {"--all", ARG_FLAG, &all_shapes, 0, 0},
        {"--candidates", ARG_INT, &o->candidates, 0, MOST_UNITS}, {"--jobs", ARG_INT, &o->jobs, 1, 64}, {"--seed", ARG_SEED, &o->seed, 0, 0},
        {"-v", ARG_FLAG, &o->verbose, 0, 0},
    };
    int rc = args_read(all, sizeof all / sizeof *all, argc, argv, e);
    if (all_shapes) o->shapes = 0;
    while (i < ARCHS && archs[i] != o->cc) i++;
    if (!rc && o->cc && i == ARCHS) rc = q_fail(e, Q_EINPUT, "--arch: expected one of 60 61 70 75 80 86 89 90 120, found %d", o->cc);
    return rc;
}

static const char usage[] =
    "usage: compile_cuda [--nvrtc DIR] [--op OP,..] [--arch CC] [--shapes N | --all] [--candidates N] [--jobs N] [--seed N] [-v]\n";

int main(int argc, char **argv)
{
    static struct plan p = {.o = {.shapes = 2, .candidates = 1, .jobs = 2, .seed = 1}};
    struct q_err e = {0};
    if (argc == 2 && !strcmp(argv[1], "--help")) return fputs(usage, stdout) < 0;
    p.unit = calloc(MOST_UNITS, sizeof *p.unit);
    if (!p.unit) abort();
    if (parse(&p.o, argc, argv, &e) || run(&p, &e)) fprintf(stderr, "compile_cuda: %s\n", e.text);
    if (e.code == Q_EINPUT) return 2;
    return e.code || p.failed || !p.n;
}
