/* quarry tune import: a kernel set from elsewhere into this machine's store. */
#include "import.h"
#include "runtime/device.h"
#include "trusted.h"
#include "verbs.h"
#include "runtime/clock.h"
#include <string.h>
#include <unistd.h>

enum { SIGNER = 200 };

/* Whom the set is from: *trusted 1 when its key is believed here; `from` says it in a line's end. A signature of a believed key that is wrong
 * is an error. */
static int find_signer(const struct bundle *b, const char *path, int *trusted, char from[SIGNER], struct q_err *e)
{
    struct trusted_list l;
    char id[MINISIGN_ID];
    int rc = trusted_read(&l, e);
    *trusted = 0;
    snprintf(from, SIGNER, "not signed");
    if (rc || !b->has_signature) return rc;
    const struct trusted *t = trusted_find(&l, b->signature.id);
    minisign_id(id, b->signature.id);
    *trusted = t != NULL;
    if (!t) snprintf(from, SIGNER, "signed by key %s, which is not trusted here", id);
    else snprintf(from, SIGNER, "signed by the trusted key %s%s%.128s", id, *t->comment ? " " : "", t->comment);
    if (t && !minisign_verify(&b->signature, &t->key, b->manifest, b->manifest_n))
        return q_fail(e, Q_EINPUT, "%s: forged or damaged: its signature is not by the trusted key %s that it names", path, id);
    return Q_OK;
}

/* A CPU with as many threads as -t says, or all; as many as the set counts where that is the one difference. */
static int find_cpu(const struct options *o, const struct q_card *set, struct q_card *here, struct q_err *e)
{
    if (!o->threads && set->kind == Q_CARD_CPU && set->threads <= card_allowed_cpus() && !card_detect_cpu(here, set->threads, e)
        && !strcmp(here->key, set->key))
        return Q_OK;
    return card_detect_cpu(here, o->threads, e);
}

/* This machine, as the set's kind of card sees it. */
static int find_here(const struct options *o, const char *key, struct q_card *here, struct q_err *e)
{
    struct q_card set;
    struct q_device *d;
    int rc = card_parse(&set, key, e);
    if (rc) return rc;
    if (set.kind != Q_CARD_CUDA || device_open(&d, strcmp(o->device, "auto") ? o->device : "cuda", o->threads, NULL))
        return find_cpu(o, &set, here, e);
    *here = d->card;
    d->ops->close(d);
    return Q_OK;
}

static int is_cuda(const char *key) { return !strncmp(key, "cuda:", 5); }

/* --- the import -------------------------------------------------------------------------------------------------------- */

struct importing {
    const struct options *o;
    const struct bundle *b;
    int trusted;
    char from[SIGNER];
    struct q_card here;
    struct compiler compiler;
    char no_compiler[1024];
    struct measure *m;             /* owned; NULL for a set of another kind of card */
    struct measurer table;
};

/* Another card's default params: what this card would build itself, unless nothing builds. */
static void report_idle(const struct importing *im, int n, int moved)
{
    if (is_cuda(im->b->card) != is_cuda(im->here.key)) printf(", %d left out: default kernels of that card", n);
    else if (im->compiler.program[0]) printf(", %d left out: default kernels of that card, and this machine compiles this card's own", n);
    else if (im->trusted)
        printf(", %d left out: default kernels of that card%s", n,
               moved ? ", which are not the same for this one" : " whose binaries do not run here");
    else printf(", %d left out: default kernels of that card; where nothing compiles they serve only if the key is trusted", n);
}

static void report(const struct importing *im, const struct import_result *r, double seconds)
{
    const char *set = im->b->card, *here = im->here.key;
    int same = !strcmp(set, here);
    printf("%d records of %s:", r->records, set);
    if (r->written)
        printf(" %d for this card (%d kernels compiled, %d taken as they came, %d tested)", r->written, r->compiled, r->taken, r->tested);
    if (r->data)
        printf("%s %d kept as that card's: this is another one, which borrows and builds them where it is near", r->written ? "," : "", r->data);
    if (!r->written && !r->data) printf(" none is new here");
    if (r->kept) printf(", %d are here already", r->kept);
    if (r->idle) report_idle(im, r->idle, r->written > 0);
    if (r->stale) printf(", %d left out: of other templates", r->stale);
    if (r->failed) printf(", %d left out: they fail here", r->failed);
    if (is_cuda(set) != is_cuda(here)) printf("; no %s card is here", is_cuda(set) ? "CUDA" : "CPU");
    else printf("%s%s", same ? "" : "; this card is ", same ? "" : here);
    printf("; %.1f s\n", seconds);
}

/* Why nothing can be compiled, and what would help. */
static void advise(struct importing *im, const struct q_err *why)
{
    char id[MINISIGN_ID], help[400];
    int binaries = 0;
    size_t most;
    for (int i = 0; i < im->b->n; i++) binaries |= bundle_kind_of(im->b->m[i].path, &most) == BUNDLE_BINARY;
    minisign_id(id, im->b->signature.id);
    if (im->trusted)
        snprintf(help, sizeof help, "its key is trusted, but %s",
                 binaries ? "its binaries are for another architecture or a newer driver" : "it has no binaries");
    else if (binaries && im->b->has_signature)
        snprintf(help, sizeof help, "if you know whose key %s is, its binaries serve: quarry tune trust KEY", id);
    else
        snprintf(help, sizeof help, "binaries of a signed set would serve, after quarry tune trust KEY; this one is %.199s%s", im->from,
                 binaries ? "" : " and has none");
    snprintf(im->no_compiler, sizeof im->no_compiler, "%.200s: nothing here compiles its kernels (%.350s); %.380s", im->o->args[0], why->text, help);
}

/* What is here for a set of this card's kind. */
static int find_means(struct importing *im, int signal_fd, struct q_err *e)
{
    const struct options *o = im->o;
    struct q_err why = { 0 };
    char where[32], program[Q_PATH];
    int cuda = im->here.kind == Q_CARD_CUDA;
    if (cuda != is_cuda(im->b->card)) return Q_OK;
    if (compiler_find(&im->compiler, &im->here, &o->given, &why)) {
        im->compiler.program[0] = 0;
        advise(im, &why);
    }
    if (cuda) snprintf(where, sizeof where, "%.31s", strcmp(o->device, "auto") ? o->device : "cuda");
    else snprintf(where, sizeof where, "%d", im->here.threads);
    int rc = self_path(program, e);
    if (!rc) rc = measure_open(&im->m, program, where, signal_fd, e);
    if (!rc) im->table = measure_table(im->m);
    return rc;
}

static int run(struct importing *im, struct store *s, struct gen *g, struct q_err *e)
{
    struct build_pace pace = { 0 };
    struct build_opts build = { .store = s, .compiler = &im->compiler, .pace = &pace, .jobs = verb_jobs(im->o), .deadline_s = 60,
                                .signal_fd = verb_catch_signals() };
    struct import_opts io = { .g = g, .build = &build, .here = &im->here, .trusted = im->trusted, .no_compiler = im->no_compiler,
                              .driver = nvrtc_driver(), .say = verb_say };
    struct import_result result = { 0 };
    double start = clock_s();
    int rc = find_means(im, build.signal_fd, e);
    if (!rc) {
        io.m = im->m ? &im->table : NULL;
        rc = import_bundle(im->b, &io, &result, e);
    }
    if (!rc) report(im, &result, clock_s() - start);
    measure_close(im->m);
    int stopped = rc && verb_interrupted(build.signal_fd);
    if (build.signal_fd >= 0) close(build.signal_fd);
    if (stopped) return q_fail(e, Q_EIO, "interrupted: what was tested is kept; import again for the rest"), VERB_INTERRUPTED;
    if (!rc && result.failed && !result.written && !result.data)
        return q_fail(e, Q_EINTERNAL, "%s: none of its kernels is right here", im->o->args[0]);
    return rc;
}

static void say_what(const struct importing *im)
{
    fprintf(stderr, "quarry-tune: %s: by %s, for ", im->o->args[0], im->b->creator);
    for (int i = 0; i < im->b->n_models; i++) fprintf(stderr, "%s%s", im->b->model[i], i + 1 < im->b->n_models ? ", " : " on ");
    fprintf(stderr, "%s, %s%s\n", im->b->card, im->from, im->trusted ? "" : ": data only, kernels are compiled here");
}

static int import(struct importing *im, struct q_err *e)
{
    const struct options *o = im->o;
    struct store *s;
    struct gen *g;
    int rc = find_signer(im->b, o->args[0], &im->trusted, im->from, e);
    if (!rc) rc = find_here(o, im->b->card, &im->here, e);
    if (rc || (rc = verb_store(o, &s, e))) return rc;
    say_what(im);
    rc = store_can_put(s, e);
    if (!rc) rc = store_can_write(s, im->here.kind, e);
    if (!rc && !(rc = gen_open(&g, o->generator, e))) {
        rc = run(im, s, g, e);
        gen_close(g);
    }
    store_close(s);
    return rc;
}

int verb_import(const struct options *o, struct q_err *e)
{
    struct bundle b;
    int rc = bundle_read(&b, o->args[0], e);
    if (rc) return rc;
    struct importing im = { .o = o, .b = &b };
    rc = import(&im, e);
    bundle_free(&b);
    return rc;
}
