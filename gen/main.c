/* quarry-gen: prints what the generator makes. See usage() for the forms. Results on stdout, errors on stderr. */
#include "cards.h"
#include "gen.h"
#include "runtime/card.h"
#include "runtime/option_words.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *op, *shape, *params, *card, *numerics, *dir;
    int list, cards, space, hash, unit, table, refs;
};

static int usage(FILE *f)
{
    fputs("usage: quarry-gen OP --shape NAME=VALUE,... [--params NAME=VALUE,...] [--card CARD]\n"
          "           [--numerics CLASS]\n"
          "           prints one kernel; what --params leaves out takes the card's default\n"
          "           --card: a key (cuda:sm_75, cpu:avx2,t=4), a name (t4) or a file like those of gen/cards\n"
          "           (./mine.lua); without: this machine\n"
          "           --unit: with the headers' text in place, as it is compiled\n"
          "           --space: every candidate instead, legal or with the reason that drops it\n"
          "       quarry-gen --list         the ops\n"
          "       quarry-gen --cards [CARD]   the cards that have a name; or what is known of one\n"
          "       quarry-gen --hash OP      the generator hash of an op's records\n"
          "       quarry-gen --ops-table    all hashes as C, for the runtime\n"
          "       quarry-gen --refs-table --dir DIR   which ref.c of the tree checks which op, as C, for tests\n"
          "           and tuner\n"
          "   anywhere: --dir DIR  read gen/ and templates/ of a source tree instead of the copies in this\n"
          "           program\n",
          f);
    return f == stderr ? 2 : 0;
}

/* The value of an option that takes one; *i moves on. NULL: none is left. */
static const char *value(int argc, char **argv, int *i) { return *i + 1 < argc ? argv[++*i] : NULL; }

/* From names that valued_option and flag_option know. */
static int unknown_option(const char *word, struct q_err *e)
{
    static const char *const names[] = {"--shape", "--params", "--card", "--numerics", "--dir", "--list", "--cards", "--space", "--hash", "--unit",
                                        "--help", "--version"};
    struct near n;
    near_start(&n, word);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) near_try(&n, names[i]);
    if (n.best) return q_fail(e, Q_EINPUT, "unknown option '%s'; is '%s' meant? (quarry-gen --help lists them)", word, n.best);
    return q_fail(e, Q_EINPUT, "unknown option '%s' (quarry-gen --help lists them)", word);
}

static const char **valued_option(struct options *o, const char *name)
{
    if (!strcmp(name, "--shape")) return &o->shape;
    if (!strcmp(name, "--params")) return &o->params;
    if (!strcmp(name, "--card")) return &o->card;
    if (!strcmp(name, "--numerics")) return &o->numerics;
    if (!strcmp(name, "--dir")) return &o->dir;
    return NULL;
}

static int *flag_option(struct options *o, const char *name)
{
    if (!strcmp(name, "--list")) return &o->list;
    if (!strcmp(name, "--cards")) return &o->cards;
    if (!strcmp(name, "--space")) return &o->space;
    if (!strcmp(name, "--hash")) return &o->hash;
    if (!strcmp(name, "--unit")) return &o->unit;
    if (!strcmp(name, "--ops-table")) return &o->table;
    if (!strcmp(name, "--refs-table")) return &o->refs;
    return NULL;
}

static int parse(struct options *o, int argc, char **argv, struct q_err *e)
{
    for (int i = 1; i < argc; i++) {
        const char **v = valued_option(o, argv[i]);
        int *flag = flag_option(o, argv[i]);
        if (v && !(*v = value(argc, argv, &i))) return q_fail(e, Q_EINPUT, "%s: expected a value (quarry-gen --help lists the options)", argv[i]);
        if (flag) *flag = 1;
        if (v || flag) continue;
        if (argv[i][0] == '-') return unknown_option(argv[i], e);
        if (o->op) return q_fail(e, Q_EINPUT, "expected one op, found '%s' after '%s'", argv[i], o->op);
        o->op = argv[i];
    }
    return Q_OK;
}

static int print_candidate(void *arg, const char *params, int legal, const char *reason)
{
    int *count = arg;
    count[!legal]++;
    if (legal) printf("legal   %s\n", params);
    else printf("pruned  %s: %s\n", params, reason);
    return 0;
}

static int print_space(struct gen *g, const struct options *o, struct q_err *e)
{
    int count[2] = {0, 0};
    int rc = gen_space(g, o->op, o->shape, o->card, o->numerics, print_candidate, count, e);
    if (!rc) fprintf(stderr, "%d of %d candidates are legal\n", count[0], count[0] + count[1]);
    return rc;
}

static int print_kernel(struct gen *g, const struct options *o, struct q_err *e)
{
    struct gen_kernel k;
    int rc = gen_emit(g, o->op, o->shape, o->params, o->card, o->numerics, &k, e);
    if (rc) return rc;
    fputs(o->unit ? k.unit : k.source, stdout);
    gen_kernel_free(&k);
    return Q_OK;
}

static int print_table(struct gen *g, struct q_err *e)
{
    char hex[65];
    puts("/* Printed by quarry-gen --ops-table. Do not edit. */\n#include \"runtime/kset_ops.h\"\n\nconst struct q_op_hash q_op_hashes[] = {");
    for (const char *const *op = gen_ops(g); *op; op++) {
        int rc = gen_hash(g, *op, hex, e);
        if (rc) return rc;
        printf("    {\"%s\", \"%s\"},\n", *op, hex);
    }
    puts("    {0, 0},\n};");
    return Q_OK;
}

/* Whether the tree has templates/NAME/ref.c with a `struct op_ref ref_NAME` in it. */
static int has_ref(const char *dir, const char *name)
{
    char path[4096], line[512], want[64];
    int found = 0;
    snprintf(path, sizeof path, "%.4000s/templates/%s/ref.c", dir, name);
    snprintf(want, sizeof want, "struct op_ref ref_%s ", name);
    FILE *f = name[0] ? fopen(path, "r") : NULL;
    while (f && !found && fgets(line, sizeof line, f)) found = strstr(line, want) != NULL;
    if (f) fclose(f);
    return found;
}

static int print_refs(struct gen *g, const char *dir, struct q_err *e)
{
    char name[24];
    int rc = 0;
    if (!dir) return q_fail(e, Q_EINPUT, "--refs-table: expected --dir");
    puts("/* Printed by quarry-gen --refs-table. Do not edit. */\n#include \"templates/ref.h\"\n#include <string.h>\n");
    for (const char *const *op = gen_ops(g); *op && !(rc = gen_ref(g, *op, name, e)); op++)
        if (!strcmp(*op, name) && has_ref(dir, name)) printf("extern const struct op_ref ref_%s;\n", name);
    puts("\nconst struct op_ref *ref_find(const char *op)\n{");
    for (const char *const *op = gen_ops(g); *op && !rc && !(rc = gen_ref(g, *op, name, e)); op++)
        if (has_ref(dir, name)) printf("    if (!strcmp(op, \"%s\")) return &ref_%s;\n", *op, name);
    puts("    return NULL;\n}");
    return rc;
}

static int print_hash(struct gen *g, const char *op, struct q_err *e)
{
    char hex[65];
    int rc = gen_hash(g, op, hex, e);
    if (!rc) puts(hex);
    return rc;
}

/* o->card as a key; this machine's if none is named. */
static int find_card(struct options *o, char key[CARD_KEY], struct q_err *e)
{
    struct q_card here;
    int rc = o->card ? gen_card_key(o->dir, o->card, key, e) : card_detect_cpu(&here, 0, e);
    if (!rc && !o->card) strcpy(key, here.key);
    o->card = key;
    return rc;
}

static int run(struct gen *g, struct options *o, struct q_err *e)
{
    char key[CARD_KEY];
    if (o->cards) return o->op ? gen_card_show(stdout, o->dir, o->op, e) : gen_cards_list(stdout, o->dir, e);
    if (o->table) return print_table(g, e);
    if (o->refs) return print_refs(g, o->dir, e);
    if (o->list) {
        for (const char *const *op = gen_ops(g); *op; op++) puts(*op);
        return Q_OK;
    }
    if (!o->op) return q_fail(e, Q_EINPUT, "expected an op (quarry-gen --list names them, quarry-gen --help lists the options)");
    if (o->hash) return print_hash(g, o->op, e);
    char ref[24];
    int rc = gen_ref(g, o->op, ref, e);   /* an unknown op is told before anything about its shape */
    if (rc) return rc;
    if (!o->space && !ref[0]) return q_fail(e, Q_EUNSUP, "%s: a choice of weight layout, it has no kernel", o->op);
    if (!o->shape) o->shape = "";         /* the answer says what is expected */
    if ((rc = find_card(o, key, e))) return rc;
    return o->space ? print_space(g, o, e) : print_kernel(g, o, e);
}

int main(int argc, char **argv)
{
    struct options o = {0};
    struct q_err e = {0};
    struct gen *g;
    if (argc == 1) return usage(stderr);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return usage(stdout);
    if (!strcmp(argv[1], "--version")) return puts("quarry-gen " QUARRY_VERSION) < 0;
    int rc = parse(&o, argc, argv, &e);
    if (!rc && !(rc = gen_open(&g, o.dir, &e))) {
        rc = run(g, &o, &e);
        gen_close(g);
    }
    if (!rc && fflush(stdout)) rc = q_fail(&e, Q_EIO, "standard output: cannot write");
    if (rc) fprintf(stderr, "quarry-gen: %s\n", e.text);
    return rc == Q_EINPUT ? 2 : rc ? 1 : 0;
}
