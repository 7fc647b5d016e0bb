/* Libraries that a user names: what is none is told without opening it, and what crashes, hangs or is interrupted does so in a child. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "shared_object.h"
#include <dlfcn.h>
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A real library that is small: the driver that plays one. */
#define LIBRARY TEST_BUILD_DIR "/tests/fake_cuda/now/libcuda.so.1"

static char dir[Q_PATH], path[Q_PATH];

static const char *put(const void *data, size_t n)
{
    assert_int_equal(file_write(path, data, n, NULL), 0);
    return path;
}

static void says(const char *name, int code, const char *part)
{
    struct q_err e;
    assert_int_equal(shared_object_check(name, &e), code);
    if (!strstr(e.text, part)) fail_msg("%s", e.text);
    assert_null(strchr(e.text, '\n'));
    assert_int_not_equal(shared_object_try(name, 5, NULL, NULL, 0, NULL), 0);
}

static void what_is_no_file(void **state)
{
    char fifo[Q_PATH], link[Q_PATH];
    assert_int_equal(path_join(fifo, NULL, dir, "fifo", NULL), 0);
    assert_int_equal(path_join(link, NULL, dir, "link", NULL), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink(fifo, link), 0);
    says(fifo, Q_EINPUT, "expected a regular file, found a FIFO");
    says(link, Q_EINPUT, "found a FIFO");
    says("/dev/zero", Q_EINPUT, "found a device");
    says(dir, Q_EINPUT, "found a folder");
    says("/nowhere/x.so", Q_EMISS, "/nowhere/x.so: cannot open");
    says("", Q_EMISS, "an empty name is no library");
}

static void what_is_no_library(void **state)
{
    char *data;
    size_t n;
    says(put("", 0), Q_EINPUT, "the file is empty");
    says(put("GROUP ( libm.so.6 )", 19), Q_EINPUT, "it is no shared object (19 bytes)");
    char text[200] = "#!/bin/sh\n";
    says(put(text, sizeof text), Q_EINPUT, "no ELF file");
    assert_int_equal(file_read(LIBRARY, 16 << 20, &data, &n, NULL), 0);
    unsigned short machine = ((Elf64_Ehdr *)data)->e_machine;
    ((Elf64_Ehdr *)data)->e_machine = EM_CUDA;
    says(put(data, n), Q_EINPUT, "for another kind of machine");
    ((Elf64_Ehdr *)data)->e_machine = machine;
    ((Elf64_Ehdr *)data)->e_type = ET_REL;
    says(put(data, n), Q_EINPUT, "it is an ELF file, but no shared object");
    free(data);
}

/* Wherever it ends: never a signal, and one that ends before its last segment is told without opening it. */
static void what_is_cut_off(void **state)
{
    char *data;
    size_t n;
    struct q_err e;
    assert_int_equal(file_read(LIBRARY, 16 << 20, &data, &n, NULL), 0);
    assert_int_equal(shared_object_check(put(data, n), &e), 0);
    assert_int_equal(shared_object_try(path, 5, NULL, NULL, 0, &e), 0);
    for (size_t cut = 0; cut < n; cut += n / 23) shared_object_try(put(data, cut), 5, NULL, NULL, 0, &e);
    says(put(data, 4096), Q_EINPUT, "the file is cut off: it has ");
    says(put(data, sizeof(Elf64_Ehdr)), Q_EINPUT, "the file is cut off");
    free(data);
}

/* Damaged numbers of the header and the segments; the sanitizers watch. */
static void what_is_damaged(void **state)
{
    char *data;
    size_t n;
    struct q_err e;
    assert_int_equal(file_read(LIBRARY, 16 << 20, &data, &n, NULL), 0);
    for (size_t at = EI_NIDENT; at < sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr); at += 5) {
        data[at] ^= (char)0xFF;
        shared_object_check(put(data, n), &e);
        data[at] ^= (char)0xFF;
    }
    ((Elf64_Ehdr *)data)->e_phnum = 0;
    says(put(data, n), Q_EINPUT, "damaged");
    free(data);
}

/* --- asking ------------------------------------------------------------------------------------------------------------------ */

static int answer_number(void *library, void *answer, struct q_err *e)
{
    *(int *)answer = dlsym(library, "cuInit") ? 42 : 0;
    return Q_OK;
}

static int refuse(void *library, void *answer, struct q_err *e) { return q_fail(e, Q_EUNSUP, "not this one"); }
static int crash(void *library, void *answer, struct q_err *e) { return raise(SIGBUS); }
static int leave(void *library, void *answer, struct q_err *e) { _exit(0); }

static int hang(void *library, void *answer, struct q_err *e)
{
    while (pause()) { }
    return Q_OK;
}

static int ask(shared_object_ask f, int *answer, struct q_err *e) { return shared_object_try(LIBRARY, 1, f, answer, sizeof *answer, e); }

static void answers_fails_dies_or_is_late(void **state)
{
    int number = 7;
    struct q_err e;
    assert_int_equal(ask(answer_number, &number, &e), 0);
    assert_int_equal(number, 42);
    assert_int_equal(ask(refuse, &number, &e), Q_EUNSUP);
    assert_string_equal(e.text, "not this one");
    assert_int_equal(ask(crash, &number, &e), Q_EIO);
    assert_non_null(strstr(e.text, "opening it ends in Bus error"));
    assert_int_equal(ask(leave, &number, &e), Q_EIO);
    assert_non_null(strstr(e.text, "opening it ends the program"));
    assert_int_equal(ask(hang, &number, &e), Q_EIO);
    assert_non_null(strstr(e.text, "did not open within 1 seconds"));
    assert_int_equal(shared_object_try("libnothing-of-the-kind.so.9", 5, NULL, NULL, 0, &e), Q_EMISS);
    assert_non_null(strstr(e.text, "libnothing-of-the-kind.so.9: cannot open shared object file"));
}

/* A signal that its caller has blocked ends the wait at once and is still there for the caller. */
static void a_signal_ends_the_wait(void **state)
{
    sigset_t set, pending;
    int number;
    struct q_err e;
    struct timespec start, end, none = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    raise(SIGTERM);
    clock_gettime(CLOCK_MONOTONIC, &start);
    assert_int_equal(shared_object_try(LIBRARY, 60, hang, &number, sizeof number, &e), Q_EIO);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(end.tv_sec - start.tv_sec < 30);
    assert_non_null(strstr(e.text, "interrupted while"));
    assert_int_equal(sigpending(&pending), 0);
    assert_true(sigismember(&pending, SIGTERM));
    assert_int_equal(sigtimedwait(&set, NULL, &none), SIGTERM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* What a user names is the file here, where there is one. */
static void a_name_is_a_file_here_first(void **state)
{
    char real[Q_PATH], here[Q_PATH];
    assert_non_null(getcwd(here, sizeof here));
    put("x", 1);
    assert_int_equal(chdir(dir), 0);
    assert_string_equal(shared_object_named("k.so", real), real);
    assert_true(real[0] == '/');
    assert_int_equal(chdir(here), 0);
    assert_string_equal(shared_object_named("libcuda.so.1x", real), "libcuda.so.1x");
    assert_string_equal(shared_object_named("./k.so", real), "./k.so");
}

static int make_dir(void **state) { return dir_temp(dir, "/tmp/quarry-test-so-", NULL) || path_join(path, NULL, dir, "k.so", NULL); }
static int remove_dir(void **state) { return dir_remove(dir), 0; }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_file),          cmocka_unit_test(what_is_no_library),     cmocka_unit_test(what_is_cut_off),
        cmocka_unit_test(what_is_damaged),          cmocka_unit_test(answers_fails_dies_or_is_late), cmocka_unit_test(a_signal_ends_the_wait),
        cmocka_unit_test(a_name_is_a_file_here_first),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
