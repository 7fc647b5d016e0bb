/* quarry bench: prefill and decode speed at depths, on a file or on synthetic weights of a preset's shape. Depth is pretended (the KV
 * pages hold whatever they hold), so a deep measurement costs no prefill; speed does not depend on the values. */
#include "cli.h"
#include "cmd.h"
#include "cmd_bench_impl.h"
#include "cmd_bench_streams.h"
#include "forward.h"
#include "trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_JSON = CLI_OWN, OPT_TRACE, OPT_SHARE, MAX_REPS = 100, MAX_STREAMS = 256 };

static void help(void)
{
    printf("usage: quarry bench (-m FILE | --preset NAME) [options]\n"
           "       quarry bench --url URL [options]   a running server, from its client's side (--url x --help)\n\n"
           "  --preset NAME       synthetic weights of this shape (qwen3.5-0.8b ..., or a file ./mine.lua)\n"
           "  --type T            their format: q8_0 (default), f16, bf16, f32\n"
           "  -p N                prefill tokens (512; 0: none)\n"
           "  -n N                decode tokens (32; 0: none)\n"
           "  -d LIST             depths: tokens in the sequence before (0)\n"
           "  -b, --batch LIST    streams that decode together (1); their tokens are counted together\n"
           "  -r N                repetitions, medians are printed (3)\n"
           "  --sparse-share S    with --sparse-prefill: pages are chosen, but the share S of them is read,\n"
           "                      drawn by chance. Attention over made-up weights and pages is flat, so its own\n"
           "                      choice would be all of them\n"
           "  --json              results as JSON\n"
           "  --trace             then, for each depth, one more run with the time of every kernel\n\n"
           "Roofs are measured first. That of decode is what reading memory allows: every token reads the\n"
           "weights, the KV before it and the states; weights that fit the last-level cache need no memory: in\n"
           "cache. That of prefill is what the fastest int8 instruction could multiply of the layers' matrices,\n"
           "and the fastest of half precision of attention's scores and sums.\n\n%s",
           cli_engine_help);
}

static const struct option longs[] = {CLI_LONG, {"json", 0, 0, OPT_JSON}, {"depths", 1, 0, 'd'}, {"batch", 1, 0, 'b'}, {"trace", 0, 0, OPT_TRACE},
                                      {"sparse-share", 1, 0, OPT_SHARE}, {0, 0, 0, 0}};

/* "0,4096" into to[0, *n). */
static int parse_list(struct bench *b, const char *option, const char *list, long least, long most, int *to, int *n)
{
    char one[16], wrong[80];
    *n = 0;
    for (const char *p = list; *p; p += *p == ',') {
        size_t length = strcspn(p, ",");
        long value;
        snprintf(wrong, sizeof wrong, "%s expects at most %d numbers, as 1,8", option, BENCH_LIST);
        if (length >= sizeof one || *n == BENCH_LIST) return cli_usage(&b->cli, wrong);
        memcpy(one, p, length);
        one[length] = 0;
        if (cli_tokens(&b->cli, option, one, least, most, &value)) return -1;
        to[(*n)++] = (int)value;
        p += length;
    }
    snprintf(wrong, sizeof wrong, "%s is empty", option);
    return *n ? 0 : cli_usage(&b->cli, wrong);
}

static int parse_share(struct bench *b, const char *value)
{
    double *share = &b->cli.engine.sparse.share;
    if (cli_float(&b->cli, "--sparse-share", value, share)) return -1;
    return *share > 0 && *share <= 1 ? 0 : cli_usage(&b->cli, "--sparse-share expects a number above 0, at most 1");
}

static int parse_args(struct bench *b, int argc, char **argv)
{
    for (int opt; (opt = cli_next(&b->cli, argc, argv, CLI_SHORT "p:n:d:b:r:", longs)) != -1;) {
        int bad = 0;
        switch (opt) {
        case CLI_WRONG: return 3;
        case 'p': bad = cli_tokens(&b->cli, "-p", optarg, 0, 1 << 20, &b->prompt); break;
        case 'n': bad = cli_tokens(&b->cli, "-n", optarg, 0, 1 << 20, &b->generate); break;
        case 'r': bad = cli_int(&b->cli, "-r", optarg, 1, MAX_REPS, &b->reps); break;
        case 'd': bad = parse_list(b, "-d", optarg, 0, 1 << 24, b->depth, &b->n_depths); break;
        case 'b': bad = parse_list(b, "-b", optarg, 1, MAX_STREAMS, b->batch, &b->n_batches); break;
        case OPT_JSON: b->json = 1; break;
        case OPT_TRACE: b->trace = 1; break;
        case OPT_SHARE: bad = parse_share(b, optarg); break;
        case 'h':
        case CLI_HELP: help(); return 1;
        case CLI_VERSION: cli_version(); return 1;
        default: bad = cli_option(&b->cli, opt, optarg);
        }
        if (bad) return 3;
    }
    if (optind < argc) return cli_stray(&b->cli, argv[optind], "") + 1;
    if (b->cli.engine.sparse.share > 0 && !b->cli.engine.sparse.mass) return cli_usage(&b->cli, "--sparse-share goes with --sparse-prefill") + 1;
    if (b->cli.engine.model && b->cli.engine.preset_type) return cli_usage(&b->cli, "--type is of --preset; a file has its own types") + 1;
    if (!b->cli.engine.model == !b->cli.engine.preset) return cli_usage(&b->cli, "expected one of -m FILE, --preset NAME and --url URL") + 1;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int run(const struct bench_test *t, struct streams *s, double *seconds, struct q_err *e)
{
    return t->decode ? streams_decode(s, t->tokens, seconds, e) : streams_prefill(s, t->tokens, seconds, e);
}

/* One uncounted run, then `reps`. */
static int measure(struct bench *b, struct q_engine *en, const struct bench_test *t, struct bench_sample *out, struct q_err *e)
{
    double rate[MAX_REPS], seconds = 0;
    int rc = Q_OK;
    for (long i = -1; i < b->reps && !rc; i++) {
        struct streams s;
        if ((rc = streams_open(&s, en, t->streams, t->depth, e))) break;
        rc = run(t, &s, &seconds, e);
        if (!rc && i >= 0) rate[i] = (double)t->tokens * t->streams / seconds;
        streams_close(&s);
    }
    if (rc) return rc;
    qsort(rate, (size_t)b->reps, sizeof *rate, by_value);
    *out = (struct bench_sample){rate[b->reps / 2], rate[0], rate[b->reps - 1]};
    return Q_OK;
}

/* What share of the pages sparse attention read, where the step was long and deep enough to leave any out. */
static void tell_share(const struct bench *b, struct q_engine *en)
{
    double share;
    if (!b->cli.engine.sparse.mass || b->prompt <= Q_FEW_ROWS || q_engine_sparse_share(en, &share, NULL)) return;
    cli_fact(&b->cli, "sparse prefill: the last attention of the last step read %.1f %% of the pages that it saw", 100 * share);
}

static int bench_one(struct bench *b, struct q_engine *en, const struct bench_test *t, struct q_err *e)
{
    struct bench_sample s;
    int rc = measure(b, en, t, &s, e);
    if (rc) return rc;
    if (s.max > 1.5 * s.min) b->varied = 1;
    if (!t->decode) tell_share(b, en);
    bench_print_row(b, en, t, &s);
    return Q_OK;
}

static struct bench_test prefill_at(const struct bench *b, int depth) { return (struct bench_test){0, depth, 1, b->prompt}; }
static struct bench_test decode_at(const struct bench *b, int depth, int streams) { return (struct bench_test){1, depth, streams, b->generate}; }

/* Every test at every depth. */
static int each_test(struct bench *b, struct q_engine *en, int (*one)(struct bench *, struct q_engine *, const struct bench_test *, struct q_err *),
                     struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < b->n_depths && !rc; i++) {
        struct bench_test t = prefill_at(b, b->depth[i]);
        if (b->prompt) rc = one(b, en, &t, e);
        for (int k = 0; k < b->n_batches && b->generate && !rc; k++) {
            t = decode_at(b, b->depth[i], b->batch[k]);
            rc = one(b, en, &t, e);
        }
    }
    return rc;
}

/* One warm run before, as measure does. */
static int trace_one(struct bench *b, struct q_engine *en, const struct bench_test *t, struct q_err *e)
{
    int rc = Q_OK;
    for (int i = 0; i < 2 && !rc; i++) {
        struct streams s;
        double seconds;
        if ((rc = streams_open(&s, en, t->streams, t->depth, e))) break;
        if (i) rc = q_engine_trace(en, 1, e);
        if (!rc) rc = run(t, &s, &seconds, e);
        streams_close(&s);
    }
    if (!rc) bench_print_trace(b, en, t);
    q_engine_trace(en, 0, NULL);
    return rc;
}

/* Tokens that a test adds to its depth. */
static long most_tokens(const struct bench *b) { return b->prompt > b->generate ? b->prompt : b->generate; }

static int largest(const int *list, int n)
{
    int most = 0;
    for (int i = 0; i < n; i++)
        if (list[i] > most) most = list[i];
    return most;
}

/* Opens with room for the deepest test, or refuses before weights and kernels are made. */
static int open_engine(struct bench *b, struct q_engine **en, struct q_err *e)
{
    struct q_engine_opts *o = &b->cli.engine;
    int deep = largest(b->depth, b->n_depths);
    long most = most_tokens(b), need = deep + most;
    if (o->ctx && need > o->ctx) return q_fail(e, Q_ELIMIT, "depth %d + %ld tokens do not fit -c %d", deep, most, o->ctx);
    if (!o->ctx && need > 4096) o->ctx = (int)need;
    if (!o->rope.scaling) o->rope = (struct q_rope_ask){.scaling = Q_ROPE_TO_THE_END, .original = deep};   /* how positions turn changes no speed */
    o->max_seqs = largest(b->batch, b->n_batches);
    int rc = q_engine_open(en, o, e);
    if (rc == Q_ELIMIT) {
        struct q_err why = *e;
        return q_fail(e, Q_ELIMIT, "depth %d + %ld tokens: %.400s", deep, most, why.text);
    }
    if (!rc && need > q_engine_ctx(*en))
        return q_fail(e, Q_ELIMIT, "depth %d + %ld tokens do not fit the context of %d that positions are good for", deep, most, q_engine_ctx(*en));
    return rc;
}

static int bench_all(struct bench *b, struct q_engine *en, struct q_err *e)
{
    int rc = q_engine_roofs(en, &b->roofs, e);
    if (rc) return rc;
    if (b->roofs.doubtful) cli_fact(&b->cli, "something else used the processors while the roofs were measured: they may be too low");
    if (!b->json) bench_print_title(b, en);
    rc = each_test(b, en, bench_one, e);
    if (!rc && b->trace && !b->json) bench_print_roofs(b);
    if (!rc && b->trace) rc = each_test(b, en, trace_one, e);
    if (b->json) printf("%s]\n", b->rows_printed ? "" : "[");
    return rc;
}

static int names_url(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "--url", 5)) return 1;
    return 0;
}

int cmd_bench(int argc, char **argv)
{
    if (names_url(argc, argv)) return cmd_bench_url(argc, argv);
    struct bench b = {.prompt = 512, .generate = 32, .reps = 3, .depth = {0}, .n_depths = 1, .batch = {1}, .n_batches = 1};
    struct q_engine *en = NULL;
    struct q_err e = {0};
    cli_start(&b.cli, "bench");
    int stop = parse_args(&b, argc, argv);
    if (stop) return stop - 1;
    int rc = open_engine(&b, &en, &e);
    if (!rc) rc = bench_all(&b, en, &e);
    if (!rc) cli_memory(&b.cli, en);
    if (!rc && b.varied) cli_fact(&b.cli, "other programs use the processors; figures vary");
    q_engine_close(en);
    return rc ? cli_fail(&b.cli, &e) : 0;
}
