/* The gate: does a numerics mode still say what the model says?
 *
 * For every golden chat: (1) greedy continuation, token for token; a different token is a failure unless the reference's margin
 * there is at most --margin, in which case the chat ends there and both are printed. (2) on the way, the first eight logits and logsumexp
 * of each step against the golden ones. (3) prompt and answer fed whole: logits of every position against the reference path
 * (--numerics reference) run beside it: largest difference, KL(reference || this), the reference's margin. Drift shows in (2) and
 * (3) before it flips a word in (1). Ends with the ten worst positions and their text. Exit 0 only if everything is within bounds.
 * The measures and the margin are those of the tuner's gate (autotune/gate_score.h), which has texts instead of goldens.
 */
#include "goldens.h"
#include "autotune/gate_score.h"
#include "runtime/cli.h"
#include "runtime/model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_GOLDENS = CLI_OWN, OPT_LIMIT, OPT_CHUNK, OPT_MARGIN, OPT_TOL, OPT_KLD, OPT_NO_KLD, OPT_F16, WORST = 10 };
enum { MOST_OUT = 512 };   /* rows of a step, all with logits */

struct place {
    double kld, diff, margin;
    int chat, at;
};

struct gate {
    struct q_cli cli;
    const char *goldens_path, *f16_path;
    long limit, chunk;
    double margin, tol, kld_bound;
    int no_kld;

    struct goldens gs;
    struct q_engine *got, *ref;
    int vocab;
    struct place worst[WORST];
    double kld_sum, diff_max, step_diff_max;
    long positions, tokens, excused, failed;
};

static const struct option longs[] = {CLI_LONG,
                                      {"goldens", 1, 0, OPT_GOLDENS},
                                      {"limit", 1, 0, OPT_LIMIT},
                                      {"chunk", 1, 0, OPT_CHUNK},
                                      {"margin", 1, 0, OPT_MARGIN},
                                      {"tol", 1, 0, OPT_TOL},
                                      {"kld", 1, 0, OPT_KLD},
                                      {"no-kld", 0, 0, OPT_NO_KLD},
                                      {"f16", 1, 0, OPT_F16},
                                      {0, 0, 0, 0}};

/* A bound: what is off by less passes. */
static int bound(struct gate *g, const char *name, const char *text, double *v)
{
    char line[120];
    int bad = cli_float(&g->cli, name, text, v);
    if (bad || *v >= 0) return bad;
    snprintf(line, sizeof line, "%s expects a number from 0, not '%.60s'", name, text);
    return cli_usage(&g->cli, line);
}

static int parse_args(struct gate *g, int argc, char **argv)
{
    for (int opt; (opt = cli_next(&g->cli, argc, argv, CLI_SHORT, longs)) != -1;) {
        int bad = 0;
        switch (opt) {
        case OPT_GOLDENS: g->goldens_path = optarg; break;
        case OPT_F16: g->f16_path = optarg; break;
        case OPT_NO_KLD: g->no_kld = 1; break;
        case OPT_LIMIT: bad = cli_int(&g->cli, "--limit", optarg, 0, 1 << 20, &g->limit); break;
        case OPT_CHUNK: bad = cli_int(&g->cli, "--chunk", optarg, 0, 1 << 20, &g->chunk); break;
        case OPT_MARGIN: bad = bound(g, "--margin", optarg, &g->margin); break;
        case OPT_TOL: bad = bound(g, "--tol", optarg, &g->tol); break;
        case OPT_KLD: bad = bound(g, "--kld", optarg, &g->kld_bound); break;
        case CLI_WRONG: return 2;
        default: bad = cli_option(&g->cli, opt, optarg);
        }
        if (bad) return -1;
    }
    if (optind < argc) return cli_stray(&g->cli, argv[optind], "");
    return g->goldens_path || g->f16_path ? 0 : cli_usage(&g->cli, "expected --goldens FILE or --f16 STEM");
}

/* ---- one chat, greedily ------------------------------------------------------------------------------------------------ */

static double step_difference(const struct golden_step *want, const struct q_result *r)
{
    double d = fabs((double)want->lse - r->lse[0]);
    for (int j = 0; j < GOLDEN_TOP; j++)
        for (int i = 0; i < Q_TOP; i++)
            if (r->top_id[i] == want->id[j]) d = fmax(d, fabs((double)want->logit[j] - r->top_value[i]));
    return d;
}

static int same_token(struct gate *g, int chat, int step, const struct q_result *r)
{
    const struct golden *c = &g->gs.g[chat];
    const struct golden_step *want = &c->steps[step];
    int expected = c->ids[c->n_prompt + step];
    double margin = (double)want->logit[0] - want->logit[1], diff = step_difference(want, r);
    g->step_diff_max = fmax(g->step_diff_max, diff);
    g->tokens++;
    if (g->tol > 0 && diff > g->tol) {
        printf("FAIL chat %d step %d: a logit or logsumexp is off by %.5f, at most %.5f is allowed\n", chat, step, diff, g->tol);
        g->failed++;
    }
    if (r->id[0] == expected) return 1;
    int excused = margin <= g->margin;
    printf("%s chat %d step %d: token %d instead of %d, reference margin %.4f (%s)\n", excused ? "near tie" : "FAIL", chat, step, r->id[0], expected,
           margin, c->label);
    *(excused ? &g->excused : &g->failed) += 1;
    return 0;
}

static int run_greedy(struct gate *g, int chat, struct q_seq *s, struct q_err *e)
{
    const struct golden *c = &g->gs.g[chat];
    unsigned want = Q_WANT_ID | Q_WANT_TOP;
    struct q_result r;
    q_seq_clear(s);
    int rc = q_prefill(g->got, s, c->ids, c->n_prompt, (int)g->chunk, want, NULL, &r, e);
    for (int step = 0; !rc; step++) {
        if (!same_token(g, chat, step, &r) || step + 1 == c->n - c->n_prompt) break;
        rc = q_prefill(g->got, s, &c->ids[c->n_prompt + step], 1, 1, want, NULL, &r, e);
    }
    return rc;
}

/* ---- one text, all positions, both paths ---------------------------------------------------------------------------------- */

static struct place compare(const struct gate *g, const float *ref, const float *got)
{
    struct place p = {.kld = gate_divergence(ref, got, g->vocab), .diff = gate_drift(ref, got, g->vocab)};
    float first = -INFINITY, second = -INFINITY;
    for (int i = 0; i < g->vocab; i++) {
        if (ref[i] > first) second = first, first = ref[i];
        else if (ref[i] > second) second = ref[i];
    }
    p.margin = (double)first - second;
    return p;
}

static void keep_worst(struct gate *g, struct place p)
{
    int i = WORST - 1;
    if (!(p.kld > g->worst[i].kld)) return;
    for (; i > 0 && p.kld > g->worst[i - 1].kld; i--) g->worst[i] = g->worst[i - 1];
    g->worst[i] = p;
}

static int feed(struct q_engine *en, struct q_seq *s, struct q_row *rows, const int *ids, int n, struct q_result *r, struct q_err *e)
{
    q_ticket t;
    for (int i = 0; i < n; i++) rows[i] = (struct q_row){.seq = s, .token = ids[i], .pos = {-1, -1, -1}, .parent = -1, .want = Q_WANT_LOGITS};
    int rc = q_step_submit(en, &(struct q_step){.rows = rows, .n_rows = n}, &t, e);
    return rc ? rc : q_step_wait(en, t, r, e);
}

static int run_text(struct gate *g, int chat, struct q_seq *sg, struct q_seq *sr, struct q_row *rows, struct q_err *e)
{
    const struct golden *c = &g->gs.g[chat];
    int rc = Q_OK;
    struct q_result rg, rr;
    q_seq_clear(sg);
    q_seq_clear(sr);
    for (int at = 0, n; at < c->n && !rc; at += n) {
        n = c->n - at < MOST_OUT ? c->n - at : MOST_OUT;
        rc = feed(g->got, sg, rows, c->ids + at, n, &rg, e);
        if (!rc) rc = feed(g->ref, sr, rows, c->ids + at, n, &rr, e);
        for (int i = 0; i < n && !rc; i++) {
            struct place p = compare(g, rr.logits + (size_t)i * (size_t)g->vocab, rg.logits + (size_t)i * (size_t)g->vocab);
            p.chat = chat;
            p.at = at + i;
            g->kld_sum += p.kld;
            g->diff_max = fmax(g->diff_max, p.diff);
            g->positions++;
            keep_worst(g, p);
        }
    }
    return rc;
}

/* ---- a text's logits as half floats (reference within tol and half an ulp) ---------------------------------------------------- */

static int check_f16(struct gate *g, struct q_err *e)
{
    char path[4096], *list = NULL;
    uint16_t *want = NULL;
    struct q_seq *s = NULL;
    struct q_result r;
    size_t bytes = 0, n_ids = 0;
    int ids[1024];
    double worst = 0;
    snprintf(path, sizeof path, "%s.json", g->f16_path);
    int rc = cli_read_file(path, &list, &bytes, e);
    char *p = rc ? NULL : strstr(list, "\"ids\"");
    for (p = p ? strchr(p, '[') : NULL; p && *p != ']' && n_ids < 1024; p += strcspn(p + 1, ",]") + 1) ids[n_ids++] = atoi(p + 1);
    snprintf(path, sizeof path, "%s.f16", g->f16_path);
    if (!rc) rc = cli_read_file(path, (char **)&want, &bytes, e);
    if (!rc && bytes != n_ids * (size_t)g->vocab * 2) rc = q_fail(e, Q_EINPUT, "%s: %zu bytes for %zu tokens", path, bytes, n_ids);
    struct q_row *rows = calloc(1024, sizeof *rows);
    if (!rc) rc = q_seq_open(g->got, &s, e);
    if (!rc) rc = feed(g->got, s, rows, ids, (int)n_ids, &r, e);
    for (size_t i = 0; !rc && i < n_ids * (size_t)g->vocab; i++) {
        double h = q_half_to_float(want[i]), ulp = h ? ldexp(1, ilogb(h) - 10) : ldexp(1, -24);
        worst = fmax(worst, fabs(h - r.logits[i]) - ulp / 2);
    }
    if (!rc) printf("f16: %zu tokens x %d logits, largest difference beyond half an ulp %.5f (bound %.5f)\n", n_ids, g->vocab, worst, g->tol);
    g->failed += g->tol > 0 && worst > g->tol;
    q_seq_close(s);
    free(rows);
    free(list);
    free(want);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------------ */

static int open_engines(struct gate *g, struct q_err *e)
{
    struct q_engine_opts o = g->cli.engine;
    o.max_rows = g->chunk > 512 ? (int)g->chunk : 512;
    o.max_out = MOST_OUT;
    o.ctx = g->gs.longest > 1024 ? g->gs.longest : 1024;
    int rc = q_engine_open(&g->got, &o, e);
    if (rc) return rc;
    g->vocab = q_engine_model(g->got)->config.n_vocab;
    if (g->no_kld || !g->goldens_path) return Q_OK;
    o.numerics = Q_REFERENCE;
    o.max_rows = 512;
    return q_engine_open(&g->ref, &o, e);
}

static int run_chats(struct gate *g, struct q_err *e)
{
    struct q_seq *sg = NULL, *sr = NULL;
    struct q_row *rows = calloc(MOST_OUT, sizeof *rows);
    int rc = rows ? q_seq_open(g->got, &sg, e) : q_fail(e, Q_EMEM, "no memory for rows");
    if (!rc && g->ref) rc = q_seq_open(g->ref, &sr, e);
    for (int i = 0; i < g->gs.n && !rc; i++) {
        rc = run_greedy(g, i, sg, e);
        if (!rc && g->ref) rc = run_text(g, i, sg, sr, rows, e);
    }
    q_seq_close(sr);
    q_seq_close(sg);
    free(rows);
    return rc;
}

/* Up to twelve tokens before the position, then what followed. */
static void print_place(const struct gate *g, const struct place *p)
{
    const struct golden *c = &g->gs.g[p->chat];
    struct tok_text text = {0};
    int from = p->at > 12 ? p->at - 12 : 0;
    if (tok_decode(q_engine_tokenizer(g->got), c->ids + from, (size_t)(p->at + 1 - from), &text, NULL)) return;
    for (size_t i = 0; i < text.n; i++)
        if (text.at[i] == '\n') text.at[i] = ' ';
    printf("  kld %.2e  diff %.4f  margin %8.4f  chat %2d token %5d  ..%.*s\n", p->kld, p->diff, p->margin, p->chat, p->at, (int)text.n, text.at);
    free(text.at);
}

static void print_summary(struct gate *g)
{
    if (g->goldens_path)
        printf("greedy: %d chats, %ld tokens compared, %ld near ties, largest difference of the first %d logits and logsumexp %.5f\n", g->gs.n,
               g->tokens, g->excused, GOLDEN_TOP, g->step_diff_max);
    if (g->positions) {
        double mean = g->kld_sum / (double)g->positions;
        printf("against reference: %ld positions, KLD mean %.3g (bound %.3g), largest logit difference %.4f; worst positions:\n", g->positions, mean,
               g->kld_bound, g->diff_max);
        for (int i = 0; i < WORST && g->worst[i].kld > 0; i++) print_place(g, &g->worst[i]);
        if (!(mean <= g->kld_bound)) {
            printf("FAIL: mean KLD %.3g is above %.3g\n", mean, g->kld_bound);
            g->failed++;
        }
    }
    printf("%s: %s\n", q_engine_numerics_id(g->got), g->failed ? "FAILED" : "passed");
}

int main(int argc, char **argv)
{
    struct gate g = {.margin = GATE_MARGIN, .kld_bound = 2e-5};
    struct q_err e = {0};
    cli_start(&g.cli, "gate");
    if (parse_args(&g, argc, argv)) return 2;
    int rc = g.goldens_path ? goldens_open(&g.gs, g.goldens_path, (int)g.limit, &e) : Q_OK;
    if (!rc) rc = open_engines(&g, &e);
    if (!rc && g.goldens_path) rc = run_chats(&g, &e);
    if (!rc && g.f16_path) rc = check_f16(&g, &e);
    if (!rc) print_summary(&g);
    q_engine_close(g.ref);
    q_engine_close(g.got);
    goldens_close(&g.gs);
    return rc ? cli_fail(&g.cli, &e) : g.failed != 0;
}
