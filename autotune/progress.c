#include "progress.h"
#include "runtime/clock.h"
#include "runtime/shape.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

void progress_line(const struct progress *p, const char *fmt, ...)
{
    va_list ap;
    fputs("quarry-tune: ", p->f);
    va_start(ap, fmt);
    vfprintf(p->f, fmt, ap);
    va_end(ap);
    fputc('\n', p->f);
    fflush(p->f);
}

void progress_bucket(char dst[32], int rows, int ctx)
{
    dst[0] = 0;
    if (rows) snprintf(dst, 32, "rows<=%d", rows);
    else if (ctx) snprintf(dst, 32, "ctx<=%d", ctx);
}

void progress_difference(char *dst, size_t cap, const char *params, const char *base)
{
    struct q_shape a, b;
    size_t n = 0;
    if (shape_parse(&a, params, NULL) || shape_parse(&b, base, NULL)) a.n = 0;
    dst[0] = 0;
    for (int i = 0; i < a.n; i++) {
        if (shape_is(&b, a.pair[i].name, a.pair[i].value)) continue;
        n += (size_t)snprintf(dst + n, cap - n, "%s%s=%s", n ? "," : "", a.pair[i].name, a.pair[i].value);
        if (n >= cap) return;
    }
    if (!n) snprintf(dst, cap, "default params");
}

static int is_by_bytes(const struct record *r) { return !strcmp(r->bound, "bytes"); }

void progress_roof(char dst[PROGRESS_ROOF], const struct record *r)
{
    char share[ROOF_TEXT];
    dst[0] = 0;
    if (!r->bound[0]) return;
    if (roof_text(share, r->roof_pct, is_by_bytes(r), 0) == ROOF_CACHE) strcpy(dst, share);
    else snprintf(dst, PROGRESS_ROOF, "%s of roof (%s)", share, r->bound);
}

void progress_roof_cell(char dst[PROGRESS_ROOF], const struct record *r)
{
    char share[ROOF_TEXT] = "";
    int cached = r->bound[0] && roof_text(share, r->roof_pct, is_by_bytes(r), 0) == ROOF_CACHE;
    snprintf(dst, PROGRESS_ROOF, "%5s %s", share, cached ? "" : r->bound);
}

/* What a line of an op gathers. */
struct share_range {
    double least, most;
    int n, cached, over;   /* over: of n, those above their roof, which was measured too low */
};

static void gather(struct share_range *s, const struct record *r)
{
    double pct = r->roof_pct;
    if (!r->bound[0]) return;
    enum roof_share share = roof_share(&pct, is_by_bytes(r));
    if (share == ROOF_CACHE) {
        s->cached++;
        return;
    }
    s->over += share == ROOF_OVER;
    s->least = s->n ? fmin(s->least, pct) : pct;
    s->most = fmax(s->most, pct);
    s->n++;
}

static void print_range(char *dst, size_t cap, const struct share_range *s)
{
    char cached[32] = "";
    dst[0] = 0;
    if (s->cached) snprintf(cached, sizeof cached, "%s %d in cache", s->n ? "," : ";", s->cached);
    if (!s->n) snprintf(dst, cap, "%s", cached);
    else if (s->over == s->n) snprintf(dst, cap, "; >100 %% of roof%s", cached);
    else if (s->most - s->least < 1) snprintf(dst, cap, "; %.0f %% of roof%s", s->most, cached);
    else snprintf(dst, cap, "; %.0f to %s%.0f %% of roof%s", s->least, s->over ? ">" : "", s->most, cached);
}

static int met_before(const struct found_list *l, int n, const char *op)
{
    for (int i = 0; i < n; i++)
        if (l->f[i].fresh && !strcmp(l->f[i].problem.op, op)) return 1;
    return 0;
}

static void line_of_op(const struct progress *p, const struct found_list *l, const char *op)
{
    int n = 0, better = 0;
    double gain = 0;
    struct share_range range = { 0 };
    for (int i = 0; i < l->n; i++) {
        const struct record *r = &l->f[i].record;
        if (!l->f[i].fresh || strcmp(l->f[i].problem.op, op)) continue;
        n++;
        better += r->gain > 0;
        gain = fmax(gain, r->gain);
        gather(&range, r);
    }
    char by[60] = "", roof[80];
    if (better) snprintf(by, sizeof by, ", by up to %.0f %%", 100 * gain);
    print_range(roof, sizeof roof, &range);
    progress_line(p, "  %s: %d problem%s, %d better than %s default params%s%s", op, n, n == 1 ? "" : "s", better, n == 1 ? "its" : "their", by,
                  roof);
}

void progress_ops(const struct progress *p, const struct found_list *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->f[i].fresh && !met_before(l, i, l->f[i].problem.op)) line_of_op(p, l, l->f[i].problem.op);
}

/* Time to go, as the mean of what was done promises. */
static void eta(char *dst, size_t cap, const struct progress *p)
{
    double left = p->done ? (clock_s() - p->start) / p->done * (p->n - p->done) : 0;
    if (p->done >= p->n) dst[0] = 0;
    else snprintf(dst, cap, ", %.0f s to go", left);
}

void progress_name(char *dst, size_t cap, const struct q_problem *p)
{
    char bucket[32];
    progress_bucket(bucket, p->rows, p->ctx);
    snprintf(dst, cap, "%s %s%s%s", p->op, p->shape, bucket[0] ? " " : "", bucket);
}

void progress_again(struct progress *p, const struct q_problem *problem, const struct record *now, const struct record *old)
{
    char name[300], left[40];
    p->done++;
    eta(left, sizeof left, p);
    progress_name(name, sizeof name, problem);
    progress_line(p, "[%3d/%d] %s: right again, %.1f us (recorded %.1f us)%s", p->done, p->n, name, now->time[0].median_us, old->time[0].median_us,
                  left);
}

void progress_outcome(struct progress *p, const struct q_problem *problem, const struct outcome *o)
{
    const struct record *r = &o->record;
    char difference[200], left[40], name[300], roof[PROGRESS_ROOF];
    p->done++;
    eta(left, sizeof left, p);
    progress_roof(roof, r);
    progress_difference(difference, sizeof difference, r->params, r->base_params);
    progress_name(name, sizeof name, problem);
    /* The times are of the first size alone, the gain is over all of them: one does not follow from the others. */
    char won[300] = "its default params stay";
    if (strcmp(r->params, r->base_params)) snprintf(won, sizeof won, "default params %.1f us; %.1f %% saved%s: %s", r->base_us, 100 * r->gain,
                                                    r->n_times > 1 ? " over all sizes" : "", difference);
    progress_line(p, "[%3d/%d] %s: %.1f us%s%s, %s (%d of %d legal tried%s)%s", p->done, p->n, name, r->time[0].median_us, roof[0] ? ", " : "", roof,
                  won, o->tried, o->legal, o->failed ? ", some failed" : "", left);
    if (o->failed) progress_line(p, "          %d failed, the first: %s", o->failed, o->first_failure);
}
