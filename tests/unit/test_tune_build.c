/* Builds under a compiler that hangs: how long it is waited for, what becomes of the rest, and where its temporary files go. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/build.h"
#include "runtime/clock.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Hangs for units of that name, fails for others; leaves a temporary file, as compilers do that are killed. */
#define CC "#!/bin/sh\n"                                        \
           "echo half > \"${TMPDIR:-/nowhere}/ccXXXX.s\"\n"     \
           "echo \"$TMPDIR\" >> \"$HOME/tmpdirs\"\n"            \
           "case \"$*\" in *hang*) sleep 100;; *bad*) echo 'k.c:1: error: no'; exit 1;; esac\n" \
           "exec cc \"$@\"\n"

struct fixture {
    char home[Q_PATH];
    struct store *s;
    struct compiler compiler;
    struct build_pace pace;
    struct build_opts o;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct store_opts so = { 0 };
    if (!f || dir_temp(f->home, "/tmp/quarry-test-", NULL)) return -1;
    setenv("HOME", f->home, 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_CACHE_HOME");
    strcpy(f->compiler.version, "fake 1.0");
    if (path_join(f->compiler.program, NULL, f->home, "cc", NULL) || file_write(f->compiler.program, CC, strlen(CC), NULL) || chmod(f->compiler.program, 0700)
        || self_path(f->compiler.self, NULL) || store_open(&f->s, &so, NULL))
        return -1;
    f->o = (struct build_opts){ .store = f->s, .compiler = &f->compiler, .jobs = 1, .deadline_s = 1, .pace = &f->pace, .signal_fd = -1 };
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->s);
    dir_remove(f->home);
    free(f);
    return 0;
}

enum { MOST = 5 };

/* Kernels of these names, whose only line is a function of the name. */
struct units {
    struct gen_kernel k[MOST];
    struct build_task task[MOST];
    char text[MOST][80];
    int n;
};

static void add(struct units *u, const struct fixture *f, const char *name)
{
    struct gen_kernel *k = &u->k[u->n];
    snprintf(u->text[u->n], sizeof u->text[0], "int %s(void) { return 1; }\n", name);
    snprintf(k->name, sizeof k->name, "%s", name);
    strcpy(k->kind, "so");
    strcpy(k->cflags, "-shared -fPIC");
    k->unit = u->text[u->n];
    u->task[u->n++] = build_task_of(k, &f->compiler);
}

static int left_in_objects(const struct fixture *f)
{
    char pattern[Q_PATH];
    glob_t g;
    assert_int_equal(path_join(pattern, NULL, f->home, ".cache/quarry/objects/work-*/*", NULL), 0);
    int n = glob(pattern, 0, NULL, &g) ? 0 : (int)g.gl_pathc;
    globfree(&g);
    return n;
}

static void a_kernel_that_hangs_the_compiler_costs_its_time_alone(void **state)
{
    struct fixture *f = *state;
    struct units u = { 0 };
    struct q_err e;
    f->o.deadline_s = 4;
    add(&u, f, "good");
    add(&u, f, "hang");
    add(&u, f, "bad");
    add(&u, f, "good_too");
    assert_int_equal(build_all(&f->o, u.task, u.n, &e), Q_OK);
    assert_int_equal(u.task[0].rc, Q_OK);
    assert_int_equal(u.task[1].rc, Q_EIO);
    assert_non_null(strstr(u.task[1].why, "/cc did not end within 4 s"));
    assert_int_equal(u.task[2].rc, Q_EINTERNAL);
    assert_int_equal(u.task[3].rc, Q_OK);
    assert_int_equal(f->pace.late, 1);
    assert_true(f->pace.slowest > 0);
}

static int compilers_run(const struct fixture *f)
{
    char path[Q_PATH], *text;
    size_t n;
    int lines = 0;
    assert_int_equal(path_join(path, NULL, f->home, "tmpdirs", NULL), 0);
    assert_int_equal(file_read(path, 1 << 16, &text, &n, NULL), 0);
    for (const char *c = text; *c; c++) lines += *c == '\n';
    free(text);
    return lines;
}

/* Side by side they would write the same file, and the second find it gone. */
static void an_object_that_two_ask_for_is_built_once(void **state)
{
    static const char *const names[] = { "one", "bad", "one", "other", "bad" };
    struct fixture *f = *state;
    struct units u = { 0 };
    f->o.jobs = MOST;
    f->o.deadline_s = 30;
    for (int i = 0; i < MOST; i++) add(&u, f, names[i]);
    assert_int_equal(build_all(&f->o, u.task, u.n, NULL), Q_OK);
    assert_int_equal(compilers_run(f), 3);
    assert_int_equal(u.task[2].rc, Q_OK);
    assert_string_equal(u.task[2].object.content, u.task[0].object.content);
    assert_int_equal(u.task[2].object.size, u.task[0].object.size);
    assert_int_equal(u.task[4].rc, Q_EINTERNAL);
    assert_string_equal(u.task[4].why, u.task[1].why);
}

/* Wherever it is killed: what it wrote goes with the build's own directory. */
static void temporary_files_go_with_the_build(void **state)
{
    struct fixture *f = *state;
    struct units u = { 0 };
    char path[Q_PATH], *text;
    size_t n;
    add(&u, f, "hang");
    assert_int_equal(build_all(&f->o, u.task, u.n, NULL), Q_OK);
    assert_int_equal(path_join(path, NULL, f->home, "tmpdirs", NULL), 0);
    assert_int_equal(file_read(path, 4096, &text, &n, NULL), 0);
    assert_true(!strncmp(text, f->home, strlen(f->home)) && strstr(text, "/objects/work-"));
    free(text);
    assert_int_equal(left_in_objects(f), 0);
}

/* Three at a time, five in all: the last two are not tried. */
static void a_compiler_that_never_ends_ends_the_build(void **state)
{
    static const char *const names[] = { "hang1", "hang2", "hang3", "hang4", "hang5" };
    struct fixture *f = *state;
    struct units u = { 0 };
    struct q_err e;
    f->o.jobs = 3;
    for (int i = 0; i < MOST; i++) add(&u, f, names[i]);
    double begin = clock_s();
    assert_int_equal(build_all(&f->o, u.task, u.n, &e), Q_EIO);
    assert_true(clock_s() - begin < 10);
    assert_non_null(strstr(e.text, "3 kernels did not end in their time (1 s at first) and none was built"));
    assert_int_equal(u.task[2].rc, Q_EIO);
    assert_int_equal(u.task[4].rc, Q_EMISS);
    assert_int_equal(left_in_objects(f), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        T(a_kernel_that_hangs_the_compiler_costs_its_time_alone), T(an_object_that_two_ask_for_is_built_once), T(temporary_files_go_with_the_build),
        T(a_compiler_that_never_ends_ends_the_build),
    };
    if (argc == 4 && !strcmp(argv[1], "--open")) return build_open_child(argv[2], argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
