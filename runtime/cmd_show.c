/* `quarry show FILE`: what is in a model file, what memory it needs, what is odd about it. Reads the header only, unless
 * --check asks for every block. */
#include "cmd.h"
#include "model_parts.h"
#include "show.h"
#include "tokenizer.h"
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: quarry show FILE | --preset NAME [--format q8_0] [--json] [--check]\n"
    "\n"
    "  FILE            a GGUF file; any file of a split set\n"
    "  --preset NAME   a shape by name (qwen3.5-9b) or of a file ./mine.lua instead of a model; --format says in which weight type\n"
    "  --check         read every block of the weights for infinite or NaN values, and open the tokenizer\n"
    "  --json          one JSON object on one line\n";

struct options {
    const char *file, *preset, *format;
    int json, check, help;
};

static int usage(const char *why, const char *what)
{
    fprintf(stderr, "quarry show: %s%s (`quarry show --help` lists the options)\n", why, what);
    return 2;
}

/* 0, or the exit status. */
static int parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){ .format = "q8_0" };
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        const char **value = !strcmp(a, "--preset") ? &o->preset : !strcmp(a, "--format") ? &o->format
                             : !strcmp(a, "-m") ? &o->file : NULL;
        if (value) {
            if (++i == argc) return usage("no value after ", a);
            *value = argv[i];
        } else if (!strcmp(a, "--json"))
            o->json = 1;
        else if (!strcmp(a, "--check"))
            o->check = 1;
        else if (!strcmp(a, "--help") || !strcmp(a, "-h"))
            o->help = 1;
        else if (a[0] == '-' && a[1])
            return usage("unknown option ", a);
        else if (o->file)
            return usage("one file at a time, found also ", a);
        else
            o->file = a;
    }
    if (o->help) return 0;
    if (!o->file == !o->preset) return usage("expected a file, or --preset NAME", "");
    return 0;
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
    show_from_model(&f, m);
    int rc = o->check && check(m, &e) ? failed(&e) : 0;
    f.checked = o->check;
    if (rc)
        show_free(&f);
    else
        rc = print(&f, o);
    model_close(m);
    return rc;
}

static int show_preset(const struct options *o)
{
    struct q_config c;
    struct q_err e = { 0 };
    const struct q_format *format = q_format_by_name(o->format);
    if (!format) return usage("--format: expected f32, f16, bf16 or q8_0, found ", o->format);
    if (config_from_preset(&c, o->preset, &e)) return failed(&e);
    struct show_facts f;
    show_from_shape(&f, &c, format);
    return print(&f, o);
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
    return o.file ? show_file(&o) : show_preset(&o);
}
