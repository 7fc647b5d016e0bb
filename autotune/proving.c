#include "proving.h"
#include "verbs.h"
#include <string.h>
#include <unistd.h>

static int open_journal(struct proving *p, struct q_err *e)
{
    const struct journal_opts o = { .card = p->o->card.key, .signal_fd = p->build.signal_fd, .say = verb_say };
    struct q_err why;
    int waited;
    if (!journal_open(&p->journal, &o, &waited, &why)) return Q_OK;
    p->journal = NULL;
    if (verb_interrupted(p->build.signal_fd)) return q_fail(e, Q_EIO, "%s", why.text);
    verb_say(NULL, why.text);
    return Q_OK;
}

static int open_measurer(struct proving *p, struct q_err *e)
{
    const struct options *o = p->o;
    char program[Q_PATH], where[32];
    if (o->card.kind == Q_CARD_CUDA) snprintf(where, sizeof where, "%.31s", strcmp(o->device, "auto") ? o->device : "cuda");
    else snprintf(where, sizeof where, "%d", o->card.threads);
    int rc = self_path(program, e);
    if (!rc) rc = measure_open(&p->measure, program, where, p->build.signal_fd, e);
    p->watch = (struct watch){ .inner = rc ? p->table : measure_table(p->measure), .journal = p->journal };
    p->table = watch_table(&p->watch);
    return rc;
}

int proving_open(struct proving *p, const struct options *o, const char *op, double budget_us, struct q_err *e)
{
    *p = (struct proving){ .o = o, .build.signal_fd = -1 };
    int rc = verb_store(o, &p->s, e);
    if (!rc) rc = gen_open(&p->g, o->generator, e);
    if (rc) return rc;
    p->t = verb_target(o);
    p->build = (struct build_opts){ .store = p->s, .compiler = &p->compiler, .jobs = verb_jobs(o), .deadline_s = 60,
                                    .signal_fd = verb_catch_signals() };
    p->effort = *effort_find("quick");
    p->effort.budget_us = budget_us;
    rc = look_of_options(&p->look, &p->t, p->g, p->s, o, e);
    if (!rc) rc = look_has_op(&p->look, op, e);
    if (!rc) rc = store_can_write(p->s, o->card.kind, e);
    if (!rc) rc = compiler_find(&p->compiler, &o->card, &o->given, e);
    if (!rc) rc = open_journal(p, e);
    if (!rc) rc = open_measurer(p, e);
    p->env = (struct contest_env){ .t = &p->t, .g = p->g, .build = &p->build, .m = &p->table, .effort = &p->effort,
                                   .cold_bytes = target_cold_bytes(&p->t), .journal = p->journal, .can_build = &p->can_build };
    return rc;
}

int proving_close(struct proving *p, int rc)
{
    int stopped = rc && p->build.signal_fd >= 0 && verb_interrupted(p->build.signal_fd);
    measure_close(p->measure);
    journal_close(p->journal, 0);
    if (p->build.signal_fd >= 0) close(p->build.signal_fd);
    look_close(&p->look);
    target_close(&p->t);
    if (p->g) gen_close(p->g);
    store_close(p->s);
    return stopped;
}
