/* How much attention the pages that attn_pick keeps really hold: data with the patterns of long prompts, 32K tokens deep, measured in double on
 * rows that were no probes. A line a budget and kind of data; exit 0 only if each keeps what it promises. What a truth (ref.c) picks is what every
 * kernel picks: op_check holds them to that.
 *
 * Heads of a group: 0 has the first tokens and the nearest, 1 and 3 single tokens that all rows look at, 2 a fixed distance.
 * Behind them lies a noise of scores, whose share of the mass is the kind of data: `sharp` has little, `broad` some, `flat` all. */
#include "templates/ref_kv.h"
#include "templates/attn_pick/args.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 32768, ROWS = 128, HEADS = 4, DIM = 256, WAVES = 32, OWN = 2 * WAVES, LINES = 40, FAR = 9000, ROWS_SEEN = 5 };

struct kind {
    const char *name;
    double noise, peak;        /* deviation of the scores that nothing explains; what patterns add */
};

struct lists {
    double kept, mean, worst;  /* of the pages; of a row's mass: mean, least */
};

static int is_line(int t) { return ((u32)t * 0x9E3779B1u >> 7) % (DEPTH / LINES) == 0; }

/* Values 0 .. 63: waves of the position, whose product peaks at a distance; 64 .. 67: marks; the rest noise. */
static void put_waves(f32 *x, double at, double size)
{
    for (int i = 0; i < WAVES; i++) {
        double turn = at * pow(3000, -(double)i / WAVES);
        x[2 * i] = (f32)(size * cos(turn));
        x[2 * i + 1] = (f32)(size * sin(turn));
    }
}

static void put_key(const struct attn_pick_args *a, int t, unsigned long long *seed)
{
    f32 x[DIM];
    put_waves(x, t, 1);
    for (int i = OWN; i < DIM; i++) x[i] = (f32)ref_normal(seed);
    x[OWN] = t < 4;
    x[OWN + 1] = (f32)is_line(t);
    ref_kv_put(KV_F16, DIM, (u8 *)a->pages_k + a->step->pages[t / KV_PAGE] * kv_piece_bytes(KV_F16, DIM), t % KV_PAGE, x);
}

static void put_query(f32 *q, int kv, int head, const struct kind *k, unsigned long long *seed)
{
    double peak = 16 * k->peak, own = (DIM - OWN - 2) / 256.0;
    put_waves(q, head == 2 ? kv - FAR : kv, head == 0 || head == 2 ? peak / WAVES : peak / WAVES / 8);
    for (int i = OWN; i < DIM; i++) q[i] = (f32)(k->noise * ref_normal(seed) / sqrt(own));
    q[OWN] = (f32)(head == 0 ? peak : 0);
    q[OWN + 1] = (f32)(head == 1 || head == 3 ? peak : 0);
}

static struct ref_case *make(struct attn_pick_args *a, const struct q_shape *s, const struct kind *k)
{
    const struct ref_size size = { .rows = ROWS, .seqs = 1, .past = DEPTH, .parts = 1, .plain = 1 };
    struct ref_case *c = ref_case_open();
    unsigned long long seed = 11;
    if (ref_find("attn_pick")->make(c, a, s, &size, 3)) abort();
    for (int t = 0; t < DEPTH + ROWS; t++) put_key(a, t, &seed);
    for (int r = 0; r < ROWS; r++)
        for (int h = 0; h < HEADS; h++) put_query((f32 *)a->q + ((size_t)r * HEADS + (size_t)h) * DIM, DEPTH + r, h, k, &seed);
    a->scale = 1 / 16.0f;
    return c;
}

/* The share of row r's and head h's mass that lies in the list's pages. */
static double mass_in(const struct attn_pick_args *a, const f32 *keys, const i32 *list, int r, int h)
{
    const f32 *q = a->q + ((size_t)r * HEADS + (size_t)h) * DIM;
    double in = 0, all = 0;
    for (int t = 0, at = 0; t <= DEPTH + r; t++) {
        double s = 0;
        for (int i = 0; i < DIM; i++) s += (double)q[i] * (double)keys[(size_t)t * DIM + (size_t)i];
        while (at < list[0] && list[1 + at] < t / KV_PAGE) at++;
        double p = exp(s * a->scale - 12);
        all += p;
        if (at < list[0] && list[1 + at] == t / KV_PAGE) in += p;
    }
    return in / all;
}

static f32 *all_keys(const struct attn_pick_args *a)
{
    f32 *keys = malloc((size_t)(DEPTH + ROWS) * DIM * sizeof *keys);
    double x[DIM];
    if (!keys) abort();
    for (int t = 0; t < DEPTH + ROWS; t++) {
        ref_kv_get(KV_F16, DIM, (u8 *)a->pages_k + a->step->pages[t / KV_PAGE] * kv_piece_bytes(KV_F16, DIM), t % KV_PAGE, x);
        for (int i = 0; i < DIM; i++) keys[(size_t)t * DIM + (size_t)i] = (f32)x[i];
    }
    return keys;
}

static struct lists measure(const struct attn_pick_args *a)
{
    struct lists l = { .worst = 1 };
    f32 *keys = all_keys(a);
    int n = 0;
    for (int block = 0; block < ROWS / PICK_ROWS; block++) {
        const i32 *list = a->pick + (size_t)block * (size_t)(1 + a->step->page_stride);
        l.kept += list[0] / ((double)(DEPTH + (block + 1) * PICK_ROWS) / KV_PAGE) / (ROWS / PICK_ROWS);
        for (int i = 0; i < ROWS_SEEN; i++)
            for (int h = 0; h < HEADS; h++, n++) {
                double m = mass_in(a, keys, list, block * PICK_ROWS + 5 + 13 * i, h);
                l.mean += m;
                l.worst = fmin(l.worst, m);
            }
    }
    l.mean /= n;
    free(keys);
    return l;
}

int main(void)
{
    static const struct kind kinds[] = { { "sharp", 1, 18 }, { "broad", 1, 15.5 }, { "flat", 0.5, 0 } };
    static const double budgets[] = { 0.95, 0.99 };
    struct q_shape s;
    struct q_err e;
    int failures = 0;
    if (shape_parse(&s, "heads=4,kv_heads=1,head_dim=256,fk=f16", &e)) return 1;
    printf("%d tokens, %d rows, a KV head of %d heads; mass kept of rows that were no probes\n     kind   budget  pages read  mass kept  least of a row\n", DEPTH, ROWS, HEADS);
    for (int i = 0; i < 3; i++) {
        struct attn_pick_args a;
        struct ref_case *c = make(&a, &s, &kinds[i]);
        for (int b = i < 2 ? 0 : 1; b < 2; b++) {
            a.mass = (f32)budgets[b];
            ref_find("attn_pick")->run(&a, &s);
            struct lists l = measure(&a);
            /* The budget is a mean over probes, and other rows come near it; flat attention must not be thinned by more than the budget allows. */
            int ok = l.mean >= budgets[b] - 0.1 * (1 - budgets[b]) && (i || l.kept < 0.5);
            printf("%s %-6s %6.2f %10.1f %% %10.4f %12.4f\n", ok ? "ok  " : "FAIL", kinds[i].name, budgets[b], 100 * l.kept, l.mean, l.worst);
            fflush(stdout);
            failures += !ok;
        }
        ref_case_close(c);
    }
    return failures != 0;
}
