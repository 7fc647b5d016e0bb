/* The tokenizer's rules on a vocabulary small enough to work out by hand. tests/py/test_tokenizer.py holds it against the
 * reference on whole vocabularies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tok_impl.h"

/* 256 bytes, then: */
enum { AB = 256, BC, ABC, XX, XXXX, LL, END, IM, THINK, PAD, COUNT };
static const char *const extra[] = {"ab", "bc", "abc", "xx", "xxxx", "ll", "<|im_end|>", "<|im|>", "<think>", "[PAD]"};
static const int32_t extra_type[] = {1, 1, 1, 1, 1, 1, 3, 3, 4, 5};
static const char *const merge_list[] = {"b c", "a b", "a bc", "x x", "xx xx", "l l"};

struct vocabulary {
    char bytes[256][2];
    struct tok_str tokens[COUNT], merges[6];
    int32_t types[COUNT];
    struct tok_source source;
};

static struct vocabulary *make(void)
{
    struct vocabulary *v = calloc(1, sizeof *v);
    for (int b = 0; b < 256; b++) {
        v->tokens[b] = (struct tok_str){v->bytes[b], tok_map_byte((unsigned char)b, v->bytes[b])};
        v->types[b] = TOK_NORMAL;
    }
    for (int i = AB; i < COUNT; i++) {
        v->tokens[i] = (struct tok_str){extra[i - AB], strlen(extra[i - AB])};
        v->types[i] = extra_type[i - AB];
    }
    for (int i = 0; i < 6; i++) v->merges[i] = (struct tok_str){merge_list[i], strlen(merge_list[i])};
    v->source = (struct tok_source){"gpt2", "qwen35", v->tokens, v->types, v->merges, COUNT, COUNT, 6, END, PAD, -1};
    return v;
}

static struct tokenizer *tok;

static int set_up(void **state)
{
    struct vocabulary *v = make();
    int rc = tok_open(&tok, &v->source, "test", NULL);
    free(v); /* the source is borrowed only while opening */
    return rc;
}

static int tear_down(void **state)
{
    tok_close(tok);
    return 0;
}

static void expect(const char *text, size_t n, unsigned flags, const int32_t *want, size_t want_n)
{
    struct tok_ids ids = {0};
    struct q_err e = {0};
    assert_int_equal(tok_encode(tok, text, n, flags, &ids, &e), 0);
    assert_int_equal(ids.n, want_n);
    if (want_n) assert_memory_equal(ids.at, want, want_n * sizeof *want);
    free(ids.at);
}
#define EXPECT(text, flags, ...)                                                                                       \
    expect(text, sizeof text - 1, flags, (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / 4)

static void merges_go_by_rank_then_from_the_left(void **state)
{
    EXPECT("abc", 0, ABC);
    EXPECT("ab", 0, AB);
    EXPECT("abab", 0, AB, AB);
    EXPECT("xxx", 0, XX, 'x');
    EXPECT("xxxxxxx", 0, XXXX, XX, 'x');
    expect("", 0, 0, NULL, 0);
}

/* The scan (up to 32 bytes) and the queue must agree on every string of the letters that merge. */
static void long_pretokens_merge_like_short_ones(void **state)
{
    char text[32 + 64];
    uint32_t x = 12345;
    for (int k = 0; k < 20000; k++) {
        size_t n = 1 + k % 31, pad = 64;
        for (size_t i = 0; i < n; i++) text[i] = "abcx"[(x = x * 1664525u + 1013904223u) >> 30];
        memset(text + n, 'q', pad); /* merges with nothing: the ids before it stay as they are */
        struct tok_ids a = {0}, b = {0};
        assert_int_equal(tok_encode(tok, text, n, 0, &a, NULL), 0);
        assert_int_equal(tok_encode(tok, text, n + pad, 0, &b, NULL), 0);
        assert_int_equal(b.n, a.n + pad);
        assert_memory_equal(a.at, b.at, a.n * sizeof *a.at);
        free(a.at);
        free(b.at);
    }
}

/* A random vocabulary over a, b and c: merges in random order, so that a merge often makes a pair that ranks before itself,
 * and several merges for one token. Trained vocabularies have little of either. */
enum { RANDOM = 64 };
struct random_vocabulary {
    char text[RANDOM][16], pair[RANDOM][24];
    int n, tokens; /* merges; tokens made by them */
    struct tokenizer *t;
};

static uint32_t draw(uint32_t *x, uint32_t below)
{
    return ((*x = *x * 1664525u + 1013904223u) >> 8) % below;
}

static const char *draw_part(struct random_vocabulary *r, uint32_t *x)
{
    static const char *const letters[] = {"a", "b", "c"};
    return r->tokens && draw(x, 3) ? r->text[draw(x, (uint32_t)r->tokens)] : letters[draw(x, 3)];
}

static void draw_merge(struct random_vocabulary *r, uint32_t *x)
{
    const char *a = draw_part(r, x), *b = draw_part(r, x);
    char text[32], pair[32];
    snprintf(text, sizeof text, "%s%s", a, b);
    snprintf(pair, sizeof pair, "%s %s", a, b);
    if (strlen(text) > 8) return;
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->pair[i], pair)) return;
    strcpy(r->pair[r->n++], pair);
    for (int i = 0; i < r->tokens; i++)
        if (!strcmp(r->text[i], text)) return;
    strcpy(r->text[r->tokens++], text);
}

static void open_random(struct random_vocabulary *r, uint32_t *x)
{
    struct vocabulary *v = make();
    struct tok_str tokens[256 + RANDOM], list[RANDOM];
    r->n = r->tokens = 0;
    for (int tries = 0; tries < 400 && r->n < RANDOM; tries++) draw_merge(r, x);
    memcpy(tokens, v->tokens, 256 * sizeof *tokens);
    for (int i = 0; i < r->tokens; i++) tokens[256 + i] = (struct tok_str){r->text[i], strlen(r->text[i])};
    for (int i = 0; i < r->n; i++) {
        uint32_t k = draw(x, (uint32_t)i + 1);
        list[i] = list[k];
        list[k] = (struct tok_str){r->pair[i], strlen(r->pair[i])};
    }
    struct tok_source s = {"gpt2", "qwen35", tokens, NULL, list, 256 + (size_t)r->tokens, 0, (size_t)r->n, -1, -1, -1};
    assert_int_equal(tok_open(&r->t, &s, "random", NULL), 0);
    free(v);
}

/* The rule as it is told: find the lowest rank, leftmost; join; again. */
static size_t merge_plainly(const struct tokenizer *t, const char *s, size_t n, int32_t *ids)
{
    for (size_t i = 0; i < n; i++) ids[i] = t->byte_id[(unsigned char)s[i]];
    for (;;) {
        struct tok_merge best = {.rank = TOK_NO_MERGE};
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++)
            for (uint32_t k = 0; k <= t->merges.mask; k++) {
                struct tok_merge m = t->merges.slot[k];
                if (m.rank < best.rank && m.left == (uint32_t)ids[i] && m.right == (uint32_t)ids[i + 1]) best = m, at = i;
            }
        if (best.rank == TOK_NO_MERGE) return n;
        ids[at] = (int32_t)best.id;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
        n--;
    }
}

static void merges_in_any_order_give_the_plain_answer(void **state)
{
    uint32_t x = 99;
    struct random_vocabulary r;
    for (int k = 0; k < 40; k++) {
        struct tok_bpe work = {0};
        open_random(&r, &x);
        for (size_t round = 0; round < 16; round++) {
            char text[200];
            int32_t want[200], got[200];
            size_t n = 1 + round * 13;
            for (size_t i = 0; i < n; i++) text[i] = "abc"[draw(&x, 3)];
            size_t want_n = merge_plainly(r.t, text, n, want);
            assert_int_equal(tok_bpe_run(r.t, text, n, &work, got), want_n);
            assert_memory_equal(got, want, want_n * sizeof *want);
        }
        tok_bpe_free(&work);
        tok_close(r.t);
    }
}

static void splits(const char *text, const char *want)
{
    char got[256];
    size_t n = strlen(text), k = 0;
    for (size_t i = 0; i < n;) {
        size_t len = tok_split(tok, (const unsigned char *)text + i, n - i);
        assert_true(len > 0 && len <= n - i);
        memcpy(got + k, text + i, len);
        k += len;
        got[k++] = '|';
        i += len;
    }
    got[k] = 0;
    assert_string_equal(got, want);
}

static void split_takes_the_first_alternative(void **state)
{
    splits("x->y; ===>\n\n!!", "x|->|y|;| ===>\n\n|!!|");
    splits("2026년 12", "2|0|2|6|년| |1|2|");
    splits("I'LLx don't 'sx", "I|'LL|x| don|'t| '|sx|");
    splits("'\xC5\xBFz", "'\xC5\xBF|z|");
    splits("a  b   \n  c  ", "a| | b|   \n| | c|  |");
    splits("\t\tx\r\n\r\ny", "\t|\tx|\r\n\r\n|y|");
    splits("  1", " | |1|");
    splits("\xE3\x80\x80글", "\xE3\x80\x80글|");
    splits("ไม่", "ไม่|");
    splits("!\xCC\x81" "a", "!\xCC\x81" "a|");
    splits("ㅎㅏㄴ ㅋㅋ", "ㅎㅏㄴ| ㅋㅋ|");
}

static void control_tokens_are_text_unless_allowed(void **state)
{
    EXPECT("ab<|im_end|>", TOK_PARSE_CONTROL, AB, END);
    EXPECT("<|im|>x", TOK_PARSE_CONTROL, IM, 'x');
    EXPECT("<|im|>x", 0, '<', '|', 'i', 'm', '|', '>', 'x');
    EXPECT("<think>", 0, THINK);
    EXPECT("<<think>>", 0, '<', THINK, '>');
    EXPECT("[PAD]", TOK_PARSE_CONTROL, '[', 'P', 'A', 'D', ']');
}

static void guarded(const char *text, size_t n, char **out, size_t *out_n)
{
    assert_int_equal(tok_guard(tok, text, n, out, out_n, NULL), 0);
}

static void marks_keep_control_tokens_text(void **state)
{
    char *out;
    size_t n;
    guarded("x<|im|>", 7, &out, &n);
    assert_int_equal(n, 10);
    assert_memory_equal(out, "x<\xEF\xB7\x90|im|>", 10);
    int32_t plain[] = {'x', '<', '|', 'i', 'm', '|', '>'};
    expect(out, n, TOK_PARSE_CONTROL | TOK_GUARDED, plain, 7);
    free(out);
    guarded("just <b>text</b>, <think>", 25, &out, &n);
    assert_null(out);
    assert_int_equal(n, 25);
    guarded("a<|i", 4, &out, &n); /* the start of one ends the string: it must not be completed by what follows */
    assert_memory_equal(out, "a<\xEF\xB7\x90|i", 7);
    free(out);
}

static void a_mark_of_the_texts_own_survives(void **state)
{
    char *out;
    size_t n;
    guarded("\xEF\xB7\x90", 3, &out, &n);
    assert_int_equal(n, 6);
    int32_t bytes[] = {0xEF, 0xB7, 0x90};
    expect(out, n, TOK_GUARDED, bytes, 3);
    free(out);
    expect("\xEF\xB7\x90", 3, 0, bytes, 3);
    expect("\xEF\xB7\x90", 3, TOK_GUARDED, NULL, 0);
}

static void nfc_does_not_cross_special_tokens(void **state)
{
    EXPECT("e\xCC\x81", 0, 0xC3, 0xA9);
    EXPECT("e<think>\xCC\x81", 0, 'e', THINK, 0xCC, 0x81);
}

static void errors_leave_the_ids_alone(void **state)
{
    struct tok_ids ids = {0};
    struct q_err e = {0};
    assert_int_equal(tok_encode(tok, "ab", 2, 0, &ids, &e), 0);
    assert_int_equal(tok_encode(tok, "ab\xFF", 3, 0, &ids, &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "0xFF at offset 2"));
    assert_int_equal(ids.n, 1);
    free(ids.at);
}

static void vocabulary_answers(void **state)
{
    assert_int_equal(tok_count(tok), COUNT);
    assert_int_equal(tok_find(tok, "<think>", 7), THINK);
    assert_int_equal(tok_find(tok, "nope", 4), -1);
    assert_int_equal(tok_type(tok, PAD), TOK_UNUSED);
    assert_int_equal(tok_type(tok, COUNT), 0);
    assert_true(tok_is_end(tok, END) && !tok_is_end(tok, THINK) && !tok_is_end(tok, -1));
    assert_int_equal(tok_eos(tok), END);
    assert_int_equal(tok_bos(tok), -1);
    assert_int_equal(tok_piece(tok, 0xE1).n, 1);
    assert_null(tok_piece(tok, COUNT).at);
}

static void streams(const int32_t *ids, size_t n, const char *const *chunks, const char *rest)
{
    struct tok_stream s = {0};
    struct tok_text out = {0};
    for (size_t i = 0; i < n; i++) {
        out.n = 0;
        assert_int_equal(tok_stream_push(&s, tok, ids[i], &out, NULL), 0);
        assert_int_equal(out.n, strlen(chunks[i]));
        if (out.n) assert_memory_equal(out.at, chunks[i], out.n);
    }
    out.n = 0;
    assert_int_equal(tok_stream_flush(&s, &out, NULL), 0);
    assert_int_equal(out.n, strlen(rest));
    if (out.n) assert_memory_equal(out.at, rest, out.n);
    free(out.at);
}

static void streaming_waits_for_whole_characters(void **state)
{
    const int32_t whole[] = {0xEB, 0xB7, 0x81, AB, 0xF0, 0x9F, 0x91, 0xA9};
    streams(whole, 8, (const char *const[]){"", "", "뷁", "ab", "", "", "", "👩"}, "");
    const int32_t broken[] = {0xEB, 0xB7, AB, 0x80, 0xC3};
    streams(broken, 5, (const char *const[]){"", "", "\xEF\xBF\xBD" "ab", "\xEF\xBF\xBD", ""}, "\xEF\xBF\xBD");
    struct tok_stream s = {0};
    struct tok_text out = {0};
    struct q_err e;
    assert_int_equal(tok_stream_push(&s, tok, COUNT, &out, &e), Q_EINPUT);
    assert_int_equal(tok_stream_push(&s, tok, -1, &out, &e), Q_EINPUT);
}

static void *encode_often(void *arg)
{
    for (int i = 0; i < 50; i++) {
        struct tok_ids ids = {0};
        char text[2048];
        for (int k = 0; k < 2048; k++) text[k] = "abc x"[(k * 7 + i) % 5];
        if (tok_encode(tok, text, sizeof text, 0, &ids, NULL)) return arg;
        free(ids.at);
    }
    return NULL;
}

static void several_threads_may_encode_at_once(void **state)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(thread + i, NULL, encode_often, tok), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
}

static void refused(const struct vocabulary *v, int code, const char *words)
{
    struct tokenizer *t;
    struct q_err e = {0};
    assert_int_equal(tok_open(&t, &v->source, "file.gguf", &e), code);
    assert_null(t);
    assert_non_null(strstr(e.text, words));
    assert_non_null(strstr(e.text, "file.gguf"));
}

static void contradictions_are_refused(void **state)
{
    struct vocabulary *v = make();
    v->source.pad = COUNT;
    refused(v, Q_EINPUT, "padding_token_id");
    v->source.pad = -1;
    v->source.n_types--;
    refused(v, Q_EINPUT, "token_type");
    v->source.n_types++;
    v->types[3] = 0;
    refused(v, Q_EINPUT, "token_type[3]");
    v->types[3] = TOK_NORMAL;
    v->merges[2] = (struct tok_str){"a b", 3};
    refused(v, Q_EINPUT, "merges[2] repeats [1]");
    v->merges[2] = (struct tok_str){" b", 2};
    refused(v, Q_EINPUT, "merges[2]");
    v->source.pre = "gpt-4o";
    refused(v, Q_EUNSUP, "gpt-4o");
    v->source.model = NULL;
    refused(v, Q_EUNSUP, "tokenizer.ggml.model");
    free(v);
    v = make();
    v->tokens[IM] = (struct tok_str){"\xE2\x82\xAC", 3};
    refused(v, Q_EUNSUP, "single character");
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_go_by_rank_then_from_the_left),
        cmocka_unit_test(long_pretokens_merge_like_short_ones),
        cmocka_unit_test(merges_in_any_order_give_the_plain_answer),
        cmocka_unit_test(split_takes_the_first_alternative),
        cmocka_unit_test(control_tokens_are_text_unless_allowed),
        cmocka_unit_test(marks_keep_control_tokens_text),
        cmocka_unit_test(a_mark_of_the_texts_own_survives),
        cmocka_unit_test(nfc_does_not_cross_special_tokens),
        cmocka_unit_test(errors_leave_the_ids_alone),
        cmocka_unit_test(vocabulary_answers),
        cmocka_unit_test(streaming_waits_for_whole_characters),
        cmocka_unit_test(several_threads_may_encode_at_once),
        cmocka_unit_test(contradictions_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
