/* quarry tune: the kernel set of a model on a card, measured or (effort none) with default params. */
#include "defaults.h"
#include "target.h"
#include "tune.h"
#include "verbs.h"
#include "runtime/clock.h"
#include <string.h>
#include <unistd.h>

static void report(const struct defaults_result *r, const struct compiler *compiler, double seconds)
{
    if (r->built)
        fprintf(stderr, "quarry-tune: built %d kernel%s (%d cached) in %.1f s with %s\n", r->built, r->built == 1 ? "" : "s", r->cached, seconds, compiler->brief);
    else fprintf(stderr, "quarry-tune: %d kernels, all cached, %.1f s\n", r->kernels, seconds);
}

static void tell_interrupted(const struct tune_left *l, struct q_err *e)
{
    if (!l->journal) q_fail(e, Q_EIO, "interrupted: nothing is recorded; the kernels that were built are kept");
    else if (!l->counted)
        q_fail(e, Q_EIO, "interrupted while weight layouts are compared: %d of them are kept; the same command goes on from there", l->kept);
    else if (!l->left) q_fail(e, Q_EIO, "interrupted: all that was measured is kept; the same command goes on from there with the gate");
    else
        q_fail(e, Q_EIO, "interrupted: what was measured is kept; the same command goes on from there with what is left: %d problem%s", l->left,
               l->left == 1 ? "" : "s");
}

static int measured(const struct options *o, const struct target *t, struct gen *g, const struct build_opts *b, struct compiler *compiler,
                    struct q_err *e)
{
    char program[Q_PATH];
    struct build_opts quiet = *b;
    struct tune_left left = { 0 };
    int r = self_path(program, e);
    if (r) return r;
    quiet.progress = NULL;
    struct tune_opts to = { .t = t, .g = g, .build = &quiet, .compiler = compiler, .given = &o->given, .device = o->device,
                            .effort = o->effort, .model = o->model, .preset = o->preset, .type = o->type, .tunes = o->tunes,
                            .program = program, .progress = stderr, .results = stdout, .left = &left, .again = o->again };
    r = o->roofs ? tune_roofs(&to, e) : tune_make(&to, e);
    if (r && verb_interrupted(b->signal_fd)) tell_interrupted(&left, e);
    return r;
}

/* Whatever failed, it failed because it was told to stop. */
static int interrupted(struct q_err *e)
{
    if (strncmp(e->text, "interrupted", 11)) q_fail(e, Q_EIO, "interrupted before anything was built");
    return VERB_INTERRUPTED;
}

static int tune_with(const struct options *o, struct store *s, struct gen *g, struct q_err *e)
{
    struct target t = verb_target(o);
    struct compiler compiler = { 0 };
    struct defaults_result result;
    struct build_pace pace = { 0 };
    double start = clock_s(), last = start;
    struct build_opts b = { .store = s, .compiler = &compiler, .pace = &pace, .jobs = verb_jobs(o), .deadline_s = 60,
                            .signal_fd = verb_catch_signals(), .progress = verb_built, .progress_arg = &last };
    int r = o->roofs ? Q_OK : target_open(&t, o->model, o->preset, o->type, e);
    if (!r && (o->roofs || strcmp(o->effort, "none"))) r = measured(o, &t, g, &b, &compiler, e);
    else if (!r && !(r = defaults_make(&t, g, &b, &compiler, &o->given, verb_say, NULL, &result, e))) report(&result, &compiler, clock_s() - start);
    if (r && verb_interrupted(b.signal_fd)) r = interrupted(e);
    target_close(&t);
    if (b.signal_fd >= 0) close(b.signal_fd);
    return r;
}

int verb_tune(const struct options *o, struct q_err *e)
{
    struct store *s;
    struct gen *g;
    int r = verb_store(o, &s, e);
    if (r) return r;
    if (!(r = gen_open(&g, o->generator, e))) {
        r = tune_with(o, s, g, e);
        gen_close(g);
    }
    store_close(s);
    return r;
}
