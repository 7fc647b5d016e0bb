/* quarry run: one prompt, one answer on stdout as it comes, speeds on stderr. With a session (cmd_run_session.c) the prompt goes on where an
 * earlier one ended. */
#include "chat.h"
#include "cli_sampling.h"
#include "cmd.h"
#include "cmd_run_session.h"
#include "json_check.h"
#include "model.h"
#include "plain.h"
#include "prompt_cut.h"
#include "reply.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_RAW = CLI_SAMPLING_END, OPT_SYSTEM, OPT_THINK, OPT_IDS, OPT_GRAMMAR, OPT_SCHEMA, OPT_TRUNCATE, OPT_SESSION };

struct run {
    struct q_cli cli;
    const char *prompt_arg, *file, *system, *session_path;
    const char *grammar, *schema; /* a text or a file's name */
    char *prompt;                /* owned */
    size_t prompt_n;
    int raw, think, ids_out;
    int cut;                     /* enum q_cut */
    int terminal;                /* standard output is one: control characters do not reach it */
    long most;                   /* tokens to generate; < 0: until the model ends or the context is full */
    struct cli_sampling sampling;

    struct tok_ids ids;          /* the prompt's */
    struct q_constraint *constraint; /* owned */
    char *form;                      /* its text; owned, NULL: none */
    size_t form_n;
    const struct tokenizer *tokenizer;
    struct q_answer answer;
    struct run_session session;
};

static void help(void)
{
    printf("usage: quarry run -m FILE (-p TEXT | -f FILE) [options]\n\n"
           "  -p TEXT             the prompt; - reads standard input\n"
           "  -f FILE             the prompt from a file\n"
           "  --system TEXT       a system message before it\n"
           "  --think             let the model think first\n"
           "  --raw               no chat template; control tokens in the prompt are control tokens\n"
           "  --truncate HOW      a prompt too long for the context loses its beginning (head) or its middle\n"
           "                      (middle); default: none, it is refused\n"
           "  -n N                generate at most N tokens\n"
           "  --session FILE      the prompt goes on where FILE's session ended, and FILE is written anew behind\n"
           "                      the answer; where there is none, one begins (--raw: its text goes on; else:\n"
           "                      its conversation gets another turn)\n"
           "  --ids               print token ids instead of text\n"
           "  --grammar G         the answer is a text of this GBNF grammar: a file, or the grammar itself (it\n"
           "                      has a ::=)\n"
           "  --json-schema S     the answer is JSON by this schema: a file, or the schema itself (it begins\n"
           "                      with {)\n%s%s",
           cli_sampling_help, cli_engine_help);
}

static const struct option longs[] = {CLI_LONG,
                                      CLI_SAMPLING_LONG,
                                      {"raw", 0, 0, OPT_RAW},
                                      {"system", 1, 0, OPT_SYSTEM},
                                      {"think", 0, 0, OPT_THINK},
                                      {"ids", 0, 0, OPT_IDS},
                                      {"truncate", 1, 0, OPT_TRUNCATE},
                                      {"grammar", 1, 0, OPT_GRAMMAR},
                                      {"json-schema", 1, 0, OPT_SCHEMA},
                                      {"session", 1, 0, OPT_SESSION},
                                      {"file", 1, 0, 'f'},
                                      {"prompt", 1, 0, 'p'},
                                      {0, 0, 0, 0}};

/* What goes together. Non-zero: told why not. */
static int check_args(const struct run *r)
{
    struct q_err e;
    if (!r->prompt_arg == !r->file) return cli_usage(&r->cli, "expected one of -p TEXT and -f FILE");
    if (r->grammar && r->schema) return cli_usage(&r->cli, "expected one of --grammar and --json-schema");
    if (cli_needs_file(&r->cli)) return 2;
    if (r->raw && (r->system || r->think)) return cli_usage(&r->cli, "--raw renders no template, so it takes no --system and no --think");
    return q_sampling_check(&r->sampling.params, &e) ? cli_usage(&r->cli, e.text) : 0;
}

static int parse_args(struct run *r, int argc, char **argv)
{
    for (int opt; (opt = cli_next(&r->cli, argc, argv, CLI_SHORT "p:f:n:", longs)) != -1;) {
        int bad = 0;
        switch (opt) {
        case CLI_WRONG: return 3;
        case 'p': r->prompt_arg = optarg; break;
        case 'f': r->file = optarg; break;
        case 'n': bad = cli_tokens(&r->cli, "-n", optarg, -1, 1 << 24, &r->most); break;
        case OPT_RAW: r->raw = 1; break;
        case OPT_THINK: r->think = 1; break;
        case OPT_IDS: r->ids_out = 1; break;
        case OPT_TRUNCATE:
            if ((r->cut = q_cut_parse(optarg)) >= 0) break;
            return cli_usage(&r->cli, "--truncate is none, head or middle") + 1;
        case OPT_SYSTEM: r->system = optarg; break;
        case OPT_GRAMMAR: r->grammar = optarg; break;
        case OPT_SESSION:
            r->session_path = optarg;
            if (!*optarg) return cli_usage(&r->cli, "--session expects a file, not an empty word") + 1;
            break;
        case OPT_SCHEMA: r->schema = optarg; break;
        case 'h':
        case CLI_HELP: help(); return 1;
        case CLI_VERSION: cli_version(); return 1;
        default: bad = cli_is_sampling(opt) ? cli_sampling_option(&r->sampling, &r->cli, opt, optarg) : cli_option(&r->cli, opt, optarg);
        }
        if (bad) return 3;
    }
    if (optind < argc) return cli_stray(&r->cli, argv[optind], "; the model goes behind -m, the prompt behind -p") + 1;
    return check_args(r) ? 3 : 0;
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
    int rc = q_chat_check_text("the prompt", r->prompt, r->prompt_n, e);
    if (!rc && r->system) rc = q_chat_check_text("the system message", r->system, strlen(r->system), e);
    if (!rc) rc = q_chat_open(&c, en, NULL, e);
    if (rc) return rc;
    char *messages = NULL;
    if (r->session_path) rc = run_session_messages(&r->session, r->system, r->prompt, &messages, e);
    else messages = q_chat_messages(r->system, r->prompt);
    rc = rc ? rc : messages ? q_chat_encode(c, messages, NULL, r->think ? "{\"enable_thinking\": true}" : "{\"enable_thinking\": false}", &r->ids, e)
                  : q_fail(e, Q_EMEM, "no memory for the messages");
    free(messages);
    q_chat_close(c);
    return rc;
}

static int encode(struct run *r, struct q_engine *en, struct q_err *e)
{
    int rc = r->raw && r->session_path ? run_session_tokens(&r->session, &r->ids, e) : Q_OK;
    if (rc) return rc;
    return r->raw ? tok_encode(r->tokenizer, r->prompt, r->prompt_n, TOK_PARSE_CONTROL, &r->ids, e) : encode_chat(r, en, e);
}

/* What the answer has to be, as text: before the model is read, which may take long. A schema begins with {, a grammar has a ::=; anything else
 * names a file. */
static int read_form(struct run *r, struct q_err *e)
{
    const char *given = r->grammar ? r->grammar : r->schema;
    int own = r->grammar ? strstr(given, "::=") != NULL : given && given[strspn(given, " \t\r\n")] == '{', rc = Q_OK;
    if (!given) return Q_OK;
    r->form_n = strlen(given);
    if (!own) rc = cli_read_file(given, &r->form, &r->form_n, e);
    else if (!(r->form = strdup(given))) rc = q_fail(e, Q_EMEM, "no memory for what the answer has to be");
    if (!rc && r->schema) rc = json_check(r->form, r->form_n, JSON_MAX_DEPTH, own ? "--json-schema" : given, e);
    return rc;
}

static int open_constraint(struct run *r, struct q_err *e)
{
    return r->form ? (r->grammar ? q_constraint_from_gbnf : q_constraint_from_schema)(&r->constraint, r->tokenizer, r->form, r->form_n, e) : Q_OK;
}

static int on_text(void *arg, enum q_part part, const char *s, size_t n)
{
    struct run *r = arg;
    if (r->session_path && run_session_text(&r->session, s, n)) return -1;
    if (r->ids_out) return 0;
    if (r->terminal) plain_print(stdout, s, n);
    else fwrite(s, 1, n, stdout);
    return fflush(stdout);
}

/* A session's text goes on behind what is shown of it, so its end token is not part of it. */
static int on_token(void *arg, const struct q_token *t)
{
    struct run *r = arg;
    if (tok_is_end(r->tokenizer, t->id)) return 0;
    if (r->session_path && run_session_token(&r->session, t->id)) return -1;
    return r->ids_out && printf("%d\n", t->id) < 0;
}

/* What is left out is told. */
static int cut(struct run *r, const struct q_engine *en, struct q_err *e)
{
    int left_out, n = (int)r->ids.n, rc = q_cut_prompt(r->tokenizer, &r->ids, q_engine_ctx(en), (int)r->most, (enum q_cut)r->cut, &left_out, e);
    if (rc == Q_ELIMIT && r->cut == Q_CUT_NEVER)
        return q_fail(e, rc, "the prompt has %d tokens and the context is %d: %s, and --truncate head or middle cuts it", n, q_engine_ctx(en),
                      q_engine_ctx(en) < rope_limit(&q_engine_model(en)->config) ? "-c raises it" : "--rope-scaling yarn with -c goes beyond");
    if (left_out)
        cli_fact(&r->cli, "the prompt has %d tokens and the context is %d: %d tokens of its %s were left out", n, q_engine_ctx(en), left_out,
                 r->cut == Q_CUT_MIDDLE ? "middle" : "beginning");
    return rc;
}

static int answer(struct run *r, struct q_engine *en, struct q_err *e)
{
    struct q_answer_opts o = {.sampling = r->sampling.params, .max_tokens = (int)r->most, .raw = 1, .arg = r};
    struct q_talk *t = NULL;
    if (r->ids_out || r->session_path) o.token = on_token;
    if (!r->ids_out || r->session_path) o.text = on_text;
    r->tokenizer = q_engine_tokenizer(en);
    r->terminal = isatty(STDOUT_FILENO);
    int rc = open_constraint(r, e);
    if (!rc) rc = encode(r, en, e);
    if (!rc) rc = cut(r, en, e);
    o.constraint = r->constraint;
    o.thinking = !rc && !r->raw && q_reply_opens_thinking(r->tokenizer, r->ids.at, r->ids.n);
    /* The tag that opens the block is of the prompt; its pair in the answer would stand alone. */
    if (o.thinking && !r->ids_out) fputs("<think>\n", stdout);
    if (!rc) rc = q_talk_open(&t, en, e);
    if (!rc && r->session_path) rc = run_session_resume(&r->session, &r->cli, en, t, &r->ids, e);
    if (!rc) rc = q_talk_answer(t, r->ids.at, r->ids.n, &o, &r->answer, e);
    if (!rc && !r->ids_out) putchar('\n');
    if (fflush(stdout) && !rc) rc = q_fail(e, Q_EIO, "cannot write the answer to standard output");
    if (!rc && r->session_path) rc = run_session_save(&r->session, &r->cli, t, &r->ids, o.thinking, e);
    q_talk_close(t);
    return rc;
}

static void print_speeds(const struct run *r, const struct q_engine *en)
{
    const struct q_answer *a = &r->answer;
    char text[Q_ANSWER_TEXT];
    q_answer_text(text, a);
    char reused[40] = "";
    if (r->session_path) snprintf(reused, sizeof reused, " (%d re-used)", a->n_cached);
    cli_fact(&r->cli, "prompt %d token%s%s in %.3f s: %.1f tok/s; answer %s; %d thread%s", a->n_prompt, cli_s(a->n_prompt), reused, a->prefill_s,
             a->prefill_s > 0 ? (a->n_prompt - a->n_cached) / a->prefill_s : 0, text, q_engine_threads(en), cli_s(q_engine_threads(en)));
}

/* Why the answer ends where it does, when that is not the model's own end. */
static void print_end(const struct run *r, const struct q_engine *en)
{
    int ctx = q_engine_ctx(en), n = r->answer.n_generated;
    if (r->answer.finish != Q_FINISH_LENGTH) return;
    if (r->most >= 0 && n >= r->most) cli_fact(&r->cli, "stopped at -n %ld token%s", r->most, cli_s(r->most));
    else cli_fact(&r->cli, "stopped: the context of %d tokens is full%s", ctx, ctx < rope_limit(&q_engine_model(en)->config) ? "; -c raises it" : "");
}

/* A text's tokens, which the template may write around but does not change; one that it refuses is refused there, by its name. */
static int count_text(const struct run *r, const struct tokenizer *t, const char *text, size_t n, struct q_err *e)
{
    struct tok_ids ids = {0};
    int rc = tok_encode(t, text, n, r->raw ? TOK_PARSE_CONTROL : 0, &ids, e), tokens = ids.n < 1 << 24 ? (int)ids.n : 1 << 24;
    free(ids.at);
    return rc == Q_EINPUT ? 0 : rc ? -rc : tokens;
}

/* For q_engine_opts: what was said, what is asked now, and room for what the template writes and for the answer. */
static int count(void *arg, const struct tokenizer *t, int *need, struct q_err *e)
{
    struct run *r = arg;
    enum { TEMPLATE = 1024, ANSWER = 1024 };
    int prompt = count_text(r, t, r->prompt, r->prompt_n, e);
    int system = prompt < 0 || !r->system ? 0 : count_text(r, t, r->system, strlen(r->system), e);
    if (prompt < 0 || system < 0) return prompt < 0 ? -prompt : -system;
    *need = run_session_length(&r->session) + prompt + system + TEMPLATE + (int)(r->most > 0 ? r->most : ANSWER);
    return Q_OK;
}

int cmd_run(int argc, char **argv)
{
    struct run r = {.most = -1};
    struct q_engine *en = NULL;
    struct q_err e = {0};
    cli_start(&r.cli, "run");
    cli_sampling_start(&r.sampling);
    int stop = parse_args(&r, argc, argv);
    if (stop) return stop - 1;
    int rc = read_prompt(&r, &e);
    if (!rc) rc = read_form(&r, &e);
    if (!rc) rc = run_session_open(&r.session, r.session_path, r.raw, &e);
    if (r.session_path) r.cli.engine.max_snaps = SESSION_WORK_SNAPS;
    r.cli.engine.formats = session_work_formats;
    r.cli.engine.formats_arg = &r.session.work;
    r.cli.engine.count = count;
    r.cli.engine.count_arg = &r;
    cli_sampling_seed(&r.sampling);
    if (!rc) rc = q_engine_open(&en, &r.cli.engine, &e);
    if (!rc) cli_sampling_fact(&r.sampling, &r.cli);
    if (!rc) rc = answer(&r, en, &e);
    if (!rc) print_end(&r, en);
    if (!rc) print_speeds(&r, en);
    if (!rc) cli_memory(&r.cli, en);
    q_engine_close(en);
    run_session_close(&r.session);
    q_constraint_free(r.constraint);
    free(r.form);
    free(r.ids.at);
    free(r.prompt);
    return rc ? cli_fail(&r.cli, &e) : 0;
}
