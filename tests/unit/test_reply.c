/* The reply parser: each case whole, and cut at every two places. */
#include "reply.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct sample {
    int thinking;
    const char *text, *thought, *content;
} samples[] = {
    /* as the template writes it */
    {1, "I think.\n</think>\n\nSeoul.", "I think.", "Seoul."},
    {1, "one\n\ntwo\n\n</think>\n\na\n\nb\n", "one\n\ntwo", "a\n\nb\n"},
    {0, "Seoul.", "", "Seoul."},
    {0, "<think>\nI think.\n</think>\n\nSeoul.", "I think.", "Seoul."},
    {0, "\n\n<think>x</think>y", "x", "y"},
    /* empty blocks and answers */
    {1, "\n</think>\n\nSeoul.", "", "Seoul."},
    {1, "</think>Seoul.", "", "Seoul."},
    {1, "\n\nwell</think>", "well", ""},
    {0, "", "", ""},
    {1, "", "", ""},
    {0, "<think>", "", ""},
    {0, "<think>\n", "", ""},
    {0, "\n\n", "", "\n\n"},
    /* cut short */
    {1, "primes go on", "primes go on", ""},
    {1, "primes\n", "primes\n", ""},
    {1, "primes\n</thi", "primes\n</thi", ""},
    {0, "<think>\nprimes", "primes", ""},
    {0, "<thi", "", "<thi"},
    {0, "\n<th", "", "\n<th"},
    /* what only looks like a tag */
    {0, "<thin>x</think>", "", "<thin>x</think>"},
    {0, "<<think>x", "", "<<think>x"},
    {1, "a < b </ think> </thin</think>c", "a < b </ think> </thin", "c"},
    {1, "</</think>c", "</", "c"},
    {1, "a\n<b\n</think>c", "a\n<b", "c"},
    {1, "<think>\nagain</think>c", "<think>\nagain", "c"},
    /* one block, and only at the start */
    {0, "Say <think>x</think>.", "", "Say <think>x</think>."},
    {1, "x</think>\n\n<think>y</think>", "x", "<think>y</think>"},
    {1, "x</think>y</think>z", "x", "y</think>z"},
    {0, " <think>x", "", " <think>x"},
    /* several bytes a character; tool calls stay as they are */
    {1, "생각\n</think>\n\n서울 <tool_call>\n<function=f>\n</function>\n</tool_call>", "생각", "서울 <tool_call>\n<function=f>\n</function>\n</tool_call>"},
};

static void assert_text(const struct tok_text *got, const char *want, const struct sample *s)
{
    if (got->n != strlen(want) || (got->n && memcmp(got->at, want, got->n)))
        fail_msg("of '%s': expected '%s', found '%.*s'", s->text, want, (int)got->n, got->n ? got->at : "");
}

static void check(const struct sample *s, size_t cut1, size_t cut2)
{
    struct q_reply r;
    struct q_reply_text out = {0};
    struct q_err e;
    size_t n = strlen(s->text);
    q_reply_start(&r, s->thinking);
    assert_int_equal(q_reply_push(&r, s->text, cut1, &out, &e), Q_OK);
    assert_int_equal(q_reply_push(&r, s->text + cut1, cut2 - cut1, &out, &e), Q_OK);
    assert_int_equal(q_reply_push(&r, s->text + cut2, n - cut2, &out, &e), Q_OK);
    assert_int_equal(q_reply_end(&r, &out, &e), Q_OK);
    assert_text(&out.thinking, s->thought, s);
    assert_text(&out.content, s->content, s);
    free(out.thinking.at);
    free(out.content.at);
}

static void test_samples_cut_anywhere(void **state)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        for (size_t a = 0, n = strlen(samples[i].text); a <= n; a++)
            for (size_t b = a; b <= n; b++) check(&samples[i], a, b);
}

static void test_text_comes_as_soon_as_it_is_certain(void **state)
{
    struct q_reply r;
    struct q_reply_text out = {0};
    struct q_err e;
    q_reply_start(&r, 1);
    assert_int_equal(q_reply_push(&r, "abc\n", 4, &out, &e), Q_OK);
    assert_int_equal(out.thinking.n, 3);
    assert_int_equal(q_reply_push(&r, "d<", 2, &out, &e), Q_OK);
    assert_int_equal(out.thinking.n, 5);
    assert_int_equal(q_reply_push(&r, "/think>x", 8, &out, &e), Q_OK);
    assert_int_equal(out.thinking.n, 5);
    assert_int_equal(out.content.n, 1);
    free(out.thinking.at);
    free(out.content.at);
}

static void test_what_a_prompt_opens(void **state)
{
    static const struct tok_str tokens[] = {{"<|im_start|>", 12}, {"<think>", 7}, {"</think>", 8}};
    static const int32_t types[] = {TOK_CONTROL, TOK_USER, TOK_USER};
    enum { START = 256, OPEN, CLOSE };
    static char bytes[256][3];
    struct tok_str all[259];
    int32_t type[259];
    struct tokenizer *t;
    struct q_err e;
    for (int b = 0, other = 256; b < 256; b++) { /* the byte-mapped form: printable ones as they are, the others from U+0100 on */
        int plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174, c = plain ? b : other++;
        int n = c < 128 ? 1 : 2;
        if (n == 1) bytes[b][0] = (char)c;
        else bytes[b][0] = (char)(0xC0 | c >> 6), bytes[b][1] = (char)(0x80 | (c & 63));
        all[b] = (struct tok_str){bytes[b], (size_t)n};
        type[b] = TOK_NORMAL;
    }
    memcpy(all + 256, tokens, sizeof tokens);
    memcpy(type + 256, types, sizeof types);
    struct tok_source source = {.model = "gpt2", .pre = "qwen35", .tokens = all, .types = type, .n_tokens = 259, .n_types = 259, .eos = -1, .pad = -1, .bos = -1};
    if (tok_open(&t, &source, "test", &e)) fail_msg("%s", e.text);
    assert_true(q_reply_opens_thinking(t, (int32_t[]){START, 'a', OPEN, '\n'}, 4));
    assert_false(q_reply_opens_thinking(t, (int32_t[]){START, 'a', OPEN, '\n', CLOSE, '\n'}, 6));
    assert_false(q_reply_opens_thinking(t, (int32_t[]){START, 'a', OPEN, START, 'b'}, 5));
    assert_false(q_reply_opens_thinking(t, (int32_t[]){'a'}, 1));
    assert_false(q_reply_opens_thinking(t, NULL, 0));
    tok_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples_cut_anywhere),
                                       cmocka_unit_test(test_text_comes_as_soon_as_it_is_certain),
                                       cmocka_unit_test(test_what_a_prompt_opens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
