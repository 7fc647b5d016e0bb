/* quarry eval: perplexity of a text, all its logits to a file, divergence from such a file. */
#include "cli.h"
#include "clock.h"
#include "cmd.h"
#include "gguf.h"
#include "model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPT_TEXT = CLI_OWN, OPT_IDS, OPT_LOGITS, OPT_AGAINST, OPT_CHUNK, OPT_JSON, OPT_CONTROL };

struct eval {
    struct q_cli cli;
    const char *text, *ids_arg, *logits_path, *against_path;
    long chunk;
    int json, control;

    int *ids;
    int n;
    int vocab;
    FILE *logits, *against;
    float *row;                  /* [vocab] of `against` */
    double nll, kld, kld_max, worst;   /* worst: largest logit difference */
    long scored, compared, same_first;
};

static void help(void)
{
    printf("usage: quarry eval -m FILE (--text FILE | --ids 1,2,3) [options]\n\n"
           "  --text FILE         a text (- for standard input); control tokens in it are text\n"
           "  --control           control tokens in the text become their ids\n"
           "  --ids LIST          token ids, or @FILE with such a list\n"
           "  --logits OUT.f32    write all logits, little-endian fp32 [tokens][vocabulary]\n"
           "  --against REF.f32   compare with such a file: KL(reference || this), first choices, largest\n"
           "                      difference\n"
           "  --chunk N           tokens a step (default: as many as fit 64 MiB of logits, at most 512)\n"
           "  --json              results as one JSON object\n%s",
           cli_engine_help);
}

static const struct option longs[] = {CLI_LONG,
                                      {"text", 1, 0, OPT_TEXT},
                                      {"ids", 1, 0, OPT_IDS},
                                      {"logits", 1, 0, OPT_LOGITS},
                                      {"against", 1, 0, OPT_AGAINST},
                                      {"chunk", 1, 0, OPT_CHUNK},
                                      {"json", 0, 0, OPT_JSON},
                                      {"control", 0, 0, OPT_CONTROL},
                                      {0, 0, 0, 0}};

/* 0, or an exit status + 1. */
static int parse_args(struct eval *v, int argc, char **argv)
{
    for (int opt; (opt = cli_next(&v->cli, argc, argv, CLI_SHORT, longs)) != -1;) {
        switch (opt) {
        case CLI_WRONG: return 3;
        case OPT_TEXT: v->text = optarg; break;
        case OPT_IDS: v->ids_arg = optarg; break;
        case OPT_LOGITS: v->logits_path = optarg; break;
        case OPT_AGAINST: v->against_path = optarg; break;
        case OPT_JSON: v->json = 1; break;
        case OPT_CONTROL: v->control = 1; break;
        case OPT_CHUNK:
            if (cli_tokens(&v->cli, "--chunk", optarg, 1, 1 << 20, &v->chunk)) return 3;
            break;
        case 'h':
        case CLI_HELP: help(); return 1;
        case CLI_VERSION: cli_version(); return 1;
        default:
            if (cli_option(&v->cli, opt, optarg)) return 3;
        }
    }
    if (optind < argc) return cli_stray(&v->cli, argv[optind], "") + 1;
    if (!v->text == !v->ids_arg) return cli_usage(&v->cli, "expected one of --text and --ids") + 1;
    if (v->control && !v->text) return cli_usage(&v->cli, "--control is about what a text has: it goes with --text") + 1;
    if (cli_needs_file(&v->cli)) return 3;
    return 0;
}

static int parse_ids(struct eval *v, const char *list, struct q_err *e)
{
    size_t cap = 2;
    for (const char *p = list; *p; p++) cap += *p == ',' || *p == ' ' || *p == '\n';
    if (!(v->ids = malloc(cap * sizeof *v->ids))) return q_fail(e, Q_EMEM, "no memory for %zu ids", cap);
    for (const char *p = list + strspn(list, " ,\n\r\t[]"); *p; p += strspn(p, " ,\n\r\t[]")) {
        char *end;
        long id = strtol(p, &end, 10);
        if (end == p || id < 0 || id > 1 << 30) return q_fail(e, Q_EINPUT, "--ids: expected a token id at '%.20s'", p);
        v->ids[v->n++] = (int)id;
        p = end;
    }
    return v->n ? Q_OK : q_fail(e, Q_EINPUT, "--ids: the list is empty");
}

static int read_ids(struct eval *v, struct q_err *e)
{
    if (*v->ids_arg != '@') return parse_ids(v, v->ids_arg, e);
    char *list;
    size_t n;
    int rc = cli_read_file(v->ids_arg + 1, &list, &n, e);
    if (rc) return rc;
    rc = parse_ids(v, list, e);
    free(list);
    return rc;
}

/* Tokenises with the file's own tokenizer before the engine opens, so that the context can be sized. */
static int read_text(struct eval *v, struct q_err *e)
{
    struct gguf *g = NULL;
    struct tokenizer *t = NULL;
    struct tok_ids ids = {0};
    char *text = NULL;
    size_t n;
    int rc = cli_read_file(v->text, &text, &n, e);
    if (!rc) rc = gguf_open(&g, v->cli.engine.model, e);
    if (!rc) rc = tok_open_gguf(&t, g, e);
    if (!rc) rc = tok_encode(t, text, n, v->control ? TOK_PARSE_CONTROL : 0, &ids, e);
    if (!rc && ids.n == 0) rc = q_fail(e, Q_EINPUT, "%s: the text is empty", v->text);
    if (!rc && ids.n > 1 << 30) rc = q_fail(e, Q_ELIMIT, "%s: more than 2^30 tokens", v->text);
    v->ids = ids.at;
    v->n = (int)ids.n;
    tok_close(t);
    gguf_close(g);
    free(text);
    return rc;
}

/* Most rows whose logits are taken at once. */
static int rows_per_step(const struct eval *v, int vocab)
{
    long rows = (64l << 20) / ((long)vocab * 4);
    rows = v->chunk ? v->chunk : rows < 8 ? 8 : rows > 512 ? 512 : rows;
    long most = v->cli.engine.ctx && v->cli.engine.ctx < v->n ? v->cli.engine.ctx : v->n;   /* no step is longer */
    return (int)(rows < most ? rows : most);
}

/* Told before the model is read, which may take minutes. A pipe has no size. */
static int check_against(struct eval *v, struct q_err *e)
{
    struct stat st;
    char magic[4], found[60];
    size_t want = (size_t)v->n * (size_t)v->vocab * sizeof(float);
    if (!(v->against = fopen(v->against_path, "rb")) || fstat(fileno(v->against), &st)) return q_fail(e, Q_EIO, "%s: cannot open", v->against_path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return Q_OK;
    int gguf = S_ISREG(st.st_mode) && fread(magic, sizeof magic, 1, v->against) == 1 && !memcmp(magic, "GGUF", 4);
    snprintf(found, sizeof found, "%lld bytes", (long long)st.st_size);
    rewind(v->against);
    if (S_ISREG(st.st_mode) && !gguf && (size_t)st.st_size == want) return Q_OK;
    return q_fail(e, Q_EINPUT, "%s: expected logits as --logits writes them, of this text and model: %d tokens x %d x 4 = %zu bytes; found %s", v->against_path,
                  v->n, v->vocab, want, gguf ? "a GGUF file" : S_ISDIR(st.st_mode) ? "a folder" : found);
}

static int open_engine(struct eval *v, struct q_engine **en, struct q_err *e)
{
    struct gguf *g;
    struct q_config c;
    int rc = gguf_open(&g, v->cli.engine.model, e);
    if (rc) return rc;
    rc = config_from_gguf(&c, g, e);
    gguf_close(g);
    if (rc) return rc;
    v->vocab = c.n_vocab;
    for (int i = 0; i < v->n; i++)
        if (v->ids[i] >= c.n_vocab) return q_fail(e, Q_EINPUT, "--ids: token %d at place %d is not in the vocabulary of %d", v->ids[i], i, c.n_vocab);
    if (v->against_path && (rc = check_against(v, e))) return rc;
    v->cli.engine.ctx_hint = v->n;
    v->cli.engine.max_rows = v->cli.engine.max_out = rows_per_step(v, c.n_vocab);
    return q_engine_open(en, &v->cli.engine, e);
}

static double logsumexp(const float *x, int n)
{
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    for (int i = 0; i < n; i++) sum += exp(x[i] - max);
    return max + log(sum);
}

static int first_choice(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++) best = x[i] > x[best] ? i : best;
    return best;
}

/* KL(ref || got) of one row. */
static void compare_row(struct eval *v, const float *ref, const float *got)
{
    double zr = logsumexp(ref, v->vocab), zg = logsumexp(got, v->vocab), kld = 0;
    for (int i = 0; i < v->vocab; i++) {
        double lr = ref[i] - zr;
        kld += exp(lr) * (lr - (got[i] - zg));
        v->worst = fmax(v->worst, fabs((double)ref[i] - got[i]));
    }
    v->kld += kld;
    v->kld_max = fmax(v->kld_max, kld);
    v->same_first += first_choice(ref, v->vocab) == first_choice(got, v->vocab);
    v->compared++;
}

/* next: the token that followed, -1 at the end. */
static int take_row(struct eval *v, const float *logits, int next, struct q_err *e)
{
    if (next >= 0) {
        v->nll += logsumexp(logits, v->vocab) - logits[next];
        v->scored++;
    }
    if (v->logits && fwrite(logits, sizeof(float), (size_t)v->vocab, v->logits) != (size_t)v->vocab)
        return q_fail(e, Q_EIO, "%s: cannot write (is the disk full?)", v->logits_path);
    if (!v->against) return Q_OK;
    if (fread(v->row, sizeof(float), (size_t)v->vocab, v->against) != (size_t)v->vocab)
        return q_fail(e, Q_EINPUT, "%s: ends before token %ld; expected %d rows of %d logits", v->against_path, v->compared, v->n, v->vocab);
    for (int i = 0; i < v->vocab; i++)
        if (!isfinite(v->row[i])) return q_fail(e, Q_EINPUT, "%s: token %ld, logit %d is infinite or NaN", v->against_path, v->compared, i);
    compare_row(v, v->row, logits);
    return Q_OK;
}

static int eval_step(struct eval *v, struct q_engine *en, struct q_seq *s, struct q_row *rows, int at, int n, int end, struct q_err *e)
{
    struct q_result r;
    q_ticket t;
    for (int i = 0; i < n; i++)
        rows[i] = (struct q_row){.seq = s, .token = v->ids[at + i], .pos = {-1, -1, -1}, .parent = -1, .want = Q_WANT_LOGITS};
    struct q_step step = {.rows = rows, .n_rows = n};
    int rc = q_step_submit(en, &step, &t, e);
    if (!rc) rc = q_step_wait(en, t, &r, e);
    for (int i = 0; i < n && !rc; i++) rc = take_row(v, r.logits + (size_t)i * (size_t)v->vocab, at + i + 1 < end ? v->ids[at + i + 1] : -1, e);
    return rc;
}

/* A text longer than the context is read in windows, each from an empty sequence. */
static int eval_all(struct eval *v, struct q_engine *en, struct q_err *e)
{
    struct q_seq *s = NULL;
    int ctx = q_engine_ctx(en), max = q_engine_max_rows(en);
    struct q_row *rows = malloc((size_t)max * sizeof *rows);
    int rc = rows ? q_seq_open(en, &s, e) : q_fail(e, Q_EMEM, "no memory for a step of %d rows", max);
    for (int from = 0; from < v->n && !rc; from += ctx) {
        int end = v->n - from < ctx ? v->n : from + ctx;
        q_seq_clear(s);
        for (int at = from; at < end && !rc; at += max) rc = eval_step(v, en, s, rows, at, end - at < max ? end - at : max, end, e);
    }
    q_seq_close(s);
    free(rows);
    return rc;
}

static int same_file(const struct eval *v)
{
    struct stat a, b;
    return !fstat(fileno(v->against), &a) && !stat(v->logits_path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int open_files(struct eval *v, struct q_err *e)
{
    if (v->logits_path && v->against && same_file(v))
        return q_fail(e, Q_EINPUT, "%s: --logits would overwrite the file of --against", v->logits_path);
    if (v->logits_path && !(v->logits = fopen(v->logits_path, "wb"))) return q_fail(e, Q_EIO, "%s: cannot write", v->logits_path);
    v->row = malloc((size_t)v->vocab * sizeof(float));
    return v->row ? Q_OK : q_fail(e, Q_EMEM, "no memory for a row of %d logits", v->vocab);
}

static int close_files(struct eval *v, struct q_err *e)
{
    int rc = Q_OK;
    if (v->against && fgetc(v->against) != EOF)
        rc = q_fail(e, Q_EINPUT, "%s: is longer than %d rows of %d logits; it belongs to another text or model", v->against_path, v->n, v->vocab);
    if (v->logits && fclose(v->logits)) rc = q_fail(e, Q_EIO, "%s: cannot write (is the disk full?)", v->logits_path);
    v->logits = NULL;
    return rc;
}

static void print_results(const struct eval *v, double seconds)
{
    double ppl = v->scored ? exp(v->nll / (double)v->scored) : NAN, n = (double)(v->compared ? v->compared : 1);
    if (v->json) {
        printf("{\"tokens\": %d, \"scored\": %ld, \"perplexity\": ", v->n, v->scored);
        if (isfinite(ppl)) printf("%.6f", ppl);
        else printf("null");
        printf(", \"tokens_per_second\": %.2f", v->n / seconds);
        if (v->against)
            printf(", \"kld_mean\": %.9g, \"kld_max\": %.9g, \"same_first\": %ld, \"compared\": %ld, \"max_logit_difference\": %.6g", v->kld / n,
                   v->kld_max, v->same_first, v->compared, v->worst);
        printf("}\n");
        return;
    }
    printf("tokens      %d\n", v->n);
    if (v->scored) printf("perplexity  %.4f over %ld tokens\n", ppl, v->scored);
    if (v->against)
        printf("KLD         mean %.3g, largest %.3g\nfirst       %ld of %ld equal\nlogits      largest difference %.4g\n", v->kld / n, v->kld_max,
               v->same_first, v->compared, v->worst);
}

int cmd_eval(int argc, char **argv)
{
    struct eval v = {0};
    struct q_engine *en = NULL;
    struct q_err e = {0};
    cli_start(&v.cli, "eval");
    int stop = parse_args(&v, argc, argv);
    if (stop) return stop - 1;
    int rc = v.text ? read_text(&v, &e) : read_ids(&v, &e);
    if (!rc) rc = open_engine(&v, &en, &e);
    if (!rc) rc = open_files(&v, &e);
    double t0 = clock_s();
    if (!rc) rc = eval_all(&v, en, &e);
    double seconds = clock_s() - t0;
    if (!rc) rc = close_files(&v, &e);
    if (!rc) {
        print_results(&v, seconds);
        cli_fact(&v.cli, "%d token%s in %.2f s: %.1f tok/s with %d thread%s", v.n, cli_s(v.n), seconds, v.n / seconds, q_engine_threads(en),
                 cli_s(q_engine_threads(en)));
    }
    if (v.logits) fclose(v.logits);
    if (v.against) fclose(v.against);
    q_engine_close(en);
    free(v.ids);
    free(v.row);
    return rc ? cli_fail(&v.cli, &e) : 0;
}
