/* quarry run: one prompt, one answer on stdout as it comes, speeds on stderr. */
#include "chat.h"
#include "cli.h"
#include "cmd.h"
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPT_RAW = CLI_OWN, OPT_SYSTEM, OPT_THINK, OPT_TEMP, OPT_TOP_K, OPT_TOP_P, OPT_MIN_P, OPT_SEED, OPT_REPEAT, OPT_FREQUENCY, OPT_PRESENCE, OPT_IDS };

struct run {
    struct q_cli cli;
    const char *prompt_arg, *file, *system;
    char *prompt;                /* owned */
    size_t prompt_n;
    int raw, think, ids_out, seeded;
    long most;                   /* tokens to generate; < 0: until the model ends or the context is full */
    struct q_sampling_params sampling;

    struct tok_ids ids;          /* the prompt's, then the answer's */
    size_t n_prompt;
    double prefill_s, decode_s;
};

static void help(void)
{
    printf("usage: quarry run -m FILE (-p TEXT | -f FILE) [options]\n\n"
           "  -p TEXT             the prompt; - reads standard input\n"
           "  -f FILE             the prompt from a file\n"
           "  --system TEXT       a system message before it\n"
           "  --think             let the model think first\n"
           "  --raw               no chat template; control tokens in the prompt are control tokens\n"
           "  -n N                generate at most N tokens\n"
           "  --temp T            temperature (default 0: the likeliest token)\n"
           "  --top-k N, --top-p P, --min-p P, --seed N\n"
           "  --repeat-penalty R, --frequency-penalty F, --presence-penalty P\n"
           "  --ids               print token ids instead of text\n%s",
           cli_engine_help);
}

static const struct option longs[] = {CLI_LONG,
                                      {"raw", 0, 0, OPT_RAW},
                                      {"system", 1, 0, OPT_SYSTEM},
                                      {"think", 0, 0, OPT_THINK},
                                      {"temp", 1, 0, OPT_TEMP},
                                      {"top-k", 1, 0, OPT_TOP_K},
                                      {"top-p", 1, 0, OPT_TOP_P},
                                      {"min-p", 1, 0, OPT_MIN_P},
                                      {"seed", 1, 0, OPT_SEED},
                                      {"repeat-penalty", 1, 0, OPT_REPEAT},
                                      {"frequency-penalty", 1, 0, OPT_FREQUENCY},
                                      {"presence-penalty", 1, 0, OPT_PRESENCE},
                                      {"ids", 0, 0, OPT_IDS},
                                      {"file", 1, 0, 'f'},
                                      {"prompt", 1, 0, 'p'},
                                      {0, 0, 0, 0}};

static int sampling_option(struct run *r, int opt, const char *value)
{
    double v;
    long n;
    struct { int opt; const char *name; float *to; } real[] = {
        {OPT_TEMP, "--temp", &r->sampling.temp},
        {OPT_TOP_P, "--top-p", &r->sampling.top_p},
        {OPT_MIN_P, "--min-p", &r->sampling.min_p},
        {OPT_REPEAT, "--repeat-penalty", &r->sampling.repeat},
        {OPT_FREQUENCY, "--frequency-penalty", &r->sampling.frequency},
        {OPT_PRESENCE, "--presence-penalty", &r->sampling.presence}};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        if (real[i].opt != opt) continue;
        if (cli_float(&r->cli, real[i].name, value, &v)) return -1;
        *real[i].to = (float)v;
        return 0;
    }
    if (cli_int(&r->cli, opt == OPT_TOP_K ? "--top-k" : "--seed", value, 0, 0x7FFFFFFFFFFFFFFF, &n)) return -1;
    if (opt == OPT_TOP_K) r->sampling.top_k = n > 1 << 30 ? 0 : (int)n;
    else r->sampling.seed = (uint64_t)n;
    r->seeded |= opt == OPT_SEED;
    return 0;
}

static int parse_args(struct run *r, int argc, char **argv)
{
    struct q_err e;
    for (int opt; (opt = getopt_long(argc, argv, CLI_SHORT "p:f:n:", longs, NULL)) != -1;) {
        int bad = 0;
        switch (opt) {
        case 'p': r->prompt_arg = optarg; break;
        case 'f': r->file = optarg; break;
        case 'n': bad = cli_int(&r->cli, "-n", optarg, -1, 1 << 24, &r->most); break;
        case OPT_RAW: r->raw = 1; break;
        case OPT_THINK: r->think = 1; break;
        case OPT_IDS: r->ids_out = 1; break;
        case OPT_SYSTEM: r->system = optarg; break;
        case CLI_HELP: help(); return 1;
        case CLI_VERSION: cli_version(); return 1;
        case '?': return 3;
        default: bad = opt > OPT_THINK && opt < OPT_IDS ? sampling_option(r, opt, optarg) : cli_option(&r->cli, opt, optarg);
        }
        if (bad) return 3;
    }
    if (optind < argc) return cli_usage(&r->cli, "an argument without an option; the prompt goes behind -p") + 1;
    if (!r->prompt_arg == !r->file) return cli_usage(&r->cli, "expected one of -p TEXT and -f FILE") + 1;
    if (!r->cli.engine.model) return cli_usage(&r->cli, "expected -m FILE") + 1;
    if (r->raw && (r->system || r->think)) return cli_usage(&r->cli, "--raw renders no template, so it takes no --system and no --think") + 1;
    if (q_sampling_check(&r->sampling, &e)) return cli_usage(&r->cli, e.text) + 1;
    return 0;
}

static int read_prompt(struct run *r, struct q_err *e)
{
    if (r->file || !strcmp(r->prompt_arg, "-")) return cli_read_file(r->file ? r->file : "-", &r->prompt, &r->prompt_n, e);
    r->prompt = strdup(r->prompt_arg);
    r->prompt_n = strlen(r->prompt_arg);
    return r->prompt ? Q_OK : q_fail(e, Q_EMEM, "no memory for the prompt");
}

static int encode_chat(struct run *r, struct q_engine *en, struct q_err *e)
{
    struct q_chat *c;
    if (strlen(r->prompt) != r->prompt_n) return q_fail(e, Q_EINPUT, "the prompt has a NUL byte at offset %zu; a chat message cannot hold one (--raw can)", strlen(r->prompt));
    int rc = q_chat_open(&c, en, NULL, e);
    if (rc) return rc;
    char *messages = q_chat_messages(r->system, r->prompt);
    rc = messages ? q_chat_encode(c, messages, NULL, r->think ? "{\"enable_thinking\": true}" : "{\"enable_thinking\": false}", &r->ids, e)
                  : q_fail(e, Q_EMEM, "no memory for the messages");
    free(messages);
    q_chat_close(c);
    return rc;
}

static int encode(struct run *r, struct q_engine *en, struct q_err *e)
{
    int rc = r->raw ? tok_encode(q_engine_tokenizer(en), r->prompt, r->prompt_n, TOK_PARSE_CONTROL, &r->ids, e) : encode_chat(r, en, e);
    r->n_prompt = r->ids.n;
    if (!rc && !r->n_prompt) rc = q_fail(e, Q_EINPUT, "the prompt is empty");
    return rc;
}

/* Whole characters only; control tokens are not text. */
static int print_id(const struct run *r, const struct tokenizer *t, struct tok_stream *stream, int id, struct q_err *e)
{
    struct tok_text out = {0};
    if (r->ids_out) {
        printf("%d\n", id);
        return Q_OK;
    }
    if (tok_type(t, id) == TOK_CONTROL) return Q_OK;
    int rc = tok_stream_push(stream, t, id, &out, e);
    if (!rc && out.n) fwrite(out.at, 1, out.n, stdout);
    fflush(stdout);
    free(out.at);
    return rc;
}

static int push_id(struct tok_ids *ids, int id, struct q_err *e)
{
    if (ids->n == ids->cap) {
        size_t cap = ids->cap ? ids->cap * 2 : 256;
        int32_t *at = realloc(ids->at, cap * sizeof *at);
        if (!at) return q_fail(e, Q_EMEM, "no memory for %zu tokens", cap);
        ids->at = at;
        ids->cap = cap;
    }
    ids->at[ids->n++] = id;
    return Q_OK;
}

/* Prompt in, tokens out until the model ends, `most` is reached or the context is full. */
static int generate(struct run *r, struct q_engine *en, struct q_seq *seq, struct q_history *h, struct q_err *e)
{
    const struct tokenizer *t = q_engine_tokenizer(en);
    struct q_sampling s = {.p = r->sampling};
    struct tok_stream stream = {0};
    struct q_result res;
    double t0 = cli_seconds();
    int rc = Q_OK;
    for (size_t from = 0;; from = r->ids.n - 1) {
        size_t generated = r->ids.n - r->n_prompt;
        if (r->most >= 0 && generated >= (size_t)r->most) break;
        if (r->ids.n > (size_t)q_engine_ctx(en)) break;
        s.position = (int64_t)r->ids.n;
        q_history_fill(h, &s);
        rc = q_prefill(en, seq, r->ids.at + from, (int)(r->ids.n - from), 0, Q_WANT_ID, &s, &res, e);
        if (!generated) r->prefill_s = cli_seconds() - t0;
        int id = rc ? -1 : res.id[0];
        if (!rc && id < 0) rc = q_fail(e, Q_EINTERNAL, "the model gave no usable logits after token %zu", r->ids.n);
        if (!rc) rc = push_id(&r->ids, id, e);
        if (!rc) rc = q_history_push(h, id, e);
        if (rc || tok_is_end(t, id)) break;
        if ((rc = print_id(r, t, &stream, id, e))) break;
    }
    r->decode_s = cli_seconds() - t0 - r->prefill_s;
    struct tok_text rest = {0};
    if (!rc) rc = tok_stream_flush(&stream, &rest, e);
    if (rest.n) fwrite(rest.at, 1, rest.n, stdout);
    free(rest.at);
    if (!r->ids_out) putchar('\n');
    fflush(stdout);
    return rc;
}

static int answer(struct run *r, struct q_engine *en, struct q_err *e)
{
    struct q_seq *seq = NULL;
    struct q_history *h = NULL;
    int rc = encode(r, en, e);
    if (!rc && r->n_prompt > (size_t)q_engine_ctx(en))
        rc = q_fail(e, Q_ELIMIT, "the prompt has %zu tokens and the context is %d; -c raises it", r->n_prompt, q_engine_ctx(en));
    if (!rc) rc = q_seq_open(en, &seq, e);
    if (!rc) rc = q_history_open(&h, r->sampling.last_n, e);
    if (!rc) rc = generate(r, en, seq, h, e);
    q_history_close(h);
    q_seq_close(seq);
    return rc;
}

static void print_speeds(const struct run *r, const struct q_engine *en)
{
    size_t n = r->ids.n - r->n_prompt, decoded = n > 1 ? n - 1 : 0;
    cli_fact(&r->cli, "prompt %zu tokens in %.3f s: %.1f tok/s; answer %zu tokens in %.3f s: %.1f tok/s; %d threads", r->n_prompt, r->prefill_s,
             r->prefill_s > 0 ? (double)r->n_prompt / r->prefill_s : 0, n, r->decode_s, r->decode_s > 0 ? (double)decoded / r->decode_s : 0,
             q_engine_threads(en));
}

int cmd_run(int argc, char **argv)
{
    struct run r = {.most = -1, .sampling = q_sampling_default()};
    struct q_engine *en = NULL;
    struct q_err e = {0};
    cli_start(&r.cli, "run");
    int stop = parse_args(&r, argc, argv);
    if (stop) return stop - 1;
    int rc = read_prompt(&r, &e);
    /* A token is at least a byte, so this is room enough; templates add little. */
    r.cli.engine.ctx_hint = r.prompt_n < 1 << 23 ? (int)r.prompt_n + 1024 + (int)(r.most > 0 ? r.most : 1024) : 1 << 24;
    if (r.sampling.temp > 0 && !r.seeded) r.sampling.seed = (uint64_t)time(NULL);
    if (!rc) rc = q_engine_open(&en, &r.cli.engine, &e);
    if (!rc && r.sampling.temp > 0) cli_fact(&r.cli, "seed %llu", (unsigned long long)r.sampling.seed);
    if (!rc) rc = answer(&r, en, &e);
    if (!rc) print_speeds(&r, en);
    q_engine_close(en);
    free(r.ids.at);
    free(r.prompt);
    return rc ? cli_fail(&r.cli, &e) : 0;
}
