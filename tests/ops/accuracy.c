/* What one case cannot show: that draws follow their probabilities, and how many last places the delta net's gates are off. For every
 * instruction path of this machine. Prints one line a check with its figure; exit 0 only if all hold. */
#include "op_check.h"
#include "runtime/card.h"
#include "templates/gdn_prep/args.h"
#include "templates/sample/args.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { IDS = 50, DRAWS = 20000, GATES = 16 };

typedef void kernel_fn(const void *args, struct team *t);

static int failures;

static void line(int ok, const char *isa, const char *what, double figure, double limit)
{
    printf("%s %-10s %-28s %10.3f (at most %.3f)\n", ok ? "ok  " : "FAIL", isa, what, figure, limit);
    failures += !ok;
}

/* The kernel's symbol for one path; NULL if this machine lacks it. */
static kernel_fn *kernel(struct gen *g, const char *op, const char *shape, const char *isa, const char *card)
{
    struct build_opts build = { .cache = TEST_BUILD_DIR "/op_cache" };
    struct gen_kernel k;
    struct q_err e = { 0 };
    char params[64], path[4096];
    snprintf(params, sizeof params, "isa=%s", isa);
    int rc = gen_emit(g, op, shape, params, card, "pinned", &k, &e);
    if (rc == Q_EUNSUP) return NULL;
    if (!rc) rc = kernel_build(path, &k, &build, &e);
    void *object = rc ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    kernel_fn *f = object ? (kernel_fn *)dlsym(object, k.name) : NULL;
    if (!f) printf("FAIL %s %s: %s\n", op, isa, rc ? e.text : "cannot be loaded"), failures++;
    gen_kernel_free(&k);
    return f;
}

/* Probability of each id: all but the kept set are 0. Sorted by insertion, plainly. */
static void expected(double p[IDS], const f32 *logits, const struct sampling *s)
{
    int order[IDS], kept = 0;
    double total = 0, sum = 0;
    for (int i = 0; i < IDS; i++) {
        int j = i;
        for (; j > 0 && logits[order[j - 1]] < logits[i]; j--) order[j] = order[j - 1];
        order[j] = i;
    }
    for (int i = 0; i < IDS; i++) p[i] = exp((logits[i] - logits[order[0]]) / s->temp);
    int most = s->top_k > 0 ? s->top_k : IDS;
    for (int i = 0; i < most; i++) total += p[order[i]];
    for (; kept < most && (kept == 0 || sum < s->top_p * total); kept++) sum += p[order[kept]];
    while (kept > 1 && p[order[kept - 1]] < s->min_p) sum -= p[order[--kept]];
    for (int i = 0; i < IDS; i++) p[order[i]] = i < kept ? p[order[i]] / sum : 0;
}

static void draw_all(kernel_fn *f, const f32 *logits, const struct sampling *s, i32 *id)
{
    struct sampling *rows = calloc(DRAWS, sizeof *rows);
    f32 *x = calloc(DRAWS * IDS, sizeof *x), *logprob = calloc(DRAWS, sizeof *logprob);
    void *work = aligned_alloc(64, (sample_work(IDS, 1) + 63) / 64 * 64);
    if (!rows || !x || !logprob || !work) abort();
    for (int i = 0; i < DRAWS; i++) rows[i] = *s, rows[i].position = i, memcpy(x + i * IDS, logits, IDS * sizeof *x);
    struct step step = { .n_out = DRAWS, .sampling = rows };
    struct sample_args a = { &step, x, id, logprob, work };
    struct team alone = { 0, 1, NULL };
    f(&a, &alone);
    free(rows), free(x), free(logprob), free(work);
}

/* Pearson's statistic against its mean df, limit at about six of its deviations. An id outside the kept set is a failure. */
static void check_draws(kernel_fn *f, const char *isa, const char *what, struct sampling s)
{
    f32 logits[IDS];
    unsigned long long seed = 7;
    double p[IDS], chi2 = 0;
    int count[IDS] = { 0 }, kept = 0, outside = 0;
    i32 *id = calloc(DRAWS, sizeof *id);
    if (!id) abort();
    ref_fill_f32(logits, IDS, &seed, 1.5);
    expected(p, logits, &s);
    draw_all(f, logits, &s, id);
    for (int i = 0; i < DRAWS; i++) {
        if (id[i] < 0 || id[i] >= IDS || p[id[i]] == 0) outside++;
        else count[id[i]]++;
    }
    for (int i = 0; i < IDS; i++)
        if (p[i] > 0) chi2 += pow(count[i] - DRAWS * p[i], 2) / (DRAWS * p[i]), kept++;
    double limit = kept - 1 + 6 * sqrt(2.0 * (kept - 1)) + 6;
    line(!outside && chi2 <= limit, isa, what, chi2, limit);
    free(id);
}

/* 1024 equal logits show the top ten bits of the word drawn: that of key 0, counter 0 is 6627E8D5 (Random123's known answers). */
static void check_word(kernel_fn *f, const char *isa)
{
    static f32 logits[1024];
    struct sampling s = { .temp = 1, .top_p = 1, .repeat = 1 };
    struct step step = { .n_out = 1, .sampling = &s };
    f32 logprob;
    i32 id;
    void *work = aligned_alloc(64, (sample_work(1024, 1) + 63) / 64 * 64);
    if (!work) abort();
    struct sample_args a = { &step, logits, &id, &logprob, work };
    struct team alone = { 0, 1, NULL };
    f(&a, &alone);
    line(id == 0x6627E8D5 >> 22, isa, "philox: top bits", id, 0x6627E8D5 >> 22);
    free(work);
}

static double ulps(f32 got, double want)
{
    f32 near = (f32)want;
    return fabs(got - want) / (nextafterf(fabsf(near), INFINITY) - fabsf(near));
}

/* softplus and sigmoid over [-85, 85], in steps fine enough for every binade. */
static void check_gates(kernel_fn *f, const char *isa)
{
    enum { ROWS = 8192, WIDTH = (2 + GATES) * 8 };
    static f32 c[ROWS * WIDTH], x[ROWS * GATES], g[ROWS * GATES], b[ROWS * GATES], a[GATES], dt[GATES];
    unsigned long long seed = 11;
    double soft = 0, sig = 0;
    i32 rows = ROWS;
    for (int i = 0; i < GATES; i++) a[i] = -1;
    for (int i = 0; i < ROWS * GATES; i++) {
        double small = exp(ref_uniform(&seed, -30, 4.44));
        x[i] = (f32)(i % 2 ? small : -small);
    }
    struct gdn_prep_args args = { &rows, c, x, x, a, dt, g, b };
    struct team alone = { 0, 1, NULL };
    f(&args, &alone);
    for (int i = 0; i < ROWS * GATES; i++) {
        soft = fmax(soft, ulps(-g[i], x[i] > 20 ? x[i] : log1p(exp(x[i]))));
        sig = fmax(sig, ulps(b[i], 1 / (1 + exp(-(double)x[i]))));
    }
    line(soft <= 2, isa, "softplus: ulp", soft, 2);
    line(sig <= 3, isa, "sigmoid: ulp", sig, 3);
}

static void check_path(struct gen *g, const char *isa, const char *card)
{
    kernel_fn *sample = kernel(g, "sample", "n=50", isa, card), *word = kernel(g, "sample", "n=1024", isa, card);
    kernel_fn *prep = kernel(g, "gdn_prep", "k_heads=1,v_heads=16,dim=8", isa, card);
    if (!sample || !word || !prep) return;
    struct sampling s = { .temp = 1, .top_p = 1, .repeat = 1, .seed = 20261129 };
    check_draws(sample, isa, "draws: chi2, plain", s);
    s.temp = 0.7f;
    check_draws(sample, isa, "draws: chi2, temp", s);
    s.top_k = 12;
    check_draws(sample, isa, "draws: chi2, top_k", s);
    s.top_p = 0.8f;
    check_draws(sample, isa, "draws: chi2, top_k top_p", s);
    s.top_k = 0, s.seed++;
    check_draws(sample, isa, "draws: chi2, top_p", s);
    s.min_p = 0.2f;
    check_draws(sample, isa, "draws: chi2, top_p min_p", s);
    check_word(word, isa);
    check_gates(prep, isa);
}

int main(void)
{
    static const char *const paths[] = { "scalar", "sse42", "avx2", "avxvnni", "avx512vnni" };
    struct q_err e = { 0 };
    struct q_card card;
    struct gen *g;
    mkdir(TEST_BUILD_DIR "/op_cache", 0755);
    if (gen_open(&g, NULL, &e) || card_detect_cpu(&card, 0, &e)) {
        fprintf(stderr, "accuracy: %s\n", e.text);
        return 1;
    }
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) check_path(g, paths[i], card.key);
    gen_close(g);
    return failures > 0;
}
