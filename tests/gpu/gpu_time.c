/* gpu_time: how long candidates of one op's shape take on the card that is here, a line each: microseconds, GB/s of what the op must move, TFLOP/s
 * of its own operations (those of the space, not what a candidate does more), params.
 * What a tune does for a whole model, for a question about one kernel. Nothing is checked (gpu_check does) and nothing recorded.
 *
 *   gpu_time --op OP --shape S [--at ROWS/SEQS/PAST,..] [--params P] .. [--sample N | --all] [--with PARAM=VALUE] [--jobs N]
 *            [--device cuda:N] [--card KEY] [--dir TREE] [--nvrtc PATH]
 *
 * --params: what is given, the rest as by default, several times if need be; without it the card's default. --sample, --all: N legal ones, or all, of those
 * whose params have --with's text. Cases are as the tuner times them: copies that together are larger than the second cache.
 */
#define _GNU_SOURCE
#include "autotune/bed.h"
#include "autotune/build.h"
#include "autotune/child.h"
#include "tests/ops/args.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, MOST_SIZES_TIMED = 8, SAMPLES = 5 };

struct entry {
    struct gen_kernel kernel;       /* owned texts */
    char path[Q_PATH];              /* of its object; "": not built */
};

struct run {
    const char *op, *shape, *at, *with, *device, *card_given, *dir, *nvrtc;
    struct arg_list params;
    int sample, all, jobs;
    struct q_card card;
    struct gen *g;
    struct store *store;
    struct compiler compiler;
    struct bed bed;
    char (*found)[256];             /* owned: legal params */
    int n_found;
    struct entry *entry;            /* owned: [MOST] */
    int n;
};

/* --- candidates ---------------------------------------------------------------------------------------------------------- */

static int add(struct run *r, const char *params, struct q_err *e)
{
    struct entry *x = &r->entry[r->n];
    if (r->n == MOST) return Q_OK;
    int rc = gen_emit(r->g, r->op, r->shape, params, r->card.key, "pinned", &x->kernel, e);
    for (int i = 0; i < r->n && !rc; i++)
        if (!strcmp(r->entry[i].kernel.name, x->kernel.name)) return gen_kernel_free(&x->kernel), Q_OK;
    r->n += !rc;
    return rc;
}

static int find(void *arg, const char *params, int legal, const char *reason)
{
    struct run *r = arg;
    (void)reason;
    if (!legal || (r->with && !strstr(params, r->with))) return 0;
    if (r->n_found % 256 == 0) {
        void *more = realloc(r->found, (size_t)(r->n_found + 256) * sizeof *r->found);
        if (!more) return 1;
        r->found = more;
    }
    snprintf(r->found[r->n_found++], sizeof *r->found, "%s", params);
    return 0;
}

/* Spread evenly over the space, which goes from its first param to its last. */
static int add_found(struct run *r, struct q_err *e)
{
    int rc = gen_space(r->g, r->op, r->shape, r->card.key, "pinned", find, r, e), want = r->all ? r->n_found : r->sample;
    if (want > r->n_found) want = r->n_found;
    for (int i = 0; i < want && !rc; i++) rc = add(r, r->found[(long)i * r->n_found / want], e);
    if (!rc) fprintf(stderr, "%d of %d candidates\n", r->n, r->n_found);
    return rc;
}

static int collect(struct run *r, struct q_err *e)
{
    int rc = Q_OK;
    if (r->sample || r->all) rc = add_found(r, e);
    for (int i = 0; i < r->params.n && !rc; i++) rc = add(r, r->params.v[i], e);
    if (!rc && !r->n) rc = add(r, "", e);
    return rc;
}

static int build(struct run *r, struct q_err *e)
{
    struct build_opts o = { .store = r->store, .compiler = &r->compiler, .jobs = r->jobs, .deadline_s = 120, .signal_fd = -1 };
    struct build_task *task = calloc((size_t)r->n + 1, sizeof *task);
    int rc = task ? Q_OK : q_fail(e, Q_EMEM, "no memory for %d kernels", r->n);
    for (int i = 0; i < r->n && !rc; i++) task[i] = build_task_of(&r->entry[i].kernel, &r->compiler);
    if (!rc && r->n) rc = build_all(&o, task, r->n, e);
    for (int i = 0; i < r->n && !rc; i++) {
        if (task[i].rc) fprintf(stderr, "%s: %s\n", r->entry[i].kernel.params, task[i].why);
        else store_object(r->store, task[i].object.name, r->entry[i].path, NULL);
    }
    free(task);
    return rc;
}

/* --- timing -------------------------------------------------------------------------------------------------------------- */

static int time_entry(struct run *r, struct bed_ring *ring, struct entry *x, double bytes, double ops, struct q_err *e)
{
    struct q_kernel k;
    double us[SAMPLES], least;
    int fault = 0, rc = bed_load(&r->bed, x->path, x->kernel.name, &x->kernel.launch, &k, e);
    if (rc) return rc;
    rc = bed_samples(&r->bed, ring, &k, SAMPLES, us, &fault, e);
    if (fault) return rc;
    bed_unload(&r->bed, &k);
    least = us[0];
    for (int i = 1; i < SAMPLES && !rc; i++) least = us[i] < least ? us[i] : least;
    if (!rc) printf("%10.2f us %8.0f GB/s %8.2f TFLOP/s  %s\n", least, bytes / least * 1e-3, ops / least * 1e-6, x->kernel.params);
    fflush(stdout);
    return rc;
}

static int time_size(struct run *r, const struct ref_size *size, struct q_err *e)
{
    char name[24];
    double bytes, ops;
    struct q_shape shape;
    struct bed_ring ring = { 0 };
    int rc = gen_ref(r->g, r->op, name, e);
    const struct op_ref *ref = !rc && name[0] ? ref_find(name) : NULL;
    if (!rc && !ref) rc = q_fail(e, Q_EINPUT, "--op: expected an op with kernels, found '%s'", r->op);
    if (!rc) rc = shape_parse(&shape, r->shape, e);
    if (!rc) rc = gen_cost(r->g, r->op, r->shape, size->rows, size->past, &bytes, &ops, e);
    if (!rc) rc = bed_ring_make(&r->bed, &ring, ref, &shape, size, 2048.0 * r->card.l2, e);
    if (!rc) printf("rows %d, sequences %d, past %d: %.1f MB\n", size->rows, size->seqs, size->past, bytes * 1e-6);
    for (int i = 0; i < r->n && !rc; i++)
        if (r->entry[i].path[0]) rc = time_entry(r, &ring, &r->entry[i], bytes, ops, e);
    bed_ring_free(&r->bed, &ring);
    return rc;
}

static int time_all(struct run *r, struct q_err *e)
{
    int rc = Q_OK;
    char *sizes = strdup(r->at), *rest = sizes, *one;
    if (!sizes) return q_fail(e, Q_EMEM, "no memory for sizes");
    while (!rc && (one = strsep(&rest, ","))) {
        struct ref_size z = { .parts = r->bed.parts, .plain = 1 };
        if (sscanf(one, "%d/%d/%d", &z.rows, &z.seqs, &z.past) != 3 || z.rows < 1 || z.seqs < 1 || z.past < 0)
            rc = q_fail(e, Q_EINPUT, "--at: expected ROWS/SEQS/PAST, found '%s'", one);
        else rc = time_size(r, &z, e);
    }
    free(sizes);
    return rc;
}

/* --- the program --------------------------------------------------------------------------------------------------------- */

static int prepare(struct run *r, int argc, char **argv, struct q_err *e)
{
    const struct arg all[] = {
        { "--op", ARG_TEXT, &r->op, 0, 0 }, { "--shape", ARG_TEXT, &r->shape, 0, 0 }, { "--at", ARG_TEXT, &r->at, 0, 0 },
        { "--params", ARG_LIST, &r->params, 0, 0 }, { "--with", ARG_TEXT, &r->with, 0, 0 }, { "--device", ARG_TEXT, &r->device, 0, 0 },
        { "--card", ARG_TEXT, &r->card_given, 0, 0 }, { "--dir", ARG_TEXT, &r->dir, 0, 0 }, { "--nvrtc", ARG_TEXT, &r->nvrtc, 0, 0 },
        { "--sample", ARG_INT, &r->sample, 0, MOST }, { "--all", ARG_FLAG, &r->all, 0, 0 }, { "--jobs", ARG_INT, &r->jobs, 1, 4096 },
    };
    int rc = args_read(all, sizeof all / sizeof *all, argc, argv, e);
    if (!rc && (!r->op || !r->shape)) rc = q_fail(e, Q_EINPUT, "expected --op OP and --shape SHAPE");
    struct compiler_given given = { .nvrtc = { .given = r->nvrtc, .home = getenv("HOME") } };
    struct store_opts so = { 0 };
    if (!rc) rc = gen_open(&r->g, r->dir, e);
    if (!rc) rc = bed_open(&r->bed, r->device, e);
    if (!rc && r->card_given) rc = card_parse(&r->card, r->card_given, e);
    if (!rc && !r->card_given) r->card = r->bed.card->card;
    if (!rc) rc = compiler_find(&r->compiler, &r->card, &given, e);
    if (!rc) rc = self_path(r->compiler.self, e);   /* the tuner beside this program is who calls NVRTC */
    char *slash = strrchr(r->compiler.self, '/');
    if (slash) strcpy(slash + 1, "quarry-tune");
    return rc ? rc : store_open(&r->store, &so, e);
}

static const char usage[] =
    "usage: gpu_time --op OP --shape S [--at ROWS/SEQS/PAST,..] [--params P] .. [--sample N | --all] [--with PARAM=VALUE] [--jobs N]\n"
    "                [--device cuda:N] [--card KEY] [--dir TREE] [--nvrtc PATH]\n";

int main(int argc, char **argv)
{
    static struct run r = { .device = "cuda:0", .at = "1/1/1024", .jobs = 8 };
    struct q_err e = { 0 };
    if (argc == 2 && !strcmp(argv[1], "--help")) return fputs(usage, stdout) < 0;
    r.entry = calloc(MOST, sizeof *r.entry);
    if (!r.entry) abort();
    int rc = prepare(&r, argc, argv, &e);
    if (!rc) rc = collect(&r, &e);
    if (!rc) rc = build(&r, &e);
    if (!rc) rc = time_all(&r, &e);
    if (rc) fprintf(stderr, "gpu_time: %s\n", e.text);
    return rc ? e.code == Q_EINPUT ? 2 : 1 : 0;
}
