/* quarry tune compare FILE: are the winners of another tune of this card (`tune list --measured`, a line a record) those of this store, or as good?
 * Only what differs is built, checked and timed, in one interleaved duel each. Nothing is recorded. Status 0: all are the same, or within
 * 2 %, or within what a duel of this machine can tell. */
#include "compare.h"
#include "progress.h"
#include "runtime/clock.h"
#include "verbs.h"
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define DUEL_US 1e6     /* of measuring a pair */

/* --- telling ----------------------------------------------------------------------------------------------------------- */

static void print_row(void *arg, const struct compare_row *r)
{
    char name[320], other[200];
    (void)arg;
    progress_name(name, sizeof name, &r->problem);
    progress_difference(other, sizeof other, r->other->params, r->own->params);
    if (r->verdict == COMPARE_FAILED) printf("failed  %s: here %s, there %s: %s\n", name, r->own->params, other, r->why);
    else if (r->verdict == COMPARE_SAME) printf("same    %s: here %s, there %s: the same kernel\n", name, r->own->params, other);
    else
        printf("%-7s %s: here %s, there %s: %.1f %% %s over all its sizes, a difference beyond %.1f %%; at the first size %.2f us here, %.2f there\n",
               compare_word(r->verdict), name, r->own->params, other, 100 * (r->gain < 0 ? -r->gain : r->gain), r->gain < 0 ? "slower"
            : "faster", 100 * r->band, r->own_us, r->other_us);
    fflush(stdout);
}

static void json_row(void *arg, const struct compare_row *r)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "op", r->problem.op);
    cJSON_AddStringToObject(o, "shape", r->problem.shape);
    cJSON_AddNumberToObject(o, "rows", r->problem.rows);
    cJSON_AddNumberToObject(o, "ctx", r->problem.ctx);
    cJSON_AddStringToObject(o, "own", r->own->params);
    cJSON_AddStringToObject(o, "other", r->other->params);
    cJSON_AddStringToObject(o, "verdict", compare_word(r->verdict));
    if (r->verdict == COMPARE_FAILED) cJSON_AddStringToObject(o, "why", r->why);
    else {
        cJSON_AddNumberToObject(o, "own_us", r->own_us);
        cJSON_AddNumberToObject(o, "other_us", r->other_us);
        cJSON_AddNumberToObject(o, "gain", r->gain);
        cJSON_AddNumberToObject(o, "band", r->band);
    }
    cJSON_AddItemToArray(arg, o);
}

static int print_json(cJSON *rows, const struct compare_result *n, struct q_err *e)
{
    cJSON *o = cJSON_CreateObject();
    const struct { const char *name; int n; } counts[] = { { "same", n->same }, { "within", n->within }, { "better", n->better },
        { "worse", n->worse }, { "failed", n->failed }, { "only_there", n->missing }, { "only_here", n->unasked },
        { "other_templates", n->stale }, { "not_compared", n->apart } };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) cJSON_AddNumberToObject(o, counts[i].name, counts[i].n);
    cJSON_AddItemToObject(o, "differ", cJSON_Duplicate(rows, 1));
    int rc = verb_print_json(o, e);
    cJSON_Delete(o);
    return rc;
}

static void print_counts(const struct compare_result *n, double seconds)
{
    printf("%d winners the same, %d within %.0f %% or the noise of their duel, %d better there, %d worse there", n->same, n->within, 100 * RACE_TIE,
           n->better, n->worse);
    if (n->failed) printf(", %d not compared: they fail here", n->failed);
    if (n->missing) printf("; %d there alone", n->missing);
    if (n->unasked) printf("; %d here alone", n->unasked);
    if (n->stale) printf("; %d of other templates left out", n->stale);
    printf("; %.1f s\n", seconds);
}

/* --- the verb ---------------------------------------------------------------------------------------------------------- */

static int compare(struct proving *p, const struct card_lines *other, struct q_err *e)
{
    struct compare_result n;
    double start = clock_s();
    cJSON *rows = p->o->json ? cJSON_CreateArray() : NULL;
    int rc = compare_sets(p, other, p->o->args[0], rows ? json_row : print_row, rows, &n, e);
    if (!rc && rows) rc = print_json(rows, &n, e);
    else if (!rc) print_counts(&n, clock_s() - start);
    cJSON_Delete(rows);
    if (rc) return rc;
    int apart = n.better + n.worse;
    if (n.failed) return q_fail(e, Q_EINTERNAL, "%d winner%s here", n.failed, n.failed == 1 ? " fails" : "s fail");
    if (!apart) return Q_OK;
    return q_fail(e, Q_EINTERNAL, "%d winner%s by more than %.0f %% and their duel's noise", apart, apart == 1 ? " differs" : "s differ",
                  100 * RACE_TIE);
}

int verb_compare(const struct options *o, struct q_err *e)
{
    struct card_lines other = { 0 };
    struct proving p;
    int rc = card_lines_read(&other, o->args[0], o->card.key, e);
    if (rc) return card_lines_free(&other), rc;
    rc = proving_open(&p, o, NULL, DUEL_US, e);
    if (!rc) fprintf(stderr, "card %s\n", o->card.key);
    if (!rc) rc = compare(&p, &other, e);
    int stopped = proving_close(&p, rc);
    card_lines_free(&other);
    return stopped ? q_fail(e, Q_EIO, "interrupted: the rows above are compared"), VERB_INTERRUPTED : rc;
}
