/* quarry bench: prefill and decode speed at depths, on a file or on synthetic weights of a preset's shape. Depth is pretended (the KV
 * pages hold whatever they hold), so a deep measurement costs no prefill; speed does not depend on the values. */
#include "cli.h"
#include "cmd.h"
#include "cmd_bench_streams.h"
#include "forward.h"
#include "kv.h"
#include "model_parts.h"
#include "roof.h"
#include "shape.h"
#include "trace.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_JSON = CLI_OWN, OPT_TRACE, OPT_SHARE, MAX_LIST = 16, MAX_REPS = 100, MAX_STREAMS = 256 };

struct bench {
    struct q_cli cli;
    long prompt, generate, reps;
    int depth[MAX_LIST], n_depths;
    int batch[MAX_LIST], n_batches;   /* streams that decode together */
    int json, rows_printed, trace;
    int varied;                  /* a row's largest figure is far from its smallest */
    struct q_roofs roofs;        /* measured */
};

struct test {
    int decode, depth, streams;
    long tokens;                 /* of one stream */
};

struct sample {
    double median, min, max;     /* tokens a second */
};

static void help(void)
{
    printf("usage: quarry bench (-m FILE | --preset NAME) [options]\n"
           "       quarry bench --url URL [options]          a running server, from its client's side (--url URL --help)\n\n"
           "  --preset NAME       synthetic weights of this shape (qwen3.5-0.8b ..., or a file ./mine.lua)\n"
           "  --type T            their format: q8_0 (default), f16, bf16, f32\n"
           "  -p N                prefill tokens (512; 0: none)\n"
           "  -n N                decode tokens (32; 0: none)\n"
           "  -d LIST             depths: tokens in the sequence before (0)\n"
           "  -b, --batch LIST    streams that decode together (1); their tokens are counted together\n"
           "  -r N                repetitions, medians are printed (3)\n"
           "  --sparse-share S    with --sparse-prefill: pages are chosen, but the share S of them is read, drawn by chance. Attention over\n"
           "                      made-up weights and pages is flat, so its own choice would be all of them\n"
           "  --json              results as JSON\n"
           "  --trace             then, for each depth, one more run with the time of every kernel\n\n"
           "Roofs are measured first. That of decode is what reading memory allows: every token reads the weights, the KV before it and\n"
           "the states; weights that fit the last-level cache need no memory: in cache. That of prefill is what the fastest int8\n"
           "instruction could multiply of the layers' matrices, and the fastest of half precision of attention's scores and sums.\n\n%s",
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
        snprintf(wrong, sizeof wrong, "%s expects at most %d numbers, as 1,8", option, MAX_LIST);
        if (length >= sizeof one || *n == MAX_LIST) return cli_usage(&b->cli, wrong);
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
    for (int opt; (opt = getopt_long(argc, argv, CLI_SHORT "p:n:d:b:r:", longs, NULL)) != -1;) {
        int bad = 0;
        switch (opt) {
        case '?':
        case ':': return cli_unknown(&b->cli, opt, argv) + 1;
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

static int run(const struct test *t, struct streams *s, double *seconds, struct q_err *e)
{
    return t->decode ? streams_decode(s, t->tokens, seconds, e) : streams_prefill(s, t->tokens, seconds, e);
}

/* One uncounted run, then `reps`. */
static int measure(struct bench *b, struct q_engine *en, const struct test *t, struct sample *out, struct q_err *e)
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
    *out = (struct sample){rate[b->reps / 2], rate[0], rate[b->reps - 1]};
    return Q_OK;
}

/* Of a decode step: all matrices but the embedding (unless it is the head too). */
static double weight_bytes(const struct q_model *m) { return (double)m->weight_bytes - (m->config.tied ? 0 : (double)m->embd.bytes); }

static int in_cache(const struct q_engine *en)
{
    const struct q_card *c = q_engine_card(en);
    int cache_kib = c->kind == Q_CARD_CUDA ? c->l2 : c->l3_kib ? c->l3_kib : c->l2_kib;
    return weight_bytes(q_engine_model(en)) <= 1024.0 * cache_kib;
}

static int count_layer_matrix(void *user, const struct q_part *p, int layer, struct q_tensor *t)
{
    if (layer >= 0 && p->role == ROLE_MATRIX) *(double *)user += 2.0 * (double)t->n * (double)t->k;
    return 0;
}

/* Operations that one token of a prompt must do in the layers' matrices; the delta net's are not counted. */
static double prefill_ops(const struct q_engine *en)
{
    double ops = 0;
    q_each_part((struct q_model *)(uintptr_t)q_engine_model(en), count_layer_matrix, &ops);
    return ops;
}

/* And in attention: a score and a sum for each number of each head and token before. */
static double attention_ops(const struct q_engine *en, double past)
{
    const struct q_config *c = &q_engine_model(en)->config;
    return 4 * past * c->n_head * c->head_dim * q_count_layers(c, Q_LAYER_ATTN);
}

/* The fastest products of half precision or better. */
static double attention_rate(const struct q_roofs *r)
{
    double best = r->mma_f16 > r->hfma2 ? r->mma_f16 : r->hfma2;
    return best > r->fp32 ? best : r->fp32;
}

/* Tokens a second: of n tokens behind `depth` others the middle one. */
static double prefill_roof(const struct bench *b, const struct q_engine *en, int depth, long n)
{
    return 1 / (prefill_ops(en) / b->roofs.int8 + attention_ops(en, depth + 0.5 * (double)n) / attention_rate(&b->roofs));
}

/* Bytes that one decode step must read or write: weights, and of each stream KV and states twice. */
static double decode_bytes(const struct q_engine *en, int past, int streams)
{
    const struct q_model *m = q_engine_model(en);
    const char *k, *v;
    q_engine_kv_formats(en, &k, &v);
    return weight_bytes(m) + streams * ((double)past * (double)kv_page_bytes(&m->config, k, v) / KV_PAGE + 2.0 * (double)states_slot_bytes(&m->config));
}

static void print_json_text(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 32) printf("\\u%04x", c);
        else if (c == '"' || c == '\\') printf("\\%c", c);
        else putchar(c);
    }
    putchar('"');
}

/* "pp512", "tg32", "tg32x8". */
static void name_test(const struct test *t, char *to, size_t n)
{
    int at = snprintf(to, n, "%s%ld", t->decode ? "tg" : "pp", t->tokens);
    if (t->streams > 1) snprintf(to + at, n - (size_t)at, "x%d", t->streams);
}

static void print_kv_json(const struct q_engine *en)
{
    const char *k, *v;
    q_engine_kv_formats(en, &k, &v);
    printf(", \"kv_k\": \"%s\", \"kv_v\": \"%s\"", k, v);
}

/* roof: tokens a second; 0: none is given for this test; < 0: the weights lie in a cache. what: of which measured ceiling. */
static void print_row(struct bench *b, const struct q_engine *en, const struct test *t, const struct sample *s, double roof, const char *what)
{
    char name[24];
    name_test(t, name, sizeof name);
    char text[56] = "", share[ROOF_TEXT];
    if (s->max > 1.5 * s->min) b->varied = 1;
    if (b->json) {
        printf("%s{\"model\": ", b->rows_printed++ ? ",\n " : "[");
        print_json_text(q_engine_model(en)->path);
        printf(", \"device\": ");
        print_json_text(q_engine_about(en));
        printf(", \"threads\": %d, \"test\": \"%s\", \"depth\": %d, \"streams\": %d, \"tokens_per_second\": %.3f, \"min\": %.3f, \"max\": %.3f",
               q_engine_threads(en), name, t->depth, t->streams, s->median, s->min, s->max);
        print_kv_json(en);
        if (roof > 0) printf(", \"roof\": %.3f, \"percent_of_roof\": %.1f", roof, 100 * s->median / roof);
        if (roof < 0) printf(", \"in_cache\": true");
        printf("}");
    } else {
        /* Weights that no cache holds may still pass a roof that was measured in a slow moment: that is said, and no cache is blamed. */
        if (roof > 0) roof_text(share, 100 * s->median / roof, 0, 1);
        if (roof < 0) strcpy(text, "in cache");
        else if (roof > 0) snprintf(text, sizeof text, "%s of %s", share, what);
        printf("| %-7s | %6d | %9.2f | %9.2f | %9.2f | %-23s |\n", name, t->depth, s->median, s->min, s->max, text);
    }
    fflush(stdout);
}

/* What share of the pages sparse attention read, where the step was long and deep enough to leave any out. */
static void tell_share(const struct bench *b, struct q_engine *en)
{
    double share;
    if (!b->cli.engine.sparse.mass || b->prompt <= Q_FEW_ROWS || q_engine_sparse_share(en, &share, NULL)) return;
    cli_fact(&b->cli, "sparse prefill: the last attention of the last step read %.1f %% of the pages that it saw", 100 * share);
}

static int bench_prefill(struct bench *b, struct q_engine *en, int depth, struct q_err *e)
{
    const struct test t = {0, depth, 1, b->prompt};
    char what[32];
    struct sample s;
    int rc = measure(b, en, &t, &s, e);
    snprintf(what, sizeof what, "%.2f TOP/s", b->roofs.int8 * 1e-12);
    if (!rc) tell_share(b, en);
    if (!rc) print_row(b, en, &t, &s, prefill_roof(b, en, depth, b->prompt), what);
    return rc;
}

static int bench_decode(struct bench *b, struct q_engine *en, int depth, int streams, struct q_err *e)
{
    const struct test t = {1, depth, streams, b->generate};
    char what[32];
    struct sample s;
    int rc = measure(b, en, &t, &s, e);
    double roof = streams * b->roofs.read / decode_bytes(en, depth + (int)b->generate / 2, streams);
    snprintf(what, sizeof what, "%.1f GB/s", b->roofs.read * 1e-9);
    if (!rc) print_row(b, en, &t, &s, in_cache(en) ? -1 : roof, what);
    return rc;
}

static int bench_depth(struct bench *b, struct q_engine *en, int depth, struct q_err *e)
{
    int rc = b->prompt ? bench_prefill(b, en, depth, e) : Q_OK;
    for (int i = 0; i < b->n_batches && b->generate && !rc; i++) rc = bench_decode(b, en, depth, b->batch[i], e);
    return rc;
}

/* --- the trace --------------------------------------------------------------------------------------------------------- */

/* The larger of what memory and what arithmetic ask for, in percent of the time taken; *bound says which. */
static double percent_of_roof(const struct bench *b, const struct q_trace_line *l, const char **bound)
{
    struct q_shape s;
    int int8 = !shape_parse(&s, l->shape, NULL) && shape_is(&s, "act", "q8");
    double by_bytes = l->bytes / b->roofs.read * 1e6, by_ops = l->ops / (int8 ? b->roofs.int8 : b->roofs.fp32) * 1e6;
    *bound = by_bytes > by_ops ? "bytes" : "ops";
    return 100 * (by_bytes > by_ops ? by_bytes : by_ops) / l->us;
}

static void print_trace(struct bench *b, struct q_engine *en, const char *test, int depth)
{
    int n;
    const struct q_trace_line *l = q_engine_trace_lines(en, &n);
    double total = 0;
    for (int i = 0; i < n; i++) total += l[i].us;
    if (!b->json)
        printf("\n%s at depth %d, %.2f ms in kernels\n\n|       ms | share |  calls |  us/call |    GB/s |   GOP/s | roof        | kernel\n"
               "|---------:|------:|-------:|---------:|--------:|--------:|-------------|-------\n", test, depth, total * 1e-3);
    for (int i = 0; i < n; i++) {
        const char *bound;
        char share[ROOF_TEXT], roof[ROOF_TEXT + 8];
        double pct = percent_of_roof(b, &l[i], &bound);
        int cached = roof_text(share, pct, *bound == 'b', 0) == ROOF_CACHE;
        snprintf(roof, sizeof roof, "%5s %s", share, cached ? "" : bound);
        if (b->json)
            printf(",\n {\"trace\": \"%s\", \"depth\": %d, \"op\": \"%s\", \"shape\": \"%s\", \"calls\": %ld, \"us\": %.3f, \"bytes\": %.0f, \"ops\": %.0f, "
                   "\"percent_of_roof\": %.1f, \"bound\": \"%s\"}", test, depth, l[i].op, l[i].shape, l[i].calls, l[i].us, l[i].bytes, l[i].ops, pct, bound);
        else
            printf("| %8.3f | %4.1f %% | %6ld | %8.2f | %7.2f | %7.1f | %-11s | %s %s\n", l[i].us * 1e-3, 100 * l[i].us / total, l[i].calls,
                   l[i].us / (double)l[i].calls, l[i].bytes / l[i].us * 1e-3, l[i].ops / l[i].us * 1e-3, roof, l[i].op, l[i].shape);
    }
}

/* One warm run before, as measure does. */
static int trace_one(struct bench *b, struct q_engine *en, const struct test *t, struct q_err *e)
{
    char name[24];
    int rc = Q_OK;
    for (int i = 0; i < 2 && !rc; i++) {
        struct streams s;
        double seconds;
        if ((rc = streams_open(&s, en, t->streams, t->depth, e))) break;
        if (i) rc = q_engine_trace(en, 1, e);
        if (!rc) rc = run(t, &s, &seconds, e);
        streams_close(&s);
    }
    name_test(t, name, sizeof name);
    if (!rc) print_trace(b, en, name, t->depth);
    q_engine_trace(en, 0, NULL);
    return rc;
}

static int trace_all(struct bench *b, struct q_engine *en, struct q_err *e)
{
    int rc = Q_OK;
    if (!b->json)
        printf("\nroofs, measured: %.1f GB/s read, %.0f GOP/s int8, %.0f GFLOP/s fp32\n", b->roofs.read * 1e-9, b->roofs.int8 * 1e-9, b->roofs.fp32 * 1e-9);
    for (int i = 0; i < b->n_depths && !rc; i++) {
        if (b->prompt) rc = trace_one(b, en, &(struct test){0, b->depth[i], 1, b->prompt}, e);
        for (int k = 0; k < b->n_batches && b->generate && !rc; k++) rc = trace_one(b, en, &(struct test){1, b->depth[i], b->batch[k], b->generate}, e);
    }
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

static void print_title(const struct bench *b, const struct q_engine *en)
{
    const char *k, *v;
    q_engine_kv_formats(en, &k, &v);
    printf("%s, %s, K %s, V %s, medians of %ld\n\n| test    |  depth |     tok/s |       min |       max | roof                    |\n"
           "|---------|-------:|----------:|----------:|----------:|-------------------------|\n",
           q_engine_model(en)->path, q_engine_about(en), k, v, b->reps);
}

static int bench_all(struct bench *b, struct q_engine *en, struct q_err *e)
{
    int rc = q_engine_roofs(en, &b->roofs, e);
    if (rc) return rc;
    if (!b->json) print_title(b, en);
    for (int i = 0; i < b->n_depths && !rc; i++) rc = bench_depth(b, en, b->depth[i], e);
    if (!rc && b->trace) rc = trace_all(b, en, e);
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
