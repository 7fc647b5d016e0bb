/* `quarry show FILE`: what is in a model file, what memory it needs, what is odd about it. Reads the header only, unless
 * --check asks for every block. */
#include "cli.h"
#include "cmd.h"
#include "kv_format.h"
#include "model_parts.h"
#include "option_words.h"
#include "rope.h"
#include "session_file.h"
#include "show.h"
#include "tokenizer.h"
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: quarry show FILE | --preset NAME [--type q8_0] [--json] [--check]\n"
    "       quarry show FILE | --preset NAME --fit CARDS [--ctx N] [--parallel N] [--kv-k F] [--kv-v F]\n"
    "                   [--cache-device SIZE] [--sparse-prefill M] [--json]\n"
    "\n"
    "  FILE            a GGUF file; any file of a split set; or a session's file: what it is of (its text\n"
    "                  is not shown)\n"
    "  --preset NAME   a shape by name (qwen3.5-9b) or of a file ./mine.lua instead of a model; --type T\n"
    "                  (or --format) says in which weight type\n"
    "  --check         read every block of the weights for infinite or NaN values, and open the tokenizer\n"
    "  --fit CARDS     where it would lie on cards of these sizes, and what fits: 24GiB, 3x16GiB or\n"
    "                  16GiB,12GiB,16GiB; on the first that holds it all, else over several; exit status\n"
    "                  1 where it does not fit\n"
    "  --ctx N         tokens of a sequence, as 262144, 256K or 1M (default: what the model was trained\n"
    "                  for)\n"
    "  --parallel N    sequences at once (default 1)\n"
    "  --kv-k F, --kv-v F   formats of K and V: f32, f16 (default), q8, r4, r3\n"
    "  --cache-device SIZE  checkpoints of prompts on the cards, as quarry serve has it (default: four\n"
    "                       more than --parallel)\n"
    "  --sparse-prefill M   with the scratch that quarry serve takes for that\n"
    "  --json          one JSON object on one line\n";

struct options {
    const char *file, *preset, *format;
    const char *cards, *ctx, *parallel, *kv_k, *kv_v, *cache, *sparse;
    size_t cache_bytes;
    int json, check, help, version;
    struct q_fit_options fit;
};

static int usage(const char *why, const char *what)
{
    fprintf(stderr, "quarry show: %s%s (`quarry show --help` lists the options)\n", why, what);
    return 2;
}

static const char **place_of(struct options *o, const char *name, struct near *n)
{
    const struct {
        const char *name, **at;
    } values[] = {{"--preset", &o->preset}, {"--format", &o->format}, {"--type", &o->format}, {"-m", &o->file}, {"--fit", &o->cards}, {"--ctx", &o->ctx}, {"-c", &o->ctx},
                  {"--parallel", &o->parallel}, {"--kv-k", &o->kv_k}, {"--kv-v", &o->kv_v},
                  {"--cache-device", &o->cache}, {"--sparse-prefill", &o->sparse}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (!strcmp(values[i].name, name)) return values[i].at;
        near_try(n, values[i].name);
    }
    return NULL;
}

static void tell_twice(const char *name, const char *counts, const char *does_not)
{
    char line[320];
    option_twice(line, sizeof line, name, counts, does_not);
    fprintf(stderr, "# %s\n", line);
}

static int unknown(const char *word, struct near *n)
{
    static const struct option none = {0};
    static const char *const flags[] = {"--json", "--check", "--help", "--version"};
    char meant[60] = "";
    const char *instead = option_instead("show", word, "", &none);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) near_try(n, flags[i]);
    if (n->best) snprintf(meant, sizeof meant, "; is '%s' meant?", n->best);
    fprintf(stderr, "quarry show: unknown option '%.60s'%s%s (`quarry show --help` lists the options)\n", word, instead ? ": " : meant,
            instead ? instead : "");
    return 2;
}

/* 0, or the exit status. */
static int whole_number(const char *name, const char *text, int most, int *out)
{
    long n = 0;
    int bad = fit_read_tokens(text, &n);
    *out = (int)n;
    if (!bad && n >= 1 && n <= most) return 0;
    fprintf(stderr, "quarry show: %s expects a whole number from 1 to %d%s, not '%.60s' (`quarry show --help` lists the options)\n", name, most,
            most > 1024 ? ", or as 256K or 1M" : "", text);
    return 2;
}

/* Non-zero: it is no share. How large it is changes no size. */
static int read_sparse(struct options *o)
{
    char *end;
    double mass = strtod(o->sparse, &end);
    o->fit.sparse = 1;
    return !*o->sparse || *end || !(mass > 0 && mass < 1);
}

/* 0, or the exit status. */
static int parse_fit(struct options *o)
{
    const int others = o->ctx || o->parallel || o->kv_k || o->kv_v || o->cache || o->sparse;
    const char *wrong = o->cards ? fit_read_cards(&o->fit, o->cards) : others ? "" : NULL;
    if (wrong && !o->cards) return usage("--ctx, --parallel, --kv-k, --kv-v, --cache-device and --sparse-prefill go with --fit", "");
    if (wrong) return usage("--fit: ", wrong);
    o->fit.n_seqs = 1;
    o->fit.kv_k = o->kv_k ? o->kv_k : "f16";
    o->fit.kv_v = o->kv_v ? o->kv_v : "f16";
    if (!kv_format_known(o->fit.kv_k)) return usage("--kv-k: expected f32, f16, q8, r4 or r3, found ", o->fit.kv_k);
    if (!kv_format_known(o->fit.kv_v)) return usage("--kv-v: expected f32, f16, q8, r4 or r3, found ", o->fit.kv_v);
    if (o->cache) o->fit.cache = &o->cache_bytes;
    if (o->cache && fit_read_bytes(o->cache, &o->cache_bytes))
        return usage("--cache-device: expected a size with its unit, as 512MiB or 2GiB, or 0 for none, found ", o->cache);
    if (o->sparse && read_sparse(o)) return usage("--sparse-prefill: expected a share above 0 and below 1, as 0.99, found ", o->sparse);
    int rc = o->ctx ? whole_number("--ctx", o->ctx, ROPE_MOST, &o->fit.ctx) : 0;
    return rc || !o->parallel ? rc : whole_number("--parallel", o->parallel, 256, &o->fit.n_seqs);
}

/* 0, or the exit status. */
static int parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){ 0 };
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        struct near n;
        near_start(&n, a);
        const char **value = place_of(o, a, &n);
        if (value) {
            if (++i == argc) return usage("no value after ", a);
            if (*value && strcmp(*value, argv[i])) tell_twice(a, argv[i], *value);
            *value = argv[i];
        } else if (!strcmp(a, "--json"))
            o->json = 1;
        else if (!strcmp(a, "--check"))
            o->check = 1;
        else if (!strcmp(a, "--help") || !strcmp(a, "-h"))
            o->help = 1;
        else if (!strcmp(a, "--version"))
            o->version = 1;
        else if (a[0] == '-' && a[1])
            return unknown(a, &n);
        else if (o->file)
            return usage("one file at a time, found also ", a);
        else
            o->file = a;
    }
    if (o->help || o->version) return 0;
    if (!o->file == !o->preset) return usage("expected a file, or --preset NAME", "");
    if (o->file && o->format) return usage("--type is of --preset; a file has its own types", "");
    if (o->preset && o->check) return usage("--check reads a file's weights, and a preset has none", "");
    if (!o->format) o->format = "q8_0";
    return parse_fit(o);
}

static int print(struct show_facts *f, const struct options *o)
{
    int rc = Q_OK;
    if (o->json)
        rc = show_json(f, stdout);
    else
        show_text(f, stdout);
    show_free(f);
    if (!rc && !fflush(stdout) && !ferror(stdout)) return 0;
    fprintf(stderr, "quarry show: could not write the result\n");
    return 1;
}

static int failed(const struct q_err *e)
{
    fprintf(stderr, "quarry show: %s\n", e->text);
    return 1;
}

/* Heads of this size may have the formats that were asked for. */
static int check_formats(const struct options *o, const struct q_config *c, struct q_err *e)
{
    const char *k = o->fit.kv_k, *v = o->fit.kv_v;
    const char *bad = !kv_format_piece_bytes(k, c->head_dim) ? k : !kv_format_piece_bytes(v, c->head_dim) ? v : NULL;
    return bad ? q_fail(e, Q_EUNSUP, "KV format %s does not take heads of %d numbers", bad, c->head_dim) : Q_OK;
}

/* The exit status. */
static int print_fit(struct show_facts *f, const struct options *o, const struct q_fit_weights *w)
{
    struct q_fit_options fit = o->fit;
    struct show_fit s;
    struct q_err e;
    if (check_formats(o, f->config, &e)) {
        show_free(f);
        return failed(&e);
    }
    if (!fit.ctx) fit.ctx = rope_limit(f->config);
    show_fit_make(&s, f->config, w, &fit);
    f->fit = &s;
    int rc = print(f, o);
    return rc || s.fit.fits ? rc : 1;
}

/* What opening leaves to whoever runs the model: every block of the weights, and the tokenizer's own contents. */
static int check(const struct q_model *m, struct q_err *e)
{
    struct tokenizer *t = NULL;
    int rc = model_check(m, e);
    if (!rc && gguf_find(m->file, "tokenizer.ggml.tokens")) rc = tok_open_gguf(&t, m->file, e);
    tok_close(t);
    return rc;
}

/* The file is well formed, this version just does not run it. */
static void show_what_there_is(const char *file)
{
    struct gguf *g;
    if (gguf_open(&g, file, NULL)) return;
    show_refused(g, stdout);
    fflush(stdout);
    gguf_close(g);
}

static int show_file(const struct options *o)
{
    struct q_model *m;
    struct q_err e = { 0 };
    int refused = model_open(&m, o->file, &e);
    if (refused) {
        if (refused == Q_EUNSUP && !o->json) show_what_there_is(o->file);
        return failed(&e);
    }
    struct show_facts f;
    struct q_fit_weights w;
    show_from_model(&f, m);
    fit_weights_of_model(&w, m);
    int rc = o->check && check(m, &e) ? failed(&e) : 0;
    f.checked = o->check;
    if (rc)
        show_free(&f);
    else
        rc = o->cards ? print_fit(&f, o, &w) : print(&f, o);
    model_close(m);
    return rc;
}

/* The head tells all; --json alone goes with it. */
static int show_session_file(const struct options *o)
{
    struct session_head h;
    struct q_err e = { 0 };
    if (o->cards || o->check) return usage(o->cards ? "--fit" : "--check", " is about a model; this is a session's file");
    if (session_read_head(o->file, &h, &e)) return failed(&e);
    if (o->json ? show_session_json(o->file, &h, stdout) : show_session_text(o->file, &h, stdout))
        return failed(&(struct q_err){ .text = "no memory" });
    if (!fflush(stdout) && !ferror(stdout)) return 0;
    fprintf(stderr, "quarry show: could not write the result\n");
    return 1;
}

static int show_preset(const struct options *o)
{
    struct q_config c;
    struct q_err e = { 0 };
    const struct q_format *format = q_format_by_name(o->format);
    if (!format) return usage("--type: expected f32, f16, bf16 or q8_0, found ", o->format);
    if (config_from_preset(&c, o->preset, &e)) return failed(&e);
    struct show_facts f;
    struct q_fit_weights w;
    show_from_shape(&f, &c, format);
    fit_weights_of_shape(&w, &c, format);
    return o->cards ? print_fit(&f, o, &w) : print(&f, o);
}

int cmd_show(int argc, char **argv)
{
    struct options o;
    int rc = parse(&o, argc, argv);
    if (rc) return rc;
    if (o.help) {
        fputs(help, stdout);
        return 0;
    }
    if (o.version) return cli_version(), 0;
    return !o.file ? show_preset(&o) : session_claims(o.file) ? show_session_file(&o) : show_file(&o);
}
