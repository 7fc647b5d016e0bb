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

/* No single change does: what all of them together leave. */
static void advise_all(struct show_fit *s, const struct asking *a, int useful)
{
    struct q_fit_options o = s->o;
    int least = s->n_formats - 1;
    for (int i = 0; i < s->n_formats; i++)
        if (s->format[i].kv_bytes < s->format[s->n_formats - 1].kv_bytes) least = i;
    o.n_seqs = 1;
    o.kv_k = o.kv_v = s->format[least].k;
    int longest = fit_longest(a->c, a->w, &o, a->most);
    if (longest >= useful) put(s, "--parallel 1 --ctx %d --kv-k %s --kv-v %s would fit", longest, o.kv_k, o.kv_v);
    else put(s, "no context and no KV format makes it fit (weights alone take %.2f GiB): it needs more or larger cards, or smaller weights",
             gib(s->fit.whole.lines[Q_PLAN_WEIGHTS].bytes));
}

/* What single change would do, or all of them. */
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
    if (!*or) advise_all(s, a, useful);
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
