/* Contributions: written, read back, and texts with damage in them. What their records may say is judge.h's: tests/py/test_contribute.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "autotune/contribution.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARD "cuda:sm_75,sms=40,l2=4096,bus=256,smem=64"

static struct record sample(const char *shape, double us)
{
    struct record r = { .rows = 1, .n_times = 1, .base_us = 2 * us, .gain = 0.5, .roof_pct = 50, .n_objects = 1 };
    strcpy(r.op, "rmsnorm");
    strcpy(r.shape, shape);
    strcpy(r.profile, "pinned");
    strcpy(r.card, CARD);
    memset(r.generator, 'a', 64);
    memset(r.source, 'b', 64);
    strcpy(r.params, "threads=64,sum=tree");
    strcpy(r.kernel, "rmsnorm_kernel");
    strcpy(r.numerics, "tree");
    strcpy(r.origin, "tuned");
    strcpy(r.effort, "normal");
    strcpy(r.bound, "bytes");
    r.time[0] = (struct record_time){ .rows = 1, .n = 11, .median_us = us, .mad_us = 0.5 };
    strcpy(r.objects[0].kind, "so");
    strcpy(r.objects[0].compiler, "NVRTC 12.9");
    return r;
}

static char *written(void)
{
    struct contribution c = { .card = CARD, .roofs = { .read = 3e11, .dp4a = 4e13 } };
    struct record b = sample("n=96,out=q8", 5), a = sample("n=64,out=q8", 4);
    assert_int_equal(contribution_add(&c, &b, NULL), Q_OK);
    assert_int_equal(contribution_add(&c, &a, NULL), Q_OK);
    assert_int_equal(contribution_add(&c, &a, NULL), Q_OK);     /* the same again */
    assert_int_equal(c.n_compilers, 1);
    char *text = contribution_print(&c);
    contribution_free(&c);
    assert_non_null(text);
    return text;
}

static void what_is_written_is_read(void **state)
{
    char *text = written();
    struct contribution c;
    struct q_err e;
    assert_non_null(strstr(text, "# compiler  NVRTC 12.9\n"));
    assert_non_null(strstr(text, "read 300.0 GB/s, dp4a 40.0 TOP/s, measured on it\n"));
    assert_int_equal(contribution_parse(&c, text, strlen(text), "text", &e), Q_OK);
    assert_string_equal(c.card, CARD);
    assert_int_equal(c.lines.n, 2);
    assert_string_equal(c.lines.v[0].record.shape, "n=64,out=q8");
    assert_int_equal(c.lines.v[0].record.n_objects, 0);
    contribution_free(&c);
    free(text);
}

/* Every cut, and bytes changed at random: an error, or (in the lines for people) none. */
static void damaged_texts_end_well(void **state)
{
    char *text = written();
    size_t n = strlen(text), people = (size_t)(strstr(text, "\n{") - text);
    struct contribution c;
    unsigned seed = 1;
    for (size_t cut = 0; cut + 1 < n; cut++) assert_int_not_equal(contribution_parse(&c, text, cut, "text", NULL), Q_OK);
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1664525 + 1013904223;
        size_t at = seed % n;
        char was = text[at];
        text[at] = (char)(seed >> 24);
        int rc = contribution_parse(&c, text, n, "text", NULL);
        if (!rc) contribution_free(&c);
        if (!rc && at > people && text[at] != was && !(at + 1 == n)) fail_msg("byte %zu changed from %d to %d is not seen", at, was, text[at]);
        text[at] = was;
    }
    free(text);
}

static void lines_of_older_templates_go(void **state)
{
    struct card_lines l = { 0 };
    struct record old = sample("n=64,out=q8", 4), other = sample("n=96,out=q8", 4), r = sample("n=64,out=q8", 3);
    memset(old.generator, 'c', 64);
    assert_int_equal(card_lines_put(&l, &old, NULL), Q_OK);
    assert_int_equal(card_lines_put(&l, &other, NULL), Q_OK);
    assert_null(card_lines_find(&l, &r));
    assert_int_equal(card_lines_drop_stale(&l, &r), 1);
    assert_int_equal(card_lines_drop_stale(&l, &r), 0);
    assert_int_equal(l.n, 1);
    assert_non_null(card_lines_find(&l, &other));
    card_lines_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read), cmocka_unit_test(damaged_texts_end_well), cmocka_unit_test(lines_of_older_templates_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
