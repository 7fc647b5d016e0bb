/* What is left out of prompts that do not fit: whole turns first, then the longest texts, and never a part of a character. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "gguf.h"
#include "prompt_cut.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tokenizer *tokenizer;

static int open_tokenizer(void **state)
{
    struct gguf *g;
    struct q_err e;
    int rc = gguf_open(&g, TEST_SOURCE_DIR "/tests/models/tiny.gguf", &e);
    if (!rc) rc = tok_open_gguf(&tokenizer, g, &e);
    gguf_close(g);
    return rc;
}

static int close_tokenizer(void **state)
{
    tok_close(tokenizer);
    return 0;
}

static struct tok_ids encode(const char *text)
{
    struct tok_ids ids = {0};
    struct q_err e;
    assert_int_equal(tok_encode(tokenizer, text, strlen(text), TOK_PARSE_CONTROL, &ids, &e), Q_OK);
    return ids;
}

static char *decode(const struct tok_ids *ids)
{
    struct tok_text t = {0};
    struct q_err e;
    assert_int_equal(tok_decode(tokenizer, ids->at, ids->n, &t, &e), Q_OK);
    char *s = realloc(t.at, t.n + 1);
    s[t.n] = 0;
    return s;
}

#define SYSTEM "<|im_start|>system\nBe brief.<|im_end|>\n"
#define USER(s) "<|im_start|>user\n" s "<|im_end|>\n"
#define SAID(s) "<|im_start|>assistant\n" s "<|im_end|>\n"
#define OPEN "<|im_start|>assistant\n"

/* Cuts so that `room` tokens are left out at least; the text that stays: free it. */
static char *cut(const char *text, int room, enum q_cut how, int *left_out)
{
    struct tok_ids ids = encode(text);
    struct q_err e;
    int n = (int)ids.n, ctx = n, rc = q_cut_prompt(tokenizer, &ids, ctx, room, how, left_out, &e);
    if (rc) {
        free(ids.at);
        assert_int_equal(rc, Q_ELIMIT);
        return NULL;
    }
    assert_int_equal((int)ids.n + *left_out, n);
    assert_true((int)ids.n <= ctx - room);
    char *s = decode(&ids);
    free(ids.at);
    return s;
}

static void cuts_to(const char *text, int room, enum q_cut how, const char *want)
{
    int left_out;
    char *s = cut(text, room, how, &left_out);
    assert_non_null(s);
    assert_string_equal(s, want);
    free(s);
}

static void oldest_turns_go_first(void **state)
{
    cuts_to(SYSTEM USER("One?") SAID("1.") USER("Two?") SAID("2.") USER("Three?") OPEN, 1, Q_CUT_HEAD, SYSTEM USER("Two?") SAID("2.") USER("Three?") OPEN);
    cuts_to(USER("One?") SAID("1.") USER("Two?") SAID("2.") USER("Three?") OPEN, 1, Q_CUT_HEAD, USER("Two?") SAID("2.") USER("Three?") OPEN);
    /* a tool's answer is no question: its call goes with it */
    cuts_to(SYSTEM USER("One?") SAID("Call.") USER("<tool_response>\n5\n</tool_response>") SAID("5.") USER("Two?") OPEN, 1, Q_CUT_HEAD, SYSTEM USER("Two?") OPEN);
}

/* Of few long turns all goes that has to, and no more: the stride of an eighth is for short ones. */
static void a_long_turn_that_fits_stays(void **state)
{
    static char words[1200], text[4096], want[4096];
    for (int i = 0; i < 200; i++) strcat(words, "bird ");
    sprintf(text, SYSTEM USER("%s") SAID("1.") USER("%s") SAID("2.") USER("Why?") OPEN, words, words);
    sprintf(want, SYSTEM USER("%s") SAID("2.") USER("Why?") OPEN, words);
    struct tok_ids ids = encode(text), one = encode(want);
    cuts_to(text, (int)(ids.n - one.n) - 100, Q_CUT_HEAD, want);    /* less than that turn is too many, and more than an eighth */
    free(ids.at);
    free(one.at);
}

/* A conversation that grows turn by turn is cut at the same place for a while: its beginning, which was read, stays as it is. */
static void the_cut_stays_for_a_while(void **state)
{
    char text[8192] = SYSTEM, before[64] = "";
    int changes = 0, cuts = 0, ctx = 400;
    for (int i = 0; i < 60; i++) {
        struct q_err e;
        int left_out;
        sprintf(text + strlen(text), "<|im_start|>user\nQuestion %d?<|im_end|>\n", i);
        struct tok_ids ids = encode(text);
        assert_int_equal(q_cut_prompt(tokenizer, &ids, ctx, 20, Q_CUT_HEAD, &left_out, &e), Q_OK);
        if (left_out) {
            char *s = decode(&ids), *question = strstr(s, "Question ");
            question[12] = 0;
            changes += strcmp(before, question) != 0;
            cuts++;
            strcpy(before, question);
            free(s);
        }
        free(ids.at);
        sprintf(text + strlen(text), "<|im_start|>assistant\nAnswer %d.<|im_end|>\n", i);
    }
    assert_true(cuts > 20 && changes > 2 && changes < cuts / 2);
}

static void the_middle_keeps_the_first_question(void **state)
{
    cuts_to(SYSTEM USER("One?") SAID("1.") USER("Two?") SAID("2.") USER("Three?") SAID("3.") USER("Four?") OPEN, 1, Q_CUT_MIDDLE,
            SYSTEM USER("One?") SAID("1.") USER("Three?") SAID("3.") USER("Four?") OPEN);
}

/* One question that is too long: its own text is cut, the template's parts stay. */
static void a_long_text_is_cut_itself(void **state)
{
    int left_out;
    char *s = cut(SYSTEM USER("one two three four five six seven eight nine ten eleven twelve") OPEN, 6, Q_CUT_HEAD, &left_out);
    assert_non_null(strstr(s, SYSTEM "<|im_start|>user\n"));
    assert_non_null(strstr(s, "ten eleven twelve<|im_end|>\n" OPEN));
    assert_null(strstr(s, "one two"));
    free(s);
    s = cut(SYSTEM USER("one two three four five six seven eight nine ten eleven twelve") OPEN, 6, Q_CUT_MIDDLE, &left_out);
    assert_non_null(strstr(s, "<|im_start|>user\none two"));
    assert_non_null(strstr(s, "twelve<|im_end|>\n" OPEN));
    assert_null(strstr(s, "six seven"));
    free(s);
    s = cut("one two three four five six seven eight nine ten eleven twelve", 4, Q_CUT_HEAD, &left_out);   /* no turns: one text */
    assert_int_equal(left_out, 4);
    assert_non_null(strstr(s, "eleven twelve"));
    assert_null(strstr(s, "one"));
    free(s);
}

static int is_utf8(const char *s)
{
    struct tok_ids ids = {0};
    struct q_err e;
    int rc = tok_encode(tokenizer, s, strlen(s), 0, &ids, &e);
    free(ids.at);
    return rc == Q_OK;
}

/* Characters of several tokens, and every place to cut them at. */
static void characters_stay_whole(void **state)
{
    const char *text = "\xF0\x9D\x95\xAB\xEA\xBD\x9E\xF0\x9F\xA6\x96 x \xF0\x90\x8D\x88\xE2\x99\x9E\xF0\x9D\x95\xAB\xEA\xBD\x9E\xF0\x9F\xA6\x96\xF0\x9D\x95\xAB";
    struct tok_ids ids = encode(text);
    int n = (int)ids.n, left_out;
    free(ids.at);
    assert_true(n > 12);
    for (int room = 1; room <= n / 2; room++)
        for (enum q_cut how = Q_CUT_HEAD; how <= Q_CUT_MIDDLE; how++) {
            char *s = cut(text, room, how, &left_out);
            assert_non_null(s);
            assert_true(is_utf8(s) && left_out >= room);
            free(s);
        }
}

static void what_fits_or_cannot_stays(void **state)
{
    struct q_err e;
    int left_out;
    struct tok_ids ids = encode(SYSTEM USER("One?") OPEN);
    int n = (int)ids.n;
    assert_int_equal(q_cut_prompt(tokenizer, &ids, n + 1, 1, Q_CUT_HEAD, &left_out, &e), Q_OK);
    assert_true((int)ids.n == n && !left_out);
    assert_int_equal(q_cut_prompt(tokenizer, &ids, n, -1, Q_CUT_NEVER, &left_out, &e), Q_OK);
    assert_int_equal(q_cut_prompt(tokenizer, &ids, n - 1, -1, Q_CUT_NEVER, &left_out, &e), Q_ELIMIT);
    char number[16];
    snprintf(number, sizeof number, "%d", n);
    assert_non_null(strstr(e.text, number));
    assert_int_equal(q_cut_prompt(tokenizer, &ids, 8, 2, Q_CUT_MIDDLE, &left_out, &e), Q_ELIMIT);   /* the template alone is longer */
    assert_non_null(strstr(e.text, number));
    assert_true((int)ids.n == n && !left_out);
    ids.n = 0;
    assert_int_equal(q_cut_prompt(tokenizer, &ids, 8, 2, Q_CUT_MIDDLE, &left_out, &e), Q_EINPUT);
    free(ids.at);
    assert_int_equal(q_cut_goal(1000, 100), 900);
    assert_int_equal(q_cut_goal(1000, 600), 750);
    assert_int_equal(q_cut_goal(1000, -1), 750);
    assert_int_equal(q_cut_goal(1, -1), 1);
    assert_int_equal(q_cut_parse("middle"), Q_CUT_MIDDLE);
    assert_int_equal(q_cut_parse("tail"), -1);
}

static int is_part_of(const struct tok_ids *part, const int32_t *whole, int n)
{
    size_t at = 0;
    for (int i = 0; i < n && at < part->n; i++) at += whole[i] == part->at[at];
    return at == part->n;
}

/* Any ids, with turns in any order and of any length, down to none: fewer ids in their order that keep to the goal, or all of them and an error. */
static void any_ids_are_cut_or_refused(void **state)
{
    static const char *const pieces[] = {"<|im_start|>", "<|im_end|>", "user", "system", "assistant", "\n", "<tool_response>"};
    unsigned seed = 1;
    int32_t whole[200];
    int cuts = 0;
    for (int round = 0; round < 3000; round++) {
        struct tok_ids ids = {.at = malloc(sizeof whole), .cap = 200};
        struct q_err e;
        int n = 1 + (int)((seed = seed * 1664525 + 1013904223) >> 8) % 199, left_out;
        for (int i = 0; i < n; i++) {
            unsigned r = (seed = seed * 1664525 + 1013904223) >> 8;
            int32_t known = tok_find(tokenizer, pieces[r % 7], strlen(pieces[r % 7]));
            whole[i] = ids.at[i] = r >> 4 & 1 && known >= 0 ? known : (int32_t)(r >> 5) % tok_count(tokenizer);
        }
        ids.n = (size_t)n;
        int ctx = 1 + (int)(seed >> 9) % 220, most = (int)(seed >> 17) % 100 - 1;
        int rc = q_cut_prompt(tokenizer, &ids, ctx, most, seed >> 30 & 1 ? Q_CUT_HEAD : Q_CUT_MIDDLE, &left_out, &e);
        assert_true(rc == Q_OK || rc == Q_ELIMIT);
        assert_int_equal((int)ids.n + left_out, n);
        if (rc || n < ctx) assert_int_equal(left_out, 0);
        else assert_true((int)ids.n <= q_cut_goal(ctx, most) && ids.n > 0);
        assert_true(is_part_of(&ids, whole, n));
        cuts += left_out > 0;
        free(ids.at);
    }
    assert_true(cuts > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oldest_turns_go_first), cmocka_unit_test(a_long_turn_that_fits_stays), cmocka_unit_test(the_cut_stays_for_a_while), cmocka_unit_test(the_middle_keeps_the_first_question), cmocka_unit_test(a_long_text_is_cut_itself),
        cmocka_unit_test(characters_stay_whole), cmocka_unit_test(what_fits_or_cannot_stays),
        cmocka_unit_test(any_ids_are_cut_or_refused),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
