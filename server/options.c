#include "options.h"
#include "runtime/json_check.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

enum { OPT_HOST = CLI_OWN, OPT_PORT, OPT_QUEUE, OPT_DRAIN, OPT_ALIAS, OPT_KEYS, OPT_TEMPLATE, OPT_KWARGS };

static const struct option longs[] = {CLI_LONG,
                                      {"host", 1, 0, OPT_HOST},
                                      {"port", 1, 0, OPT_PORT},
                                      {"queue", 1, 0, OPT_QUEUE},
                                      {"drain", 1, 0, OPT_DRAIN},
                                      {"alias", 1, 0, OPT_ALIAS},
                                      {"api-key-file", 1, 0, OPT_KEYS},
                                      {"chat-template-file", 1, 0, OPT_TEMPLATE},
                                      {"chat-template-kwargs", 1, 0, OPT_KWARGS},
                                      {0, 0, 0, 0}};

static void help(void)
{
    printf("usage: quarry-serve -m FILE [options]\n\n"
           "  --port N            where to listen (default 8080; 0: any free port, which is printed)\n"
           "  --host A            address to listen on (default 127.0.0.1: this machine alone)\n"
           "  --alias NAME        the model's name in the API (default: the file's name)\n"
           "  --api-key-file F    API keys, one a line; without it none is asked for\n"
           "  --chat-template-file F    a chat template instead of the model file's\n"
           "  --chat-template-kwargs JSON    template options of requests that give none, {\"enable_thinking\": false}\n"
           "  --queue N           requests that may wait for the one that runs (default 64); more get 429\n"
           "  --drain S           seconds that SIGTERM lets requests go on (default 20)\n%s",
           cli_engine_help);
}

static int number(struct options *o, const char *name, const char *value, long lo, long hi, int *to)
{
    long n;
    if (cli_int(&o->cli, name, value, lo, hi, &n)) return -1;
    *to = (int)n;
    return 0;
}

static int own_option(struct options *o, int opt, const char *value)
{
    switch (opt) {
    case OPT_HOST: o->host = value; return 0;
    case OPT_PORT: return number(o, "--port", value, 0, 65535, &o->port);
    case OPT_QUEUE: return number(o, "--queue", value, 1, 4096, &o->queue);
    case OPT_DRAIN: return number(o, "--drain", value, 0, 3600, &o->drain_s);
    case OPT_ALIAS: o->alias = value; return 0;
    case OPT_KEYS: o->key_file = value; return 0;
    case OPT_TEMPLATE: o->template_file = value; return 0;
    case OPT_KWARGS: o->kwargs = value; return 0;
    default: return cli_option(&o->cli, opt, value);
    }
}

static int is_json_object(const char *text)
{
    struct q_err e;
    if (json_check(text, strlen(text), JSON_MAX_DEPTH, "--chat-template-kwargs", &e)) return 0;
    return text[strspn(text, " \t\r\n")] == '{';
}

static int check(const struct options *o)
{
    if (o->cli.engine.preset) return cli_usage(&o->cli, "a preset has no tokenizer, so it cannot be served; expected -m FILE");
    if (!o->cli.engine.model) return cli_usage(&o->cli, "expected -m FILE");
    if (o->kwargs && !is_json_object(o->kwargs)) return cli_usage(&o->cli, "--chat-template-kwargs expects a JSON object");
    if (o->alias && (!*o->alias || strlen(o->alias) > 200)) return cli_usage(&o->cli, "--alias expects a name of 1 to 200 bytes");
    if (o->alias && !utf8_valid(o->alias, strlen(o->alias))) return cli_usage(&o->cli, "--alias expects UTF-8");
    return -1;
}

int options_read(struct options *o, int argc, char **argv)
{
    memset(o, 0, sizeof *o);
    cli_start(&o->cli, "serve");
    o->host = "127.0.0.1";
    o->port = 8080;
    o->queue = 64;
    o->drain_s = 20;
    o->cli.engine.max_rows = 256; /* a client that leaves is noticed between prefill steps */
    o->cli.engine.max_snaps = 4;  /* earlier prompts that a next one may continue */
    for (int opt; (opt = getopt_long(argc, argv, CLI_SHORT, longs, NULL)) != -1;) {
        if (opt == CLI_HELP) return help(), 0;
        if (opt == CLI_VERSION) return cli_version(), 0;
        if (opt == '?' || opt == ':') return cli_unknown(&o->cli, opt, argv);
        if (own_option(o, opt, optarg)) return 2;
    }
    if (optind < argc) return cli_usage(&o->cli, "an argument without an option");
    return check(o);
}
