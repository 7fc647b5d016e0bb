/* op_check: checks ops. One line per failure, naming the kernel; at the end "N passed, N failed". Exit 0 only if none failed.
 * A candidate is built and run in a child, so that a crash or a hang is a failure like any other. */
#include "args.h"
#include "op_check.h"
#include "gen/cards.h"
#include "runtime/card.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_JOBS = 16, MOST_CANONICAL = 4096 };

struct options {
    const char *op, *shape, *params, *dir, *cache, *trials;
    struct arg_list card;      /* all of one kind */
    struct arg_part part;      /* of an op's shapes */
    int per_shape, every, sample, jobs, seconds, san, verbose;
    unsigned long long seed;
};

/* Outputs of the first canonical candidate of each (ref, shape, size): all others must give the same bits. */
struct canonical {
    char key[320], kernel[160];
    unsigned long long hash;
};

struct job {
    pid_t pid;                 /* 0: free */
    int fd;
    struct gen_kernel k;
};

struct run {
    struct options o;
    struct gen *g;
    char card[256];            /* this machine's caches, every path; or one of options.card */
    char here[192];            /* the paths that this machine has: "+avx2+sse42+scalar+" */
    int passed, failed, compiled, missing;   /* missing: ops without a kernel for this kind of card */
    char dirs[5][1024], *prelude;            /* build_opts of CUDA */
    struct truth truth;
    const char *op;
    struct job job[MOST_JOBS];
    struct canonical *canon;
    int n_canon;
};

static void report(struct run *r, const char *name, const char *why)
{
    printf("FAIL %s: %s\n", name, why);
    fflush(stdout);
    r->failed++;
}

/* Whether the outputs have the bits of the first canonical candidate; NULL, or whom they differ from. */
static const char *differs(struct run *r, const struct gen_kernel *k, int i, unsigned long long hash)
{
    const struct ref_size *z = &r->truth.trial->size[i];
    char key[320];
    snprintf(key, sizeof key, "%s %s %d/%d/%d", r->truth.ref->op, r->truth.trial->shape, z->rows, z->seqs, z->past);
    for (int j = 0; j < r->n_canon; j++)
        if (!strcmp(r->canon[j].key, key)) return r->canon[j].hash == hash ? NULL : r->canon[j].kernel;
    if (r->n_canon == MOST_CANONICAL) return NULL;
    struct canonical *c = &r->canon[r->n_canon++];
    strcpy(c->key, key);
    strcpy(c->kernel, k->name);
    c->hash = hash;
    return NULL;
}

static void judge(struct run *r, const struct gen_kernel *k, const struct verdict *v)
{
    char why[300];
    if (v->failed) return report(r, k->name, v->why);
    if (!v->ran) {
        r->compiled++;
        return;
    }
    for (int i = 0; i < r->truth.trial->n_sizes; i++) {
        const char *other = strcmp(k->numerics, "canonical") ? NULL : differs(r, k, i, v->hash[i]);
        if (!other) continue;
        snprintf(why, sizeof why, "rows %d: canonical, but its bits are not those of %s", r->truth.trial->size[i].rows, other);
        return report(r, k->name, why);
    }
    if (r->o.verbose) printf("ok   %s\n", k->name);
    r->passed++;
}

/* The child's whole life. */
static void child(struct run *r, const struct gen_kernel *k, int fd)
{
    struct build_opts b = {r->o.cache, r->o.san, {NULL}, r->prelude};
    struct verdict v = {0};
    struct q_err e = {0};
    char object[4096], path[32];
    alarm((unsigned)r->o.seconds);
    snprintf(path, sizeof path, "+%s+", k->isa);
    int cuda = !strcmp(k->kind, "cubin");
    for (int i = 0; i < 5; i++) b.simt_dirs[i] = r->dirs[i];
    if (cuda ? kernel_build_simt(object, k, &b, &e) : kernel_build(object, k, &b, &e)) {
        v.failed = 1;
        snprintf(v.why, sizeof v.why, "%.599s", e.text);
    } else if (cuda) kernel_check_simt(&v, object, k, &r->truth);
    else if (strstr(r->here, path)) kernel_check(&v, object, k, &r->truth);
    _exit(write(fd, &v, sizeof v) != sizeof v);
}

static void collect(struct run *r, struct job *j)
{
    struct verdict v;
    char why[120];
    int status;
    size_t got = 0;
    for (ssize_t n = 1; n > 0 && got < sizeof v; got += n > 0 ? (size_t)n : 0) n = read(j->fd, (char *)&v + got, sizeof v - got);
    close(j->fd);
    waitpid(j->pid, &status, 0);
    if (got == sizeof v) judge(r, &j->k, &v);
    else {
        if (WIFSIGNALED(status))
            snprintf(why, sizeof why, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
        else snprintf(why, sizeof why, "ended with status %d", WEXITSTATUS(status));
        report(r, j->k.name, why);
    }
    gen_kernel_free(&j->k);
    j->pid = 0;
}

/* The job that ends next, or a free one. */
static struct job *free_job(struct run *r)
{
    for (int i = 0; i < r->o.jobs; i++)
        if (!r->job[i].pid) return &r->job[i];
    siginfo_t info;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT)) abort();
    for (int i = 0; i < r->o.jobs; i++)
        if (r->job[i].pid == info.si_pid) {
            collect(r, &r->job[i]);
            return &r->job[i];
        }
    abort();
}

static void finish(struct run *r)
{
    for (int i = 0; i < r->o.jobs; i++)
        if (r->job[i].pid) collect(r, &r->job[i]);
}

static void start(struct run *r, const char *params)
{
    struct job *j = free_job(r);
    struct q_err e = {0};
    int fd[2];
    if (gen_emit(r->g, r->op, r->truth.trial->shape, params, r->card, "pinned", &j->k, &e)) {
        report(r, r->op, e.text);
        return;
    }
    fflush(stdout);
    if (pipe(fd) || (j->pid = fork()) < 0) abort();
    if (j->pid == 0) {
        close(fd[0]);
        child(r, &j->k, fd[1]);
    }
    close(fd[1]);
    j->fd = fd[0];
}

/* One shape of one op: the card's default always, then a sample of the space. */
static void check_trial(struct run *r, const struct trial *t, const struct op_ref *ref)
{
    struct q_err e = {0};
    struct sample s = {0};
    int rc = truth_make(&r->truth, ref, t, r->o.seed, &e);
    if (!rc && r->o.params) start(r, r->o.params);
    if (!rc && !r->o.params) {
        rc = sample_draw(&s, r->g, r->op, t->shape, r->card, r->o.sample, r->o.seed, &e);
        if (!rc) start(r, "");
        for (int i = 0; i < s.n; i++) start(r, s.params[i]);
    }
    if (rc) report(r, r->op, e.text);
    finish(r);
    free(s.params);
    truth_free(&r->truth);
}

static int is_cuda(const struct run *r) { return !strncmp(r->card, "cuda:", 5); }

static const char *tree(const struct run *r) { return r->o.dir ? r->o.dir : TEST_SOURCE_DIR; }

static int has_kernel(const struct run *r)
{
    char file[4096];
    snprintf(file, sizeof file, "%s/templates/%s/kernel.%s", tree(r), r->op, is_cuda(r) ? "cu.in" : "c.in");
    return !access(file, R_OK);
}

/* The default must be legal on every card, and canonical where numerics are strict. */
static void check_default(struct run *r, const struct trial *t, const char *numerics)
{
    struct gen_kernel k;
    struct q_err e = {0};
    if (gen_emit(r->g, r->op, t->shape, "", r->card, numerics, &k, &e)) {
        report(r, r->op, e.text);
        return;
    }
    if (!strcmp(numerics, "strict") && strcmp(k.numerics, "canonical"))
        report(r, k.name, "the default of strict numerics is not canonical");
    gen_kernel_free(&k);
}

/* Every N-th of the sizes, for the next shape another of them first, so that an op's shapes meet all. Of pairs whose bits are compared the
 * common shapes and sizes stand at the same places in both files. */
static struct trial some_sizes(const struct trial *t, int every, int turn)
{
    struct trial some = *t;
    some.n_sizes = 0;
    for (int i = turn % (every < t->n_sizes ? every : t->n_sizes); i < t->n_sizes; i += every) some.size[some.n_sizes++] = t->size[i];
    return some;
}

/* A shape on some of the cards, in turn, so that an op's shapes meet all; its default on every one. */
static void check_on_cards(struct run *r, const struct trial *all, int turn, const struct op_ref *ref)
{
    const struct trial some = some_sizes(all, r->o.every, turn / r->o.part.n), *t = &some;
    int n = r->o.card.n;
    int step = (n + r->o.per_shape - 1) / r->o.per_shape;
    for (int i = 0; i < n; i++) {
        int apart = (i - turn % n + n) % n;
        snprintf(r->card, sizeof r->card, "%s", r->o.card.v[i]);
        if (apart % step == 0) check_trial(r, t, ref);
        else check_default(r, t, "pinned");
        check_default(r, t, "strict");
    }
    if (!n) check_trial(r, t, ref);
}

/* Headers: the prelude for this CPU, what is made of the cards', the op's arguments or those of the op it shares them with. */
static void name_dirs(struct run *r, const char *op, const char *ref)
{
    snprintf(r->dirs[0], sizeof r->dirs[0], "%s/tests/simt", TEST_SOURCE_DIR);
    snprintf(r->dirs[1], sizeof r->dirs[1], "%s/tests/simt", TEST_BUILD_DIR);
    snprintf(r->dirs[2], sizeof r->dirs[2], "%s/templates/%s", tree(r), op);
    snprintf(r->dirs[3], sizeof r->dirs[3], "%s/templates/%s", tree(r), ref);
    snprintf(r->dirs[4], sizeof r->dirs[4], "%s/runtime", tree(r));
}

static void check_op(struct run *r, const char *op)
{
    static struct trial trials[MOST_LINES];
    char file[4096], ref_name[24];
    struct q_err e = {0};
    int n = 1;
    r->op = op;
    if (gen_ref(r->g, op, ref_name, &e)) return report(r, op, e.text);
    if (!ref_name[0]) return;        /* a choice without a kernel */
    if (!has_kernel(r)) {
        r->missing++;
        return;
    }
    const struct op_ref *ref = ref_find(ref_name);
    if (!ref) return report(r, op, "no templates/OP/ref.c defines its struct op_ref ref_OP");
    snprintf(file, sizeof file, "%s/%s.txt", r->o.trials, op);
    n = trials_read(trials, file, is_cuda(r) ? "cuda" : "cpu", &e);
    if (n < 0) return report(r, op, e.text);
    if (r->o.shape) {
        snprintf(trials[0].shape, sizeof trials[0].shape, "%s", r->o.shape);
        n = 1;
    }
    name_dirs(r, op, ref_name);
    for (int i = r->o.part.i - 1; i < n; i += r->o.part.n) check_on_cards(r, &trials[i], i, ref);
}

static int parse(struct options *o, int argc, char **argv, struct q_err *e)
{
    const struct arg all[] = {
        {"--op", ARG_TEXT, &o->op, 0, 0}, {"--shape", ARG_TEXT, &o->shape, 0, 0}, {"--params", ARG_TEXT, &o->params, 0, 0},
        {"--dir", ARG_TEXT, &o->dir, 0, 0}, {"--cache", ARG_TEXT, &o->cache, 0, 0}, {"--trials", ARG_TEXT, &o->trials, 0, 0},
        {"--card", ARG_LIST, &o->card, 0, 0}, {"--part", ARG_PART, &o->part, 1, MOST_LINES}, {"--per-shape", ARG_INT, &o->per_shape, 1, ARGS_LIST},
        {"--every", ARG_INT, &o->every, 1, MOST_SIZES},
        {"--sample", ARG_INT, &o->sample, 0, 100000}, {"--jobs", ARG_INT, &o->jobs, 1, MOST_JOBS}, {"--seconds", ARG_INT, &o->seconds, 1, 86400},
        {"--seed", ARG_SEED, &o->seed, 0, 0}, {"--san", ARG_FLAG, &o->san, 0, 0}, {"-v", ARG_FLAG, &o->verbose, 0, 0},
    };
    int rc = args_read(all, sizeof all / sizeof *all, argc, argv, e);
    if (!rc && (o->shape || o->params) && !o->op) rc = q_fail(e, Q_EINPUT, "--shape and --params go with --op");
    return rc;
}

/* Makes keys of all, of one kind, since a run compares the bits of its kernels. */
static int check_cards(struct arg_list *list, const char *dir, struct q_err *e)
{
    static char key[ARGS_LIST][CARD_KEY];
    struct q_card first, c;
    for (int i = 0; i < list->n; i++) {
        int rc = gen_card_key(dir, list->v[i], key[i], e);
        if (rc || (rc = card_parse(i ? &c : &first, key[i], e))) return rc;
        list->v[i] = key[i];
        if (i && c.kind != first.kind) return q_fail(e, Q_EINPUT, "--card: expected cards of one kind, found '%s' and '%s'", list->v[0], list->v[i]);
    }
    return Q_OK;
}

/* Owned by the caller; NULL if it cannot be read. */
static char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = f ? calloc(1, 1 << 20) : NULL;
    if (text && !fread(text, 1, (1 << 20) - 1, f)) free(text), text = NULL;
    if (f) fclose(f);
    return text;
}

/* Which paths run here; without --card, this machine's key with every path in it, so that paths it lacks are compiled at least. */
static int describe_machine(struct run *r, struct q_err *e)
{
    struct q_card c;
    int rc = card_detect_cpu(&c, 0, e);
    if (rc) return rc;
    char *isa = strstr(c.key, "isa="), *rest = isa ? strchr(isa, ',') : NULL;
    if (!rest) return q_fail(e, Q_EINTERNAL, "card key '%s' without isa", c.key);
    snprintf(r->here, sizeof r->here, "+%.*s+", (int)(rest - isa - 4), isa + 4);
    if (r->o.card.n) snprintf(r->card, sizeof r->card, "%s", r->o.card.v[0]);
    else snprintf(r->card, sizeof r->card, "%.*sisa=avx512vnni+avxvnni+avx2+sse42+scalar%s", (int)(isa - c.key), c.key, rest);
    if (!is_cuda(r)) return Q_OK;
    r->prelude = read_text(TEST_SOURCE_DIR "/tests/simt/kernel.cuh");
    return r->prelude ? Q_OK : q_fail(e, Q_EIO, "tests/simt/kernel.cuh: cannot be read");
}

static int prepare(struct run *r, int argc, char **argv, struct q_err *e)
{
    int rc = parse(&r->o, argc, argv, e);
    if (!rc) rc = check_cards(&r->o.card, r->o.dir, e);
    if (!rc) rc = describe_machine(r, e);
    if (!rc) rc = gen_open(&r->g, r->o.dir, e);
    if (!rc) rc = args_ops(r->o.op, r->g, e);
    r->canon = calloc(MOST_CANONICAL, sizeof *r->canon);
    if (!rc && !r->canon) rc = q_fail(e, Q_EMEM, "no memory for hashes");
    return rc;
}

/* An op, and on stderr how far the run has come. */
static void check_and_tell(struct run *r, const char *op)
{
    int passed = r->passed, failed = r->failed, compiled = r->compiled;
    check_op(r, op);
    fprintf(stderr, "%s: %d passed, %d failed", op, r->passed - passed, r->failed - failed);
    fprintf(stderr, r->compiled > compiled ? ", %d compiled only\n" : "\n", r->compiled - compiled);
}

static const char usage[] =
    "usage: op_check [--card CARD]... [--per-shape CARDS] [--part I/N] [--every N] [--op OP[,OP] [--shape S] [--params P]] [--sample N] [--seed N]\n"
    "                [--jobs N] [--seconds N] [--san] [--dir TREE] [--trials DIR] [--cache DIR] [-v]\n"
    "  --card: a key, a name or a file, as quarry-gen takes it; cuda:sm_CC.. are checked by tests/simt, cpu:PATH.. where this\n"
    "          machine has the path; else this machine\n"
    "  --every: a shape on every N-th of its sizes, in turn\n";

int main(int argc, char **argv)
{
    static struct run r = {.o = {.cache = TEST_BUILD_DIR "/op_cache",
                                 .trials = TEST_SOURCE_DIR "/tests/ops",
                                 .per_shape = 2,
                                 .every = 1,
                                 .part = {1, 1},
                                 .sample = 8,
                                 .jobs = 2,
                                 .seconds = 300,
                                 .seed = 1}};
    struct q_err e = {0};
#ifdef __SANITIZE_ADDRESS__
    r.o.san = 1;
#endif
    if (argc == 2 && !strcmp(argv[1], "--help")) return fputs(usage, stdout) < 0;
    if (prepare(&r, argc, argv, &e)) {
        fprintf(stderr, "op_check: %s\n", e.text);
        return e.code == Q_EINPUT ? 2 : 1;
    }
    mkdir(r.o.cache, 0755);
    for (const char *const *op = gen_ops(r.g); *op; op++)
        if (args_want(r.o.op, *op)) check_and_tell(&r, *op);
    gen_close(r.g);
    free(r.canon);
    free(r.prelude);
    printf("%d passed, %d failed", r.passed, r.failed);
    if (!is_cuda(&r)) printf(", %d compiled only (this machine lacks their path)", r.compiled);
    printf(", %d ops without a %s kernel\n", r.missing, is_cuda(&r) ? "CUDA" : "CPU");
    return r.failed || r.passed + r.compiled + r.missing == 0;
}
