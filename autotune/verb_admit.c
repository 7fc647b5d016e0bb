/* quarry tune admit: a contribution's records into a folder like tuned/, or, without the folder, only looked at.
 *
 * All or nothing: every record must be one that this version's generator makes, legal on its card, with times. What a reviewer should look at
 * is said, and is no reason to refuse. A problem that the folder answers already keeps its answer unless the new one was found with
 * at least the same effort and is faster by more than 2 %, or the old one is of other templates. */
#include "contribution.h"
#include "judge.h"
#include "progress.h"
#include "runtime/files.h"
#include "runtime/roof.h"
#include "runtime/store.h"
#include "tune.h"
#include "verbs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORTH 0.98             /* of the old time: less than that is noise */
#define LOUD 0.1               /* a spread beyond this share of the time */

struct admitting {
    const char *where;
    struct contribution in;
    struct card_lines own;     /* the same records as this build says them */
    struct card_lines there;   /* what the folder holds for the card */
    struct q_card card;
    int fresh, replaced, kept, stale, remarks;
};

static void remark(struct admitting *a, const struct record *r, const char *what)
{
    struct q_problem p = { .rows = r->rows, .ctx = r->ctx };
    char name[300];
    strcpy(p.op, r->op);
    strcpy(p.shape, r->shape);
    progress_name(name, sizeof name, &p);
    a->remarks++;
    fprintf(stderr, "quarry-tune: look: %s: %s\n", name, what);
}

/* A choice (op "layout") has no kernel, and no time of its own. */
static int is_choice(const struct record *r) { return !r->kernel[0]; }

static int times_are_good(const struct record *r)
{
    int good = is_choice(r) || (r->n_times > 0 && r->base_us > 0);
    for (int i = 0; i < r->n_times; i++) good &= r->time[i].n > 0 && r->time[i].median_us > 0;
    return good;
}

/* Beyond what memory or units can; what fits a cache may be faster than memory. */
static int beats_roof(const struct admitting *a, const struct record *r)
{
    double bytes, ops, cache = 1024.0 * (a->card.l2 + a->card.l2_kib + a->card.l3_kib);    /* of the other kind of card: 0 */
    record_cost(&r->cost, r->time[0].rows, r->time[0].past, &bytes, &ops);
    double pct = r->roof_pct;
    enum roof_share share = roof_share(&pct, !strcmp(r->bound, "bytes"));
    return share == ROOF_OVER || (share == ROOF_CACHE && bytes > 2 * cache);
}

static void look(struct admitting *a, const struct record *r)
{
    const struct record_time *t = &r->time[0];
    if (is_choice(r)) return;
    if (beats_roof(a, r)) remark(a, r, "faster than the roof");
    if (t->mad_us > LOUD * t->median_us) remark(a, r, "its times spread by more than 10 %");
    if (r->n_times == 1 && fabs(1 - t->median_us / r->base_us - r->gain) > 0.02) remark(a, r, "its gain is not what its times say");
    if (r->gain > 0.9) remark(a, r, "ten times as fast as the default params");
}

static void look_at_efforts(struct admitting *a)
{
    int quick = 0;
    for (int i = 0; i < a->own.n; i++) quick += !strcmp(a->own.v[i].record.effort, "quick");
    if (quick) fprintf(stderr, "quarry-tune: look: %d of %d records are of effort quick: few candidates were tried\n", quick, a->own.n);
    a->remarks += quick > 0;
}

static int judge_one(struct admitting *a, struct gen *g, const struct record *r, struct q_err *e)
{
    struct record own;
    struct gen_kernel k;
    struct q_err why;
    int rc = judge_record(g, &a->card, r, &own, &k, &why);
    if (rc) return q_fail(e, rc, "%s: %.800s", a->where, why.text);
    gen_kernel_free(&k);
    const char *wants = strcmp(own.origin, "tuned") || !own.effort[0] ? "a measured winner"
                        : times_are_good(&own) ? NULL : "times of it and of the default params";
    if (wants) return q_fail(e, Q_EINPUT, "%s: record %s %s: expected %s", a->where, r->op, r->shape, wants);
    strcpy(own.driver, r->driver);
    look(a, &own);
    return card_lines_put(&a->own, &own, e);
}

static int judge_all(struct admitting *a, const struct options *o, struct q_err *e)
{
    struct gen *g;
    int rc = card_parse(&a->card, a->in.card, e);
    if (!rc && strcmp(a->card.key, a->in.card)) rc = q_fail(e, Q_EINPUT, "%s: expected a card's whole key, found '%s'", a->where, a->in.card);
    if (rc || (rc = gen_open(&g, o->generator, e))) return rc;
    for (int i = 0; !rc && i < a->in.lines.n; i++) rc = judge_one(a, g, &a->in.lines.v[i].record, e);
    gen_close(g);
    if (!rc) look_at_efforts(a);
    return rc;
}

/* --- merging ----------------------------------------------------------------------------------------------------------- */

/* At the first size that both were timed at. */
static int is_faster(const struct record *r, const struct record *old)
{
    for (int i = 0; i < r->n_times; i++)
        for (int j = 0; j < old->n_times; j++)
            if (r->time[i].rows == old->time[j].rows && r->time[i].past == old->time[j].past)
                return r->time[i].median_us < WORTH * old->time[j].median_us;
    return 0;
}

static int merge_one(struct admitting *a, const struct record *r, struct q_err *e)
{
    int stale = card_lines_drop_stale(&a->there, r);
    const struct card_line *old = card_lines_find(&a->there, r);
    int better = old && effort_find(r->effort) >= effort_find(old->record.effort) && is_faster(r, &old->record);
    a->stale += stale;
    if (old && !better) {
        a->kept++;
        return Q_OK;
    }
    if (old) a->replaced++;
    else a->fresh++;
    return card_lines_put(&a->there, r, e);
}

/* "DIR/cuda_sm_75_....jsonl" */
static int file_of(char path[Q_PATH], const char *dir, const char *card, struct q_err *e)
{
    char name[300];
    store_folder(name, card);
    strcat(name, ".jsonl");
    return path_join(path, e, dir, name, NULL);
}

static int merge(struct admitting *a, const char *dir, struct q_err *e)
{
    char path[Q_PATH];
    int rc = file_of(path, dir, a->card.key, e);
    if (!rc) rc = card_lines_read(&a->there, path, a->card.key, e);
    if (rc == Q_EMISS) rc = Q_OK;
    for (int i = 0; !rc && i < a->own.n; i++) rc = merge_one(a, &a->own.v[i].record, e);
    if (!rc && a->fresh + a->replaced) rc = card_lines_write(&a->there, path, e);
    if (!rc)
        printf("%s: %d records: %d new, %d better than what was there, %d not; %d of other templates taken out\n", path, a->own.n, a->fresh,
               a->replaced, a->kept, a->stale);
    return rc;
}

static int admit(struct admitting *a, const struct options *o, struct q_err *e)
{
    int rc = judge_all(a, o, e);
    if (!rc && o->n_args > 1) return merge(a, o->args[1], e);
    if (!rc) printf("%s: %d records of %s, all legal, %d to look at\n", a->where, a->own.n, a->card.key, a->remarks);
    return rc;
}

int verb_admit(const struct options *o, struct q_err *e)
{
    struct admitting a = { .where = o->args[0] };
    char *text;
    size_t n;
    int rc = file_read(a.where, CONTRIBUTION_BYTES, &text, &n, e);
    if (rc) return rc;
    rc = contribution_parse(&a.in, text, n, a.where, e);
    free(text);
    if (!rc) rc = admit(&a, o, e);
    contribution_free(&a.in);
    card_lines_free(&a.own);
    card_lines_free(&a.there);
    return rc;
}
