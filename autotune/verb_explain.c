/* quarry tune explain OP: why each problem of an op is answered as it is: the winner and where it comes from, its times against the default params
 * and the roof, what else was tried and how it did, what was pruned. From the record and, where it is kept, the journal; nothing is measured. */
#define _GNU_SOURCE
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

/* "16 rows behind 4096 tokens" */
enum { STEPS_TEXT = 64 };
static const char *steps_text(char dst[STEPS_TEXT], int rows, int past)
{
    int n = snprintf(dst, STEPS_TEXT, "%d row%s", rows, rows == 1 ? "" : "s");
    if (past) snprintf(dst + n, STEPS_TEXT - (size_t)n, " behind %d tokens", past);
    return dst;
}

static void print_times(const struct record *r)
{
    char steps[STEPS_TEXT];
    for (int i = 0; i < r->n_times; i++) {
        const struct record_time *z = &r->time[i];
        double bytes, ops;
        record_cost(&r->cost, z->rows, z->past, &bytes, &ops);
        printf("            %s: %.1f us, spread %.1f us in %d samples", steps_text(steps, z->rows, z->past), z->median_us, z->mad_us, z->n);
        if (z->median_us > 0) printf("; %.1f GB/s, %.3f TOP/s", bytes / z->median_us * 1e-3, ops / z->median_us * 1e-6);
        puts("");
    }
}

/* Whether the journal's search is the one that the record is of: both say the same of the default params. */
static int is_of_search(const struct record *r, const struct evidence *v)
{
    return v->won && v->n_base > 0 && v->n_base == r->n_times && fabs(v->base[0].median_us - r->base_us) <= 1e-3 * r->base_us;
}

/* A record holds the first of them alone. */
static void print_default_times(const struct record *r, const struct evidence *v)
{
    char steps[STEPS_TEXT];
    if (r->n_times < 2) printf("%.1f us", r->base_us);
    else if (is_of_search(r, v))
        for (int i = 0; i < v->n_base; i++)
            printf("%s%.1f us at %s", i ? ", " : "", v->base[i].median_us, steps_text(steps, v->base[i].rows, v->base[i].past));
    else printf("%.1f us at %s (at others it is not kept)", r->base_us, steps_text(steps, r->time[0].rows, r->time[0].past));
}

static void print_default(const struct record *r, const struct evidence *v)
{
    char difference[200];
    if (!r->base_params[0]) return;
    if (!strcmp(r->base_params, r->params)) {
        puts("  default   the same params");
        return;
    }
    progress_difference(difference, sizeof difference, r->base_params, r->params);
    printf("  default   %s: ", difference);
    print_default_times(r, v);
    printf("; the winner saves %.1f %% of the time of all sizes\n", 100 * r->gain);
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
    if (r->roof_doubtful) printf("; that was measured while others used the machine, and may be more");
    puts("");
}

static void print_winner(const struct record *r, const struct evidence *v)
{
    printf("  winner    %s\n            ", r->params);
    print_origin(r);
    print_times(r);
    print_default(r, v);
    print_roof(r);
}

/* --- the search -------------------------------------------------------------------------------------------------------- */

static int is_timed(const struct evidence_candidate *c) { return !c->bad[0] && c->n_sizes; }

/* At which steps a race was: those of the candidate that was timed at most. */
struct steps {
    int n;
    struct { int rows, past; } at[EVIDENCE_SIZES];
};

static struct steps steps_of(const struct evidence *v)
{
    struct steps s = { 0 };
    for (int i = 0; i < v->n; i++) {
        const struct evidence_candidate *c = v->c[i];
        if (!is_timed(c) || c->n_sizes <= s.n) continue;
        for (s.n = 0; s.n < c->n_sizes; s.n++) {
            s.at[s.n].rows = c->size[s.n].rows;
            s.at[s.n].past = c->size[s.n].past;
        }
    }
    return s;
}

/* Infinite where a step is missing. Which steps weigh more is the tune's to know: here none does. */
static double mean_time(const struct evidence_candidate *c, const struct steps *s)
{
    double product = 1;
    for (int i = 0; i < s->n; i++) product *= evidence_median(c, s->at[i].rows, s->at[i].past);
    return s->n ? pow(product, 1.0 / s->n) : INFINITY;
}

/* The quickest before others, then those without a time at each step, then bad ones. */
static int by_time(const void *a, const void *b, void *steps)
{
    const struct evidence_candidate *x = *(struct evidence_candidate *const *)a, *y = *(struct evidence_candidate *const *)b;
    double ux = mean_time(x, steps), uy = mean_time(y, steps);
    if (!x->bad[0] != !y->bad[0]) return x->bad[0] ? 1 : -1;
    if (isinf(ux) && isinf(uy)) return y->n_sizes - x->n_sizes;
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

static void print_timed(const struct evidence *v, const struct record *r, const struct evidence_candidate *c, const struct steps *s)
{
    printf("  ");
    for (int i = 0; i < s->n; i++) {
        double us = evidence_median(c, s->at[i].rows, s->at[i].past);
        if (isinf(us)) printf("  %10s", "-");
        else printf("  %10.1f", us);
    }
    printf(" us       %s%s\n", c->params, mark(v, r, c->params));
}

static void print_candidate(const struct evidence *v, const struct record *r, const struct evidence_candidate *c, const struct steps *s)
{
    if (c->bad[0]) printf("              bad       %s: %s\n", c->params, c->bad);
    else if (is_timed(c)) print_timed(v, r, c, s);
    else printf("              %s   %s%s\n", c->checked ? "right  " : "no time", c->params, mark(v, r, c->params));
}

/* Its times are of another moment than the duel's, and of fewer samples. */
static void print_race(const struct record *r, const struct steps *s)
{
    char steps[STEPS_TEXT];
    if (!s->n) return;
    printf("  race      of all that were tried, at ");
    for (int i = 0; i < s->n; i++) printf("%s%s", i ? " | " : "", steps_text(steps, s->at[i].rows, s->at[i].past));
    printf("; its times compare with one another alone%s\n", s->n < r->n_times ? "; of other steps the journal has none" : "");
}

/* A recorded winner keeps its place where nothing gains a step over it, the default params neither. */
static const char *who_won(const struct evidence *v, const struct record *r)
{
    if (v->accepted) return "the best candidate won";
    return strcmp(r->params, r->base_params) ? "what was recorded before stayed" : "the default params stayed";
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
        printf("  duel      of the two best, turn by turn, which the times above are of: gain %.1f %%, which noise makes uncertain by up to %.1f %%: %s\n", 100 * v->gain,
               100 * v->band, who_won(v, r));
    struct steps s = steps_of(v);
    print_race(r, &s);
    if (v->n) qsort_r(v->c, (size_t)v->n, sizeof *v->c, by_time, &s);
    for (int i = 0; i < v->n; i++) print_candidate(v, r, v->c[i], &s);
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
    print_winner(&l->record, v);
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

static void add_base(cJSON *search, const struct evidence *v)
{
    cJSON *list = cJSON_AddArrayToObject(search, "default_times");
    for (int i = 0; i < v->n_base; i++) {
        cJSON *z = cJSON_CreateObject();
        cJSON_AddNumberToObject(z, "rows", v->base[i].rows);
        cJSON_AddNumberToObject(z, "past", v->base[i].past);
        cJSON_AddNumberToObject(z, "median_us", v->base[i].median_us);
        cJSON_AddItemToArray(list, z);
    }
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
    add_base(search, v);
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
