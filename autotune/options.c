#include "options.h"
#include "gen/cards.h"
#include "runtime/kv_format.h"
#include "runtime/device.h"
#include "runtime/option_words.h"
#include "tune.h"
#include "verbs.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#ifndef QUARRY_VERSION
#define QUARRY_VERSION "0"
#endif

/* A part of the help, and the verbs whose it is. */
struct help {
    const char *verbs, *text;
};

#define WHAT "           "   /* what a verb does, under how it is written */
static const struct help usages[] = {
    { " tune ", "quarry tune [tune] (-m FILE | --preset NAME) [options]\n"
              WHAT "make the kernel set of a model on this card\n" },
    { " plan ", "quarry tune plan [OP] (-m FILE | --preset NAME)\n"
              WHAT "what would be tried and what is pruned, and why; nothing is measured\n" },
    { " explain ", "quarry tune explain OP [PART] [-m FILE | --preset NAME]\n"
                 WHAT "why its winners are that (of shapes with PART in them): times, roof, search\n" },
    { " verify ", "quarry tune verify [OP] [-m FILE | --preset NAME]\n"
                WHAT "builds, tests and times what was recorded once more, a line an op\n" },
    { " compare ", "quarry tune compare FILE [-m FILE | --preset NAME]\n"
                 WHAT "this card's winners against another tune's (a file of tune list --measured):\n"
                 WHAT "one duel where they differ; status 0 when all are within 2 % or its noise\n" },
    { " list ", "quarry tune list [-m FILE | --preset NAME] [--json]\n"
              WHAT "what the store holds for this card, or a model would run with\n" },
    { " export ", "quarry tune export [-o FILE] [--binaries] [--sign KEY]\n"
                WHAT "this card's winners, for other machines\n" },
    { " build ", "quarry tune build --card KEY (-m FILE | --preset NAME) [-o FILE] [--sign KEY]\n"
               WHAT "a whole kernel set for a card that is not here\n" },
    { " import ", "quarry tune import FILE\n"
                WHAT "such a kernel set into this machine's store\n" },
    { " trust ", "quarry tune trust [KEY | --remove KEY | --new FILE]\n"
               WHAT "whose binaries are used; a key of your own\n" },
    { " contribute ", "quarry tune contribute [--card KEY]\n"
                    WHAT "this card's winners as one text for the project (tuned/README.md)\n" },
    { " admit ", "quarry tune admit FILE [DIR]\n"
               WHAT "checks such a text; its records into DIR, like tuned/\n" },
};

#define OF_MODEL " tune plan explain verify compare list build "
#define BUILDS " tune plan explain verify compare list export build import contribute "

static const struct help options[] = {
    { " tune plan ", "  --effort E           normal (default): measure 20 to 60 candidates a shape; quick: about 6;\n"
                     "                       exhaustive: every legal one, which may take hours;\n"
                     "                       none: default params, nothing is measured\n" },
    { " tune ", "  --roofs              the card's ceilings alone, without a model\n" },
    { " tune ", "  --again              measure also what is recorded, as after a tune beside other programs\n" },
    { OF_MODEL, "  -m FILE              the model, a GGUF file\n"
                "  --preset NAME        a shape by name (qwen3.5-0.8b) or of a file (./mine.lua), with weights of\n"
                "                       --type T (q8_0)\n"
                "  --numerics N         strict, pinned (default), free or reference\n"
                "  --sparse-prefill M   also what sparse prefill takes, whatever the share M is there\n"
                "  --kv-k F, --kv-v F   format of K and V: f16 (default), q8, r4, r3 or f32\n" },
    { BUILDS, "  --device D           auto (default: the card if there is one), cpu, cuda or cuda:N\n" },
    { " tune plan explain list export build contribute ", "  --card CARD          build for this card instead of the one here: a name (t4; quarry-gen --cards\n"
                                                          "                       lists them), a file (./mine.lua), or a key, e.g. cpu:avx2 or cuda:sm_70\n" },
    { BUILDS, "  -t N                 threads that the model will run with (default: all CPUs)\n"
              "  --tunes DIR          records of winners here, before the user's own\n"
              "  --cache DIR          default records and objects here (default: $XDG_CACHE_HOME/quarry); a tune\n"
              "                       takes it with --effort none\n"
              "  --cc PROGRAM         the C compiler (default: the first of cc, gcc, clang)\n"
              "  --nvrtc PATH         NVRTC's library or a folder with it (default: the newest that serves card and\n"
              "                       driver)\n"
              "  -j N                 compilers at a time (default: one a CPU)\n" },
    { BUILDS "admit ", "  --generator DIR      templates of this source tree instead of the built-in ones\n" },
    { " export build ", "  -o FILE              export, build: the kernel set (default: set.tar.zst)\n" },
    { " export ", "  --binaries           export: with what the kernels were compiled to; others use it if they trust\n"
                  "                       your key\n" },
    { " export build ", "  --sign FILE          export, build: signed by this secret key (of trust --new, or minisign -G -W)\n" },
    { " plan explain compare list ", "  --json               list: one record a line, as stored; plan, explain, compare: one object or\n"
                                     "                       list\n" },
    { " list ", "  --table              list: what was measured, with microseconds and percent of the roof\n"
                "  --measured           list: winners that were measured, as tuned/ holds them for a card\n" },
};

static int belongs(const struct help *h, const struct verb *v)
{
    char name[40];
    if (!v) return 1;
    snprintf(name, sizeof name, " %s ", v->name);
    return strstr(h->verbs, name) != NULL;
}

/* Of one verb; NULL: of all. */
static void usage(FILE *f, const struct verb *v)
{
    const char *before = "usage: ";
    for (size_t i = 0; i < sizeof usages / sizeof *usages; i++)
        if (belongs(&usages[i], v)) fprintf(f, "%s%s", before, usages[i].text), before = "       ";
    fputs("\n", f);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (belongs(&options[i], v)) fputs(options[i].text, f);
}

enum { O_EFFORT = 256, O_PRESET, O_TYPE, O_NUMERICS, O_KV_K, O_KV_V, O_SPARSE, O_CARD, O_DEVICE, O_TUNES, O_CACHE, O_CC, O_NVRTC, O_GENERATOR, O_JSON,
       O_MEASURED, O_TABLE, O_ROOFS, O_SIGN, O_BINARIES, O_NEW, O_REMOVE, O_AGAIN, O_VERSION, O_HELP };

static const char shorts[] = ":m:t:j:o:h";
static const struct option longs[] = {
    { "effort", 1, NULL, O_EFFORT },     { "preset", 1, NULL, O_PRESET },   { "type", 1, NULL, O_TYPE },
    { "numerics", 1, NULL, O_NUMERICS }, { "kv-k", 1, NULL, O_KV_K },       { "kv-v", 1, NULL, O_KV_V },
    { "card", 1, NULL, O_CARD },         { "tunes", 1, NULL, O_TUNES },     { "cache", 1, NULL, O_CACHE },
    { "cc", 1, NULL, O_CC },             { "generator", 1, NULL, O_GENERATOR }, { "json", 0, NULL, O_JSON },
    { "measured", 0, NULL, O_MEASURED },   { "table", 0, NULL, O_TABLE },     { "roofs", 0, NULL, O_ROOFS },
    { "version", 0, NULL, O_VERSION },   { "help", 0, NULL, O_HELP },       { "threads", 1, NULL, 't' },
    { "device", 1, NULL, O_DEVICE },     { "nvrtc", 1, NULL, O_NVRTC },
    { "sign", 1, NULL, O_SIGN },         { "binaries", 0, NULL, O_BINARIES }, { "new", 1, NULL, O_NEW },
    { "remove", 1, NULL, O_REMOVE },     { "again", 0, NULL, O_AGAIN },     { "sparse-prefill", 1, NULL, O_SPARSE },
    { "model", 1, NULL, 'm' },           { "jobs", 1, NULL, 'j' },          { "output", 1, NULL, 'o' },
    { 0 },
};

/* What needs more than a pointer kept. given: codes of the options that there are. */
struct raw {
    int given[32], n_given;
    const char *card, *threads, *jobs, *numerics, *sparse;
};

static const char **slot_of(struct options *o, struct raw *r, int c)
{
    switch (c) {
    case 'm': return &o->model;
    case 'o': return &o->output;
    case 't': return &r->threads;
    case 'j': return &r->jobs;
    case O_EFFORT: return &o->effort;
    case O_PRESET: return &o->preset;
    case O_TYPE: return &o->type;
    case O_NUMERICS: return &r->numerics;
    case O_KV_K: return &o->kv_k;
    case O_KV_V: return &o->kv_v;
    case O_SPARSE: return &r->sparse;
    case O_CARD: return &r->card;
    case O_TUNES: return &o->tunes;
    case O_CACHE: return &o->cache;
    case O_CC: return &o->given.cc;
    case O_NVRTC: return &o->given.nvrtc.given;
    case O_DEVICE: return &o->device;
    case O_SIGN: return &o->sign;
    case O_NEW: return &o->new_key;
    case O_REMOVE: return &o->remove;
    case O_GENERATOR: return &o->generator;
    default: return NULL;
    }
}

/* After getopt's '?': optopt is a short option's letter, an option's code where a long one got a value that it does not take, or 0. */
static int unknown_option(char **argv, struct q_err *e)
{
    char letter[3] = { '-', (char)optopt, 0 }, meant[60];
    const char *name = optopt > 0 && optopt < 256 ? letter : argv[optind - 1];
    option_near(meant, sizeof meant, name, longs);
    return q_fail(e, Q_EINPUT, "unknown option '%s'%s", name, meant);
}

/* Of the word that getopt reads next, which would take `-ctk` for `-c tk`. */
static int check_word(int argc, char **argv, struct q_err *e)
{
    const char *word = option_next_word(argc, argv);
    const char *instead = option_instead("tune", word, shorts, longs), *two = option_one_dash(word, longs);
    if (instead) return q_fail(e, Q_EINPUT, "unknown option '%.60s': %s", word, instead);
    return two ? q_fail(e, Q_EINPUT, "unknown option '%.60s'; is '--%s' meant?", word, two) : Q_OK;
}

static int find_verb(struct options *o, const char *word, struct q_err *e)
{
    char names[160], meant[60];
    verb_names(names, sizeof names);
    o->verb = verb_find(word);
    if (!o->verb) return q_fail(e, Q_EINPUT, "verb: expected %s, found '%s'%s", names, word, verb_near(word, meant));
    if (o->n_args > o->verb->most_args)
        return q_fail(e, Q_EINPUT, "'%s': expected %s", o->args[o->verb->most_args], o->verb->most_args ? o->verb->args : "one verb");
    if (o->n_args < o->verb->least_args) return q_fail(e, Q_EINPUT, "%s: expected %s", o->verb->name, o->verb->args);
    return Q_OK;
}

/* As the help writes it: "--effort " or "-j ". 0: there is none. */
static int name_of(int code, char name[40])
{
    if (code < 256) return snprintf(name, 40, "-%c ", code);
    for (const struct option *l = longs; l->name; l++)
        if (l->val == code) return snprintf(name, 40, "--%s ", l->name);
    return 0;
}

static int given_before(const struct raw *r, int c)
{
    for (int i = 0; i < r->n_given; i++)
        if (r->given[i] == c) return 1;
    return 0;
}

/* Of an option given twice the last value counts, as with the other verbs, and that is told. */
static void take(const char **slot, const char *value, int again, int c)
{
    char name[40], line[320];
    if (again && strcmp(*slot, value) && name_of(c, name)) {
        name[strcspn(name, " ")] = 0;
        option_twice(line, sizeof line, name, value, *slot);
        verb_say(NULL, line);
    }
    *slot = value;
}

static int read_words(struct options *o, struct raw *r, int argc, char **argv, struct q_err *e)
{
    const char *word = "tune";
    int c, wrong, help = 0;
    opterr = 0;
    while (!(wrong = check_word(argc, argv, e)) && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const char **slot = slot_of(o, r, c);
        if (slot) take(slot, optarg, given_before(r, c), c);
        else if (c == O_AGAIN) o->again = 1;
        else if (c == O_JSON) o->json = 1;
        else if (c == O_MEASURED) o->measured = 1;
        else if (c == O_TABLE) o->table = 1;
        else if (c == O_ROOFS) o->roofs = 1;
        else if (c == O_BINARIES) o->binaries = 1;
        else if (c == O_VERSION) printf("quarry-tune %s\n", QUARRY_VERSION);
        else if (c == O_HELP || c == 'h') help = 1;
        else if (c == ':') return q_fail(e, Q_EINPUT, "%s needs a value", argv[optind - 1]);
        else return unknown_option(argv, e);
        if (c == O_VERSION || c == O_HELP || c == 'h') o->done = 1;
        if (r->n_given < 32) r->given[r->n_given++] = c;
    }
    if (wrong) return wrong;
    if (help) usage(stdout, optind < argc ? verb_find(argv[optind]) : NULL);
    if (optind < argc) word = argv[optind++];
    o->args = argv + optind;
    o->n_args = argc - optind;
    return o->done ? Q_OK : find_verb(o, word, e);
}

/* At the beginning of a line, or as "--kv-k F, --kv-v F". */
static int tells_of(const char *text, const char *name)
{
    for (const char *at = text; (at = strstr(at, name)); at++)
        if (at - text >= 2 && !strncmp(at - 2, at == text + 2 || at[-3] == '\n' ? "  " : ", ", 2)) return 1;
    return 0;
}

/* One that would be passed over is a misunderstanding. What no help tells of is this program's own. */
static int check_given(const struct options *o, const struct raw *r, struct q_err *e)
{
    char name[40];
    for (int i = 0; i < r->n_given; i++) {
        int told = 0, fits = 0;
        if (!name_of(r->given[i], name)) continue;
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            if (!tells_of(options[k].text, name)) continue;
            told = 1;
            fits |= belongs(&options[k], o->verb);
        }
        name[strlen(name) - 1] = 0;
        if (told && !fits) return q_fail(e, Q_EINPUT, "%s: %s does not go with it", o->verb->name, name);
    }
    return Q_OK;
}

static int to_count(const char *name, const char *text, int *v, struct q_err *e)
{
    char *end;
    if (!text) return Q_OK;
    long n = strtol(text, &end, 10);
    if (!*text || *end || n < 1 || n > 4096) return q_fail(e, Q_EINPUT, "%s: expected 1..4096, found '%s'", name, text);
    *v = (int)n;
    return Q_OK;
}

static int check_kv(const char *name, const char *value, struct q_err *e)
{
    return kv_format_known(value) ? Q_OK : q_fail(e, Q_EINPUT, "%s: expected one of %s, found '%s'", name, kv_format_names, value);
}

/* The same kernels serve any share, so it is read as everywhere and then forgotten. */
static int check_sparse(struct options *o, const char *value, struct q_err *e)
{
    char *end;
    if (!value) return Q_OK;
    double mass = strtod(value, &end);
    if (!*value || *end || !(mass > 0 && mass < 1))
        return q_fail(e, Q_EINPUT, "--sparse-prefill: expected a share above 0 and below 1, as 0.99, found '%s'", value);
    o->sparse = 1;
    return Q_OK;
}

/* Measuring is about this machine, and its gate's engines use the user's own cache. */
static int check_effort(const struct options *o, const struct raw *raw, struct q_err *e)
{
    if (o->again && (!strcmp(o->effort, "none") || o->roofs))
        return q_fail(e, Q_EINPUT, "--again measures a model's kernels: %s does not go with it", o->roofs ? "--roofs" : "--effort none");
    if (!strcmp(o->effort, "none")) return Q_OK;
    if (!effort_find(o->effort)) return q_fail(e, Q_EINPUT, "--effort: expected none, quick, normal or exhaustive, found '%s'", o->effort);
    if (!(o->verb->needs & VERB_MEASURES)) return Q_OK;
    if (raw->card) return q_fail(e, Q_EINPUT, "--card goes with --effort none: only the card that is here can be measured");
    if (o->cache) return q_fail(e, Q_EINPUT, "--cache goes with --effort none");
    return Q_OK;
}

/* The supervisor only asks: measuring is a child's, so the device is closed at once. */
static int card_of_device(struct options *o, int threads, struct q_err *e)
{
    struct q_device *d;
    int rc = !strcmp(o->device, "cpu") ? card_detect_cpu(&o->card, threads, e) : device_open(&d, o->device, threads, e);
    if (rc || !strcmp(o->device, "cpu")) return rc;
    o->card = d->card;
    d->ops->close(d);
    return Q_OK;
}

/* Of those for kernel sets and keys. */
static int check_bundles(const struct options *o, struct q_err *e)
{
    int keys = (o->new_key != NULL) + (o->remove != NULL), needs = o->verb->needs;
    if (o->output && !(needs & VERB_OUTPUT)) return q_fail(e, Q_EINPUT, "%s writes no file: -o does not go with it", o->verb->name);
    if ((o->sign || o->binaries) && !(needs & VERB_OUTPUT)) return q_fail(e, Q_EINPUT, "%s: --sign and --binaries do not go with it", o->verb->name);
    if (keys && !(needs & VERB_KEYS)) return q_fail(e, Q_EINPUT, "%s: --new and --remove do not go with it", o->verb->name);
    if (keys && keys + o->n_args > 1) return q_fail(e, Q_EINPUT, "%s: expected one of KEY, --remove KEY and --new FILE", o->verb->name);
    return Q_OK;
}

/* A set is for the whole key: what was not said is told, so that nobody takes it for a card's own. */
static int card_of_option(struct options *o, const char *given, struct q_err *e)
{
    char key[CARD_KEY], filled[CARD_KEY], line[2 * CARD_KEY + 80];
    int rc = gen_card_key(o->generator, given, key, e);
    if (rc || (rc = card_parse(&o->card, key, e)) || !card_filled_in(&o->card, key, filled, sizeof filled)) return rc;
    snprintf(line, sizeof line, "card %.190s: taken with %s", key, filled);
    verb_say(NULL, line);
    return Q_OK;
}

static int check(struct options *o, const struct raw *raw, struct q_err *e)
{
    int numerics = q_numerics_parse(raw->numerics), r = check_given(o, raw, e);
    if (r) return r;
    if ((r = check_effort(o, raw, e))) return r;
    if (o->given.nvrtc.given && !*o->given.nvrtc.given) return q_fail(e, Q_EINPUT, "--nvrtc: expected a library or a folder, found ''");
    if ((r = check_kv("--kv-k", o->kv_k, e)) || (r = check_kv("--kv-v", o->kv_v, e)) || (r = check_sparse(o, raw->sparse, e))) return r;
    if (numerics < 0) return q_fail(e, Q_EINPUT, "--numerics: expected strict, pinned, free or reference, found '%s'", raw->numerics);
    o->numerics = (enum q_numerics)numerics;
    if ((r = to_count("-t", raw->threads, &o->threads, e)) || (r = to_count("-j", raw->jobs, &o->jobs, e))) return r;
    if (o->verb->needs & VERB_MODEL_TOO && o->model && o->preset) return q_fail(e, Q_EINPUT, "expected one of -m FILE and --preset NAME, or neither");
    if (o->verb->needs & VERB_MODEL && !o->roofs && !o->model == !o->preset) return q_fail(e, Q_EINPUT, "expected one of -m FILE and --preset NAME");
    if (raw->card && o->verb->needs & VERB_HERE)
        return q_fail(e, Q_EINPUT, "%s is about the card that is here: --card does not go with it", o->verb->name);
    if (raw->card && o->device) return q_fail(e, Q_EINPUT, "--card names a card that need not be here, --device one that is: expected one of them");
    if ((r = check_bundles(o, e))) return r;
    if (!o->device) o->device = "auto";
    if (!(o->verb->needs & VERB_CARD)) return Q_OK;
    return raw->card ? card_of_option(o, raw->card, e) : card_of_device(o, o->threads, e);
}

int options_read(struct options *o, int argc, char **argv, struct q_err *e)
{
    struct raw raw = { .numerics = "pinned" };
    *o = (struct options){ .effort = "normal", .type = "q8_0", .kv_k = "f16", .kv_v = "f16" };
    int r = read_words(o, &raw, argc, argv, e);
    return r || o->done ? r : check(o, &raw, e);
}
