#include "show_fit.h"
#include "kernel.h"
#include "kv.h"
#include "kv_format.h"
#include "rope.h"
#include <stdarg.h>
#include <string.h>

/* ---- what fits ---- */

struct asking {
    const struct q_config *c;
    const struct q_fit_weights *w;
    int most;                      /* tokens */
};

static void add_format(struct show_fit *s, const struct asking *a, const char *k, const char *v)
{
    struct q_fit_options o = s->o;
    struct q_fit placed;
    o.kv_k = k;
    o.kv_v = v;
    size_t pages = ((size_t)o.ctx + KV_PAGE - 1) / KV_PAGE * (size_t)o.n_seqs;
    struct show_fit_format *f = s->format + s->n_formats++;
    *f = (struct show_fit_format){.k = k, .v = v, .kv_bytes = pages * kv_page_bytes(a->c, k, v), .longest = fit_longest(a->c, a->w, &o, a->most)};
    f->fits = fit_place(&placed, a->c, a->w, &o);
}

static void add_formats(struct show_fit *s, const struct asking *a)
{
    for (int i = 0; kv_formats[i]; i++)
        if (strcmp(kv_formats[i], "f32") && kv_format_piece_bytes(kv_formats[i], a->c->head_dim)) add_format(s, a, kv_formats[i], kv_formats[i]);
    if (strcmp(s->o.kv_k, s->o.kv_v) || !strcmp(s->o.kv_k, "f32")) add_format(s, a, s->o.kv_k, s->o.kv_v);
}

/* ---- one line of advice ---- */

static void put(struct show_fit *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct show_fit *s, const char *fmt, ...)
{
    size_t n = strlen(s->advice);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->advice + n, sizeof s->advice - n, fmt, ap);
    va_end(ap);
}

static double gib(size_t bytes) { return (double)bytes / 0x1p30; }

/* The first format, by falling size, that makes it fit as it was asked for. */
static const struct show_fit_format *smaller_format(const struct show_fit *s)
{
    for (int i = 0; i < s->n_formats; i++)
        if (s->format[i].fits) return s->format + i;
    return NULL;
}

/* What single change would do, and where none does, what all of them together leave. */
static void advise_change(struct show_fit *s, const struct asking *a)
{
    const int useful = a->most < 1024 ? a->most : 1024;   /* tokens: less is no answer */
    const struct show_fit_format *f = smaller_format(s);
    int longest = fit_longest(a->c, a->w, &s->o, s->o.ctx), seqs = s->o.n_seqs > 1 ? fit_most_seqs(a->c, a->w, &s->o, s->o.n_seqs) : 0;
    const char *or = "";
    if (s->fit.needed > s->fit.there)
        put(s, "%.2f GiB are needed%s, and there are %.2f GiB; ", gib(s->fit.needed),
            s->o.n_cards > 1 ? " (each card has scratch and a driver of its own)" : "", gib(s->fit.there));
    else put(s, "no cut between two layers leaves each of these cards what it has room for; ");
    if (f) put(s, "--kv-k %s --kv-v %s would fit", f->k, f->v), or = ", or ";
    if (longest >= useful) put(s, "%s--ctx %d%s", or, longest, *or ? "" : " would fit"), or = ", or ";
    if (seqs) put(s, "%s--parallel %d%s", or, seqs, *or ? "" : " would fit"), or = ", or ";
    if (*or) return;
    struct q_fit_options o = s->o;
    o.n_seqs = 1;
    o.kv_k = o.kv_v = s->format[s->n_formats - 1].k;
    for (int i = 0; i < s->n_formats; i++)
        if (s->format[i].kv_bytes < s->format[s->n_formats - 1].kv_bytes) o.kv_k = o.kv_v = s->format[i].k;
    longest = fit_longest(a->c, a->w, &o, a->most);
    if (longest >= useful) put(s, "--parallel 1 --ctx %d --kv-k %s --kv-v %s would fit", longest, o.kv_k, o.kv_v);
    else put(s, "no context and no KV format makes it fit (weights alone take %.2f GiB): it needs more or larger cards, or smaller weights",
             gib(s->fit.whole.lines[Q_PLAN_WEIGHTS].bytes));
}

static void advise_next(struct show_fit *s)
{
    if (s->fit.n_stages > 1) {
        put(s, "a plan only: this version runs on one device");
    } else {
        if (s->o.n_cards > 1)
            put(s, "card %d alone holds it all, the other%s free: ", s->fit.stage[0].card + 1, s->o.n_cards > 2 ? "s stay" : " stays");
        put(s, "what quarry-serve takes there with -c %d --parallel %d --kv-k %s --kv-v %s%s%s", s->o.ctx, s->o.n_seqs, s->o.kv_k, s->o.kv_v,
            s->o.cache ? " and that --cache-device" : "", s->o.sparse ? " and that --sparse-prefill" : "");
    }
    if (s->o.ctx > s->trained) put(s, "; the model was good for %d tokens: more needs --rope-scaling yarn", s->trained);
}

void show_fit_make(struct show_fit *s, const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o)
{
    struct asking a = {c, w, o->ctx > rope_limit(c) ? o->ctx : rope_limit(c)};
    memset(s, 0, sizeof *s);
    s->o = *o;
    s->trained = rope_limit(c);
    fit_place(&s->fit, c, w, o);
    add_formats(s, &a);
    if (s->fit.fits) advise_next(s);
    else advise_change(s, &a);
}

/* ---- for people ---- */

static const char *size_text(size_t bytes, char buf[24])
{
    if (bytes >= (size_t)1 << 30) snprintf(buf, 24, "%.2f GiB", gib(bytes));
    else snprintf(buf, 24, "%.0f MiB", (double)bytes / 0x1p20);
    return buf;
}
#define SIZE(n) size_text((n), (char[24]){ 0 })

static void text_cards(const struct show_fit *s, FILE *out)
{
    for (int i = 0, n; i < s->o.n_cards; i += n) {
        for (n = 1; i + n < s->o.n_cards && s->o.card[i + n] == s->o.card[i];) n++;
        if (n > 1) fprintf(out, "%s%d x %s", i ? ", " : "", n, SIZE(s->o.card[i]));
        else fprintf(out, "%s%s", i ? ", " : "", SIZE(s->o.card[i]));
    }
}

static void text_plan(const char *name, const char *layers, const struct q_plan *p, size_t total, const char *left, FILE *out)
{
    fprintf(out, "  %-6s  %-9s", name, layers);
    for (int i = 0; i < Q_PLAN_ITEMS; i++) fprintf(out, "  %11s", SIZE(p->lines[i].bytes));
    fprintf(out, "  %11s  %11s  %11s\n", SIZE(FIT_DRIVER), SIZE(total), left);
}

static void text_stages(const struct show_fit *s, FILE *out)
{
    static const char *const heads[Q_PLAN_ITEMS] = {"weights", "KV pages", "states", "checkpoints", "scratch", "kernels"};
    const struct q_fit *f = &s->fit;
    fprintf(out, "  %-6s  %-9s", "card", "layers");
    for (int i = 0; i < Q_PLAN_ITEMS; i++) fprintf(out, "  %11s", heads[i]);
    fprintf(out, "  %11s  %11s  %11s\n", "driver", "total", "left");
    for (int i = 0; i < f->n_stages; i++) {
        char name[16], layers[24];
        snprintf(name, sizeof name, "%d", f->stage[i].card + 1);
        snprintf(layers, sizeof layers, "%d-%d", f->stage[i].first, f->stage[i].last - 1);
        text_plan(name, layers, &f->stage[i].plan, f->stage[i].total, SIZE(f->stage[i].left), out);
    }
    if (f->n_stages != 1) text_plan("one", "all", &f->whole, f->whole.total + FIT_DRIVER, "", out);
    fprintf(out, "  %d checkpoint%s of prompts on the card%s; quarry-serve keeps more in host memory (--cache-host)\n", f->n_snaps,
            f->n_snaps == 1 ? "" : "s", f->n_stages > 1 ? "s" : "");
    int last = f->n_stages - 1;
    if (last > 0) fprintf(out, "  the embedding is on card %d, the head on card %d\n", f->stage[0].card + 1, f->stage[last].card + 1);
}

static void text_formats(const struct show_fit *s, FILE *out)
{
    fprintf(out, "  %-9s  %11s  %15s\n", "K / V", "KV", "longest context");
    for (int i = 0; i < s->n_formats; i++) {
        const struct show_fit_format *f = s->format + i;
        char name[24];
        snprintf(name, sizeof name, "%s / %s", f->k, f->v);
        fprintf(out, "  %-9s  %11s  %15d  %s\n", name, SIZE(f->kv_bytes), f->longest, f->fits ? "fits" : "does not fit");
    }
}

void show_fit_text(const struct show_fit *s, FILE *out)
{
    fprintf(out, "fit           ");
    text_cards(s, out);
    fprintf(out, ": %d sequence%s of %d tokens, K %s, V %s, steps of up to %d rows: %s\n", s->o.n_seqs, s->o.n_seqs == 1 ? "" : "s", s->o.ctx,
            s->o.kv_k, s->o.kv_v, s->fit.max_rows, s->fit.fits ? "fits" : "does not fit");
    text_stages(s, out);
    text_formats(s, out);
    fprintf(out, "  %s\n", s->advice);
}

/* ---- for programs ---- */

#define NUM(o, name, v) cJSON_AddNumberToObject(o, name, (double)(v))

static cJSON *json_plan(const struct q_plan *p, size_t total)
{
    cJSON *o = cJSON_CreateObject();
    for (int i = 0; i < Q_PLAN_ITEMS; i++) NUM(o, p->lines[i].what, p->lines[i].bytes);
    NUM(o, "driver", FIT_DRIVER);
    NUM(o, "total", total);
    return o;
}

static cJSON *add_object(cJSON *list)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(list, o);
    return o;
}

static void json_stages(const struct q_fit *f, cJSON *list)
{
    for (int i = 0; i < f->n_stages; i++) {
        const struct q_fit_stage *s = f->stage + i;
        cJSON *o = add_object(list);
        NUM(o, "card", s->card);
        NUM(o, "first_layer", s->first);
        NUM(o, "last_layer", s->last - 1);
        cJSON_AddItemToObject(o, "plan", json_plan(&s->plan, s->total));
        NUM(o, "left", s->left);
    }
}

static void json_formats(const struct show_fit *s, cJSON *list)
{
    for (int i = 0; i < s->n_formats; i++) {
        const struct show_fit_format *f = s->format + i;
        cJSON *o = add_object(list);
        cJSON_AddStringToObject(o, "k", f->k);
        cJSON_AddStringToObject(o, "v", f->v);
        NUM(o, "kv_bytes", f->kv_bytes);
        NUM(o, "longest_context", f->longest);
        cJSON_AddBoolToObject(o, "fits", f->fits);
    }
}

void show_fit_json(const struct show_fit *s, cJSON *root)
{
    cJSON *o = cJSON_AddObjectToObject(root, "fit"), *cards = cJSON_AddArrayToObject(o, "cards");
    for (int i = 0; i < s->o.n_cards; i++) cJSON_AddItemToArray(cards, cJSON_CreateNumber((double)s->o.card[i]));
    NUM(o, "context", s->o.ctx);
    NUM(o, "sequences", s->o.n_seqs);
    cJSON_AddStringToObject(o, "kv_k", s->o.kv_k);
    cJSON_AddStringToObject(o, "kv_v", s->o.kv_v);
    cJSON_AddBoolToObject(o, "sparse_prefill", s->o.sparse);
    NUM(o, "rows", s->fit.max_rows);
    NUM(o, "checkpoints", s->fit.n_snaps);
    NUM(o, "needed", s->fit.needed);
    cJSON_AddBoolToObject(o, "fits", s->fit.fits);
    cJSON_AddItemToObject(o, "whole", json_plan(&s->fit.whole, s->fit.whole.total + FIT_DRIVER));
    json_stages(&s->fit, cJSON_AddArrayToObject(o, "stages"));
    json_formats(s, cJSON_AddArrayToObject(o, "formats"));
    cJSON_AddStringToObject(o, "advice", s->advice);
}
