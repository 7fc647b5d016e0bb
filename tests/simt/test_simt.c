/* Runs the kernels of kernels/ and holds what comes of each against what its comment says: right kernels pass in every order,
 * each fault is reported for what it is, matrix instructions give the plain product, functions the bits of a card. A line a
 * failure; exit 0 only if there is none. */
#include "simt.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 256, WORDS = 1024, WORK = 10240, MOST_TESTS = 128, ORDERS = 4 };

struct test_args {
    const f32 *x;
    f32 *y;
    u32 *work;
    const i32 *a, *b;
};

struct test {
    char kernel[64], expect[160];
    int threads, blocks, bytes;
};

struct file {
    char *text;
    struct test test[MOST_TESTS];
    int n;
    char object[256];
};

static int failures, passed;

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 17);
    if (!f || !text) abort();
    size_t n = fread(text, 1, (1 << 17) - 1, f);
    fclose(f);
    text[n] = 0;
    return text;
}

/* "test: 64 threads, 4 blocks, 0 bytes: passes", and the name of the kernel below. */
static void find_tests(struct file *f)
{
    const char *p = f->text;
    while ((p = strstr(p, "/* test: ")) && f->n < MOST_TESTS) {
        struct test *t = &f->test[f->n];
        if (sscanf(p, "/* test: %d threads, %d blocks, %d bytes: %159[^\n]", &t->threads, &t->blocks, &t->bytes, t->expect) != 4)
            abort();
        t->expect[strlen(t->expect) - 3] = 0;         /* the end of the comment */
        p = strstr(p, "__launch_bounds__(");
        if (!p || sscanf(strchr(p, ')') + 1, " %63[a-z0-9_]", t->kernel) != 1) abort();
        f->n++;
    }
}

/* The whole file as one object, with an entry for each test. Non-zero if g++ refuses. */
static int compile(struct file *f, int cc, const char *stem)
{
    char flags[640], command[4096], path[256];
    struct q_phases none = {0};
    size_t cap = strlen(f->text) + 65536;
    char *text = malloc(cap);
    if (!text) abort();
    int n = snprintf(text, cap, "%s", f->text);
    for (int i = 0; i < f->n; i++)
        n += snprintf(text + n, cap - (size_t)n, "\nextern \"C\" void SIMT_%s(const void *args) { simt_call(%s, args); }",
                      f->test[i].kernel, f->test[i].kernel);
    char *unit = simt_unit("", text, &none);
    snprintf(path, sizeof path, "%s.cc", stem);
    snprintf(f->object, sizeof f->object, "%s.so", stem);
    FILE *out = fopen(path, "w");
    if (!out) abort();
    fputs(unit, out);
    fclose(out);
    simt_flags(flags, sizeof flags, cc);
    snprintf(
        command, sizeof command,
        "g++ %s -I '%s/tests/simt' -I '%s/tests/simt' -I '%s/tests/simt/kernels' -I '%s/runtime' -o '%s' '%s' -lm 2>'%s.log'",
        flags, TEST_SOURCE_DIR, TEST_BUILD_DIR, TEST_SOURCE_DIR, TEST_SOURCE_DIR, f->object, path, stem);
    free(text);
    free(unit);
    return system(command);
}

/* --- running ----------------------------------------------------------------------------------------------------- */

struct data {
    f32 x[N], y[N];
    u32 work[WORK];
    i32 a[WORDS], b[WORDS];
};

static void fill(struct data *d)
{
    u32 seed = 1;
    memset(d, 0, sizeof *d);
    memset(d->y, 0xFF, sizeof d->y);
    for (int i = 0; i < N; i++) d->x[i] = (f32)i;
    for (int i = 0; i < WORDS; i++) {
        seed = seed * 1664525 + 1013904223;
        d->a[i] = (i32)(seed >> 24) % 101 - 50;
        d->b[i] = (i32)(seed >> 16) % 103 - 50;
    }
}

/* Buffers apart from each other, so that what lies beyond one is no other's. */
static void *apart(const void *from, size_t bytes)
{
    char *p = calloc(1, bytes + 4096);
    if (!p) abort();
    return memcpy((char *)(((size_t)p + 2048) / 64 * 64), from, bytes);
}

/* What y has to be. */
static f32 expected(const struct test *t, const struct data *d, int i)
{
    int rows, columns, depth;
    if (sscanf(t->expect, "product %d %d %d", &rows, &columns, &depth) != 3) return d->x[i] + 1;
    if (i >= rows * columns) return NAN;
    int r = i / columns, c = i % columns, sum = depth == 32 ? 7 : i;
    for (int k = 0; k < depth; k++) sum += d->a[r * depth + k] * d->b[c * depth + k];
    return (f32)sum;
}

static void compare(char *why, size_t cap, const struct test *t, const struct data *d, const f32 *y)
{
    for (int i = 0; i < N; i++) {
        f32 want = expected(t, d, i);
        if (y[i] == want || (isnan(y[i]) && isnan(want))) continue;
        if (isnan(y[i])) snprintf(why, cap, "y[%d] is nan, expected %g", i, want);
        else snprintf(why, cap, "y[%d] is %g, expected %g", i, y[i], want);
        return;
    }
}

/* FNV-1a. */
static u32 hash(const u32 *word, int n)
{
    u32 h = 0x811C9DC5;
    for (int i = 0; i < 4 * n; i++) h = (h ^ (word[i / 4] >> 8 * (i % 4) & 255)) * 0x01000193;
    return h;
}

/* Row after row of `work` against the names and hashes of functions.txt. */
static void compare_functions(char *why, size_t cap, const u32 *work)
{
    char name[40];
    u32 want;
    FILE *f = fopen(TEST_SOURCE_DIR "/tests/simt/kernels/functions.txt", "r");
    if (!f) abort();
    for (int n = 0; fscanf(f, "%39s %x", name, &want) == 2 && !strcmp(why, "passes"); n++)
        if (hash(work + N * n, N) != want) snprintf(why, cap, "%s: %08x, on a card %08x", name, hash(work + N * n, N), want);
    fclose(f);
}

/* One run; "passes", or what is wrong. */
static void run_once(char *why, size_t cap, const struct file *f, const struct test *t, unsigned long long seed)
{
    static struct data d;
    struct q_err e = {0};
    fill(&d);
    struct test_args args = {apart(d.x, sizeof d.x), apart(d.y, sizeof d.y), apart(d.work, sizeof d.work), apart(d.a, sizeof d.a),
                             apart(d.b, sizeof d.b)};
    struct simt_buffer buffer[] = {{"x", (void *)args.x, sizeof d.x, 0, 0},
                                   {"y", args.y, sizeof d.y, 1, 0},
                                   {"work", args.work, sizeof d.work, 1, 0},
                                   {"a", (void *)args.a, sizeof d.a, 0, 0},
                                   {"b", (void *)args.b, sizeof d.b, 0, 0}};
    struct q_phases launch = {
        .n = 1, .phase = {{.threads = t->threads, .smem = t->bytes, .grid = {{.mul = t->blocks}, {.mul = 1}, {.mul = 1}}}}};
    struct simt_call call = {.name = t->kernel,
                             .source = f->text,
                             .object = f->object,
                             .launch = &launch,
                             .extent = {1, 1, 1},
                             .cc = 80,
                             .args = &args,
                             .args_bytes = sizeof args,
                             .buffer = buffer,
                             .n_buffers = 5,
                             .seed = seed};
    snprintf(why, cap, "passes");
    if (simt_run(&call, &e)) snprintf(why, cap, "%s", e.text);
    else if (!strcmp(t->expect, "functions")) compare_functions(why, cap, args.work);
    else compare(why, cap, t, &d, args.y);
}

static void check(const struct file *f, const struct test *t)
{
    char why[1200] = "passes";
    int right = !strncmp(t->expect, "product", 7) || !strcmp(t->expect, "functions") || !strcmp(t->expect, "passes");
    for (unsigned seed = 0; seed < ORDERS && !strcmp(why, "passes"); seed++) run_once(why, sizeof why, f, t, seed);
    int ok = right ? !strcmp(why, "passes") : strstr(why, t->expect) != NULL;
    if (!ok) printf("FAIL %s: expected '%s', found '%s'\n", t->kernel, t->expect, why);
    if (ok) passed++;
    else failures++;
}

static void check_file(const char *name)
{
    static struct file f;
    char path[1024], stem[1024];
    memset(&f, 0, sizeof f);
    snprintf(path, sizeof path, "%s/tests/simt/kernels/%s.cu", TEST_SOURCE_DIR, name);
    snprintf(stem, sizeof stem, "%s/tests/simt/%s", TEST_BUILD_DIR, name);
    f.text = read_file(path);
    find_tests(&f);
    if (compile(&f, 80, stem)) printf("FAIL %s does not compile: see %s.log\n", path, stem), failures++;
    else
        for (int i = 0; i < f.n; i++) check(&f, &f.test[i]);
    free(f.text);
}

/* What a compute capability lacks must not compile for it, and must from the next on. */
static void check_lacks(const char *call, int cc, int has)
{
    static struct file f;
    char text[400], stem[1024];
    snprintf(text, sizeof text, "#include \"kernel.cuh\"\nextern \"C\" void f(i32 *d, f32 *y, u32 *a)\n{\n    %s;\n}\n", call);
    memset(&f, 0, sizeof f);
    f.text = text;
    snprintf(stem, sizeof stem, "%s/tests/simt/lacks", TEST_BUILD_DIR);
    for (int i = 0; i < 2; i++) {
        int refused = compile(&f, i ? has : cc, stem) != 0;
        if (refused == !i) passed++;
        else printf("FAIL %s for sm_%d\n", call, i ? has : cc), failures++;
    }
}

int main(void)
{
    check_file("faults");
    check_file("matrix");
    check_file("functions");
    check_lacks("d[0] = dp4a(d[1], d[2], d[3])", 60, 61);
    check_lacks("mma_f16_884(y, a, a)", 61, 70);
    check_lacks("mma_s8_8816(d, a[0], a[1], 0, 0)", 70, 75);
    check_lacks("ldmatrix_x4(a, a)", 70, 75);
    check_lacks("mma_s8_16832(d, a, a, 0)", 75, 80);
    check_lacks("mma_s8_16832_add(d, a, a)", 75, 80);
    check_lacks("cp_async16(a, y)", 75, 80);
    printf("%d passed, %d failed\n", passed, failures);
    return failures > 0;
}
