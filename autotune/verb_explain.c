/* quarry tune explain OP: why each problem of an op is answered as it is: the winner and where it comes from, its times against the default params
 * and the roof, what else was tried and how it did, what was pruned. From the record and, where it is kept, the journal; nothing is measured. */
#include "evidence.h"
#include "look.h"
#include "progress.h"
#include "tune.h"
#include "verbs.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct explaining {
    const struct options *o;
    struct target t;
    struct gen *g;
    struct store *s;
    struct look look;
    struct journal_foreign foreign;
    cJSON *json;               /* a list, NULL: text is printed */
};

/* --- the winner -------------------------------------------------------------------------------------------------------- */

static void print_origin(const struct record *r)
{
    const char *with = r->n_objects ? r->objects[0].compiler : "";
    if (!strcmp(r->origin, "tuned")) printf("tuned with effort %s", r->effort[0] ? r->effort : "unknown");
    else if (!strcmp(r->origin, "shipped")) printf("came with quarry, measured on such a card with effort %s", r->effort);
    else if (!strcmp(r->origin, "borrowed")) printf("borrowed from %s", r->from[0] ? r->from : "a card near this one");
    else printf("default params of this card: nothing was measured for it");
    printf("%s%s", *with ? "; " : "", with);
    if (r->driver[0]) printf(", driver %s", r->driver);
    puts("");
}

static void print_times(const struct record *r)
{
    for (int i = 0; i < r->n_times; i++) {
        const struct record_time *z = &r->time[i];
        double bytes, ops;
        record_cost(&r->cost, z->rows, z->past, &bytes, &ops);
        printf("            %d row%s", z->rows, z->rows == 1 ? "" : "s");
        if (z->past) printf(" behind %d tokens", z->past);
        printf(": %.1f us, spread %.1f us in %d samples", z->median_us, z->mad_us, z->n);
        if (z->median_us > 0) printf("; %.1f GB/s, %.3f TOP/s", bytes / z->median_us * 1e-3, ops / z->median_us * 1e-6);
        puts("");
    }
}

static void print_default(const struct record *r)
{
    char difference[200];
    if (!r->base_params[0]) return;
    if (!strcmp(r->base_params, r->params)) {
        puts("  default   the same params");
        return;
    }
    progress_difference(difference, sizeof difference, r->base_params, r->params);
    printf("  default   %s: %.1f us; the winner saves %.1f %% of the time of all sizes\n", difference, r->base_us, 100 * r->gain);
}

static void print_roof(const struct record *r)
{
    if (!r->bound[0]) return;
    int by_bytes = !strcmp(r->bound, "bytes");
    char share[ROOF_TEXT];
    if (roof_text(share, r->roof_pct, by_bytes, 0) == ROOF_CACHE) printf("  roof      in cache: faster than reading memory allows");
    else printf("  roof      %s of what %s allows", share, by_bytes ? "reading memory" : r->ceiling[0] ? r->ceiling : "its arithmetic");
    if (!strcmp(r->bound, "bytes") && r->read_rate > 0) printf(" (%.1f GB/s)", r->read_rate * 1e-9);
    if (!strcmp(r->bound, "ops") && r->path_rate > 0) printf(" (%.2f TOP/s)", r->path_rate * 1e-12);
    puts("");
}

static void print_winner(const struct record *r)
{
    printf("  winner    %s\n            ", r->params);
    print_origin(r);
    print_times(r);
    print_default(r);
    print_roof(r);
}

/* --- the search -------------------------------------------------------------------------------------------------------- */

static int is_timed(const struct evidence_candidate *c) { return !c->bad[0] && c->n_sizes; }

/* The quickest at the first size before others, then those without a time, then bad ones. */
static int by_time(const void *a, const void *b)
{
    const struct evidence_candidate *x = *(struct evidence_candidate *const *)a, *y = *(struct evidence_candidate *const *)b;
    double ux = evidence_median(x), uy = evidence_median(y);
    if (!x->bad[0] != !y->bad[0]) return x->bad[0] ? 1 : -1;
    return (ux > uy) - (ux < uy);
}

static const char *mark(const struct evidence *v, const struct record *r, const char *params)
{
    if (!strcmp(params, r->params)) return strcmp(params, r->base_params) ? "  <- winner" : "  <- winner, default params";
    if (!strcmp(params, r->base_params)) return "  <- default params";
    for (int i = 0; i < v->n_ties; i++)
        if (!strcmp(params, v->ties[i])) return "  <- as good as the winner";
    return "";
}

static void print_candidate(const struct evidence *v, const struct record *r, const struct evidence_candidate *c)
{
    if (c->bad[0]) printf("              bad       %s: %s\n", c->params, c->bad);
    else if (is_timed(c)) printf("    %10.1f us       %s%s\n", evidence_median(c), c->params, mark(v, r, c->params));
    else printf("              %s   %s%s\n", c->checked ? "right  " : "no time", c->params, mark(v, r, c->params));
}

/* Its times are of another moment than the duel's, and of fewer samples. */
static void print_race(const struct evidence *v)
{
    for (int i = 0; i < v->n; i++) {
        const struct evidence_size *z = &v->c[i]->size[0];
        if (!is_timed(v->c[i])) continue;
        printf("  race      of all that were tried, at %d row%s", z->rows, z->rows == 1 ? "" : "s");
        if (z->past) printf(" behind %d tokens", z->past);
        puts("; its times compare with one another alone");
        return;
    }
}

static void print_search(struct evidence *v, const struct record *r)
{
    if (!v->total && !v->n) {
        if (r->effort[0]) puts("  search    the journal has no more of it");
        return;
    }
    printf("  search    %d in the space, %d legal, %d tried\n", v->total, v->legal, v->n);
    if (v->n_reasons) puts("            pruned, each for the first of these that it does not meet:");
    for (int i = 0; i < v->n_reasons; i++) printf("            %6d  %s\n", v->reason[i].n, v->reason[i].text);
    if (v->won && v->band > 0)
        printf("  duel      of the two best, turn by turn, which the times above are of: gain %.1f %%, a tie within %.1f %%: %s\n", 100 * v->gain,
               100 * v->band, v->accepted ? "the best candidate won" : "the default params stayed");
    print_race(v);
    if (v->n) qsort(v->c, (size_t)v->n, sizeof *v->c, by_time);
    for (int i = 0; i < v->n; i++) print_candidate(v, r, v->c[i]);
}

static void print_problem(const struct looked *l, struct evidence *v)
{
    char bucket[32];
    progress_bucket(bucket, l->problem.rows, l->problem.ctx);
    printf("%s %s%s%s\n", l->problem.op, l->problem.shape, bucket[0] ? " " : "", bucket);
    if (!l->record.origin[0]) {
        puts("  winner    none is recorded: the default params of this card will be built");
        return;
    }
    if (l->record.rows != l->problem.rows || l->record.ctx != l->problem.ctx) puts("            (a winner for steps of any size serves these)");
    print_winner(&l->record);
    print_search(v, &l->record);
}

/* --- JSON -------------------------------------------------------------------------------------------------------------- */

static cJSON *candidate_json(const struct evidence_candidate *c)
{
    cJSON *o = cJSON_CreateObject(), *times = cJSON_AddArrayToObject(o, "times");
    if (c->bad[0]) cJSON_AddStringToObject(o, "bad", c->bad);
    cJSON_AddStringToObject(o, "params", c->params);
    for (int i = 0; i < c->n_sizes; i++) {
        cJSON *z = cJSON_CreateObject();
        cJSON_AddNumberToObject(z, "rows", c->size[i].rows);
        cJSON_AddNumberToObject(z, "past", c->size[i].past);
        cJSON_AddItemToObject(z, "us", cJSON_CreateDoubleArray(c->size[i].us, c->size[i].n));
        cJSON_AddItemToArray(times, z);
    }
    return o;
}

static void add_search(cJSON *o, const struct evidence *v)
{
    cJSON *search = cJSON_AddObjectToObject(o, "search"), *pruned = cJSON_AddObjectToObject(search, "pruned");
    cJSON *list = cJSON_AddArrayToObject(search, "candidates");
    cJSON *ties = cJSON_AddArrayToObject(search, "ties");
    cJSON_AddNumberToObject(search, "space", v->total);
    cJSON_AddNumberToObject(search, "legal", v->legal);
    for (int i = 0; i < v->n_reasons; i++) cJSON_AddNumberToObject(pruned, v->reason[i].text, v->reason[i].n);
    for (int i = 0; i < v->n; i++) cJSON_AddItemToArray(list, candidate_json(v->c[i]));
    for (int i = 0; i < v->n_ties; i++) cJSON_AddItemToArray(ties, cJSON_CreateString(v->ties[i]));
    if (!v->won) return;
    cJSON *duel = cJSON_AddObjectToObject(search, "duel");
    cJSON_AddNumberToObject(duel, "gain", v->gain);
    cJSON_AddNumberToObject(duel, "band", v->band);
    cJSON_AddBoolToObject(duel, "accepted", v->accepted);
}

static void add_json(struct explaining *w, const struct looked *l, const struct evidence *v)
{
    cJSON *o = cJSON_CreateObject();
    char *record = l->record.origin[0] ? record_print(&l->record) : NULL;
    cJSON_AddStringToObject(o, "op", l->problem.op);
    cJSON_AddStringToObject(o, "shape", l->problem.shape);
    cJSON_AddNumberToObject(o, "rows", l->problem.rows);
    cJSON_AddNumberToObject(o, "ctx", l->problem.ctx);
    if (record) cJSON_AddItemToObject(o, "record", cJSON_Parse(record));
    if (v->total || v->n) add_search(o, v);
    free(record);
    cJSON_AddItemToArray(w->json, o);
}

/* --- the verb ---------------------------------------------------------------------------------------------------------- */

static int is_asked(const struct options *o, const struct looked *l)
{
    return !strcmp(o->args[0], l->problem.op) && (o->n_args < 2 || strstr(l->problem.shape, o->args[1]));
}

static void tell_foreign(const struct journal_foreign *f)
{
    char line[1400];
    if (!f->files && !f->lines) return;
    snprintf(line, sizeof line, "of the journal %d files and %d lines are left out; the first: %s", f->files, f->lines, f->first);
    verb_say(NULL, line);
}

/* A search is written down under the steps that its winner is for. */
static struct store_key key_of_search(const struct target *t, const struct looked *l)
{
    struct store_key k = look_key(t, l);
    if (!l->record.origin[0]) return k;
    k.rows = l->record.rows;
    k.ctx = l->record.ctx;
    return k;
}

/* The journal is read once for all problems that were asked for. */
static int explain(struct explaining *w, struct q_err *e)
{
    struct store_key *k = calloc((size_t)w->look.n + 1, sizeof *k);
    struct evidence *v = calloc((size_t)w->look.n + 1, sizeof *v);
    const struct looked **l = calloc((size_t)w->look.n + 1, sizeof *l);
    int n = 0, rc = k && v && l ? Q_OK : q_fail(e, Q_EMEM, "no memory for what is known of %s", w->o->args[0]);
    for (int i = 0; i < w->look.n && !rc; i++) {
        if (!is_asked(w->o, &w->look.v[i])) continue;
        l[n] = &w->look.v[i];
        k[n++] = key_of_search(&w->t, &w->look.v[i]);
    }
    if (!rc && !n) rc = q_fail(e, Q_EINPUT, "shape: expected a part of one of %s's, found '%s'", w->o->args[0], w->o->args[1]);
    if (!rc) rc = evidence_read(v, k, n, &w->foreign, e);
    for (int i = 0; i < n && !rc; i++) {
        if (w->json) add_json(w, l[i], &v[i]);
        else print_problem(l[i], &v[i]);
    }
    if (!rc && w->json) rc = verb_print_json(w->json, e);
    if (!rc) tell_foreign(&w->foreign);
    evidence_free(v, n);
    free(k);
    free(v);
    free(l);
    return rc;
}

int verb_explain(const struct options *o, struct q_err *e)
{
    struct explaining w = { .o = o };
    int rc = verb_store(o, &w.s, e);
    w.t = verb_target(o);
    if (!rc) rc = gen_open(&w.g, o->generator, e);
    if (!rc) rc = look_of_options(&w.look, &w.t, w.g, w.s, o, e);
    if (!rc) rc = look_has_op(&w.look, o->args[0], e);
    if (!rc && o->json) w.json = cJSON_CreateArray();
    if (!rc && !o->json) fprintf(stderr, "card %s\n", o->card.key);
    if (!rc) rc = explain(&w, e);
    cJSON_Delete(w.json);
    look_close(&w.look);
    target_close(&w.t);
    if (w.g) gen_close(w.g);
    store_close(w.s);
    return rc;
}
