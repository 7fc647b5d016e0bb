/* quarry bench --url: the table that people publish, of any OpenAI-compatible server, from the client's side. Prompts are new every time
 * unless --cached asks for the same one again; one uncounted run of each length comes first. */
#include "bench_url.h"
#include "cli.h"
#include "clock.h"
#include "cmd.h"
#include "plain.h"
#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_URL = CLI_OWN, OPT_JSON, OPT_KEY, OPT_CACHED, OPT_STREAMS, MAX_LENGTHS = 16, MAX_REPS = 100, MAX_STREAMS = 256 };

struct url_bench {
    struct q_cli cli;
    const char *url, *key;
    char model[512];
    int length[MAX_LENGTHS], n_lengths;
    long generate, reps, streams;
    int json, cached, plain, lengths_given;
    unsigned long long salt;
    struct bench_url_scale scale;
    struct http_client **client;     /* owned: [streams] */
    cJSON *rows;                     /* owned: --json */
    int short_answers, counted;
    int watched, table_watched;      /* somebody sees standard error, and the table itself as it grows */
};

/* A stream of one run: runs on a thread of its own. */
struct stream {
    struct http_client *client;
    struct bench_url_ask ask;
    struct bench_url_got got;
    struct q_err err;
    int rc;
};

/* Of one length. Medians over runs; rates in tokens a second. */
struct figures {
    double prompt, cached, first_ms, read, decode, decode_min, decode_max, total;
};

static void help(void)
{
    printf("usage: quarry bench --url URL [options]          a running server, from its client's side\n\n"
           "  --url URL           an OpenAI-compatible server: http://127.0.0.1:8080\n"
           "  --api-key KEY       its key (default: QUARRY_API_KEY of the environment)\n"
           "  -m NAME             the model's name there (default: the first that it lists)\n"
           "  -p LIST             prompt tokens, about (297,1160,4620,18000)\n"
           "  -n N                tokens of each answer (128)\n"
           "  -r N                runs; medians are printed (5)\n"
           "  --streams N         this many at once (1)\n"
           "  --cached            the same prompt again and again, so that the server's prefix cache helps\n"
           "  --json              results as JSON\n"
           "  -q, --quiet         no facts on stderr\n\n"
           "Time to first token counts from before the request is sent. prompt tok/s is the prompt over that\n"
           "time, decode tok/s the rest of the answer's tokens over the rest of its time, all by the server's\n"
           "own count of tokens.\n");
}

static const struct option longs[] = {{"url", 1, 0, OPT_URL}, {"api-key", 1, 0, OPT_KEY}, {"model", 1, 0, 'm'}, {"cached", 0, 0, OPT_CACHED},
    {"streams", 1, 0, OPT_STREAMS}, {"json", 0, 0, OPT_JSON}, {"quiet", 0, 0, 'q'}, {"version", 0, 0, CLI_VERSION}, {"help", 0, 0, 'h'},
    {0, 0, 0, 0}};

static int parse_lengths(struct url_bench *b, char *list)
{
    b->n_lengths = 0;
    b->lengths_given = 1;
    for (char *one = strtok(list, ","); one; one = strtok(NULL, ",")) {
        long n;
        if (b->n_lengths == MAX_LENGTHS) return cli_usage(&b->cli, "-p expects at most 16 numbers, as 297,1160");
        if (cli_tokens(&b->cli, "-p", one, 16, 1 << 20, &n)) return -1;
        b->length[b->n_lengths++] = (int)n;
    }
    return b->n_lengths ? 0 : cli_usage(&b->cli, "-p is empty");
}

static int parse_args(struct url_bench *b, int argc, char **argv)
{
    for (int opt; (opt = cli_next(&b->cli, argc, argv, ":m:p:n:r:qh", longs)) != -1;) {
        int bad = 0;
        switch (opt) {
        case CLI_WRONG: return 3;
        case 'm': bad = snprintf(b->model, sizeof b->model, "%s", optarg) >= (int)sizeof b->model; break;
        case 'p': bad = parse_lengths(b, optarg); break;
        case 'n': bad = cli_tokens(&b->cli, "-n", optarg, 2, 1 << 20, &b->generate); break;
        case 'r': bad = cli_int(&b->cli, "-r", optarg, 1, MAX_REPS, &b->reps); break;
        case OPT_STREAMS: bad = cli_int(&b->cli, "--streams", optarg, 1, MAX_STREAMS, &b->streams); break;
        case OPT_URL: b->url = optarg; break;
        case OPT_KEY: b->key = optarg; break;
        case OPT_CACHED: b->cached = 1; break;
        case OPT_JSON: b->json = 1; break;
        case 'q': b->cli.quiet = 1; break;
        case 'h': help(); return 1;
        case CLI_VERSION: cli_version(); return 1;
        }
        if (bad) return 3;
    }
    if (optind < argc) return cli_stray(&b->cli, argv[optind], "") + 1;
    return b->url ? 0 : cli_usage(&b->cli, "expected --url URL") + 1;
}

/* ---- runs ---- */

static void *run_stream(void *arg)
{
    struct stream *s = arg;
    s->rc = bench_url_run(s->client, &s->ask, &s->got, &s->err);
    return NULL;
}

/* All streams at once; the first error of any is the run's. */
static int run_streams(struct stream *s, long n, struct q_err *e)
{
    pthread_t thread[MAX_STREAMS];
    long started = 1;
    int rc = Q_OK;
    for (; started < n && !pthread_create(&thread[started], NULL, run_stream, &s[started]); started++) {}
    if (started == n) run_stream(&s[0]);
    else rc = q_fail(e, Q_EIO, "cannot start thread %ld of %ld", started + 1, n);
    for (long i = 1; i < started; i++) pthread_join(thread[i], NULL);
    for (long i = 0; i < n && !rc; i++)
        if ((rc = s[i].rc)) *e = s[i].err;
    return rc;
}

static int make_streams(struct url_bench *b, int tokens, struct stream *s, struct q_err *e)
{
    for (long i = 0; i < b->streams; i++) {
        unsigned long long salt = b->cached ? b->salt + (unsigned long long)i : ++b->salt * 1000003u;
        char *text = bench_url_text(&b->scale, tokens, salt);
        if (!text) return q_fail(e, Q_EMEM, "no memory for a prompt of %d tokens", tokens);
        s[i].client = b->client[i];
        s[i].ask = (struct bench_url_ask){.model = b->model, .text = text, .generate = (int)b->generate, .plain = b->plain};
    }
    return Q_OK;
}

static double decode_rate(const struct bench_url_got *g) { return g->whole_s > g->first_s ? (g->generated - 1) / (g->whole_s - g->first_s) : 0; }

/* What one run of all streams gave: means over streams, and tokens of all over the time from the first piece of any to the last of any. */
static struct figures of_run(const struct stream *s, long n)
{
    struct figures f = {0};
    double begin = 0, end = 0, tokens = 0;
    for (long i = 0; i < n; i++) {
        const struct bench_url_got *g = &s[i].got;
        double first = g->begin + g->first_s, last = g->begin + g->whole_s;
        begin = !i || first < begin ? first : begin;
        end = last > end ? last : end;
        tokens += g->generated - 1;
        f.prompt += g->prompt / (double)n;
        f.cached += g->cached / (double)n;
        f.first_ms += 1e3 * g->first_s / (double)n;
        f.read += g->prompt / g->first_s / (double)n;
        f.decode += decode_rate(g) / (double)n;
    }
    f.total = end > begin ? tokens / (end - begin) : 0;
    return f;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of one figure, at byte `at` of each. */
static double median(const struct figures *f, long n, size_t at)
{
    double v[MAX_REPS];
    for (long i = 0; i < n; i++) memcpy(&v[i], (const char *)&f[i] + at, sizeof *v);
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static struct figures medians(const struct figures *f, long n)
{
    struct figures m = f[0];
    m.decode_min = m.decode_max = f[0].decode;
#define MEDIAN(name) m.name = median(f, n, offsetof(struct figures, name))
    MEDIAN(prompt);
    MEDIAN(cached);
    MEDIAN(first_ms);
    MEDIAN(read);
    MEDIAN(decode);
    MEDIAN(total);
#undef MEDIAN
    for (long i = 0; i < n; i++) {
        if (f[i].decode < m.decode_min) m.decode_min = f[i].decode;
        if (f[i].decode > m.decode_max) m.decode_max = f[i].decode;
    }
    return m;
}

/* A run may take minutes: what is measured now, in a line that the next one takes the place of. run < 0: nothing any more. */
static void show_progress(const struct url_bench *b, int at, long run)
{
    if (!b->watched) return;
    fputs("\r\033[K", stderr);
    if (run >= 0) fprintf(stderr, "# prompt %d of %d, about %d tokens: run %ld of %ld%s", at + 1, b->n_lengths, b->length[at], run, b->reps,
                          run ? "" : " (0: not counted)");
    fflush(stderr);
}

static int measure(struct url_bench *b, int at, struct figures *out, struct q_err *e)
{
    struct figures f[MAX_REPS] = {0};
    struct stream *s = calloc((size_t)b->streams, sizeof *s);
    int rc = s ? Q_OK : q_fail(e, Q_EMEM, "no memory for %ld streams", b->streams);
    for (long i = -1; i < b->reps && !rc; i++) {
        show_progress(b, at, i + 1);
        rc = make_streams(b, b->length[at], s, e);
        if (!rc) rc = run_streams(s, b->streams, e);
        if (!rc && i >= 0) f[i] = of_run(s, b->streams);
        for (long k = 0; k < b->streams; k++) {
            if (!rc) b->short_answers |= s[k].got.generated < b->generate;
            if (!rc) b->counted |= s[k].got.counted;
            free((char *)s[k].ask.text);
        }
        memset(s, 0, (size_t)b->streams * sizeof *s);
    }
    free(s);
    show_progress(b, at, -1);
    if (!rc) *out = medians(f, b->reps);
    return rc;
}

/* ---- what is printed ---- */

static void add_row(struct url_bench *b, int asked, const struct figures *f)
{
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "url", http_client_base(b->client[0]));
    cJSON_AddStringToObject(row, "model", b->model);
    cJSON_AddNumberToObject(row, "asked_prompt_tokens", asked);
    cJSON_AddNumberToObject(row, "prompt_tokens", f->prompt);
    cJSON_AddNumberToObject(row, "cached_tokens", f->cached);
    cJSON_AddNumberToObject(row, "streams", (double)b->streams);
    cJSON_AddNumberToObject(row, "generate", (double)b->generate);
    cJSON_AddNumberToObject(row, "runs", (double)b->reps);
    cJSON_AddNumberToObject(row, "time_to_first_token_ms", f->first_ms);
    cJSON_AddNumberToObject(row, "prompt_tokens_per_second", f->read);
    cJSON_AddNumberToObject(row, "decode_tokens_per_second", f->decode);
    cJSON_AddNumberToObject(row, "decode_min", f->decode_min);
    cJSON_AddNumberToObject(row, "decode_max", f->decode_max);
    cJSON_AddNumberToObject(row, "total_tokens_per_second", f->total);
    cJSON_AddItemToArray(b->rows, row);
}

static void print_head(const struct url_bench *b)
{
    plain_print(stdout, b->model, strlen(b->model)); /* the server's word */
    printf(" at %s, %ld stream%s, answers of %ld tokens, medians of %ld%s\n\n"
           "| prompt | cached |  first token |    prompt tok/s | decode tok/s |       min |       max |  all streams |\n"
           "|-------:|-------:|-------------:|----------------:|-------------:|----------:|----------:|-------------:|\n",
           http_client_base(b->client[0]), b->streams, cli_s(b->streams), b->generate, b->reps, b->cached ? ", the same prompt again" : "");
}

static void print_row(const struct figures *f)
{
    char cached[16] = "-";
    if (f->cached >= 0) snprintf(cached, sizeof cached, "%.0f", f->cached);
    printf("| %6.0f | %6s | %9.1f ms | %15.1f | %12.2f | %9.2f | %9.2f | %12.2f |\n", f->prompt, cached, f->first_ms, f->read, f->decode,
           f->decode_min, f->decode_max, f->total);
    fflush(stdout);
}

static void print_json(const struct url_bench *b)
{
    char *text = cJSON_Print(b->rows);
    if (text) puts(text);
    free(text);
}

/* ---- the whole ---- */

static int open_clients(struct url_bench *b, struct q_err *e)
{
    struct http_client_opts o = {.url = b->url, .key = b->key ? b->key : cmd_api_key()};
    int rc = Q_OK;
    b->client = calloc((size_t)b->streams, sizeof *b->client);
    if (!b->client) return q_fail(e, Q_EMEM, "no memory for %ld streams", b->streams);
    for (long i = 0; i < b->streams && !rc; i++) rc = http_client_open(&b->client[i], &o, e);
    return rc;
}

/* A server that knows no ignore_eos may refuse it; then it is not asked for. */
static int find_scale(struct url_bench *b, struct q_err *e)
{
    struct bench_url_ask like = {.model = b->model};
    int rc = bench_url_scale(b->client[0], &like, &b->scale, e);
    if (rc != Q_EINPUT || !strstr(e->text, "ignore_eos")) return rc;
    cli_fact(&b->cli, "the server refuses ignore_eos: answers may be shorter than asked");
    b->plain = like.plain = 1;
    return bench_url_scale(b->client[0], &like, &b->scale, e);
}

static int bench_all(struct url_bench *b, struct q_err *e)
{
    int rc = open_clients(b, e);
    if (!rc && !*b->model) rc = bench_url_model(b->client[0], b->model, sizeof b->model, e);
    if (!rc) rc = find_scale(b, e);
    if (!rc && !b->json) print_head(b);
    for (int i = 0; i < b->n_lengths && !rc; i++) {
        struct figures f;
        double begin = clock_s();
        rc = measure(b, i, &f, e);
        /* Of the usual list, what the server has room for. */
        if (rc == Q_EINPUT && i && !b->lengths_given) {
            cli_fact(&b->cli, "no longer prompts: %.300s", e->text);
            rc = Q_OK;
            break;
        }
        if (rc) break;
        if (b->watched && !b->table_watched)
            cli_fact(&b->cli, "prompt %d of %d, about %d tokens: done in %.1f s", i + 1, b->n_lengths, b->length[i], clock_s() - begin);
        if (b->json) add_row(b, b->length[i], &f);
        else print_row(&f);
    }
    if (b->json && cJSON_GetArraySize(b->rows)) print_json(b);
    return rc;
}

static void tell(const struct url_bench *b)
{
    if (b->counted) cli_fact(&b->cli, "the server sends no usage: pieces of text were counted as tokens, and prompts are not known");
    if (b->short_answers) cli_fact(&b->cli, "some answers ended before %ld tokens", b->generate);
}

int cmd_bench_url(int argc, char **argv)
{
    struct url_bench b = {.length = {297, 1160, 4620, 18000}, .n_lengths = 4, .generate = 128, .reps = 5, .streams = 1};
    struct q_err e = {0};
    cli_start(&b.cli, "bench");
    int stop = parse_args(&b, argc, argv);
    if (stop) return stop - 1;
    b.watched = isatty(STDERR_FILENO) && !b.cli.quiet;
    b.table_watched = isatty(STDOUT_FILENO) && !b.json;
    b.salt = (unsigned long long)(clock_s() * 1e9);
    b.rows = cJSON_CreateArray();
    int rc = b.rows ? bench_all(&b, &e) : q_fail(&e, Q_EMEM, "no memory for results");
    if (!rc) tell(&b);
    for (long i = 0; b.client && i < b.streams; i++) http_client_close(b.client[i]);
    free(b.client);
    cJSON_Delete(b.rows);
    return rc ? cli_fail(&b.cli, &e) : 0;
}
