/* Hostile kernel sets: a good set with something changed, imported. Whatever comes, the import ends with 0 or one line, nothing lies outside
 * the store afterwards, and what it wrote can be read. test_tune_bundle_fuzz [TIMES [SEED]]; the sanitizers watch.
 *
 * Changes go as deep as a change can get: bytes of the file, of the tar under the compression, of the manifest with members left right, and
 * of a record with all hashes made right, its file's name too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "good_bundle.h"
#include "autotune/bundle.h"
#include <archive.h>
#include <archive_entry.h>
#include <cjson/cJSON.h>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static long times = 2000;
static unsigned long long seed = 20261130;
static long unpacked, imported, written;      /* how far the sets came */

static unsigned long long next(void)
{
    unsigned long long z = seed += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static size_t below(size_t n) { return n ? (size_t)(next() % n) : 0; }

struct text {
    char *data;                    /* owned, with room for GROWTH more */
    size_t n;
};

enum { GROWTH = 4096 };

static struct text copy_of(const void *data, size_t n)
{
    struct text t = { malloc(n + GROWTH + 1), n };
    if (n) memcpy(t.data, data, n);
    return t;
}

/* --- changes of bytes -------------------------------------------------------------------------------------------------- */

static void insert(struct text *t, size_t at, const char *what, size_t n)
{
    memmove(t->data + at + n, t->data + at, t->n - at);
    memcpy(t->data + at, what, n);
    t->n += n;
}

/* Bounds, signs, ends of types, what looks like a path or a command, what is no UTF-8. */
static const char *const words[] = {
    "0", "-1", "1e308", "2147483647", "4294967296", "9223372036854775808", "1048577", "0.5", "null", "[]", "{}", "\"\"", "../", "/etc/passwd",
    "\\u0000", "\\u0041", "\xff\xfe", "\xc0\x80", "[[[[[[[[[[[[", "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}", "$(id)", "%s%n", "=", ",", ",,,",
    "n=1", "isa=scalar", "path=dp4a", "cuda:sm_70", "true",
};
enum { WORDS = sizeof words / sizeof *words };

static void change_once(struct text *t)
{
    size_t at = below(t->n + 1), n;
    const char *word = words[below(WORDS)];
    switch (below(7)) {
    case 0: if (at < t->n) t->data[at] ^= (char)(1 << below(8)); break;
    case 1: if (at < t->n) t->data[at] = (char)next(); break;
    case 2: t->n = at; break;
    case 3: insert(t, at, word, strlen(word)); break;
    case 4:                                                       /* a piece is gone */
        n = below(t->n - at < 64 ? t->n - at : 64);
        memmove(t->data + at, t->data + at + n, t->n - at - n);
        t->n -= n;
        break;
    case 5:                                                       /* a piece is there twice */
        n = below(t->n - at < 64 ? t->n - at : 64);
        if (n) {
            char piece[64];
            memcpy(piece, t->data + at, n);
            insert(t, below(t->n), piece, n);
        }
        break;
    default:                                                      /* a number or word is another */
        while (at < t->n && !strchr(":,=", t->data[at] ? t->data[at] : ' ')) at++;
        n = 0;
        while (at + 1 + n < t->n && n < 40 && !strchr(",}\"]", t->data[at + 1 + n] ? t->data[at + 1 + n] : ' ')) n++;
        if (at + 1 + n > t->n) break;
        memmove(t->data + at + 1, t->data + at + 1 + n, t->n - at - 1 - n);
        t->n -= n;
        insert(t, at + 1, word, strlen(word));
    }
}

static void change(struct text *t)
{
    size_t most = 1 + below(4);
    for (size_t i = 0; i < most && t->n; i++) change_once(t);
}

/* --- archives ---------------------------------------------------------------------------------------------------------- */

struct sink {
    char *data;
    size_t n, cap;
};

static la_ssize_t take(struct archive *a, void *arg, const void *data, size_t n)
{
    struct sink *s = arg;
    if (s->n + n > s->cap) s->data = realloc(s->data, s->cap = 2 * (s->n + n));
    memcpy(s->data + s->n, data, n);
    s->n += n;
    return (la_ssize_t)n;
}

static void put(struct archive *a, const char *name, const void *data, size_t n)
{
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)n);
    if (archive_write_header(a, entry) == ARCHIVE_OK) archive_write_data(a, data, n);
    archive_entry_free(entry);
}

/* The set as a file with this manifest; zstd 0: the tar itself. */
static struct text archive_of(const struct bundle *b, const char *manifest, size_t n, int zstd)
{
    struct sink s = { 0 };
    struct archive *a = archive_write_new();
    archive_write_set_format_pax_restricted(a);
    if (zstd) archive_write_add_filter_zstd(a);
    archive_write_set_bytes_in_last_block(a, 1);
    archive_write_open(a, &s, NULL, take, NULL);
    put(a, "MANIFEST.json", manifest, n);
    for (int i = 0; i < b->n; i++) put(a, b->m[i].path, b->m[i].data, b->m[i].n);
    archive_write_free(a);
    struct text t = copy_of(s.data, s.n);
    free(s.data);
    return t;
}

/* A tar's bytes, compressed. */
static struct text compressed(const struct text *tar)
{
    struct sink s = { 0 };
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_write_set_format_raw(a);
    archive_write_add_filter_zstd(a);
    archive_write_set_bytes_in_last_block(a, 1);
    archive_write_open(a, &s, NULL, take, NULL);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_write_header(a, entry);
    archive_write_data(a, tar->data, tar->n);
    archive_entry_free(entry);
    archive_write_free(a);
    struct text t = copy_of(s.data, s.n);
    free(s.data);
    return t;
}

static int compare(const void *x, const void *y) { return strcmp(((const struct bundle_member *)x)->path, ((const struct bundle_member *)y)->path); }

/* --- hostile sets ------------------------------------------------------------------------------------------------------ */

struct goods {
    struct bundle b[2 * GOOD_PROBLEMS];
    struct text file[2 * GOOD_PROBLEMS], tar[2 * GOOD_PROBLEMS];
    int n;
};

static struct text file_of(struct bundle *b, int zstd)
{
    qsort(b->m, (size_t)b->n, sizeof *b->m, compare);
    char *manifest = bundle_print_manifest(b);
    struct text t = archive_of(b, manifest, strlen(manifest), zstd);
    free(manifest);
    return t;
}

/* One record a set, so that a try is quick. */
static void make_goods(struct goods *goods, struct gen *g)
{
    static const char *const cards[] = { CPU_CARD, GPU_CARD };
    struct record *r = malloc(sizeof *r);
    struct gen_kernel k;
    memset(goods, 0, sizeof *goods);
    for (int i = 0; i < 2 * GOOD_PROBLEMS; i++) {
        if (!good_record(g, cards[i % 2], i / 2, i % 3 ? "tuned" : "default", r, &k)) continue;
        struct bundle *b = &goods->b[goods->n];
        good_head(b, cards[i % 2]);
        good_add(b, r, &k);
        gen_kernel_free(&k);
        goods->file[goods->n] = file_of(b, 1);
        goods->tar[goods->n++] = file_of(b, 0);
    }
    free(r);
}

static void free_goods(struct goods *goods)
{
    for (int i = 0; i < goods->n; i++) {
        bundle_free(&goods->b[i]);
        free(goods->file[i].data);
        free(goods->tar[i].data);
    }
}

static struct text hostile_tar(const struct text *tar)
{
    struct text t = copy_of(tar->data, tar->n);
    change(&t);
    if (below(2) && t.n > 512) {                     /* headers are few of its bytes */
        size_t header = below(t.n / 512) * 512;
        t.data[header + below(512)] = (char)next();
    }
    struct text file = compressed(&t);
    free(t.data);
    return file;
}

static struct text hostile_manifest(const struct bundle *b)
{
    char *manifest = bundle_print_manifest(b);
    struct text t = copy_of(manifest, strlen(manifest));
    free(manifest);
    change(&t);
    struct text file = archive_of(b, t.data, t.n, 1);
    free(t.data);
    return file;
}

/* A member is changed, and all that is said of it made right. */
static struct text hostile_member(const struct bundle *good)
{
    struct bundle b;
    struct record *r = malloc(sizeof *r);
    struct q_err e;
    good_head(&b, good->card);
    size_t victim = below(4) ? (size_t)-1 : below((size_t)good->n);
    for (int i = 0; i < good->n; i++) {
        const struct bundle_member *m = &good->m[i];
        size_t most;
        int record = bundle_kind_of(m->path, &most) == BUNDLE_RECORD;
        struct text t = copy_of(m->data, m->n);
        char path[BUNDLE_PATH];
        strcpy(path, m->path);
        if (victim == (size_t)i || (victim == (size_t)-1 && record)) change(&t);
        if (record && !record_parse(r, t.data, t.n, "fuzz", &e) && below(8)) good_path(path, r);
        bundle_add(&b, path, t.data, t.n, &e);       /* what no set can hold is left out */
        free(t.data);
    }
    free(r);
    struct text file = file_of(&b, 1);
    bundle_free(&b);
    return file;
}

static struct text hostile(const struct goods *goods)
{
    size_t i = below((size_t)goods->n), how = below(8);
    struct text t;
    if (how > 3) return hostile_member(&goods->b[i]);
    if (how > 1) return hostile_manifest(&goods->b[i]);
    if (how) return hostile_tar(&goods->tar[i]);
    t = copy_of(goods->file[i].data, goods->file[i].n);
    change(&t);
    return t;
}

/* --- what must hold ---------------------------------------------------------------------------------------------------- */

static int is_one_of(const char *name, const char *const *list)
{
    while (*list && strcmp(*list, name)) list++;
    return *list != NULL;
}

/* Names in a folder are these. */
static void holds_only(const char *dir, const char *const *names)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    while (d && (entry = readdir(d)))
        if (entry->d_name[0] != '.' && !is_one_of(entry->d_name, names)) fail_msg("%s holds %s (seed %llu)", dir, entry->d_name, seed);
    if (d) closedir(d);
}

static int read_back(void *arg, const struct record *r, const char *path)
{
    assert_true(r->n_objects == 0 || strlen(r->objects[0].name) == 64);
    return 0;
}

static void check_place(struct place *p)
{
    char path[Q_PATH];
    struct stat st;
    holds_only(p->dir, (const char *const[]){ "tunes", "cache", "sentinel", NULL });
    holds_only(p->tunes, (const char *const[]){ "v1", NULL });
    holds_only(p->cache, (const char *const[]){ "objects", "defaults", NULL });
    assert_int_equal(path_join(path, NULL, p->dir, "sentinel", NULL), Q_OK);
    assert_true(!stat(path, &st) && st.st_size == 5);
    store_each(p->store, p->here.key, read_back, NULL, NULL);
}

static void import(struct place *p, const struct text *t)
{
    struct bundle b;
    struct import_result r;
    struct q_err e = { 0 };
    struct minisign_public k = { { 0 }, { 0 } };
    int rc = bundle_unpack(&b, t->data, t->n, "set", &e);
    if (!rc) {
        p->o.trusted = (int)below(2);
        p->o.m = below(4) ? &p->m : NULL;
        if (b.has_signature) minisign_verify(&b.signature, &k, b.manifest, b.manifest_n);
        rc = import_bundle(&b, &p->o, &r, &e);
        bundle_free(&b);
        unpacked++;
        imported += !rc;
        written += !rc && r.written + r.data > 0;
    }
    if (rc && (!e.text[0] || strchr(e.text, '\n'))) fail_msg("code %d without a line (seed %llu)", rc, seed);
}

static void test_hostile_sets(void **state)
{
    static const char *const here[] = { CPU_CARD, "cuda:sm_70,sms=68,l2=4608,bus=4096,smem=96" };
    struct gen *g;
    struct goods goods;
    struct place p[2];
    struct rusage use;
    struct q_err e;
    assert_int_equal(gen_open(&g, NULL, &e), Q_OK);
    make_goods(&goods, g);
    assert_true(goods.n >= GOOD_PROBLEMS);
    for (int i = 0; i < 2; i++) {
        char path[300];
        place_open(&p[i], g, here[i]);
        snprintf(path, sizeof path, "%s/sentinel", p[i].dir);
        assert_int_equal(file_write(path, "whole", 5, &e), Q_OK);
    }
    setenv("HOME", p[0].dir, 1);
    for (int i = 0; i < goods.n; i++) import(&p[i % 2], &goods.file[i]);
    for (long i = 0; i < times; i++) {
        struct text t = hostile(&goods);
        import(&p[below(2)], &t);
        free(t.data);
    }
    for (int i = 0; i < 2; i++) {
        check_place(&p[i]);
        place_close(&p[i]);
    }
    free_goods(&goods);
    gen_close(g);
    printf("%ld sets: %ld unpacked, %ld imported, of which %ld wrote records\n", times, unpacked, imported, written);
    assert_true(unpacked > times / 8 && imported > times / 100 && written && imported < times);
    getrusage(RUSAGE_SELF, &use);
    assert_true(use.ru_maxrss < 1500 << 10);         /* KiB, with the sanitizers' share */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_hostile_sets) };
    if (argc > 1) times = atol(argv[1]);
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
