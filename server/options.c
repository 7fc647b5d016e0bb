#include "options.h"
#include "log.h"
#include "runtime/json_check.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

enum { OPT_HOST = CLI_OWN, OPT_PORT, OPT_QUEUE, OPT_DRAIN, OPT_ALIAS, OPT_KEY, OPT_KEYS, OPT_TEMPLATE, OPT_KWARGS,
       OPT_CORS, OPT_MAX_BODY, OPT_HEADER_TIME, OPT_BODY_TIME, OPT_QUIET, OPT_LOG_JSON, OPT_LOG_TEXT, OPT_PARALLEL, OPT_TRUNCATE,
       OPT_CACHE_DEVICE, OPT_CACHE_HOST, OPT_CACHE_DISK, OPT_CACHE_DIR, OPT_CACHE_EVERY, OPT_SLOTS };

static const struct option longs[] = {CLI_LONG,
                                      {"host", 1, 0, OPT_HOST},
                                      {"port", 1, 0, OPT_PORT},
                                      {"queue", 1, 0, OPT_QUEUE},
                                      {"parallel", 1, 0, OPT_PARALLEL},
                                      {"truncate", 1, 0, OPT_TRUNCATE},
                                      {"cache-device", 1, 0, OPT_CACHE_DEVICE},
                                      {"cache-host", 1, 0, OPT_CACHE_HOST},
                                      {"cache-disk", 1, 0, OPT_CACHE_DISK},
                                      {"cache-dir", 1, 0, OPT_CACHE_DIR},
                                      {"cache-every", 1, 0, OPT_CACHE_EVERY},
                                      {"slot-save-path", 1, 0, OPT_SLOTS},
                                      {"drain", 1, 0, OPT_DRAIN},
                                      {"alias", 1, 0, OPT_ALIAS},
                                      {"api-key", 1, 0, OPT_KEY},
                                      {"api-key-file", 1, 0, OPT_KEYS},
                                      {"chat-template-file", 1, 0, OPT_TEMPLATE},
                                      {"chat-template-kwargs", 1, 0, OPT_KWARGS},
                                      {"cors", 1, 0, OPT_CORS},
                                      {"max-body", 1, 0, OPT_MAX_BODY},
                                      {"header-time", 1, 0, OPT_HEADER_TIME},
                                      {"body-time", 1, 0, OPT_BODY_TIME},
                                      {"keep-alive", 1, 0, OPT_QUIET},
                                      {"log-json", 0, 0, OPT_LOG_JSON},
                                      {"log-text", 0, 0, OPT_LOG_TEXT},
                                      {0, 0, 0, 0}};

static void help(void)
{
    printf("usage: quarry serve -m FILE [options]\n\n"
           "  --port N            where to listen (default 8080; 0: any free port, which is printed)\n"
           "  --host A            address to listen on (default 127.0.0.1: this machine alone)\n"
           "  --alias NAME        the model's name in the API (default: the file's name)\n"
           "  --api-key KEY       a key that requests must bring; may be given again (whoever lists processes\n"
           "                      sees it: a file hides it)\n"
           "  --api-key-file F    API keys, one a line, # begins a comment line; without keys none is asked for\n"
           "  --cors LIST         origins whose pages may use the server,\n"
           "                      https://chat.example,http://localhost:3000, or * (default: none)\n"
           "  --chat-template-file F    a chat template instead of the model file's\n"
           "  --chat-template-kwargs JSON    template options of requests that give none,\n"
           "                      {\"enable_thinking\": false}\n"
           "  --parallel N        answers that are written at once, each with the context of -c (default: 4, on\n"
           "                      a card 8)\n"
           "  --queue N           requests that may wait besides those (default 64); more get 429\n"
           "  --truncate HOW      a prompt too long for the context loses its oldest turns (head) or those in\n"
           "                      the middle (middle), where the request does not say; default: none, it is\n"
           "                      refused\n"
           "  --cache-device SIZE keep checkpoints of prompts that were read, so that a next one goes on from\n"
           "                      there: on the device this much (512MiB, 2GiB; default: 4 more than\n"
           "                      --parallel), 0: none anywhere\n"
           "  --cache-host SIZE   ... then in host memory (default: a quarter of what is free, at most 8GiB; 0:\n"
           "                      none)\n"
           "  --cache-disk SIZE   ... then on disk, where they survive a restart (default 0: none)\n"
           "  --cache-dir DIR     where on disk (default: the user's cache directory)\n"
           "  --cache-every N     tokens of a long prompt between checkpoints, besides those at the ends of\n"
           "                      turns (default 4096; 0: none)\n"
           "  --slot-save-path DIR    let POST /slots/ID?action=save and restore write and read files of what\n"
           "                      slots hold in DIR, which is made (default: not)\n"
           "  --max-body MIB      the largest body of a request (default 16)\n"
           "  --header-time S     seconds within which a request's headers must be there (default 30)\n"
           "  --body-time S       seconds for its body (default 300)\n"
           "  --keep-alive S      seconds of silence after which a stream gets a comment, so that proxies let it\n"
           "                      live (default 10)\n"
           "  --log-json          the log as JSON, one object a line\n"
           "  --log-text          also log what is asked and answered (default: never)\n"
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

static int add_key(struct options *o, const char *value)
{
    if (!*value) return cli_usage(&o->cli, "--api-key expects a key, not an empty word"), -1;
    if (o->n_keys == OPTIONS_KEYS) return cli_usage(&o->cli, "--api-key may be given 64 times; more keys go into a file"), -1;
    o->key[o->n_keys++] = value;
    return 0;
}

static int add_cors(struct options *o, const char *value)
{
    char line[300];
    const char *wrong = cors_read(&o->cors, value);
    if (!wrong) return 0;
    snprintf(line, sizeof line, "--cors %.100s: %s", value, wrong);
    cli_usage(&o->cli, line);
    return -1;
}

static int set_cut(struct options *o, const char *value)
{
    int how = q_cut_parse(value);
    o->cut = how < 0 ? Q_CUT_NEVER : (enum q_cut)how;
    return how < 0 ? cli_usage(&o->cli, "--truncate is none, head or middle"), -1 : 0;
}

static int own_option(struct options *o, int opt, const char *value)
{
    switch (opt) {
    case OPT_HOST: o->host = value; return 0;
    case OPT_PORT: return number(o, "--port", value, 0, 65535, &o->port);
    case OPT_QUEUE: return number(o, "--queue", value, 1, 4096, &o->queue);
    case OPT_PARALLEL: return number(o, "--parallel", value, 1, 256, &o->parallel);
    case OPT_TRUNCATE: return set_cut(o, value);
    case OPT_CACHE_DEVICE: o->cache_device_given = 1; return cli_bytes(&o->cli, "--cache-device", value, &o->cache_device);
    case OPT_CACHE_HOST: o->cache_host_given = 1; return cli_bytes(&o->cli, "--cache-host", value, &o->cache_host);
    case OPT_CACHE_DISK: return cli_bytes(&o->cli, "--cache-disk", value, &o->cache_disk);
    case OPT_CACHE_DIR: o->cache_dir = value; return 0;
    case OPT_CACHE_EVERY: return number(o, "--cache-every", value, 0, 1 << 24, &o->cache_every);
    case OPT_SLOTS: o->slot_dir = value; return 0;
    case OPT_DRAIN: return number(o, "--drain", value, 0, 3600, &o->drain_s);
    case OPT_ALIAS: o->alias = value; return 0;
    case OPT_KEY: return add_key(o, value);
    case OPT_CORS: return add_cors(o, value);
    case OPT_MAX_BODY: return number(o, "--max-body", value, 1, 1024, &o->max_body_mib);
    case OPT_HEADER_TIME: return number(o, "--header-time", value, 1, 3600, &o->header_s);
    case OPT_BODY_TIME: return number(o, "--body-time", value, 1, 86400, &o->body_s);
    case OPT_QUIET: return number(o, "--keep-alive", value, 1, 3600, &o->quiet_s);
    case OPT_LOG_JSON: o->log_json = 1; return 0;
    case OPT_LOG_TEXT: o->log_text = 1; return 0;
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
    if (cli_needs_file(&o->cli)) return 2;
    if (o->cache_device_given && !o->cache_device && (o->cache_host || o->cache_disk))
        return cli_usage(&o->cli, "checkpoints reach host memory and disk through the device: --cache-device 0 is none anywhere");
    if (o->cache_dir && !o->cache_disk) return cli_usage(&o->cli, "--cache-dir without --cache-disk SIZE: nothing would be written there");
    if (o->slot_dir && !*o->slot_dir) return cli_usage(&o->cli, "--slot-save-path expects a directory, not an empty word");
    if (o->kwargs && !is_json_object(o->kwargs)) return cli_usage(&o->cli, "--chat-template-kwargs expects a JSON object");
    if (o->alias && (!*o->alias || strlen(o->alias) > 200)) return cli_usage(&o->cli, "--alias expects a name of 1 to 200 bytes");
    if (o->alias && !utf8_valid(o->alias, strlen(o->alias))) return cli_usage(&o->cli, "--alias expects UTF-8");
    return -1;
}

static void say(void *arg, const char *line) { log_line(arg, line); }

int options_read(struct options *o, int argc, char **argv)
{
    memset(o, 0, sizeof *o);
    cli_start(&o->cli, "serve");
    o->cli.engine.say = say;
    o->cli.engine.say_arg = o;
    o->cli.repeats = "--cors";
    o->host = "127.0.0.1";
    o->port = 8080;
    o->queue = 64;
    o->drain_s = 20;
    o->max_body_mib = 16;         /* JSON of small values takes some 30 times its length when parsed */
    o->header_s = 30;
    o->body_s = 300;
    o->cache_every = 4096;
    o->quiet_s = 10;              /* below the 15 s that the strictest readers bear */
    o->cli.engine.ctx_hint = 1 << 20; /* as much as the model was trained for, or as fits */
    o->cli.engine.fit = 1;
    o->cli.engine.max_snaps = -1; /* earlier prompts that a next one may continue */
    for (int opt; (opt = cli_next(&o->cli, argc, argv, CLI_SHORT, longs)) != -1;) {
        if (opt == 'h' || opt == CLI_HELP) return help(), 0;
        if (opt == CLI_VERSION) return cli_version(), 0;
        if (opt == CLI_WRONG || own_option(o, opt, optarg)) return 2;
    }
    if (optind < argc) return cli_stray(&o->cli, argv[optind], "");
    o->cli.engine.max_seqs = o->parallel ? o->parallel : -1;
    return check(o);
}
