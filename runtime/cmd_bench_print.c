#include "cmd_bench_impl.h"
#include "model.h"
#include "shape.h"
#include "trace.h"
#include <stdio.h>
#include <string.h>

void bench_print_title(const struct bench *b, const struct q_engine *en)
{
    const char *k, *v;
    q_engine_kv_formats(en, &k, &v);
    printf("%s, %s, K %s, V %s, medians of %ld\n\n| test    |  depth |     tok/s |       min |       max | roof                    |\n"
           "|---------|-------:|----------:|----------:|----------:|-------------------------|\n",
           q_engine_model(en)->path, q_engine_about(en), k, v, b->reps);
}

static void print_json_text(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 32) printf("\\u%04x", c);
        else if (c == '"' || c == '\\') printf("\\%c", c);
        else putchar(c);
    }
    putchar('"');
}

/* "pp512", "tg32", "tg32x8". */
static void name_test(const struct bench_test *t, char *to, size_t n)
{
    int at = snprintf(to, n, "%s%ld", t->decode ? "tg" : "pp", t->tokens);
    if (t->streams > 1) snprintf(to + at, n - (size_t)at, "x%d", t->streams);
}

static void print_kv_json(const struct q_engine *en)
{
    const char *k, *v;
    q_engine_kv_formats(en, &k, &v);
    printf(", \"kv_k\": \"%s\", \"kv_v\": \"%s\"", k, v);
}

/* roof: as bench_roof. */
static void row_json(struct bench *b, const struct q_engine *en, const struct bench_test *t, const struct bench_sample *s, const char *name,
                     double roof)
{
    printf("%s{\"model\": ", b->rows_printed++ ? ",\n " : "[");
    print_json_text(q_engine_model(en)->path);
    printf(", \"device\": ");
    print_json_text(q_engine_about(en));
    printf(", \"threads\": %d, \"test\": \"%s\", \"depth\": %d, \"streams\": %d, \"tokens_per_second\": %.3f, \"min\": %.3f, \"max\": %.3f",
           q_engine_threads(en), name, t->depth, t->streams, s->median, s->min, s->max);
    print_kv_json(en);
    if (roof > 0) printf(", \"roof\": %.3f, \"percent_of_roof\": %.1f", roof, 100 * s->median / roof);
    if (roof < 0) printf(", \"in_cache\": true");
    printf("}");
}

/* The ceiling that the test's roof is of. */
static void name_roof(const struct bench *b, const struct bench_test *t, char *to, size_t n)
{
    if (t->decode) snprintf(to, n, "%.1f GB/s", b->roofs.read * 1e-9);
    else snprintf(to, n, "%.2f TOP/s", b->roofs.int8 * 1e-12);
}

static void row_text(const struct bench *b, const struct bench_test *t, const struct bench_sample *s, const char *name, double roof)
{
    char text[56] = "", share[ROOF_TEXT], what[32];
    name_roof(b, t, what, sizeof what);
    /* Weights that no cache holds may still pass a roof that was measured in a slow moment: that is said, and no cache is blamed. */
    if (roof > 0) roof_text(share, 100 * s->median / roof, 0, 1);
    if (roof < 0) strcpy(text, "in cache");
    else if (roof > 0) snprintf(text, sizeof text, "%s of %s", share, what);
    printf("| %-7s | %6d | %9.2f | %9.2f | %9.2f | %-23s |\n", name, t->depth, s->median, s->min, s->max, text);
}

void bench_print_row(struct bench *b, const struct q_engine *en, const struct bench_test *t, const struct bench_sample *s)
{
    char name[24];
    double roof = bench_roof(b, en, t);
    name_test(t, name, sizeof name);
    if (b->json) row_json(b, en, t, s, name, roof);
    else row_text(b, t, s, name, roof);
    fflush(stdout);
}

/* --- the trace --------------------------------------------------------------------------------------------------------- */

void bench_print_roofs(const struct bench *b)
{
    printf("\nroofs, measured: %.1f GB/s read, %.0f GOP/s int8, %.0f GFLOP/s fp32\n", b->roofs.read * 1e-9, b->roofs.int8 * 1e-9,
           b->roofs.fp32 * 1e-9);
}

/* The larger of what memory and what arithmetic ask for, in percent of the time taken; *bound says which. */
static double percent_of_roof(const struct bench *b, const struct q_trace_line *l, const char **bound)
{
    struct q_shape s;
    int int8 = !shape_parse(&s, l->shape, NULL) && shape_is(&s, "act", "q8");
    double by_bytes = l->bytes / b->roofs.read * 1e6, by_ops = l->ops / (int8 ? b->roofs.int8 : b->roofs.fp32) * 1e6;
    *bound = by_bytes > by_ops ? "bytes" : "ops";
    return 100 * (by_bytes > by_ops ? by_bytes : by_ops) / l->us;
}

static void line_json(const struct bench *b, const struct q_trace_line *l, const char *test, int depth)
{
    const char *bound;
    double pct = percent_of_roof(b, l, &bound);
    printf(",\n {\"trace\": \"%s\", \"depth\": %d, \"op\": \"%s\", \"shape\": \"%s\", \"calls\": %ld, \"us\": %.3f, \"bytes\": %.0f, "
           "\"ops\": %.0f, \"percent_of_roof\": %.1f, \"bound\": \"%s\"}",
           test, depth, l->op, l->shape, l->calls, l->us, l->bytes, l->ops, pct, bound);
}

/* total: microseconds of all lines. */
static void line_text(const struct bench *b, const struct q_trace_line *l, double total)
{
    const char *bound;
    char share[ROOF_TEXT], roof[ROOF_TEXT + 8];
    double pct = percent_of_roof(b, l, &bound);
    int cached = roof_text(share, pct, *bound == 'b', 0) == ROOF_CACHE;
    snprintf(roof, sizeof roof, "%5s %s", share, cached ? "" : bound);
    printf("| %8.3f | %4.1f %% | %6ld | %8.2f | %7.2f | %7.1f | %-11s | %s %s\n", l->us * 1e-3, 100 * l->us / total, l->calls,
           l->us / (double)l->calls, l->bytes / l->us * 1e-3, l->ops / l->us * 1e-3, roof, l->op, l->shape);
}

void bench_print_trace(const struct bench *b, struct q_engine *en, const struct bench_test *t)
{
    int n;
    char name[24];
    const struct q_trace_line *l = q_engine_trace_lines(en, &n);
    double total = 0;
    name_test(t, name, sizeof name);
    for (int i = 0; i < n; i++) total += l[i].us;
    if (!b->json)
        printf("\n%s at depth %d, %.2f ms in kernels\n\n|       ms | share |  calls |  us/call |    GB/s |   GOP/s | roof        | kernel\n"
               "|---------:|------:|-------:|---------:|--------:|--------:|-------------|-------\n", name, t->depth, total * 1e-3);
    for (int i = 0; i < n; i++) {
        if (b->json) line_json(b, &l[i], name, t->depth);
        else line_text(b, &l[i], total);
    }
}
