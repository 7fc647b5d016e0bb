/* Where prompts are kept, and how the place where they differ is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "gguf.h"
#include "prompt_marks.h"

static struct gguf *file;
static struct tokenizer *tok;

static struct tok_ids encode(const char *text)
{
    struct tok_ids ids = {0};
    assert_int_equal(tok_encode(tok, text, strlen(text), TOK_PARSE_CONTROL, &ids, NULL), 0);
    return ids;
}

#define FEW "one two six ten one two six ten one two six ten "
#define LONG FEW FEW FEW
#define SYSTEM "<|im_start|>system\n" LONG LONG LONG "<|im_end|>\n"
#define ASKS(what) "<|im_start|>user\n" what "<|im_end|>\n"
#define SAYS(what) "<|im_start|>assistant\n" what "<|im_end|>\n"
#define HEADER "<|im_start|>assistant\n"
#define CHAT SYSTEM ASKS(LONG LONG) SAYS(LONG LONG) ASKS("Hi") SAYS("Yes") ASKS(LONG LONG) SAYS("No") ASKS("Bye")

/* Tokens of a text that ends in <|im_end|> and a newline, without the newline. */
static int turn(const char *text)
{
    struct tok_ids ids = encode(text);
    free(ids.at);
    return (int)ids.n - 1;
}

static struct prompt_marks marks(const char *text, int every, int most, int *n)
{
    struct tok_ids ids = encode(text);
    struct prompt_marks m;
    assert_int_equal(prompt_marks(&m, tok, ids.at, (int)ids.n, every, most, NULL), 0);
    for (int i = 1; i < m.n; i++) assert_true(m.mark[i].at > m.mark[i - 1].at);
    if (m.n) assert_in_range(m.mark[m.n - 1].at, 1, ids.n);
    *n = (int)ids.n;
    free(ids.at);
    return m;
}

static void test_ends_of_turns(void **state)
{
    int n;
    struct prompt_marks m = marks(CHAT HEADER, 0, 20, &n);
    assert_int_equal(m.n, 5); /* not behind answers */
    assert_int_equal(m.mark[0].at, turn(SYSTEM));
    assert_int_equal(m.mark[1].at, turn(SYSTEM ASKS(LONG LONG)));
    assert_int_equal(m.mark[4].at, turn(CHAT));
    assert_true(m.mark[0].must && !m.mark[1].must && !m.mark[2].must && !m.mark[3].must && m.mark[4].must);
    prompt_marks_free(&m);
    m = marks(SYSTEM ASKS(LONG LONG) SAYS("Yes") ASKS("Hi") SAYS("Yes") ASKS("Ho") HEADER, 0, 20, &n);
    assert_int_equal(m.n, 3); /* nor behind a short question that is not the last */
    prompt_marks_free(&m);
}

static void test_a_prompt_without_turns_is_kept_whole(void **state)
{
    int n;
    struct prompt_marks m = marks(LONG LONG, 100, 20, &n);
    assert_int_equal(m.mark[m.n - 1].at, n - 1);
    for (int i = 0; i + 1 < m.n; i++) assert_int_equal(m.mark[i].at, 100 * (i + 1));
    assert_int_equal(m.n, (n - 2) / 100 + 1);
    prompt_marks_free(&m);
    m = marks("a", 0, 20, &n);
    assert_int_equal(m.n, n - 1 > 0);
    prompt_marks_free(&m);
}

static void test_few_are_the_most_useful(void **state)
{
    int n;
    for (int most = 0; most < 9; most++) {
        struct prompt_marks m = marks(CHAT HEADER, 50, most, &n);
        assert_in_range(m.n, most > 0, most);
        int system = 0;
        for (int i = 0; i < m.n; i++) system |= m.mark[i].at == turn(SYSTEM);
        assert_int_equal(system, most > 1);
        if (most > 0) assert_int_equal(m.mark[m.n - 1].at, turn(CHAT));
        prompt_marks_free(&m);
    }
}

static void test_ids_without_a_tokenizer(void **state)
{
    int32_t ids[300] = {0};
    struct prompt_marks m;
    assert_int_equal(prompt_marks(&m, NULL, ids, 300, 128, 8, NULL), 0);
    assert_int_equal(m.n, 3);
    assert_int_equal(m.mark[0].at, 128);
    assert_int_equal(m.mark[2].at, 299);
    prompt_marks_free(&m);
}

static void test_the_message_of_a_token(void **state)
{
    char role[PROMPT_ROLE];
    struct tok_ids ids = encode(SYSTEM ASKS("Hi") HEADER);
    int n = (int)ids.n, system = turn(SYSTEM);
    assert_int_equal(prompt_message(tok, ids.at, n, 5, role), 1);
    assert_string_equal(role, "system");
    assert_int_equal(prompt_message(tok, ids.at, n, system + 4, role), 2);
    assert_string_equal(role, "user");
    assert_int_equal(prompt_message(tok, ids.at, n, n - 1, role), 3);
    assert_string_equal(role, "assistant");
    free(ids.at);
    ids = encode("plain words");
    assert_int_equal(prompt_message(tok, ids.at, (int)ids.n, 1, role), 0);
    assert_string_equal(role, "");
    free(ids.at);
    ids = encode("<|im_start|>Secret text of a client that is no role");
    assert_int_equal(prompt_message(tok, ids.at, (int)ids.n, 3, role), 1);
    assert_string_equal(role, "");
    assert_int_equal(prompt_message(NULL, ids.at, (int)ids.n, 3, role), 0);
    free(ids.at);
}

static int setup(void **state)
{
    return gguf_open(&file, TEST_SOURCE_DIR "/tests/models/tiny.gguf", NULL) || tok_open_gguf(&tok, file, NULL);
}

static int teardown(void **state)
{
    tok_close(tok);
    gguf_close(file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_of_turns),
        cmocka_unit_test(test_a_prompt_without_turns_is_kept_whole),
        cmocka_unit_test(test_few_are_the_most_useful),
        cmocka_unit_test(test_ids_without_a_tokenizer),
        cmocka_unit_test(test_the_message_of_a_token),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
