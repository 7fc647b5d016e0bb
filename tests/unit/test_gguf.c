/* The GGUF reader on bytes in memory that end at an unmapped page: one byte read too far is a signal. Whole files and
 * messages are tested by tests/py/test_gguf.py; here are the accessors, and every way of cutting or changing a file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "gguf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- a file, written piece by piece --- */

struct buf {
    unsigned char b[4096];
    size_t n;
};

static void put(struct buf *f, const void *p, size_t n)
{
    assert_true(f->n + n <= sizeof f->b);
    memcpy(f->b + f->n, p, n);
    f->n += n;
}
static void put32(struct buf *f, uint32_t v) { put(f, &v, 4); }
static void put64(struct buf *f, uint64_t v) { put(f, &v, 8); }
static void put_str(struct buf *f, const char *s)
{
    put64(f, strlen(s));
    put(f, s, strlen(s));
}
static void put_key(struct buf *f, const char *key, uint32_t type)
{
    put_str(f, key);
    put32(f, type);
}
static void put_tensor(struct buf *f, const char *name, uint64_t n, uint32_t type, uint64_t offset)
{
    put_str(f, name);
    put32(f, 1);
    put64(f, n);
    put32(f, type);
    put64(f, offset);
}

/* Keys of most types, twenty strings, two tensors: t f32[3] and u q8_0[32]. */
static struct buf sample(void)
{
    struct buf f = { .n = 0 };
    put(&f, "GGUF", 4);
    put32(&f, 3);
    put64(&f, 2);
    put64(&f, 8);
    put_key(&f, "i8", GGUF_I8), put(&f, "\xfe", 1);
    put_key(&f, "u64", GGUF_U64), put64(&f, UINT64_MAX);
    put_key(&f, "f32", GGUF_F32), put32(&f, 0x3FC00000);
    put_key(&f, "yes", GGUF_BOOL), put(&f, "\1", 1);
    put_key(&f, "text", GGUF_STRING), put_str(&f, "h\xc3\xa9llo");
    put_key(&f, "i16s", GGUF_ARRAY), put32(&f, GGUF_I16), put64(&f, 3), put(&f, "\1\0\xff\xff\0\x80", 6);
    put_key(&f, "words", GGUF_ARRAY), put32(&f, GGUF_STRING), put64(&f, 20);
    for (int i = 0; i < 20; i++) {
        char w[24] = "................";
        w[i % 7] = 0;
        put_str(&f, w);
    }
    put_key(&f, "none", GGUF_ARRAY), put32(&f, GGUF_STRING), put64(&f, 0);
    put_tensor(&f, "t", 3, 0, 0);
    put_tensor(&f, "u", 32, 8, 32);
    while (f.n % 32) put(&f, "", 1);
    put(&f, "\0\0\x80?\0\0\0@\0\0@@", 12);
    while (f.n % 32) put(&f, "", 1);
    for (int i = 0; i < 34; i++) put(&f, &(char){ (char)i }, 1);
    return f;
}

/* A copy whose last byte is the last one before an unmapped page. */
struct edge {
    unsigned char *map;
    size_t size;
};

static const unsigned char *at_edge(struct edge *e, const unsigned char *p, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (n + page - 1) / page * page;
    e->size = room + page;
    e->map = mmap(NULL, e->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(e->map != MAP_FAILED);
    assert_int_equal(mprotect(e->map + room, page, PROT_NONE), 0);
    memcpy(e->map + room - n, p, n);
    return e->map + room - n;
}

static int open_at_edge(const unsigned char *p, size_t n, struct q_err *err)
{
    struct edge e;
    struct gguf *g;
    const unsigned char *copy = at_edge(&e, p, n);
    int rc = gguf_open_memory(&g, copy, n, "sample", err);
    gguf_close(g);
    munmap(e.map, e.size);
    return rc;
}

/* --- tests --- */

static void values_come_back(void **state)
{
    struct buf f = sample();
    struct gguf *g;
    struct q_err e;
    int64_t i;
    double d;
    int yes;
    struct gguf_str s;
    const struct gguf_kv *kv;
    assert_int_equal(gguf_open_memory(&g, f.b, f.n, "sample", &e), Q_OK);
    assert_int_equal(gguf_get_int(g, "i8", -5, 5, &i, &e), Q_OK);
    assert_int_equal(i, -2);
    assert_int_equal(gguf_get_int(g, "i8", 0, 5, &i, &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "key 'i8': expected 0 to 5, found -2"));
    assert_int_equal(gguf_get_int(g, "u64", 0, INT64_MAX - 1, &i, &e), Q_EINPUT);
    assert_int_equal(gguf_get_float(g, "f32", &d, &e), Q_OK);
    assert_true(d == 1.5);
    assert_int_equal(gguf_get_float(g, "i8", &d, &e), Q_EINPUT);
    assert_int_equal(gguf_get_bool(g, "yes", &yes, &e), Q_OK);
    assert_int_equal(yes, 1);
    assert_int_equal(gguf_get_str(g, "text", &s, &e), Q_OK);
    assert_true(gguf_str_eq(s, "h\xc3\xa9llo"));
    assert_int_equal(gguf_get_str(g, "yes", &s, &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "expected a string, found bool"));
    assert_int_equal(gguf_get_str(g, "nothing", &s, &e), Q_EMISS);
    assert_int_equal(gguf_get_array(g, "i16s", GGUF_I32, &kv, &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "expected an array of i32, found array of i16"));
    assert_int_equal(gguf_get_array(g, "i16s", -1, &kv, &e), Q_OK);
    assert_int_equal(gguf_array_int(kv, 1), -1);
    assert_int_equal(gguf_array_int(kv, 2), -32768);
    gguf_close(g);
}

static void strings_by_index_and_in_order(void **state)
{
    struct buf f = sample();
    struct gguf *g;
    struct q_err e;
    const struct gguf_kv *kv;
    struct gguf_strings index;
    assert_int_equal(gguf_open_memory(&g, f.b, f.n, "sample", &e), Q_OK);
    assert_int_equal(gguf_get_array(g, "words", GGUF_STRING, &kv, &e), Q_OK);
    assert_int_equal(gguf_strings_open(&index, kv, &e), Q_OK);
    const unsigned char *at = kv->data;
    for (uint64_t i = 0; i < 20; i++) {
        struct gguf_str a = gguf_next_str(&at), b = gguf_strings_get(&index, i);
        assert_ptr_equal(a.s, b.s);
        assert_int_equal(a.n, i % 7);
    }
    assert_ptr_equal(at, kv->data + kv->bytes);
    gguf_strings_close(&index);
    assert_int_equal(gguf_get_array(g, "none", GGUF_STRING, &kv, &e), Q_OK);
    assert_int_equal(gguf_strings_open(&index, kv, &e), Q_OK);
    gguf_strings_close(&index);
    gguf_close(g);
}

static void tensors_are_where_they_should_be(void **state)
{
    struct buf f = sample();
    struct gguf *g;
    struct q_err e;
    assert_int_equal(gguf_open_memory(&g, f.b, f.n, "sample", &e), Q_OK);
    assert_int_equal(gguf_n_tensors(g), 2);
    const struct gguf_tensor *t = gguf_tensor_find(g, "t"), *u = gguf_tensor_find(g, "u");
    assert_ptr_equal(t, gguf_tensor(g, 0));
    assert_int_equal(t->bytes, 12);
    assert_memory_equal(t->data, "\0\0\x80?\0\0\0@\0\0@@", 12);
    assert_int_equal(u->bytes, 34);
    assert_ptr_equal(u->data + 34, f.b + f.n);
    assert_null(gguf_tensor_find(g, "x"));
    unsigned char h[2][32];
    gguf_header_hash(g, h[0]);
    gguf_close(g);
    f.b[f.n - 1] ^= 1;   /* weights are not part of the hash, keys are */
    assert_int_equal(gguf_open_memory(&g, f.b, f.n, "sample", &e), Q_OK);
    gguf_header_hash(g, h[1]);
    assert_memory_equal(h[0], h[1], 32);
    gguf_close(g);
}

static void cut_anywhere(void **state)
{
    struct buf f = sample();
    for (size_t n = 0; n < f.n; n++) {
        struct q_err e = { 0 };
        assert_int_not_equal(open_at_edge(f.b, n, &e), Q_OK);
        assert_true(!strncmp(e.text, "sample: ", 8));
    }
    assert_int_equal(open_at_edge(f.b, f.n, NULL), Q_OK);
}

/* Every byte of the header set to values that turn counts, lengths and types into lies. */
static void changed_anywhere(void **state)
{
    static const unsigned char values[] = { 0, 1, 7, 8, 9, 13, 0x20, 0x7F, 0x80, 0xFF };
    struct buf f = sample();
    for (size_t i = 0; i < f.n; i++)
        for (size_t v = 0; v < sizeof values; v++) {
            struct q_err e = { 0 };
            unsigned char was = f.b[i];
            f.b[i] = values[v];
            int rc = open_at_edge(f.b, f.n, &e);
            assert_true(rc == Q_OK || (rc == e.code && e.text[0] && !strchr(e.text, '\n')));
            f.b[i] = was;
        }
}

static void text_for_messages(void **state)
{
    char out[8];
    assert_string_equal(gguf_str_copy(out, sizeof out, (struct gguf_str){ "a\n\xff\x7f", 4 }), "a???");
    assert_string_equal(gguf_str_copy(out, sizeof out, (struct gguf_str){ "ab\xed\x95\x9c\xea\xb5\xad", 8 }), "ab\xed\x95\x9c");
    assert_string_equal(gguf_str_copy(out, sizeof out, (struct gguf_str){ "\xed\xa0\x80", 3 }), "???");
    assert_string_equal(gguf_str_copy(out, sizeof out, (struct gguf_str){ "\xc2\x9b" "A\xc2\xa0", 5 }), "?A\xc2\xa0");
    assert_string_equal(gguf_str_copy(out, sizeof out, (struct gguf_str){ "", 0 }), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back), cmocka_unit_test(strings_by_index_and_in_order),
        cmocka_unit_test(tensors_are_where_they_should_be), cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(changed_anywhere), cmocka_unit_test(text_for_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
