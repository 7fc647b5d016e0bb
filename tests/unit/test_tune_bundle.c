/* Kernel sets: what is packed is read back, signatures hold, and what lies in its tar, its manifest or its records is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "good_bundle.h"
#include "autotune/bundle.h"
#include "autotune/trusted.h"
#include <archive.h>
#include <archive_entry.h>
#include <cjson/cJSON.h>
#include <sys/resource.h>
#include <unistd.h>

static struct gen *g;

static int open_generator(void **state)
{
    struct q_err e;
    return gen_open(&g, NULL, &e);
}

static int close_generator(void **state)
{
    gen_close(g);
    return 0;
}

/* Some of the good problems, on a card. */
static void make_good(struct bundle *b, const char *card, const char *origin)
{
    struct record *r = malloc(sizeof *r);
    good_head(b, card);
    for (int i = 0; i < 4; i++) {
        struct gen_kernel k;
        if (!good_record(g, card, i, origin, r, &k)) continue;
        good_add(b, r, &k);
        gen_kernel_free(&k);
    }
    free(r);
}

static void pack(struct bundle *b, const struct minisign_secret *key, char **data, size_t *n)
{
    struct q_err e;
    if (bundle_pack(b, key, data, n, &e)) fail_msg("%s", e.text);
}

static void new_key(struct minisign_secret *s, struct minisign_public *k)
{
    char dir[] = "/tmp/quarry-key-XXXXXX", path[64];
    struct q_err e;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/key", dir);
    assert_int_equal(minisign_new(path, k, &e), Q_OK);
    assert_int_equal(minisign_new(path, k, &e), Q_EIO);      /* never over one that is there */
    assert_int_equal(minisign_secret_read(s, path, &e), Q_OK);
    dir_remove(dir);
    assert_memory_equal(s->id, k->id, sizeof k->id);
}

/* --- packing and signing ----------------------------------------------------------------------------------------------- */

static void test_what_is_packed_is_read_back(void **state)
{
    struct minisign_secret s;
    struct minisign_public k;
    struct bundle b, again;
    struct q_err e;
    char *data, *twice;
    size_t n, n2;
    new_key(&s, &k);
    make_good(&b, CPU_CARD, "tuned");
    pack(&b, &s, &data, &n);
    pack(&b, &s, &twice, &n2);
    assert_int_equal(n, n2);
    assert_memory_equal(data, twice, n);
    if (bundle_unpack(&again, data, n, "set", &e)) fail_msg("%s", e.text);
    assert_int_equal(again.n, b.n);
    for (int i = 0; i < b.n; i++) {
        assert_string_equal(again.m[i].path, b.m[i].path);
        if (again.m[i].data) assert_memory_equal(again.m[i].data, b.m[i].data, b.m[i].n);
    }
    assert_string_equal(again.model[0], "tiny q8_0");
    assert_true(again.has_signature && minisign_verify(&again.signature, &k, again.manifest, again.manifest_n));
    again.manifest[5] ^= 1;
    assert_false(minisign_verify(&again.signature, &k, again.manifest, again.manifest_n));
    again.manifest[5] ^= 1;
    again.signature.comment[0] ^= 1;
    assert_false(minisign_verify(&again.signature, &k, again.manifest, again.manifest_n));
    bundle_free(&again);
    bundle_free(&b);
    free(data);
    free(twice);
}

static void test_names_that_no_set_has(void **state)
{
    static const char *const names[] = { "", "/etc/passwd", "../x", "records/../../x.json", "records/a/0123456789abcdef01234567-0123456789ab.json/",
        "records//0123456789abcdef01234567-0123456789ab.json", "records/A/0123456789abcdef01234567-0123456789ab.json",
        "objects/00.so", "objects/../../../../../../../../../../../../../../../../../../../../../../../../x.so", "src/a.lua", "src/.c", "src/a/b.c",
        "MANIFEST.json", "records/a/0123456789abcdef01234567-0123456789ab.json\n" };
    struct bundle b;
    struct q_err e;
    size_t most;
    good_head(&b, CPU_CARD);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(bundle_kind_of(names[i], &most), BUNDLE_NONE);
        assert_int_equal(bundle_add(&b, names[i], "x", 1, &e), Q_EINPUT);
    }
    assert_int_equal(bundle_kind_of("records/a/0123456789abcdef01234567-0123456789ab.json", &most), BUNDLE_RECORD);
    bundle_free(&b);
}

/* --- hostile archives -------------------------------------------------------------------------------------------------- */

#define MEMBER "src/a.c"
#define NO_SHA "0000000000000000000000000000000000000000000000000000000000000000"

struct sink {
    char *data;
    size_t n;
};

static la_ssize_t take(struct archive *a, void *arg, const void *data, size_t n)
{
    struct sink *s = arg;
    s->data = realloc(s->data, s->n + n);
    memcpy(s->data + s->n, data, n);
    s->n += n;
    return (la_ssize_t)n;
}

static struct archive *begin(struct sink *s)
{
    struct archive *a = archive_write_new();
    memset(s, 0, sizeof *s);
    archive_write_set_format_pax_restricted(a);
    archive_write_add_filter_zstd(a);
    archive_write_set_bytes_in_last_block(a, 1);
    archive_write_open(a, s, NULL, take, NULL);
    return a;
}

/* content NULL: that many zeros. */
static void put(struct archive *a, const char *name, int type, const char *link, const char *content, size_t n)
{
    static const char zeros[65536];
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0644);
    if (link && type == AE_IFLNK) archive_entry_set_symlink(entry, link);
    if (link && type == AE_IFREG) archive_entry_set_hardlink(entry, link);
    archive_entry_set_size(entry, (la_int64_t)n);
    archive_write_header(a, entry);
    if (content) archive_write_data(a, content, n);
    for (size_t left = content ? 0 : n, part; left; left -= part) {
        part = left < sizeof zeros ? left : sizeof zeros;
        archive_write_data(a, zeros, part);
    }
    archive_entry_free(entry);
}

static void put_manifest(struct archive *a, const char *path, const char *sha, long size)
{
    char text[1000];
    snprintf(text, sizeof text,
             "{\"cards\":[\"%s\"],\"creator\":\"quarry\",\"format\":1,\"members\":[{\"path\":\"%s\",\"sha256\":\"%s\",\"size\":%ld}],"
             "\"models\":[]}", CPU_CARD, path, sha, size);
    put(a, "MANIFEST.json", AE_IFREG, NULL, text, strlen(text));
}

static void refused(struct archive *a, struct sink *s, const char *part)
{
    struct bundle b;
    struct q_err e = { 0 };
    archive_write_close(a);
    archive_write_free(a);
    assert_int_not_equal(bundle_unpack(&b, s->data, s->n, "set", &e), Q_OK);
    if (!strstr(e.text, part)) fail_msg("expected '%s' in '%s'", part, e.text);
    assert_null(b.m);
    free(s->data);
}

static void test_archives_that_lie(void **state)
{
    struct sink s;
    struct archive *a = begin(&s);
    char sha[65];
    sha_bytes(sha, "x", 1);
    refused(a, &s, "not a whole kernel set");
    a = begin(&s);
    put(a, MEMBER, AE_IFREG, NULL, "x", 1);
    refused(a, &s, "first member");
    a = begin(&s);
    put_manifest(a, MEMBER, sha, 1);
    refused(a, &s, "ends before");
    a = begin(&s);
    put_manifest(a, MEMBER, sha, 1);
    put(a, MEMBER, AE_IFLNK, "/etc/passwd", NULL, 0);
    refused(a, &s, "plain files");
    a = begin(&s);
    put_manifest(a, MEMBER, sha, 1);
    put(a, MEMBER, AE_IFREG, "MANIFEST.json", NULL, 0);
    refused(a, &s, "plain files");
    a = begin(&s);
    put_manifest(a, MEMBER, sha, 1);
    put(a, "../../etc/passwd", AE_IFREG, NULL, "x", 1);
    refused(a, &s, "expected the member src/a.c");
    a = begin(&s);
    put_manifest(a, MEMBER, sha, 1);
    put(a, MEMBER, AE_IFREG, NULL, "y", 1);
    refused(a, &s, "damaged");
    a = begin(&s);
    put_manifest(a, MEMBER, sha, 1);
    put(a, MEMBER, AE_IFREG, NULL, "x", 1);
    put(a, MEMBER, AE_IFREG, NULL, "x", 1);
    refused(a, &s, "more than");
    a = begin(&s);
    put_manifest(a, "../a.c", sha, 1);
    refused(a, &s, "no form");
    a = begin(&s);
    put_manifest(a, MEMBER, "00", 1);
    refused(a, &s, "SHA-256");
    a = begin(&s);
    put_manifest(a, MEMBER, sha, 1L << 40);
    refused(a, &s, "expected a size");
}

/* A gigabyte of zeros is 30 KB of zstd. */
static void test_bombs_take_no_memory(void **state)
{
    struct sink s;
    struct archive *a = begin(&s);
    struct rusage before, after;
    put(a, "MANIFEST.json", AE_IFREG, NULL, NULL, 1 << 30);
    getrusage(RUSAGE_SELF, &before);
    refused(a, &s, "longer than it may be");
    a = begin(&s);
    put_manifest(a, MEMBER, NO_SHA, 10);
    put(a, MEMBER, AE_IFREG, NULL, NULL, 1 << 30);
    refused(a, &s, "longer than it may be");
    a = begin(&s);
    for (int i = 0; i < 20; i++) put(a, "MANIFEST.json", AE_IFDIR, NULL, NULL, 0);
    refused(a, &s, "");
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 128 << 10);      /* KiB */
}

/* --- importing --------------------------------------------------------------------------------------------------------- */

static int import_into(struct place *p, const struct bundle *b, struct import_result *r, struct q_err *e)
{
    struct bundle read;
    struct bundle copy = *b;
    char *data;
    size_t n;
    pack(&copy, NULL, &data, &n);
    int rc = bundle_unpack(&read, data, n, "set", e);
    free(data);
    if (rc) return rc;
    rc = import_bundle(&read, &p->o, r, e);
    bundle_free(&read);
    return rc;
}

static int count_one(void *arg, const struct record *r, const char *path)
{
    ++*(int *)arg;
    return 0;
}

static int count_records(struct place *p, const char *card)
{
    int n = 0;
    store_each(p->store, card, count_one, &n, NULL);
    return n;
}

static void test_the_same_card_takes_all(void **state)
{
    struct place p;
    struct bundle b;
    struct import_result r;
    struct q_err e = { 0 };
    make_good(&b, CPU_CARD, "tuned");
    place_open(&p, g, CPU_CARD);
    if (import_into(&p, &b, &r, &e)) fail_msg("%s", e.text);
    assert_int_equal(r.written, 4);
    assert_int_equal(r.taken, 3);
    assert_int_equal(r.tested, 3);
    assert_int_equal(count_records(&p, CPU_CARD), 4);
    assert_int_equal(import_into(&p, &b, &r, &e), Q_OK);
    assert_int_equal(r.kept, 4);
    assert_int_equal(r.written, 0);
    place_close(&p);
    place_open(&p, g, CPU_CARD);
    p.o.trusted = 0;                                    /* and there is no compiler */
    assert_int_equal(import_into(&p, &b, &r, &e), Q_EMISS);
    assert_string_equal(e.text, "no compiler");
    assert_int_equal(count_records(&p, CPU_CARD), 0);
    place_close(&p);
    bundle_free(&b);
}

static int wrong_check(void *arg, int slot, const struct measure_kernel *k, char hash[17], struct q_err *e)
{
    return strstr(k->symbol, "rmsnorm") ? q_fail(e, Q_EINTERNAL, "wrong") : right_check(arg, slot, k, hash, e);
}

/* What is wrong here is left out, and its bytes do not stay under the name of what its text compiles to. */
static void test_a_wrong_kernel_is_left_out(void **state)
{
    struct place p;
    struct bundle b;
    struct import_result r;
    struct q_err e = { 0 };
    char path[Q_PATH];
    make_good(&b, CPU_CARD, "tuned");
    place_open(&p, g, CPU_CARD);
    p.m.check = wrong_check;
    if (import_into(&p, &b, &r, &e)) fail_msg("%s", e.text);
    assert_int_equal(r.failed, 1);
    assert_int_equal(r.written, 3);
    assert_int_equal(count_records(&p, CPU_CARD), 3);
    int there = 0;
    for (int i = 0; i < b.n; i++) {
        char name[65];
        snprintf(name, sizeof name, "%.64s", b.m[i].path + 8);
        there += !strncmp(b.m[i].path, "objects/", 8) && !store_object(p.store, name, path, NULL);
    }
    assert_int_equal(there, 2);
    place_close(&p);
    bundle_free(&b);
}

/* A set for a card of the same generation with fewer multiprocessors: its cubins run here, and its records become this card's. */
static void test_a_rig_without_nvrtc_takes_a_near_cards_kernels(void **state)
{
    struct place p;
    struct bundle b;
    struct import_result r;
    struct q_err e = { 0 };
    const char *here = "cuda:sm_70,sms=68,l2=4608,bus=4096,smem=96";
    make_good(&b, GPU_CARD, "tuned");
    place_open(&p, g, here);
    if (import_into(&p, &b, &r, &e)) fail_msg("%s", e.text);
    assert_int_equal(r.data, r.records);                /* winners of the other card too */
    assert_true(r.written > 0 && r.tested == r.taken);
    assert_int_equal(count_records(&p, here), r.written);
    place_close(&p);
    place_open(&p, g, "cuda:sm_75,sms=68,l2=4608,bus=4096,smem=64");    /* 7.5 runs what is for 7.0 */
    assert_int_equal(import_into(&p, &b, &r, &e), Q_OK);
    place_close(&p);
    place_open(&p, g, here);
    p.o.driver = 11080;                                 /* older than the compiler of the objects */
    assert_int_equal(import_into(&p, &b, &r, &e), Q_OK);
    assert_int_equal(r.taken, 0);
    place_close(&p);
    place_open(&p, g, "cuda:sm_60,sms=56,l2=4096,bus=4096,smem=48");
    assert_int_equal(import_into(&p, &b, &r, &e), Q_OK);
    assert_int_equal(r.taken, 0);
    place_close(&p);
    bundle_free(&b);
}

/* One field of a record at a time; the file's name is made right again, so that only the field is wrong. */
static void test_records_that_lie(void **state)
{
    static const struct { const char *field, *value; } lies[] = {
        { "params", "\"isa=avx2,fma=fma,tm=5,tn=4,chain=chunk,prefetch=0\"" }, { "params", "\"isa=avx2\"" }, { "params", "\"\"" },
        { "params", "\"tm=1000000000000\"" }, { "shape", "\"type=q8_0,act=q8,layout=r16u,n=2147483647,k=256,epi=none\"" },
        { "shape", "\"type=q8_0,act=q8,layout=r16u,n=1048576,k=1048576,epi=none\"" }, { "shape", "\"n=1\"" }, { "shape", "\"\"" },
        { "rows", "3" }, { "rows", "-1" }, { "ctx", "1e300" }, { "profile", "\"fast\"" }, { "card", "\"cuda:sm_70\"" },
        { "kernel", "\"matvec\"" }, { "layout", "\"rows\"" }, { "numerics", "\"lanes\"" }, { "origin", "\"root\"" },
        { "source", "\"" NO_SHA "\"" }, { "source", "\"\"" }, { "op", "\"layout\"" }, { "op", "\"matmul\"" }, { "op", "\"../x\"" }, { "format", "2" },
        { "launch", "[{\"grid\":[[1,0,0,0],[1,0,0,0],[1,0,0,0]],\"smem\":0,\"threads\":32}]" },
    };
    struct record *good = malloc(sizeof *good), *r = malloc(sizeof *r);
    struct gen_kernel k;
    assert_true(good_record(g, CPU_CARD, 2, "tuned", good, &k));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct place p;
        struct bundle b;
        struct import_result result;
        struct q_err e = { 0 };
        char path[BUNDLE_PATH];
        good_head(&b, CPU_CARD);
        good_add(&b, good, &k);
        char *text = record_print(good);
        cJSON *o = cJSON_Parse(text);
        free(text);
        cJSON_DeleteItemFromObjectCaseSensitive(o, lies[i].field);
        cJSON_AddItemToObject(o, lies[i].field, cJSON_Parse(lies[i].value));
        text = cJSON_PrintUnformatted(o);
        cJSON_Delete(o);
        if (!record_parse(r, text, strlen(text), "lie", NULL)) good_path(path, r);
        else good_path(path, good);
        for (int j = 0; j < b.n; j++)
            if (!strncmp(b.m[j].path, "records/", 8)) free(b.m[j].data), b.m[j] = b.m[--b.n];
        if (!strcmp(lies[i].field, "op") && strchr(lies[i].value, '/')) good_path(path, good);
        good_add_text(&b, path, text);
        cJSON_free(text);
        place_open(&p, g, CPU_CARD);
        int rc = import_into(&p, &b, &result, &e);
        int left_out = !rc && result.stale == 1;        /* an op of other templates */
        if (rc != Q_EINPUT && rc != Q_EUNSUP && !left_out) fail_msg("%s = %s: %d %s", lies[i].field, lies[i].value, rc, e.text);
        assert_int_equal(count_records(&p, CPU_CARD), 0);
        place_close(&p);
        bundle_free(&b);
    }
    gen_kernel_free(&k);
    free(good);
    free(r);
}

/* A trusted set whose object is not the one that its record names. */
static void test_an_object_must_be_the_records(void **state)
{
    struct place p;
    struct bundle b;
    struct import_result r;
    struct q_err e = { 0 };
    make_good(&b, CPU_CARD, "tuned");
    for (int i = 0; i < b.n; i++)
        if (!strncmp(b.m[i].path, "objects/", 8)) {
            b.m[i].data[0] ^= 1;
            sha_bytes(b.m[i].sha, b.m[i].data, b.m[i].n);
        }
    place_open(&p, g, CPU_CARD);
    assert_int_equal(import_into(&p, &b, &r, &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "not the object"));
    place_close(&p);
    bundle_free(&b);
}

/* Of other templates: left out, the rest comes in. */
static void test_other_templates_are_left_out(void **state)
{
    struct place p;
    struct bundle b;
    struct import_result result;
    struct q_err e = { 0 };
    struct record *r = malloc(sizeof *r);
    struct gen_kernel k;
    char path[BUNDLE_PATH];
    make_good(&b, CPU_CARD, "tuned");
    assert_true(good_record(g, CPU_CARD, 4, "tuned", r, &k));
    memset(r->generator, 'a', 64);
    char *text = record_print(r);
    good_path(path, r);
    good_add_text(&b, path, text);
    free(text);
    place_open(&p, g, CPU_CARD);
    if (import_into(&p, &b, &result, &e)) fail_msg("%s", e.text);
    assert_int_equal(result.stale, 1);
    assert_int_equal(result.written, 4);
    place_close(&p);
    gen_kernel_free(&k);
    bundle_free(&b);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_packed_is_read_back), cmocka_unit_test(test_names_that_no_set_has), cmocka_unit_test(test_archives_that_lie),
        cmocka_unit_test(test_bombs_take_no_memory), cmocka_unit_test(test_the_same_card_takes_all),
        cmocka_unit_test(test_a_wrong_kernel_is_left_out),
        cmocka_unit_test(test_a_rig_without_nvrtc_takes_a_near_cards_kernels), cmocka_unit_test(test_records_that_lie),
        cmocka_unit_test(test_an_object_must_be_the_records), cmocka_unit_test(test_other_templates_are_left_out),
    };
    return cmocka_run_group_tests(tests, open_generator, close_generator);
}
