#define _GNU_SOURCE
#include "cli.h"
#include "device_open.h"
#include "files.h"
#include "fit.h"
#include "kv_format.h"
#include "option_words.h"
#include "plain.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

const char cli_engine_help[] =
    "  -m FILE             the model, a GGUF file (of a split set: any part)\n"
    "  -t N                threads (default: all processors this program may use)\n"
    "  -c N                context in tokens, as 32768, 32K or 1M (run, eval, bench: default 4096; chat:\n"
    "                      default 8192; more where the input needs it; serve: what fits)\n"
    "  --rope-scaling S    yarn: a context beyond what the model was trained for, by YaRN; none: not even\n"
    "                      where the file says so\n"
    "  --yarn-factor F     stretch positions F times (default: the file's, else as far as -c needs)\n"
    "  --yarn-orig-ctx N   tokens that the model was trained for before (default: as the file says)\n"
    "  --numerics MODE     strict: the same bits for any batch\n"
    "                      pinned: the kernels chosen by tuning, checked by the gate (default)\n"
    "                      free: may also lower precision\n"
    "                      reference: fp32 activations and KV, plain kernels\n"
    "  --kv-k F, --kv-v F  format of stored K and V: f16 (default); q8: 8 bits; r4, r3: rotated, 4 and 3\n"
    "                      bits; f32: for comparison\n"
    "  --sparse-prefill M  rows of a prompt that see more than 8192 tokens read the pages of KV that hold\n"
    "                      about the share M of their attention, as 0.99, instead of all (default);\n"
    "                      answers may differ\n"
    "  --device D          where to run: auto (the card when there is one, the default), cpu, cuda,\n"
    "                      cuda:N (`quarry doctor` tells of cards); cuda:N,without=mma: as if it had no\n"
    "                      tensor cores, cuda:N,without=mma+dp4a: nor products of bytes, as a P100\n"
    "  --tunes DIR         look for kernel records in DIR first\n"
    "  --debug=LIST        launch: wait for every kernel, so that one that faults is named\n"
    "  -q                  no facts on stderr\n";

static void say(void *arg, const char *line) { cli_fact(arg, "%s", line); }

void cli_start(struct q_cli *c, const char *verb)
{
    memset(c, 0, sizeof *c);
    c->verb = verb;
    ssize_t n = readlink("/proc/self/exe", c->program_dir, sizeof c->program_dir - 1);
    c->program_dir[n > 0 ? n : 0] = 0;
    char *slash = strrchr(c->program_dir, '/');
    if (slash) *slash = 0;
    c->engine.program_dir = c->program_dir;
    c->engine.numerics = Q_PINNED;
    c->engine.say = say;
    c->engine.say_arg = c;
}

void cli_fact(const struct q_cli *c, const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    if (c->quiet) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    plain_line(line);
    fprintf(stderr, "# %s\n", line);
}

int cli_fail(const struct q_cli *c, const struct q_err *e)
{
    fprintf(stderr, "quarry %s: %s\n", c->verb, e->text);
    return 1;
}

int cli_usage(const struct q_cli *c, const char *line)
{
    fprintf(stderr, "quarry %s: %s (`quarry %s --help` lists the options)\n", c->verb, line, c->verb);
    return 2;
}

int cli_needs_file(const struct q_cli *c)
{
    if (c->engine.preset || c->engine.preset_type)
        return cli_usage(c, "--preset and --type are of made-up weights, which have no tokenizer: expected -m FILE alone");
    return c->engine.model ? 0 : cli_usage(c, "expected -m FILE");
}

/* As cli_usage, for an option's value: -1. */
static int wrong(const struct q_cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int wrong(const struct q_cli *c, const char *fmt, ...)
{
    char line[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    cli_usage(c, line);
    return -1;
}

/* For getopt's '?' and ':': the line about an option that there is not or that lacks its value. */
static int unknown(const struct q_cli *c, int opt, char **argv, const struct option *longs)
{
    const char letter[3] = {'-', (char)optopt, 0};
    const char *name = optopt > 0 && optopt < 256 ? letter : argv[optind - 1];   /* else 0, or a long option's code */
    char meant[60];
    option_near(meant, sizeof meant, name, longs);
    if (opt == ':') wrong(c, "%.60s needs a value", name);
    else wrong(c, "unknown option '%.60s'%s", name, meant);
    return CLI_WRONG;
}

/* The option that getopt reads next, as a whole: what it would take apart, `-ngl` into `-n gl`. 0, or CLI_WRONG after a line. */
static int foreign_word(const struct q_cli *c, int argc, char **argv, const char *shorts, const struct option *longs)
{
    const char *word = option_next_word(argc, argv);
    const char *instead = option_instead(c->verb, word, shorts, longs), *two = option_one_dash(word, longs);
    if (instead) wrong(c, "unknown option '%.60s': %s", word, instead);
    else if (two) wrong(c, "unknown option '%.60s'; is '--%s' meant?", word, two);
    return instead || two ? CLI_WRONG : 0;
}

/* Letters and the codes of long options, which begin at 256. */
static struct cli_given *place_of(struct q_cli *c, int opt) { return &c->given[opt < 128 ? opt : (opt - 128) % CLI_GIVEN]; }

static void note_value(struct q_cli *c, int opt, const char *value)
{
    struct cli_given *g = place_of(c, opt);
    if (!value) return;
    if (!g->first) g->first = value;
    g->last = value;
}

/* A key is nobody's to see. */
static void tell_if_twice(struct q_cli *c, int opt, const char *name)
{
    const struct cli_given *g = place_of(c, opt);
    char line[320];
    if (!g->first || !strcmp(g->first, g->last) || strstr(name, "api-key") || (c->repeats && !strcmp(c->repeats, name))) return;
    option_twice(line, sizeof line, name, g->last, g->first);
    plain_line(line);
    c->engine.say(c->engine.say_arg, line);
}

static void tell_twice(struct q_cli *c, const struct option *longs)
{
    char name[40];
    for (int letter = 'a'; letter <= 'z'; letter++) {
        snprintf(name, sizeof name, "-%c", letter);
        tell_if_twice(c, letter, name);
    }
    for (; longs->name; longs++) {
        snprintf(name, sizeof name, "--%s", longs->name);
        if (longs->val >= 256) tell_if_twice(c, longs->val, name);
    }
}

int cli_next(struct q_cli *c, int argc, char **argv, const char *shorts, const struct option *longs)
{
    if (foreign_word(c, argc, argv, shorts, longs)) return CLI_WRONG;
    int opt = getopt_long(argc, argv, shorts, longs, NULL);
    if (opt == '?' || opt == ':') return unknown(c, opt, argv, longs);
    if (opt == -1) tell_twice(c, longs);
    else note_value(c, opt, optarg);
    return opt;
}

int cli_stray(const struct q_cli *c, const char *word, const char *hint)
{
    wrong(c, "'%.60s' is an argument without an option%s", word, hint);
    return 2;
}

void cli_version(void) { printf("quarry %s\n", QUARRY_VERSION); }

int cli_int(const struct q_cli *c, const char *name, const char *value, long lo, long hi, long *out)
{
    char *end;
    errno = 0;
    long v = strtol(value, &end, 10);
    if (*value && !*end && !errno && v >= lo && v <= hi) {
        *out = v;
        return 0;
    }
    return wrong(c, "%s expects a whole number from %ld to %ld, not '%.100s'", name, lo, hi, value);
}

int cli_tokens(const struct q_cli *c, const char *name, const char *value, long lo, long hi, long *out)
{
    long v;
    if (fit_read_tokens(value, &v) || v < lo || v > hi)
        return wrong(c, "%s expects a whole number from %ld to %ld%s, not '%.100s'", name, lo, hi, hi >= 1 << 20 ? ", or as 256K or 1M" : "", value);
    *out = v;
    return 0;
}

int cli_bytes(const struct q_cli *c, const char *name, const char *value, size_t *out)
{
    if (!fit_read_bytes(value, out)) return 0;
    return wrong(c, "%s expects a size with its unit, as 8GiB or 512MiB, or 0 for none, not '%.100s'", name, value);
}

int cli_float(const struct q_cli *c, const char *name, const char *value, double *out)
{
    char *end;
    double v = strtod(value, &end);
    if (*value && !*end && isfinite(v)) {
        *out = v;
        return 0;
    }
    return wrong(c, "%s expects a number, not '%.100s'", name, value);
}

static int option_numerics(struct q_cli *c, const char *value)
{
    int n = q_numerics_parse(value);
    if (n < 0) return wrong(c, "--numerics is strict, pinned, free or reference, not '%.100s'", value);
    c->engine.numerics = (enum q_numerics)n;
    return 0;
}

static int option_device(struct q_cli *c, const char *value)
{
    int index;
    c->engine.device = value;
    if (device_name_good(value, &index)) return 0;
    return wrong(c, "--device is auto, cpu, cuda or cuda:N (cuda:N,without=mma: without its tensor cores; without=mma+dp4a: nor dp4a), not '%.100s'",
                 value);
}

/* A list, of one word in this version. */
static int option_debug(struct q_cli *c, const char *value)
{
    c->engine.debug_launch = !strcmp(value, "launch");
    if (c->engine.debug_launch) return 0;
    return wrong(c, "--debug takes launch, not '%.100s'", value);
}

/* Records that are not there would be missed by nobody: default params run, slower. */
static int option_tunes(struct q_cli *c, const char *value)
{
    struct stat st;
    c->engine.tunes = value;
    if (!stat(value, &st) && S_ISDIR(st.st_mode)) return 0;
    return wrong(c, "--tunes expects a folder with records, and '%.200s' is none", value);
}

static int option_kv(struct q_cli *c, const char *name, const char *value, const char **format)
{
    *format = value;
    if (kv_format_known(value)) return 0;
    return wrong(c, "%s is one of %s, not '%.100s'", name, kv_format_names, value);
}

static int none_and(const struct q_cli *c, const char *name)
{
    return wrong(c, "--rope-scaling none turns YaRN off, and %s asks for it: expected one of them", name);
}

static int option_rope(struct q_cli *c, const char *value)
{
    struct q_rope_ask *r = &c->engine.rope;
    r->scaling = !strcmp(value, "yarn") ? Q_ROPE_YARN : Q_ROPE_NONE;
    if (r->scaling == Q_ROPE_YARN) return 0;
    if (strcmp(value, "none")) return wrong(c, "--rope-scaling is yarn or none, not '%.100s'", value);
    return r->factor > 0 ? none_and(c, "--yarn-factor") : r->original ? none_and(c, "--yarn-orig-ctx") : 0;
}

/* An option that stretches asks for YaRN too. */
static int ask_yarn(struct q_cli *c, const char *name)
{
    if (c->engine.rope.scaling == Q_ROPE_NONE) return none_and(c, name);
    c->engine.rope.scaling = Q_ROPE_YARN;
    return 0;
}

static int option_yarn_factor(struct q_cli *c, const char *value)
{
    double v;
    if (cli_float(c, "--yarn-factor", value, &v)) return -1;
    if (v < 1 || v > 10000) return wrong(c, "--yarn-factor expects 1 to 10000, not '%.100s'", value);
    c->engine.rope.factor = (float)v;
    return ask_yarn(c, "--yarn-factor");
}

static int option_yarn_original(struct q_cli *c, const char *value)
{
    long n;
    if (cli_tokens(c, "--yarn-orig-ctx", value, 1, 1 << 24, &n)) return -1;
    c->engine.rope.original = (int)n;
    return ask_yarn(c, "--yarn-orig-ctx");
}

static int option_sparse(struct q_cli *c, const char *value)
{
    double mass;
    if (cli_float(c, "--sparse-prefill", value, &mass)) return -1;
    c->engine.sparse.mass = mass;
    return mass > 0 && mass < 1 ? 0 : wrong(c, "--sparse-prefill expects a share of attention above 0 and below 1, as 0.99, not '%.100s'", value);
}

int cli_option(struct q_cli *c, int opt, const char *value)
{
    long n;
    switch (opt) {
    case 'm': c->engine.model = value; return 0;
    case 'q': c->quiet = 1; return 0;
    case 't':
        if (cli_int(c, "-t", value, 1, 1024, &n)) return -1;
        c->engine.threads = (int)n;
        return 0;
    case 'c':
        if (cli_tokens(c, "-c", value, 1, 1 << 24, &n)) return -1;
        c->engine.ctx = (int)n;
        return 0;
    case CLI_NUMERICS: return option_numerics(c, value);
    case CLI_DEVICE: return option_device(c, value);
    case CLI_SPARSE: return option_sparse(c, value);
    case CLI_ROPE: return option_rope(c, value);
    case CLI_YARN_FACTOR: return option_yarn_factor(c, value);
    case CLI_YARN_ORIGINAL: return option_yarn_original(c, value);
    case CLI_DEBUG: return option_debug(c, value);
    case CLI_TUNES: return option_tunes(c, value);
    case CLI_PRESET: c->engine.preset = value; return 0;
    case CLI_TYPE: c->engine.preset_type = value; return 0;
    case CLI_KV_K: return option_kv(c, "--kv-k", value, &c->engine.kv_k);
    case CLI_KV_V: return option_kv(c, "--kv-v", value, &c->engine.kv_v);
    default: return -1;
    }
}

enum { MAX_FILE = 1 << 30 };

/* To the end; a directory or device that cannot be read is an error of read(), an endless one meets the limit. */
static int read_all(int fd, const char *path, char **text, size_t *n, struct q_err *e)
{
    if (file_get_all(fd, MAX_FILE, text, n))
        return errno == ENOMEM ? q_fail(e, Q_EMEM, "%s: no memory for its text", path)
               : q_fail(e, Q_EIO, "%s: cannot read: %s", path, strerror(errno));
    if (*n <= MAX_FILE) return Q_OK;
    free(*text);
    *text = NULL;
    return q_fail(e, Q_ELIMIT, "%s: more than %d MiB of text", path, MAX_FILE >> 20);
}

size_t cli_bom(const char *text, size_t n) { return n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0; }

static int read_file(const char *path, char **text, size_t *n, struct q_err *e)
{
    if (!strcmp(path, "-")) return read_all(STDIN_FILENO, "standard input", text, n, e);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return q_fail(e, Q_EIO, "%s: cannot open: %s", path, strerror(errno));
    int rc = read_all(fd, path, text, n, e);
    close(fd);
    return rc;
}

int cli_read_file(const char *path, char **text, size_t *n, struct q_err *e)
{
    int rc = read_file(path, text, n, e);
    size_t bom = rc ? 0 : cli_bom(*text, *n);
    if (!bom) return rc;
    *n -= bom;
    memmove(*text, *text + bom, *n + 1);
    return Q_OK;
}

void cli_memory(const struct q_cli *c, const struct q_engine *en)
{
    size_t planned, taken;
    q_engine_memory(en, &planned, &taken);
    if (taken) cli_fact(c, "memory: %.1f MiB were planned, %.1f MiB are taken", (double)planned / 1048576, (double)taken / 1048576);
}
