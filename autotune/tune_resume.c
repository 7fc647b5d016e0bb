/* What a tune has from those before it that did not come to their end: the journal of its card, taken over problem by problem. */
#include "tune_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(void *arg, const char *line)
{
    const struct tuner *t = arg;
    progress_line(&t->progress, "%s", line);
}

static void tell_foreign(const struct tuner *t)
{
    const struct journal_foreign *f = book_foreign(t->book);
    if (f->files || f->lines)
        progress_line(&t->progress, "of earlier tunes' journals %d files and %d lines are left out; the first: %s", f->files, f->lines, f->first);
}

/* What is bad is known even where nothing can be written. */
static int read_book(struct tuner *t, struct q_err *e)
{
    char dir[Q_PATH];
    int rc = journal_dir(dir, NULL, t->o->t->card.key, e);
    if (!rc) rc = book_open(&t->book, dir, t->o->t->card.key, e);
    if (rc) return rc;
    t->env.book = t->book;
    tell_foreign(t);
    return Q_OK;
}

int tune_need_journal(struct tuner *t, struct q_err *e)
{
    const struct journal_opts o = { .card = t->o->t->card.key, .signal_fd = t->o->build->signal_fd, .say = say, .say_arg = t };
    struct q_err why;
    int waited, rc;
    if (t->has_journal) return Q_OK;
    t->has_journal = 1;
    if ((rc = store_can_put(t->o->build->store, e)) || (rc = store_can_write(t->o->build->store, t->o->t->card.kind, e))) return rc;
    rc = journal_open(&t->journal, &o, &waited, &why);
    if (rc && !strcmp(why.text, "interrupted")) return q_fail(e, rc, "%s", why.text);
    if (rc) progress_line(&t->progress, "%s; the tune goes on without a journal: if it is ended, it begins anew", why.text);
    t->env.journal = t->watch.journal = t->journal;
    if (read_book(t, &why)) progress_line(&t->progress, "%s; what earlier tunes found is not known", why.text);
    return Q_OK;
}

/* Regenerated: a journal is text that may have been changed, and a generator's hash does not cover params. */
static int is_of_here(const struct tuner *t, const struct q_problem *p, const struct store_key *k, const struct record *r)
{
    struct gen_kernel gk;
    struct record again;
    memset(&again, 0, sizeof again);
    if (target_emit(t->o->t, t->o->g, p, r->params, &gk, NULL)) return 0;
    target_record(&again, t->o->g, k, p, &gk);
    gen_kernel_free(&gk);
    return !strcmp(again.source, r->source) && !strcmp(again.params, r->params) && !strcmp(again.kernel, r->kernel)
           && !strcmp(again.layout, r->layout) && !memcmp(&again.launch, &r->launch, sizeof r->launch);
}

/* By the compiler that is here, and still there. */
static int is_built(const struct tuner *t, const struct record *r)
{
    const char *version = t->o->compiler->version;
    char path[Q_PATH];
    for (int i = 0; i < r->n_objects; i++)
        if ((*version && strcmp(r->objects[i].compiler, version)) || store_object(t->o->build->store, r->objects[i].name, path, NULL)) return 0;
    return 1;
}

static int is_usable(const struct tuner *t, const struct record *r)
{
    const struct effort *had = effort_find(r->effort);
    if (strcmp(r->origin, "tuned") || !had || had < t->env.effort || !target_admits(t->o->t, r->numerics)) return 0;
    for (int i = 0; i < r->n_objects; i++)
        if (book_bad(t->book, r->objects[i].name, !strcmp(r->params, r->base_params))) return 0;
    return is_built(t, r);
}

int tune_resume(struct tuner *t, const struct q_problem *p, struct found *f)
{
    char generator[65];
    struct store_key k;
    if (target_key(t->o->t, t->o->g, p, generator, &k, NULL)) return 0;
    const struct journal_won *w = book_won(t->book, &k);
    if (!w || !is_usable(t, &w->record) || !is_of_here(t, p, &k, &w->record)) return 0;
    f->problem = *p;
    f->record = w->record;
    f->base = w->base;
    f->fresh = 1;
    t->resumed++;
    /* told anew: this tune is now the one that will have recorded it */
    journal_won(t->journal, w, NULL, 0);
    return 1;
}

void tune_note_won(struct tuner *t, const struct record *record, const struct record *base, const struct outcome *out)
{
    struct journal_won *w = calloc(1, sizeof *w);
    const char *ties[CONTEST_TIES];
    if (!w) return;
    *w = (struct journal_won){ .record = *record, .base = *base };
    if (out) w->gain = out->duel.gain, w->band = out->duel.band, w->accepted = out->duel.accepted;
    for (int i = 0; out && i < out->n_ties; i++) ties[i] = out->ties[i];
    journal_won(t->journal, w, ties, out ? out->n_ties : 0);
    free(w);
}

/* What the gate took away is not tried again: it does harm where no check of it alone sees it. */
static void note_blamed(struct tuner *t, const struct found *f)
{
    struct journal_candidate c = { .params = f->blamed, .object = f->blamed_object };
    char generator[65];
    struct store_key k;
    if (!f->blamed_object[0] || target_key(t->o->t, t->o->g, &f->problem, generator, &k, NULL)) return;
    c.key = &k;
    journal_bad(t->journal, &c, "wrong", "the gate found it to blame for a set that failed");
}

void tune_note_gate(struct tuner *t, int rc, const char *summary)
{
    for (int i = 0; i < t->found.n; i++) note_blamed(t, &t->found.f[i]);
    if (!rc || rc == Q_EINTERNAL) journal_gate(t->journal, !rc, summary);
}

/* Problems that have no record: those that were not reached, and those whose records were not written. */
void tune_close_journal(struct tuner *t, int rc)
{
    struct tune_left *l = t->o->left;
    int kept = 0, left = t->n_problems ? t->n_problems - t->progress.done : 0;
    for (int i = 0; i < t->found.n; i++) kept += t->found.f[i].fresh;
    if (l) *l = (struct tune_left){ t->journal != NULL, kept, left, t->counted };
    journal_close(t->journal, rc ? kept + left : 0);
    book_close(t->book);
    t->journal = NULL;
    t->book = NULL;
}
