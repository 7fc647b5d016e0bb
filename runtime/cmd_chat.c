/* quarry chat: a conversation in the terminal. What was read in earlier turns is not read again (answer.h). */
#include "answer.h"
#include "chat.h"
#include "chat_history.h"
#include "cli_sampling.h"
#include "cmd.h"
#include "cmd_chat_lines.h"
#include "cmd_chat_show.h"
#include "reply.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_SYSTEM = CLI_SAMPLING_END, OPT_THINK, OPT_NO_THINK, OPT_HIDE };
/* One place to go back to and one to come: the end of the last user turn, and of this one. */
enum { SNAPS = 2, CTX_HINT = 8192 };

struct chat {
    struct q_cli cli;
    struct cli_sampling sampling;
    const char *system;
    long most;                   /* tokens of an answer; < 0: no limit but the context */
    int think;                   /* < 0: as the template has it */
    int hide_thinking, failed, over;

    struct q_engine *engine;
    struct q_chat *template;
    struct q_talk *talk;
    struct chat_history *history;
    struct chat_lines *lines;
    struct chat_show show;
    struct tok_ids ids;          /* of the prompt; used again for each turn */
};

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
                                      {0, 0, 0, 0}};

static void help(void)
{
    printf("usage: quarry chat -m FILE [options]\n\n"
           "Ctrl-C stops an answer, Ctrl-D leaves, /help lists what else can be typed. A line that ends in \\ goes on in the\n"
           "next one; pasted lines are one text. Where standard input is no terminal, each of its lines is a turn.\n\n"
           "  --system TEXT       a system message\n"
           "  --think, --no-think let the model think first, or not (default: as its template has it)\n"
           "  --hide-thinking     do not show what it thinks\n"
           "  -n N                at most N tokens an answer\n%s%s",
           cli_sampling_help, cli_engine_help);
}

static int parse_args(struct chat *c, int argc, char **argv)
{
    struct q_err e;
    for (int opt; (opt = getopt_long(argc, argv, CLI_SHORT "n:", longs, NULL)) != -1;) {
        int bad = 0;
        switch (opt) {
        case '?':
        case ':': return cli_unknown(&c->cli, opt, argv) + 1;
        case 'n': bad = cli_int(&c->cli, "-n", optarg, -1, 1 << 24, &c->most); break;
        case OPT_SYSTEM: c->system = optarg; break;
        case OPT_THINK: c->think = 1; break;
        case OPT_NO_THINK: c->think = 0; break;
        case OPT_HIDE: c->hide_thinking = 1; break;
        case 'h':
        case CLI_HELP: help(); return 1;
        case CLI_VERSION: cli_version(); return 1;
        default: bad = cli_is_sampling(opt) ? cli_sampling_option(&c->sampling, &c->cli, opt, optarg) : cli_option(&c->cli, opt, optarg);
        }
        if (bad) return 3;
    }
    if (optind < argc) return cli_usage(&c->cli, "an argument without an option; texts are typed, not given") + 1;
    if (!c->cli.engine.model) return cli_usage(&c->cli, "expected -m FILE") + 1;
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

static int encode(struct chat *c, struct q_err *e)
{
    char *messages;
    const char *options = c->think < 0 ? NULL : c->think ? "{\"enable_thinking\": true}" : "{\"enable_thinking\": false}";
    int rc = chat_history_json(c->history, &messages, e);
    if (rc) return rc;
    c->ids.n = 0;
    rc = q_chat_encode(c->template, messages, NULL, options, &c->ids, e);
    free(messages);
    if (!rc && c->ids.n > (size_t)q_engine_ctx(c->engine))
        rc = q_fail(e, Q_ELIMIT, "with this the conversation has %zu tokens and the context is %d: /clear starts over, and -c N at the start gives more",
                    c->ids.n, q_engine_ctx(c->engine));
    return rc;
}

static void print_facts(const struct chat *c, const struct q_answer *a)
{
    int fresh = a->n_prompt - a->n_cached;
    char text[Q_ANSWER_TEXT];
    const char *why[] = {"", "; stopped at the limit", "; stopped by Ctrl-C"};
    q_answer_text(text, a);
    cli_fact(&c->cli, "prompt %d token%s (%d re-used): %.1f tok/s; answer %s%s", a->n_prompt, cli_s(a->n_prompt), a->n_cached,
             a->prefill_s > 0 ? fresh / a->prefill_s : 0, text, why[a->finish]);
    if (a->finish == Q_FINISH_LENGTH && a->n_prompt + a->n_generated > q_engine_ctx(c->engine))
        fprintf(stderr, "quarry chat: the context of %d tokens is full: /clear starts over, and -c N at the start gives more\n", q_engine_ctx(c->engine));
}

static int answer(struct chat *c, struct q_err *e)
{
    struct q_answer_opts o = {.sampling = c->sampling.params, .max_tokens = (int)c->most, .cancelled = cancelled, .text = on_text, .arg = c};
    struct q_answer a;
    o.thinking = q_reply_opens_thinking(q_engine_tokenizer(c->engine), c->ids.at, c->ids.n);
    chat_show_begin(&c->show);
    int rc = q_talk_answer(c->talk, c->ids.at, c->ids.n, &o, &a, e);
    int bad = chat_show_end(&c->show);
    if (!rc && (bad || ferror(stdout))) rc = q_fail(e, Q_EIO, "the answer could not be written or kept");
    if (rc) return rc;
    print_facts(c, &a);
    if (a.finish == Q_FINISH_CANCELLED && !a.n_generated) {
        chat_history_drop_last(c->history);
        return Q_OK;
    }
    return chat_history_assistant(c->history, c->show.text[Q_PART_CONTENT].at, c->show.text[Q_PART_THINKING].at, e);
}

/* A turn that fails is as if it had not been typed. */
static void take_turn(struct chat *c, const char *text)
{
    struct q_err e;
    int rc = chat_history_user(c->history, text, &e), added = !rc;
    interrupted = 0;
    if (!rc) rc = encode(c, &e);
    if (!rc) rc = answer(c, &e);
    if (!rc) return;
    if (added) chat_history_drop_last(c->history);
    c->failed = cli_fail(&c->cli, &e);
}

/* ---- commands ---- */

static void do_think(struct chat *c, const char *rest)
{
    c->think = 1;
    cli_fact(&c->cli, "the model thinks before it answers");
}

static void do_no_think(struct chat *c, const char *rest)
{
    c->think = 0;
    cli_fact(&c->cli, "the model answers without thinking");
}

static void do_clear(struct chat *c, const char *rest)
{
    chat_history_clear(c->history);
    cli_fact(&c->cli, "the conversation is forgotten");
}

static void do_exit(struct chat *c, const char *rest) { c->over = 1; }
static void do_help(struct chat *c, const char *rest);

static void do_system(struct chat *c, const char *rest)
{
    struct q_err e;
    if (chat_history_system(c->history, *rest ? rest : NULL, &e)) c->failed = cli_fail(&c->cli, &e);
    else cli_fact(&c->cli, *rest ? "the system message is set" : "there is no system message now");
}

static const struct command {
    const char *name;
    void (*run)(struct chat *, const char *rest);
    int takes_text;
    const char *what;
} commands[] = {
    {"/help", do_help, 0, "this list"},
    {"/think", do_think, 0, "let the model think before it answers"},
    {"/no_think", do_no_think, 0, "do not"},
    {"/system", do_system, 1, "TEXT: another system message; without TEXT: none"},
    {"/clear", do_clear, 0, "forget the conversation, keep the system message"},
    {"/exit", do_exit, 0, "leave (as Ctrl-D does)"},
};

static void do_help(struct chat *c, const char *rest)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) fprintf(stderr, "%-10s %s\n", commands[i].name, commands[i].what);
    fprintf(stderr, "A line that ends in \\ goes on in the next one; pasted lines are one text. A text that begins with / goes behind a space.\n"
                    "Ctrl-C stops an answer.\n");
}

static const struct command *find_command(const char *line, size_t n)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strlen(commands[i].name) == n && !memcmp(line, commands[i].name, n)) return &commands[i];
    return NULL;
}

static void run_command(struct chat *c, const char *line)
{
    struct q_err e;
    size_t n = strcspn(line, " \t\n");
    const char *rest = line + n + strspn(line + n, " \t\n");
    const struct command *found = find_command(line, n);
    if (found && (found->takes_text || !*rest)) {
        found->run(c, rest);
        return;
    }
    if (found) q_fail(&e, Q_EINPUT, "%s takes no text; a text that begins with / goes behind a space", found->name);
    else q_fail(&e, Q_EINPUT, "no command %.*s; /help lists them, and a text that begins with / goes behind a space", n < 40 ? (int)n : 40, line);
    c->failed = cli_fail(&c->cli, &e);
}

/* ---- the conversation ---- */

static void take_line(struct chat *c, const char *text, size_t n)
{
    struct q_err e;
    if (q_chat_check_text("the line", text, n, &e)) {
        c->failed = cli_fail(&c->cli, &e);
    } else if (*text == '/') {
        run_command(c, text);
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

static int open_chat(struct chat *c, struct q_err *e)
{
    c->cli.engine.max_snaps = SNAPS;
    c->cli.engine.ctx_hint = CTX_HINT;
    mask_interrupt(SIG_BLOCK);                   /* the engine's threads keep this mask: Ctrl-C is for this one */
    int rc = q_engine_open(&c->engine, &c->cli.engine, e);
    mask_interrupt(SIG_UNBLOCK);
    if (!rc) rc = q_chat_open(&c->template, c->engine, NULL, e);
    if (!rc) rc = q_talk_open(&c->talk, c->engine, e);
    if (!rc) rc = chat_history_open(&c->history, e);
    if (!rc && c->system) rc = chat_history_system(c->history, c->system, e);
    if (!rc) rc = chat_lines_open(&c->lines, e);
    return rc;
}

static void close_chat(struct chat *c)
{
    chat_lines_close(c->lines);
    chat_history_close(c->history);
    q_talk_close(c->talk);
    q_chat_close(c->template);
    q_engine_close(c->engine);
    chat_show_close(&c->show);
    free(c->ids.at);
}

int cmd_chat(int argc, char **argv)
{
    struct chat c = {.most = -1, .think = -1};
    struct q_err e = {0};
    cli_start(&c.cli, "chat");
    cli_sampling_start(&c.sampling);
    int stop = parse_args(&c, argc, argv);
    if (stop) return stop - 1;
    cli_sampling_seed(&c.sampling);
    chat_show_open(&c.show, c.hide_thinking);
    int rc = open_chat(&c, &e);
    if (rc) c.failed = cli_fail(&c.cli, &e);
    else cli_sampling_fact(&c.sampling, &c.cli);
    int person = !rc && chat_lines_interactive(c.lines);
    if (!rc) converse(&c);
    close_chat(&c);
    return rc || (c.failed && !person);
}
