/* gpu_check: every op on the card that is here, held against its ref.c: the shapes of tests/ops/OP.txt, the card's default and a sample of
 * legal candidates, each run twice a size; canonical ones must agree to the bit. One line an op, one a failure; exit 0 only if none failed.
 *
 *   gpu_check [--op OP,..] [--sample N] [--jobs N] [--device cuda:N] [--nvrtc PATH]
 *   gpu_check --make-ptx DIR --card cuda:sm_70 ..     no device: writes the candidates' PTX for another card's instruction set,
 *   gpu_check --ptx DIR --card cuda:sm_70 ..          and here they run, compiled by the driver: the path of a card that is not here
 */
#define _GNU_SOURCE
#include "autotune/bed.h"
#include "autotune/build.h"
#include "autotune/child.h"
#include "tests/ops/args.h"
#include "tests/ops/trials.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_KERNELS = 512, MOST_CANON = 512 };

struct options {
    const char *ops, *device, *card, *ptx, *make_ptx, *nvrtc, *trials;
    int sample, jobs;
    unsigned long long seed;
};

/* One candidate for one shape. */
struct entry {
    struct gen_kernel kernel;       /* owned texts */
    struct build_task task;
    int trial;                      /* index of its shape */
    char path[Q_PATH];              /* of its object */
};

struct canon {
    int trial, size;
    unsigned long long hash;
    const char *name;
};

struct run {
    struct options o;
    struct gen *g;
    struct store *store;
    struct compiler compiler;
    struct bed bed;
    char card[192], dir[Q_PATH];
    struct trial trial[MOST_LINES];
    int n_trials;
    struct entry *entry;            /* owned: [MOST_KERNELS] */
    int n;
    struct canon canon[MOST_CANON];
    int n_canon;
    int passed, failed, ops_failed, ops;
};

static void report(struct run *r, const char *name, const char *why)
{
    printf("FAIL %s: %s\n", name, why);
    fflush(stdout);
    r->failed++;
}

/* --- candidates ---------------------------------------------------------------------------------------------------------- */

static void add(struct run *r, const char *op, int trial, const char *params)
{
    struct entry *n = &r->entry[r->n];
    struct q_err e = { 0 };
    if (r->n == MOST_KERNELS) return;
    memset(n, 0, sizeof *n);
    if (gen_emit(r->g, op, r->trial[trial].shape, params, r->card, "pinned", &n->kernel, &e)) return report(r, op, e.text);
    for (int i = 0; i < r->n; i++)
        if (r->entry[i].trial == trial && !strcmp(r->entry[i].kernel.name, n->kernel.name)) return gen_kernel_free(&n->kernel);
    n->trial = trial;
    r->n++;
}

/* A ceiling of an instruction that the card lacks is none; every other shape has a default on every card. */
static int is_lacking(struct run *r, const char *op, int trial)
{
    struct gen_kernel k;
    struct q_err e = { 0 };
    if (strcmp(op, "ceiling")) return 0;
    int rc = gen_emit(r->g, op, r->trial[trial].shape, "", r->card, "pinned", &k, &e);
    if (!rc) gen_kernel_free(&k);
    return rc == Q_EUNSUP;
}

static void collect(struct run *r, const char *op)
{
    for (int t = 0; t < r->n_trials; t++) {
        if (is_lacking(r, op, t)) continue;
        struct sample s = { 0 };
        struct q_err e = { 0 };
        add(r, op, t, "");
        if (r->o.sample && sample_draw(&s, r->g, op, r->trial[t].shape, r->card, r->o.sample, r->o.seed + (unsigned)t, &e)) report(r, op, e.text);
        for (int i = 0; i < s.n; i++) add(r, op, t, s.params[i]);
        free(s.params);
    }
}

static void forget(struct run *r)
{
    for (int i = 0; i < r->n; i++) gen_kernel_free(&r->entry[i].kernel);
    r->n = r->n_canon = 0;
}

/* --- objects ------------------------------------------------------------------------------------------------------------- */

static int build(struct run *r, struct q_err *e)
{
    struct build_opts o = { .store = r->store, .compiler = &r->compiler, .jobs = r->o.jobs, .deadline_s = 120, .signal_fd = -1 };
    struct build_task *task = calloc((size_t)r->n + 1, sizeof *task);
    int *of = calloc((size_t)r->n + 1, sizeof *of), n = 0, rc = task && of ? Q_OK : q_fail(e, Q_EMEM, "no memory for %d kernels", r->n);
    for (int i = 0; i < r->n && !rc; i++) {
        struct build_task t = build_task_of(&r->entry[i].kernel, &r->compiler);
        if (!store_object(r->store, t.object.name, r->entry[i].path, NULL)) continue;
        of[n] = i;
        task[n++] = t;
    }
    if (!rc && n) rc = build_all(&o, task, n, e);
    for (int j = 0; j < n && !rc; j++) {
        struct entry *x = &r->entry[of[j]];
        if (task[j].rc) report(r, x->kernel.name, task[j].why);
        else store_object(r->store, task[j].object.name, x->path, NULL);
    }
    free(task);
    free(of);
    return rc;
}

/* DIR/KERNEL.ptx by a compiling child: the candidate's options with compute_NN in the place of sm_NN. */
static int make_ptx(struct run *r, const struct gen_kernel *k, struct q_err *e)
{
    char in[Q_PATH], out[Q_PATH], flags[sizeof k->cflags], line[400], *argv[32];
    int n = 0, status;
    snprintf(in, sizeof in, "%.3800s/%s.cu", r->o.make_ptx, k->name);
    snprintf(out, sizeof out, "%.3800s/%s.ptx", r->o.make_ptx, k->name);
    if (!access(out, R_OK)) return Q_OK;
    int rc = file_write(in, k->unit, strlen(k->unit), e);
    if (rc) return rc;
    snprintf(flags, sizeof flags, "%s", k->cflags);
    char *head[] = { r->compiler.self, "--compile", r->compiler.program, in, out }, *rest = flags, *word, arch[64] = "";
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) argv[n++] = head[i];
    while ((word = strsep(&rest, " ")) && n < 30) {
        char *sm = strstr(word, "=sm_");
        if (sm) snprintf(arch, sizeof arch, "%.*s=compute_%s", (int)(sm - word), word, sm + 4);
        argv[n++] = sm ? arch : word;
    }
    argv[n] = NULL;
    rc = child_first_line(argv, line, sizeof line, &status, e);
    unlink(in);
    return !rc && access(out, R_OK) ? q_fail(e, Q_EINTERNAL, "%s: no PTX was made: %.300s", k->name, line) : rc;
}

/* --- running ------------------------------------------------------------------------------------------------------------- */

static int agrees(struct run *r, const struct entry *x, int size, unsigned long long hash)
{
    if (strcmp(x->kernel.numerics, "canonical")) return 1;
    for (int i = 0; i < r->n_canon; i++)
        if (r->canon[i].trial == x->trial && r->canon[i].size == size) return r->canon[i].hash == hash;
    if (r->n_canon < MOST_CANON) r->canon[r->n_canon++] = (struct canon){ x->trial, size, hash, x->kernel.name };
    return 1;
}

static int check_size(struct run *r, const struct entry *x, struct bed_truth *truth, const struct q_kernel *k, int size, int *fault, struct q_err *e)
{
    const struct ref_size *z = &r->trial[x->trial].size[size];
    unsigned long long hash[2] = { 0 };
    struct q_err why = { 0 };
    for (int again = 0; again < 2; again++)
        if (bed_truth_check(&r->bed, truth, k, x->kernel.numerics, &hash[again], fault, &why))
            return q_fail(e, Q_EINTERNAL, "rows %d, seqs %d, past %d: %s", z->rows, z->seqs, z->past, why.text);
    if (hash[0] != hash[1]) return q_fail(e, Q_EINTERNAL, "rows %d, seqs %d, past %d: two runs differ", z->rows, z->seqs, z->past);
    if (!agrees(r, x, size, hash[0])) return q_fail(e, Q_EINTERNAL, "rows %d, seqs %d, past %d: canonical, but with other bits than another", z->rows, z->seqs, z->past);
    return Q_OK;
}

/* All candidates of a shape on one size's truth. A faulting kernel ends the process's use of the card. */
static int check_truth(struct run *r, const struct op_ref *ref, int trial, int size, struct q_err *e)
{
    struct q_shape shape;
    struct bed_truth truth;
    struct ref_size z = r->trial[trial].size[size];
    z.parts = r->bed.parts;
    int fault = 0, rc = shape_parse(&shape, r->trial[trial].shape, e);
    if (!rc) rc = bed_truth_make(&r->bed, &truth, NULL, ref, &shape, &z, r->o.seed, e);
    if (rc) return rc;
    for (int i = 0; i < r->n && !fault; i++) {
        struct entry *x = &r->entry[i];
        struct q_kernel k;
        struct q_err why = { 0 };
        if (x->trial != trial || !x->path[0]) continue;
        int bad = bed_load(&r->bed, x->path, x->kernel.name, &x->kernel.launch, &k, &why);
        if (!bad) {
            bad = check_size(r, x, &truth, &k, size, &fault, &why);
            if (!fault) bed_unload(&r->bed, &k);
        }
        if (bad) {
            report(r, x->kernel.name, why.text);
            x->path[0] = 0;
        } else r->passed++;
    }
    bed_truth_free(&r->bed, &truth);
    return fault ? q_fail(e, Q_EINTERNAL, "the card faulted: what is left of this op was not checked") : Q_OK;
}

static int check_all(struct run *r, const struct op_ref *ref, struct q_err *e)
{
    int rc = Q_OK;
    for (int t = 0; t < r->n_trials && !rc; t++)
        for (int s = 0; s < r->trial[t].n_sizes && !rc; s++) rc = check_truth(r, ref, t, s, e);
    return rc;
}

static int get_objects(struct run *r, struct q_err *e)
{
    int rc = Q_OK;
    if (!r->o.ptx && !r->o.make_ptx) return build(r, e);
    for (int i = 0; i < r->n && !rc; i++) {
        struct entry *x = &r->entry[i];
        if (r->o.make_ptx) rc = make_ptx(r, &x->kernel, e);
        else snprintf(x->path, sizeof x->path, "%.3800s/%s.ptx", r->o.ptx, x->kernel.name);
    }
    return rc;
}

static void check_op(struct run *r, const char *op)
{
    char file[4096], name[24];
    struct q_err e = { 0 };
    int failed = r->failed, passed = r->passed;
    if (gen_ref(r->g, op, name, &e)) return report(r, op, e.text);
    const struct op_ref *ref = name[0] ? ref_find(name) : NULL;
    if (!ref) return;
    snprintf(file, sizeof file, "%.3900s/%s.txt", r->o.trials, op);
    r->n_trials = trials_read(r->trial, file, "cuda", &e);
    if (r->n_trials < 0) return report(r, op, e.text);
    collect(r, op);
    int kernels = r->n, rc = get_objects(r, &e);
    if (!rc && !r->o.make_ptx) rc = check_all(r, ref, &e);
    if (rc) report(r, op, e.text);
    printf("%-4s %-13s %4d kernels, %5d checks passed%s\n", r->failed > failed ? "FAIL" : "ok", op, kernels, r->passed - passed, r->o.make_ptx ? " (PTX written)" : "");
    fflush(stdout);
    r->ops++;
    r->ops_failed += r->failed > failed;
    forget(r);
}

/* --- the program ----------------------------------------------------------------------------------------------------------- */

static int parse(struct options *o, int argc, char **argv, struct q_err *e)
{
    const struct arg all[] = {
        { "--op", ARG_TEXT, &o->ops, 0, 0 }, { "--device", ARG_TEXT, &o->device, 0, 0 }, { "--card", ARG_TEXT, &o->card, 0, 0 },
        { "--ptx", ARG_TEXT, &o->ptx, 0, 0 }, { "--make-ptx", ARG_TEXT, &o->make_ptx, 0, 0 }, { "--nvrtc", ARG_TEXT, &o->nvrtc, 0, 0 },
        { "--trials", ARG_TEXT, &o->trials, 0, 0 }, { "--sample", ARG_INT, &o->sample, 0, MOST_KERNELS }, { "--jobs", ARG_INT, &o->jobs, 1, 4096 },
    };
    int rc = args_read(all, sizeof all / sizeof *all, argc, argv, e);
    if (!rc && (o->ptx || o->make_ptx) && !o->card) rc = q_fail(e, Q_EINPUT, "--ptx and --make-ptx need --card: whose kernels they are");
    if (!rc && o->ptx && o->make_ptx) rc = q_fail(e, Q_EINPUT, "expected one of --ptx and --make-ptx, found both");
    return rc;
}

/* The card whose kernels are tried, if it is not the device's. */
static int check_card(const struct options *o, struct q_card *card, struct q_err *e)
{
    int rc = o->card ? card_parse(card, o->card, e) : Q_OK;
    if (!rc && o->card && card->kind != Q_CARD_CUDA) rc = q_fail(e, Q_EINPUT, "--card: expected cuda:sm_CC,.., found '%s'", o->card);
    return rc;
}

static int prepare(struct run *r, int argc, char **argv, struct q_err *e)
{
    struct q_card card;
    int rc = parse(&r->o, argc, argv, e);
    if (!rc) rc = check_card(&r->o, &card, e);
    if (rc) return rc;
    struct compiler_given given = { .nvrtc = { .given = r->o.nvrtc, .home = getenv("HOME") } };
    struct store_opts so = { 0 };
    rc = gen_open(&r->g, NULL, e);
    if (!rc) rc = args_ops(r->o.ops, r->g, e);
    if (!rc && !r->o.make_ptx) rc = bed_open(&r->bed, r->o.device, e);
    if (!rc && !r->o.card) card = r->bed.card->card;
    if (!rc) snprintf(r->card, sizeof r->card, "%s", card.key);
    if (!rc && r->o.make_ptx) mkdir(r->o.make_ptx, 0755);
    if (!rc && !r->o.ptx) rc = compiler_find(&r->compiler, &card, &given, e);
    if (!rc && !r->o.ptx) {
        /* the tuner beside this program is who calls NVRTC */
        rc = self_path(r->compiler.self, e);
        char *slash = strrchr(r->compiler.self, '/');
        if (slash) strcpy(slash + 1, "quarry-tune");
    }
    if (!rc) rc = store_open(&r->store, &so, e);
    return rc;
}

static const char usage[] =
    "usage: gpu_check [--op OP,..] [--sample N] [--jobs N] [--device cuda:N] [--card KEY [--ptx DIR | --make-ptx DIR]]\n"
    "                 [--nvrtc PATH] [--trials DIR]\n";

int main(int argc, char **argv)
{
    static struct run r = { .o = { .device = "cuda:0", .trials = "tests/ops", .sample = 6, .jobs = 8, .seed = 1 } };
    struct q_err e = { 0 };
    if (argc == 2 && !strcmp(argv[1], "--help")) return fputs(usage, stdout) < 0;
    r.entry = calloc(MOST_KERNELS, sizeof *r.entry);
    if (!r.entry) abort();
    if (prepare(&r, argc, argv, &e)) {
        fprintf(stderr, "gpu_check: %s\n", e.text);
        return e.code == Q_EINPUT ? 2 : 1;
    }
    for (const char *const *op = gen_ops(r.g); *op; op++)
        if (args_want(r.o.ops, *op)) check_op(&r, *op);
    printf("%d ops on %s%s%s: %d checks passed, %d failed\n", r.ops, r.card, r.bed.card ? " on " : "", r.bed.card ? r.bed.card->about : "", r.passed, r.failed);
    return r.failed || !r.ops;
}
