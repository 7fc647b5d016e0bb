/* What show_fit.c found, for people and for programs. */
#include "show_fit.h"

/* ---- for people ---- */

static const char *size_text(size_t bytes, char buf[24])
{
    if (bytes >= (size_t)1 << 30) snprintf(buf, 24, "%.2f GiB", (double)bytes / 0x1p30);
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
