/* The prefix tree's directory of files: its bound, whosever they are; files of no use go, those of people stay; long state ids. */
#include "prefix_tree_bound.h"
#include "prefix_tree_files.h"
#include "session_file.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "own_dir.h"

enum { PAGE = 16, STATE = 3000, PAGE_BYTES = 500, N = 40 };
static const struct q_tree_engine engine = {.page_tokens = PAGE, .state_bytes = STATE, .page_bytes = PAGE_BYTES};

static char said[2000];
static int n_said;

static void say(void *arg, const char *line)
{
    n_said++;
    snprintf(said, sizeof said, "%s", line);
}

static int setup(void **state)
{
    struct q_err e;
    n_said = 0;
    return dir_temp(dir, "/tmp/test-tree-files-", &e);
}

static struct q_tree_files *open_files(const char *id, size_t most)
{
    struct q_tree_files *f;
    struct q_err e;
    if (q_tree_files_open(&f, dir, most, &engine, id, say, NULL, &e)) fail_msg("%s", e.text);
    return f;
}

static int32_t *tokens(int first)
{
    static int32_t ids[N];
    for (int i = 0; i < N; i++) ids[i] = first * 100 + i;
    return ids;
}

static struct q_tree_file save(struct q_tree_files *f, int first)
{
    static char state[STATE], page[PAGE_BYTES];
    const void *pages[] = {page, page, page};
    struct q_tree_file to = {0};
    struct q_err e;
    const struct q_tree_disk *d = q_tree_files_disk(f);
    memset(state, first, sizeof state);
    if (d->save(d->arg, tokens(first), N, state, pages, &to, &e)) fail_msg("%s", e.text);
    assert_int_equal(to.bytes, N * sizeof(int32_t) + STATE + 3 * PAGE_BYTES + d->file_bytes);
    return to;
}

static void count(void *to, const int32_t *ids, int n, const struct q_tree_file *f) { ++*(int *)to; }

static int listed(struct q_tree_files *f)
{
    int n = 0;
    struct q_err e;
    const struct q_tree_disk *d = q_tree_files_disk(f);
    if (d->list(d->arg, count, &n, &e)) fail_msg("%s", e.text);
    return n;
}

static int is_there(const char *name) { return !access(at(name), F_OK); }

static void age(const char *name, int seconds)
{
    struct timespec t[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
    assert_int_equal(utimensat(AT_FDCWD, at(name), t, 0), 0);
}

/* Of all files *.session, whosever. */
static uint64_t all_bytes(void)
{
    struct session_found *list;
    struct q_err e;
    uint64_t all = 0;
    int n;
    if (session_find_files(dir, &list, &n, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < n; i++) all += list[i].bytes;
    session_found_free(list, n);
    return all;
}

/* One model's files, then another's on the same directory: together they keep to the bound, and the longest unused of the first go. */
static void test_a_bound_for_all(void **state)
{
    struct q_tree_files *a = open_files("model=a", 1 << 20), *b;
    struct q_tree_file old[6];
    size_t one;
    struct q_err e;
    for (int i = 0; i < 6; i++) {
        old[i] = save(a, i + 1);
        age(old[i].name, 1000 - 10 * i);
    }
    one = old[0].bytes;
    age(old[4].name, 5000);
    age(old[2].name, 4000);
    assert_int_equal(file_write(at("mine.session"), "x", 1, &e), Q_OK);
    q_tree_files_close(a);
    b = open_files("model=b", 8 * one + 10);
    assert_int_equal(listed(b), 0);
    for (int i = 0; i < 8; i++) {
        save(b, i + 1);
        assert_in_range(all_bytes(), one, 8 * one + 1);
        assert_int_equal(is_there(old[4].name), i < 2);
        assert_int_equal(is_there(old[2].name), i < 3);
    }
    save(b, 3);                                                /* its own, once more: in its place */
    assert_int_equal(all_bytes(), 8 * one + 1);
    assert_true(is_there("mine.session"));
    q_tree_files_close(b);
    b = open_files("model=b", 3 * one);                        /* a smaller bound: its own are the tree's to see to */
    assert_int_equal(listed(b), 8);
    assert_int_equal(n_said, 0);
    q_tree_files_close(b);
}

/* What another server wrote meanwhile counts as soon as the directory is looked at; what is this one's stays. */
static void test_another_server(void **state)
{
    struct q_tree_files *a = open_files("model=a", 1 << 20);
    struct q_tree_file f[3] = {save(a, 1), save(a, 2), save(a, 3)};
    struct tree_bound *b = tree_bound_new(dir, 3 * f[0].bytes);
    struct q_err e;
    age(f[1].name, 100);
    age(f[0].name, 200);
    tree_bound_add(b, f[0].name, f[0].bytes);
    assert_int_equal(tree_bound_room(b, "tree-x.session", 0, 1, &e), Q_OK);
    assert_true(is_there(f[0].name) && is_there(f[1].name) && is_there(f[2].name));
    struct q_tree_file more = save(a, 4);
    assert_int_equal(tree_bound_room(b, "tree-x.session", f[0].bytes, 1, &e), Q_OK);
    assert_true(is_there(f[0].name) && is_there(more.name) && !is_there(f[1].name) && !is_there(f[2].name));
    tree_bound_forget(b, f[0].name);
    assert_int_equal(tree_bound_room(b, "tree-x.session", 3 * f[0].bytes, 1, &e), Q_OK);
    assert_int_equal(all_bytes(), 0);
    tree_bound_free(b);
    q_tree_files_close(a);
}

static void flip(const char *name, long where)
{
    FILE *f = fopen(at(name), "r+");
    assert_int_equal(fseek(f, where, SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, where, SEEK_SET), 0);
    fputc(c ^ 1, f);
    fclose(f);
}

static void test_dead_files_go(void **state)
{
    struct q_tree_files *a = open_files("model=a", 1 << 20);
    struct q_tree_file good = save(a, 1), format = save(a, 2), ids = save(a, 3), name = save(a, 4);
    const char *wrong = "tree-0123456789abcdef0123456789abcdef.session";
    struct q_err e;
    flip(format.name, 16);
    flip(ids.name, (long)(ids.bytes - STATE - 3 * PAGE_BYTES - 32 - 32 - 32 - 8));
    assert_int_equal(rename(at(name.name), at(wrong)), 0);
    assert_int_equal(file_write(at("tree-.session"), "", 0, &e), Q_OK);
    assert_int_equal(file_write(at("mine.session"), "damaged", 7, &e), Q_OK);
    assert_int_equal(file_write(at("tree-notes.txt"), "x", 1, &e), Q_OK);
    q_tree_files_close(a);
    a = open_files("model=b", 1 << 20);                        /* whosever they were */
    assert_int_equal(listed(a), 0);
    assert_int_equal(n_said, 1);
    assert_non_null(strstr(said, "4 files of checkpoints that cannot be read were removed"));
    assert_true(is_there(good.name) && is_there("mine.session") && is_there("tree-notes.txt"));
    assert_false(is_there(format.name) || is_there(ids.name) || is_there(wrong) || is_there("tree-.session"));
    assert_int_equal(listed(a), 0);
    assert_int_equal(n_said, 1);
    q_tree_files_close(a);
}

static void test_long_state_ids(void **state)
{
    char id[SESSION_STATE_ID], other[SESSION_STATE_ID], loaded[STATE];
    void *pages[3] = {NULL};
    struct q_err e;
    memset(id, 'x', sizeof id - 1);
    id[sizeof id - 1] = 0;
    strcpy(other, id);
    other[sizeof other - 2] = 'y';
    struct q_tree_files *a = open_files(id, 1 << 20);
    struct q_tree_file f = save(a, 1);
    const struct q_tree_disk *d = q_tree_files_disk(a);
    assert_int_equal(listed(a), 1);
    assert_int_equal(d->load(d->arg, &f, tokens(1), N, loaded, pages, &e), Q_OK);
    assert_int_equal(loaded[STATE - 1], 1);
    q_tree_files_close(a);
    a = open_files(other, 1 << 20);
    assert_int_equal(listed(a), 0);
    q_tree_files_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_a_bound_for_all, setup, own_dir_remove),
                                       cmocka_unit_test_setup_teardown(test_another_server, setup, own_dir_remove),
                                       cmocka_unit_test_setup_teardown(test_dead_files_go, setup, own_dir_remove),
                                       cmocka_unit_test_setup_teardown(test_long_state_ids, setup, own_dir_remove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
