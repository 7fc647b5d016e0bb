/* quarry tune build: a model's whole kernel set for a card that need not be here: winners of that card or of its neighbours, default params
 * for the rest, every kernel compiled. Nothing is measured. */
#include "collect.h"
#include "defaults.h"
#include "look.h"
#include "verbs.h"
#include "runtime/clock.h"
#include <string.h>
#include <unistd.h>

#ifndef QUARRY_VERSION
#define QUARRY_VERSION "0"
#endif

/* Where the params come from. */
struct origins {
    int tuned, borrowed, defaults;
};

static void count(struct origins *n, const struct record *r)
{
    if (!strcmp(r->origin, "tuned") || !strcmp(r->origin, "shipped")) n->tuned++;
    else if (!strcmp(r->origin, "borrowed")) n->borrowed++;
    else n->defaults++;
}

/* Every problem's answer, as an engine on that card would find it. */
static int collect(struct collect *c, const struct target *t, struct origins *n, struct q_err *e)
{
    struct look l;
    int rc = look_open(&l, t, c->g, c->s, 0, e);
    for (int i = 0; i < l.n && !rc; i++) {
        const struct record *r = &l.v[i].record;
        int had = c->n;
        if (!r->origin[0]) /* lost since it was built */
            rc = q_fail(e, Q_EMISS, "%s %s: its kernel is not in the store, though it was built", l.v[i].problem.op, l.v[i].problem.shape);
        else rc = collect_record(c, r, e);
        if (!rc && c->n > had) count(n, r);
    }
    if (!rc && c->stale) rc = q_fail(e, Q_EINTERNAL, "%s", c->first_stale);
    if (!rc && c->bare) rc = q_fail(e, Q_EIO, "%d kernels were built, but are no longer in the store", c->bare);
    look_close(&l);
    return rc;
}

/* "qwen3.5-9b q8_0", or the file's name: no path travels. */
static void name_model(char dst[64], const struct options *o)
{
    const char *given = o->model ? o->model : o->preset, *slash = strrchr(given, '/'), *name = slash ? slash + 1 : given;
    if (o->model) snprintf(dst, 64, "%.63s", name);
    else snprintf(dst, 64, "%.48s %.14s", name, o->type);
}

static int pack(const struct options *o, const struct collect_out *out, struct store *s, struct gen *g, const struct target *t, struct q_err *e)
{
    struct bundle b = { .creator = "quarry " QUARRY_VERSION, .n_models = 1 };
    struct collect c = { .b = &b, .g = g, .s = s, .card = &t->card, .binaries = 1 };
    struct origins n = { 0 };
    const char *signer = out->signer;
    snprintf(b.card, sizeof b.card, "%s", t->card.key);
    name_model(b.model[0], o);
    int rc = collect(&c, t, &n, e);
    if (!rc) rc = collect_write(&c, out, e);
    if (!rc && *signer) fprintf(stderr, "quarry-tune: rigs use its binaries after: quarry tune trust %s\n", signer);
    if (!rc && !*signer) fputs("quarry-tune: not signed: a rig without a compiler cannot use it (--sign FILE)\n", stderr);
    const char *is_signed = *signer ? ", signed" : "";
    if (!rc)
        printf("%s: %s for %s: %d tuned, %d borrowed, %d default%s\n", out->path, b.model[0], b.card, n.tuned, n.borrowed, n.defaults, is_signed);
    bundle_free(&b);
    return rc;
}

static int build(const struct options *o, const struct collect_out *out, struct store *s, struct gen *g, struct q_err *e)
{
    struct target t = verb_target(o);
    struct compiler compiler = { 0 };
    struct compiler_given given = o->given;
    struct defaults_result result;
    double start = clock_s(), last = start;
    struct build_pace pace = { 0 };
    struct build_opts b = { .store = s, .compiler = &compiler, .pace = &pace, .jobs = verb_jobs(o), .deadline_s = 60,
                            .signal_fd = verb_catch_signals(), .progress = verb_built, .progress_arg = &last };
    given.elsewhere = 1;
    int rc = target_open(&t, o->model, o->preset, o->type, e);
    if (!rc && t.shape_only) t.model->stands_for_file = 1;   /* the rig has weights */
    if (!rc) rc = defaults_make(&t, g, &b, &compiler, &given, verb_say, NULL, &result, e);
    if (!rc && result.built)
        fprintf(stderr, "quarry-tune: built %d kernel%s in %.1f s with %s\n", result.built, result.built == 1 ? "" : "s", clock_s() - start, compiler.brief);
    int stopped = rc && verb_interrupted(b.signal_fd);
    if (!rc) rc = pack(o, out, s, g, &t, e);
    target_close(&t);
    if (b.signal_fd >= 0) close(b.signal_fd);
    return stopped ? VERB_INTERRUPTED : rc;
}

static int build_into(const struct options *o, const struct collect_out *out, struct q_err *e)
{
    struct store *s;
    struct gen *g;
    int rc = verb_store(o, &s, e);
    if (rc) return rc;
    if (!(rc = gen_open(&g, o->generator, e))) {
        rc = build(o, out, s, g, e);
        gen_close(g);
    }
    store_close(s);
    return rc;
}

int verb_build(const struct options *o, struct q_err *e)
{
    struct collect_out out;
    int rc = collect_out_open(&out, o->sign, o->output, e);
    if (!rc) rc = build_into(o, &out, e);
    collect_out_close(&out);
    return rc;
}
