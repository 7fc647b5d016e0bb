/* quarry chat: a conversation in the terminal. What was read in earlier turns is not read again (answer.h). */
#include "chat.h"
#include "clock.h"
#include "cmd.h"
#include "cmd_chat_impl.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_SYSTEM = CLI_SAMPLING_END, OPT_THINK, OPT_NO_THINK, OPT_HIDE, OPT_URL, OPT_KEY, OPT_NO_HISTORY, OPT_SESSION, OPT_TRUNCATE };

/* Set by Ctrl-C. A handler can reach nothing else. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) { interrupted = number; }

/* Reading a line is to end at Ctrl-C; writing an answer is not. */
static void catch_interrupt(int restart)
{
    struct sigaction a = {.sa_handler = on_interrupt, .sa_flags = restart ? SA_RESTART : 0};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
}

/* how: SIG_BLOCK or SIG_UNBLOCK. */
static void mask_interrupt(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(how, &set, NULL);
}

static const struct option longs[] = {CLI_LONG,
                                      CLI_SAMPLING_LONG,
                                      {"system", 1, 0, OPT_SYSTEM},
                                      {"think", 0, 0, OPT_THINK},
                                      {"no-think", 0, 0, OPT_NO_THINK},
                                      {"hide-thinking", 0, 0, OPT_HIDE},
                                      {"url", 1, 0, OPT_URL},
                                      {"api-key", 1, 0, OPT_KEY},
                                      {"session", 1, 0, OPT_SESSION},
                                      {"truncate", 1, 0, OPT_TRUNCATE},
                                      {"no-history", 0, 0, OPT_NO_HISTORY},
                                      {0, 0, 0, 0}};

static void help(void)
{
    printf("usage: quarry chat -m FILE [options]              a model of this machine\n"
           "       quarry chat --url URL [-m NAME] [options]  a running server\n\n"
           "Ctrl-C stops an answer, Ctrl-D leaves, /help lists what else can be typed. A line that ends in \\\n"
           "goes on in the next one; pasted lines are one text. Where standard input is no terminal, each of its\n"
           "lines is a turn.\n\n"
           "  --system TEXT       a system message\n"
           "  --think, --no-think let the model think first, or not (default: as its template has it)\n"
           "  --hide-thinking     do not show what it thinks\n"
           "  -n N                at most N tokens an answer\n"
           "  --truncate HOW      of a conversation too long for the context the oldest turns are left out\n"
           "                      (head) or those in the middle (middle); default: none, the turn is refused\n"
           "  --no-history        neither read nor keep what was typed (else it is in quarry/chat_history in the\n"
           "                      folder of state)\n"
           "  --session FILE      go on with the conversation in FILE, and write FILE anew behind each answer;\n"
           "                      where there is none, one begins\n"
           "  --url URL           an OpenAI-compatible server: http://127.0.0.1:8080 (-m NAME: its model,\n"
           "                      default the first that it lists)\n"
           "  --api-key KEY       its key (default: QUARRY_API_KEY of the environment, which other users do not\n"
           "                      see)\n"
           "Sampling that is not asked for is the server's choice with --url, and the likeliest token without:\n%s%s",
           cli_sampling_help, cli_engine_help);
}

static void note_engine_option(struct chat *c, int opt)
{
    if (c->engine_option || cli_is_sampling(opt) || opt == 'm' || opt == 'q') return;
    for (const struct option *o = longs; o->name; o++)
        if (o->val == opt) c->engine_option = o->name;
}

static int check_url(const struct chat *c)
{
    char line[128];
    if (!c->url && c->key) return cli_usage(&c->cli, "--api-key goes with --url");
    if (c->url && c->session_path) return cli_usage(&c->cli, "--session is for a model of this machine, and with --url the server has it");
    if (!c->url && !c->cli.engine.model) return cli_usage(&c->cli, "expected -m FILE, or --url URL");
    if (!c->url) return cli_needs_file(&c->cli);
    if (!c->engine_option) return 0;
    snprintf(line, sizeof line, "--%s is for a model of this machine, and with --url the server has it", c->engine_option);
    return cli_usage(&c->cli, line);
}

static int parse_args(struct chat *c, int argc, char **argv)
{
    struct q_err e;
    for (int opt; (opt = cli_next(&c->cli, argc, argv, CLI_SHORT "n:", longs)) != -1;) {
        int bad = 0;
        switch (opt) {
        case CLI_WRONG: return 3;
        case 'n': bad = cli_tokens(&c->cli, "-n", optarg, -1, 1 << 24, &c->most); break;
        case OPT_SYSTEM: c->system = optarg; break;
        case OPT_THINK: c->think = 1; break;
        case OPT_NO_THINK: c->think = 0; break;
        case OPT_HIDE: c->hide_thinking = 1; break;
        case OPT_URL: c->url = optarg; break;
        case OPT_SESSION:
            c->session_path = optarg;
            if (!*optarg) return cli_usage(&c->cli, "--session expects a file, not an empty word") + 1;
            break;
        case OPT_TRUNCATE:
            if ((c->cut = q_cut_parse(optarg)) >= 0) break;
            return cli_usage(&c->cli, "--truncate is none, head or middle") + 1;
        case OPT_KEY: c->key = optarg; break;
        case OPT_NO_HISTORY: c->no_history = 1; break;
        case 'h':
        case CLI_HELP: help(); return 1;
        case CLI_VERSION: cli_version(); return 1;
        default:
            bad = cli_is_sampling(opt) ? cli_sampling_option(&c->sampling, &c->cli, opt, optarg) : cli_option(&c->cli, opt, optarg);
            note_engine_option(c, opt);
        }
        if (bad) return 3;
    }
    if (optind < argc) return cli_stray(&c->cli, argv[optind], "; the model goes behind -m, texts are typed") + 1;
    if (check_url(c)) return 3;
    if (q_sampling_check(&c->sampling.params, &e)) return cli_usage(&c->cli, e.text) + 1;
    return 0;
}

/* ---- one turn ---- */

static int cancelled(void *arg) { return interrupted != 0; }

static int on_text(void *arg, enum q_part part, const char *s, size_t n)
{
    struct chat *c = arg;
    return chat_show_text(&c->show, part, s, n);
}

static void print_facts(const struct chat *c, const struct q_answer *a)
{
    int fresh = a->n_prompt - a->n_cached, ctx = c->from->ctx;
    char text[Q_ANSWER_TEXT];
    const char *why[] = {"", "; stopped at the limit", "; stopped by Ctrl-C"};
    q_answer_text(text, a);
    if (c->from->left_out)
        cli_fact(&c->cli, "the conversation is longer than the context: %d tokens of its %s were left out", c->from->left_out,
                 c->cut == Q_CUT_MIDDLE ? "middle" : "beginning");
    cli_fact(&c->cli, "prompt %d token%s (%d re-used): %.1f tok/s; answer %s%s", a->n_prompt, cli_s(a->n_prompt), a->n_cached,
             a->prefill_s > 0 ? fresh / a->prefill_s : 0, text, why[a->finish]);
    if (a->finish == Q_FINISH_LENGTH && ctx && a->n_prompt + a->n_generated > ctx)
        fprintf(stderr, "quarry chat: the context of %d tokens is full: /clear starts over, and -c N at the start gives more\n", ctx);
}

static int ask(struct chat *c, struct q_answer *a, struct q_err *e)
{
    struct chat_ask o = {
        .cut = (enum q_cut)c->cut, .think = c->think, .most = c->most, .sampling = &c->sampling, .cancelled = cancelled, .text = on_text, .arg = c};
    char *messages;
    int rc = chat_history_json(c->history, &messages, e);
    if (rc) return rc;
    o.messages = messages;
    chat_show_begin(&c->show);
    rc = c->from->answer(c->from, &o, a, e);
    int bad = chat_show_end(&c->show, rc != Q_OK);
    free(messages);
    if (!rc && (bad || ferror(stdout))) rc = q_fail(e, Q_EIO, "the answer could not be written or kept");
    return rc;
}

static int answer(struct chat *c, struct q_err *e)
{
    struct q_answer a;
    int rc = ask(c, &a, e);
    if (rc) return rc;
    print_facts(c, &a);
    chat_count(&c->totals, &a);
    if (a.finish == Q_FINISH_CANCELLED && !a.n_generated) {
        chat_history_drop_last(c->history);
        return Q_OK;
    }
    return chat_history_assistant(c->history, c->show.text[Q_PART_CONTENT].at, c->show.text[Q_PART_THINKING].at, e);
}

/* The conversation goes on whatever becomes of it. */
static void save_session(struct chat *c)
{
    struct q_err e;
    char *messages;
    size_t written;
    double begin = clock_s();
    int rc = chat_history_json(c->history, &messages, &e);
    if (rc) {
        c->failed = cli_fail(&c->cli, &e);
        return;
    }
    rc = c->from->save(c->from, messages, &written, &e);
    free(messages);
    if (rc) c->failed = cli_fail(&c->cli, &e);
    else if (!c->session_told++)
        cli_fact(&c->cli, "session saved to %s: %.1f MiB in %.2f s, and again behind each answer", c->session.path, (double)written / 1048576,
                 clock_s() - begin);
}

/* A turn that fails is as if it had not been typed. */
static void take_turn(struct chat *c, const char *text)
{
    struct q_err e;
    int rc = chat_history_user(c->history, text, &e), added = !rc;
    interrupted = 0;
    if (!rc) rc = answer(c, &e);
    if (!rc && c->from->save) save_session(c);
    if (!rc) return;
    if (added) chat_history_drop_last(c->history);
    c->failed = cli_fail(&c->cli, &e);
}

/* ---- the conversation ---- */

static void take_line(struct chat *c, const char *text, size_t n)
{
    struct q_err e;
    if (q_chat_check_text("the line", text, n, &e)) {
        c->failed = cli_fail(&c->cli, &e);
    } else if (*text == '/') {
        chat_command(c, text);
    } else if (strspn(text, " \t\n") < n) {
        take_turn(c, text);
    }
}

static void converse(struct chat *c)
{
    int person = chat_lines_interactive(c->lines);
    const char *text;
    size_t n;
    if (person) cli_fact(&c->cli, "/help lists commands; Ctrl-C stops an answer; Ctrl-D leaves");
    while (!c->over) {
        catch_interrupt(0);
        if (person) mask_interrupt(SIG_BLOCK);   /* the editor's wait lets it in */
        enum chat_line got = chat_lines_read(c->lines, &text, &n);
        catch_interrupt(1);
        mask_interrupt(SIG_UNBLOCK);
        if (got == CHAT_LINE_END || (got == CHAT_LINE_BREAK && !person)) break;
        if (got == CHAT_LINE) take_line(c, text, n);
        else fprintf(stderr, "\nCtrl-D or /exit leaves\n");
    }
    if (person && !c->over) fputc('\n', stderr);
}

static void say(void *arg, const char *line) { cli_fact(arg, "%s", line); }

static int open_from(struct chat *c, struct q_err *e)
{
    const struct chat_server s = {
        .url = c->url, .key = c->key ? c->key : cmd_api_key(), .model = c->cli.engine.model, .cancelled = cancelled, .arg = c};
    if (!c->url) return chat_from_engine(&c->from, &c->cli.engine, &c->session, e);
    catch_interrupt(1);
    return chat_from_url(&c->from, &s, &c->cli, e);
}

/* What was said in earlier runs. */
static int load_session(struct chat *c, struct q_err *e)
{
    const struct session *s = c->session.file;
    if (!s) return Q_OK;
    if (!session_head(s)->n_text)
        return q_fail(e, Q_EINPUT, "%s: the session is a text and no conversation: 'quarry run --raw' goes on with it", c->session_path);
    int rc = chat_history_load(c->history, session_text(s), c->session_path, e), n = chat_history_count(c->history);
    if (!rc) cli_fact(&c->cli, "%s: %d message%s, %d tokens", c->session_path, n, cli_s(n), session_head(s)->n_ids);
    return rc;
}

static int open_chat(struct chat *c, struct q_err *e)
{
    int rc = session_work_open(&c->session, c->session_path, e);
    if (!rc) rc = chat_history_open(&c->history, e);
    if (!rc) rc = load_session(c, e);
    if (!rc) rc = open_from(c, e);
    if (!rc && c->system) rc = chat_history_system(c->history, c->system, e);
    if (!rc) rc = chat_lines_open(&c->lines, !c->no_history, say, &c->cli, e);
    return rc;
}

static void close_chat(struct chat *c)
{
    chat_lines_close(c->lines);
    chat_history_close(c->history);
    if (c->from) c->from->close(c->from);
    session_work_close(&c->session);
    chat_show_close(&c->show);
    free(c->saved);
}

int cmd_chat(int argc, char **argv)
{
    struct chat c = {.most = -1, .think = -1, .session.lock = -1};
    struct q_err e = {0};
    cli_start(&c.cli, "chat");
    cli_sampling_start(&c.sampling);
    int stop = parse_args(&c, argc, argv);
    if (stop) return stop - 1;
    if (!c.url) cli_sampling_seed(&c.sampling);
    chat_show_open(&c.show, c.hide_thinking, c.cli.quiet);
    int rc = open_chat(&c, &e);
    if (rc) c.failed = cli_fail(&c.cli, &e);
    else if (!c.url) cli_sampling_fact(&c.sampling, &c.cli);
    int person = !rc && chat_lines_interactive(c.lines);
    if (!rc) converse(&c);
    close_chat(&c);
    return rc && interrupted ? 130 : rc || (c.failed && !person);
}
