/* Any bytes: refused with an error, or ids whose bytes are NFC of the text. Guarded text has the ids of plain text, and
 * a stream's chunks are whole characters that join to the same bytes. The first byte chooses the flags. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "tok_impl.h"

enum { N_EXTRA = 12, N = 256 + N_EXTRA };
static const char *const extra[N_EXTRA] = {"ab", "aa", "aaaa", "ĠĠ", "íķ", "íķľ", "ĊĊ", "e\xC3\x8C", "<|im_end|>", "<|im_end|><|x|>",
                                           "<think>", "<|im"};
static const int32_t extra_type[N_EXTRA] = {1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 4, 4};
static const char *const merges[] = {"a a", "aa aa", "a b", "Ġ Ġ", "í ķ", "íķ ľ", "Ċ Ċ", "e \xC3\x8C"};

static struct tokenizer *open_small(void)
{
    static char bytes[256][2];
    static struct tok_str tokens[N], merge[8];
    static int32_t types[N];
    for (int b = 0; b < 256; b++) {
        tokens[b] = (struct tok_str){bytes[b], tok_map_byte((unsigned char)b, bytes[b])};
        types[b] = TOK_NORMAL;
    }
    for (int i = 0; i < N_EXTRA; i++) {
        tokens[256 + i] = (struct tok_str){extra[i], strlen(extra[i])};
        types[256 + i] = extra_type[i];
    }
    for (int i = 0; i < 8; i++) merge[i] = (struct tok_str){merges[i], strlen(merges[i])};
    struct tok_source s = {"gpt2", "qwen35", tokens, types, merge, N, N, 8, 264, -1, -1};
    struct tokenizer *t;
    if (tok_open(&t, &s, "small", NULL)) abort();
    return t;
}

static void must(int ok)
{
    if (!ok) abort();
}

static void add(struct tok_text *out, const void *s, size_t n)
{
    must(!tok_text_reserve(out, n, NULL));
    if (n) memcpy(out->at + out->n, s, n);
    out->n += n;
}

/* utf8proc 2.8 takes U+11A7, which is one before the first trailing consonant, for none, and drops it behind a Hangul syllable. Nothing
 * composes with what is before it, so texts are cut there. */
static size_t to_11a7(const char *s, size_t n)
{
    const char *at = n > 1 ? memmem(s + 1, n - 1, "\xE1\x86\xA7", 3) : NULL;
    return at ? (size_t)(at - s) : n;
}

static void add_nfc(struct tok_text *out, const char *s, size_t n)
{
    utf8proc_uint8_t *form = NULL;
    size_t whole = n;
    n = to_11a7(s, n);
    utf8proc_ssize_t k = utf8proc_map((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n, &form, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    must(k >= 0);
    add(out, form, (size_t)k);
    free(form);
    if (n < whole) add_nfc(out, s + n, whole - n);
}

/* The bytes that the ids should have: NFC of each piece between the special tokens that are allowed. */
static void expected(const struct tokenizer *t, const char *s, size_t n, unsigned flags, struct tok_text *out)
{
    size_t start = 0, i = 0;
    while (i < n) {
        int32_t id = tok_special_at(t, s + i, n - i);
        size_t len = id < 0 ? 1 : t->text[id].n;
        if (id >= 0 && (t->type[id] == TOK_USER || (flags & TOK_PARSE_CONTROL))) {
            add_nfc(out, s + start, i - start);
            add(out, s + i, len);
            start = i + len;
        }
        i += len;
    }
    add_nfc(out, s + start, n - start);
}

static void check_bytes(const struct tokenizer *t, const struct tok_ids *ids, const char *s, size_t n, unsigned flags)
{
    struct tok_text got = {0}, want = {0}, joined = {0};
    struct tok_stream stream = {0};
    must(!tok_decode(t, ids->at, ids->n, &got, NULL));
    expected(t, s, n, flags, &want);
    must(got.n == want.n && (!got.n || !memcmp(got.at, want.at, got.n)));
    for (size_t i = 0; i < ids->n; i++) {
        size_t before = joined.n;
        must(!tok_stream_push(&stream, t, ids->at[i], &joined, NULL));
        must(utf8_check(joined.at + before, joined.n - before) == joined.n - before);
    }
    must(stream.n == 0 && joined.n == got.n && (!got.n || !memcmp(joined.at, got.at, got.n)));
    free(got.at);
    free(want.at);
    free(joined.at);
}

static void check_guard(const struct tokenizer *t, const struct tok_ids *plain, const char *s, size_t n)
{
    char *guarded;
    size_t len;
    struct tok_ids ids = {0};
    must(!tok_guard(t, s, n, &guarded, &len, NULL));
    must(!tok_encode(t, guarded ? guarded : s, len, TOK_PARSE_CONTROL | TOK_GUARDED, &ids, NULL));
    must(ids.n == plain->n && (!ids.n || !memcmp(ids.at, plain->at, ids.n * sizeof *ids.at)));
    free(guarded);
    free(ids.at);
}

static void check_stream_of_anything(const struct tokenizer *t, const unsigned char *s, size_t n)
{
    struct tok_text out = {0};
    struct tok_stream stream = {0};
    for (size_t i = 0; i < n; i++) must(!tok_stream_push(&stream, t, t->byte_id[s[i]], &out, NULL));
    must(!tok_stream_flush(&stream, &out, NULL));
    must(utf8_check(out.at, out.n) == out.n);
    free(out.at);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    static struct tokenizer *t;
    if (!t) t = open_small();
    if (n == 0) return 0;
    unsigned flags = data[0] & TOK_PARSE_CONTROL;
    const char *s = (const char *)data + 1;
    struct tok_ids ids = {0};
    struct q_err e = {0};
    check_stream_of_anything(t, data + 1, n - 1);
    int rc = tok_encode(t, s, n - 1, flags, &ids, &e);
    must(rc == Q_OK || (rc == Q_EINPUT && e.text[0]));
    must((rc == Q_OK) == (utf8_check(s, n - 1) == n - 1));
    if (!rc) check_bytes(t, &ids, s, n - 1, flags);
    if (!rc && !flags) check_guard(t, &ids, s, n - 1);
    free(ids.at);
    return 0;
}
