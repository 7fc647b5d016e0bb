#include "progress.h"
#include "runtime/shape.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

double progress_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

static int met_before(const struct found_list *l, int n, const char *op)
{
    for (int i = 0; i < n; i++)
        if (l->f[i].fresh && !strcmp(l->f[i].problem.op, op)) return 1;
    return 0;
}

static void line_of_op(const struct progress *p, const struct found_list *l, const char *op)
{
    int n = 0, better = 0;
    double gain = 0, least = 0, most = 0;
    for (int i = 0; i < l->n; i++) {
        const struct record *r = &l->f[i].record;
        if (!l->f[i].fresh || strcmp(l->f[i].problem.op, op)) continue;
        n++;
        better += r->gain > 0;
        gain = fmax(gain, r->gain);
        if (!r->bound[0]) continue;
        least = most > 0 ? fmin(least, r->roof_pct) : r->roof_pct;
        most = fmax(most, r->roof_pct);
    }
    char by[60] = "", roof[60] = "";
    if (better) snprintf(by, sizeof by, ", by up to %.0f %%", 100 * gain);
    if (most > 0 && n == 1) snprintf(roof, sizeof roof, "; %.0f %% of roof", most);
    else if (most > 0) snprintf(roof, sizeof roof, "; %.0f to %.0f %% of roof", least, most);
    progress_line(p, "  %s: %d problem%s, %d better than %s default params%s%s", op, n, n == 1 ? "" : "s", better, n == 1 ? "its" : "their", by, roof);
}

void progress_ops(const struct progress *p, const struct found_list *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->f[i].fresh && !met_before(l, i, l->f[i].problem.op)) line_of_op(p, l, l->f[i].problem.op);
}

/* Time to go, as the mean of what was done promises. */
static void eta(char *dst, size_t cap, const struct progress *p)
{
    double left = p->done ? (progress_now() - p->start) / p->done * (p->n - p->done) : 0;
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
    progress_line(p, "[%3d/%d] %s: right again, %.1f us (recorded %.1f us)%s", p->done, p->n, name, now->time[0].median_us, old->time[0].median_us, left);
}

void progress_outcome(struct progress *p, const struct q_problem *problem, const struct outcome *o)
{
    const struct record *r = &o->record;
    char difference[200], left[40], name[300];
    p->done++;
    eta(left, sizeof left, p);
    progress_difference(difference, sizeof difference, r->params, r->base_params);
    progress_name(name, sizeof name, problem);
    progress_line(p, "[%3d/%d] %s: %.1f us, %.0f %% of roof (%s), default %.1f us, %.1f %% saved in the duel: %s (%d of %d legal tried%s)%s", p->done, p->n,
                  name, r->time[0].median_us, r->roof_pct, r->bound, r->base_us, 100 * r->gain, difference, o->tried,
                  o->legal, o->failed ? ", some failed" : "", left);
    if (o->failed) progress_line(p, "          %d failed, the first: %s", o->failed, o->first_failure);
}
