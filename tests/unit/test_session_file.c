/* Session files without an engine: what was written comes back, every damage is refused with a line that names it, a killed writer loses only
 * its own write, one process at a time has a file. */
#include "session_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "own_dir.h"

enum { IDS = 150, STATE = 100, PAGE = 77 };
static const char id_text[] = "model=00112233445566778899 kv=f16+f16 numerics=strict";

static const char messages[] = "[{\"role\": \"user\"}]";

static int32_t ids[IDS];

static unsigned char byte_of(int salt, int part, size_t i) { return (unsigned char)(salt + part * 101 + i * 7 + (i >> 8)); }

static int read_made(void *arg, int part, size_t where, void *dst, size_t n, struct q_err *e)
{
    int salt = *(int *)arg;
    (void)e;
    for (size_t i = 0; i < n; i++) ((unsigned char *)dst)[i] = byte_of(salt, part, where + i);
    return Q_OK;
}

static struct session_source source(int *salt)
{
    struct session_source s = {.h = {.n_ids = IDS, .n_parts = 2, .n_text = sizeof messages - 1, .part = {{0, 100}, {64, 150}}, .page_tokens = 64,
                                     .state_bytes = STATE, .page_bytes = PAGE},
                               .ids = ids, .text = messages, .read = read_made, .arg = salt};
    snprintf(s.h.state_id, sizeof s.h.state_id, "%s", id_text);
    return s;
}

static void save(const char *path, int salt)
{
    struct session_source s = source(&salt);
    struct q_err e;
    size_t n;
    if (session_write(path, &s, NULL, &n, &e)) fail_msg("%s", e.text);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, n);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static int setup(void **state)
{
    struct q_err e;
    for (int i = 0; i < IDS; i++) ids[i] = i * i;
    return dir_temp(dir, "/tmp/test-session-", &e);
}

struct check {
    int salt, part;
    size_t n, others;
};

static int check_piece(void *arg, size_t where, const void *src, size_t n, struct q_err *e)
{
    struct check *c = arg;
    (void)e;
    assert_int_equal(where, c->n);
    for (size_t i = 0; i < n; i++)
        c->others += ((const unsigned char *)src)[i] != byte_of(c->salt, c->part, where + i);
    c->n += n;
    return Q_OK;
}

/* All that a reader reads. */
static int read_whole(const char *path, int salt, struct q_err *e)
{
    struct session *s;
    int rc = session_open(&s, path, e);
    if (rc) return rc;
    rc = session_check_id(path, session_head(s), id_text, e);
    for (int p = 0; p < session_head(s)->n_parts && !rc; p++) {
        struct check c = {salt, p, 0, 0};
        rc = session_read(s, p, check_piece, &c, e);
        if (!rc && c.others) rc = q_fail(e, Q_EINTERNAL, "%zu other bytes", c.others);
    }
    if (!rc && memcmp(session_ids(s), ids, sizeof ids)) rc = q_fail(e, Q_EINTERNAL, "other ids");
    if (!rc && strcmp(session_text(s), messages)) rc = q_fail(e, Q_EINTERNAL, "another text");
    session_close(s);
    return rc;
}

static struct session_head head_of(const char *path)
{
    struct session *s;
    struct q_err e;
    if (session_open(&s, path, &e)) fail_msg("%s", e.text);
    struct session_head h = *session_head(s);
    session_close(s);
    return h;
}

static void test_there_and_back(void **state)
{
    struct q_err e;
    struct session_head h;
    struct session *s;
    save(at("a.session"), 3);
    if (read_whole(at("a.session"), 3, &e)) fail_msg("%s", e.text);
    h = head_of(at("a.session"));
    assert_string_equal(h.state_id, id_text);
    assert_int_equal(h.n_ids, IDS);
    assert_int_equal(h.part[1].from, 64);
    assert_int_equal(session_part_bytes(&h, 0), STATE + 2 * PAGE);
    assert_int_equal(session_part_bytes(&h, 1), STATE + 2 * PAGE);
    assert_true(llabs(h.made - (long long)time(NULL)) < 100);
    save(at("a.session"), 4);                                  /* replaced */
    assert_int_equal(read_whole(at("a.session"), 4, &e), Q_OK);
    assert_int_equal(session_open(&s, at("none.session"), &e), Q_EMISS);
    assert_int_equal(session_open(&s, dir, &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "folder"));
}

/* Whole characters that steer no terminal; a file of before there were names has zeros there. */
static void test_the_models_name(void **state)
{
    struct session_head h = { .n_ids = 1, .n_parts = 1, .part = { { 0, 1 } }, .page_tokens = 64 }, back;
    unsigned char head[SESSION_HEAD + SESSION_HASH];
    struct q_err e;
    h.bytes = session_file_bytes(&h);
    static const struct { const char *name, *kept; } rows[] = {
        { "", "" }, { "Qwen3.5 9B", "Qwen3.5 9B" }, { "a\033[2Jb\nc", "a?[2Jb?c" },
        { "a\xc2\x9b" "2J\xff\x9b", "a?2J??" },
        { "0123456789012345678901234567890123456789012345", "0123456789012345678901234567890123456789012" },
        { "012345678901234567890123456789012345678901\xea\xb0\x80", "012345678901234567890123456789012345678901" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        session_name_model(&h, rows[i].name);
        session_pack(head, &h);
        assert_int_equal(session_unpack("file", head, &back, &e), Q_OK);
        assert_string_equal(back.model, rows[i].kept);
    }
}

/* A part of more than a piece. */
static void test_many_pieces(void **state)
{
    struct q_err e;
    int salt = 9;
    struct session_source s = source(&salt);
    s.h.page_bytes = SESSION_PIECE + 12345;
    assert_int_equal(session_write(at("large.session"), &s, NULL, NULL, &e), Q_OK);
    if (read_whole(at("large.session"), 9, &e)) fail_msg("%s", e.text);
    unlink(at("large.session"));
}

static char *load(const char *path, size_t *n)
{
    char *data;
    struct q_err e;
    assert_int_equal(file_read(path, 1 << 20, &data, n, &e), Q_OK);
    return data;
}

static void refused(const char *data, size_t n, const char *what, size_t where)
{
    struct q_err e = {0};
    FILE *f = fopen(at("bad.session"), "w");                   /* file_write waits for the disk each time */
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
    int rc = read_whole(at("bad.session"), 5, &e);
    if (rc != Q_EINPUT && !(rc == Q_EUNSUP && strstr(e.text, "format"))) fail_msg("%s at byte %zu: %d %s", what, where, rc, rc ? e.text : "");
    if (!strstr(e.text, "bad.session: ") || strchr(e.text, '\n')) fail_msg("%s at byte %zu: %s", what, where, e.text);
}

static void test_every_damage(void **state)
{
    size_t n;
    save(at("a.session"), 5);
    char *data = load(at("a.session"), &n);
    for (size_t i = 0; i < n; i++) {
        char was = data[i];
        data[i] = (char)(was ^ (1 << i % 8));
        refused(data, n, "a flipped bit", i);
        data[i] = was;
    }
    for (size_t i = 0; i < n; i++) refused(data, i, "cut off", i);
    char *more = malloc(n + 1);
    memcpy(more, data, n);
    more[n] = 0;
    refused(more, n + 1, "a byte more", n);
    free(more);
    free(data);
}

/* Heads with a good hash that claim what cannot be. */
static void test_lying_heads(void **state)
{
    unsigned char head[SESSION_HEAD + SESSION_HASH];
    struct session_head good, h;
    struct q_err e;
    size_t n;
    save(at("a.session"), 5);
    good = head_of(at("a.session"));
    char *data = load(at("a.session"), &n);
    for (int i = 0; i < 15; i++) {
        h = good;
        if (i == 0) h.n_ids = 1 << 28;
        if (i == 1) h.n_parts = 0;
        if (i == 2) h.part[1].from = 128;                       /* behind the part before */
        if (i == 3) h.part[1].from = 65;
        if (i == 4) h.part[1].length = 100;
        if (i == 5) h.part[0].length = 0;
        if (i == 6) h.page_tokens = 0x7fffffff;
        if (i == 7) h.state_bytes = UINT64_MAX;
        if (i == 8) h.page_bytes = (uint64_t)1 << 63;
        if (i == 9) h.bytes = 1;
        if (i == 10) h.part[0].from = -64;
        if (i == 11) h.n_ids = -1;
        if (i == 12) h.n_text = -1;
        if (i == 13) h.n_text = 1 << 28;
        if (i == 14) h.state_id[0] = '\033';
        session_pack(head, &h);
        memcpy(data, head, sizeof head);
        refused(data, n, "a lie", (size_t)i);
    }
    h = good;
    session_pack(head, &h);
    head[SESSION_HEAD - 1] = 0;
    assert_int_equal(session_unpack("x", head, &h, &e), Q_OK);
    head[24] = SESSION_PARTS + 1;
    assert_int_equal(session_unpack("x", head, &h, &e), Q_EINPUT);
    free(data);
}

static void test_another_engine(void **state)
{
    struct session_head h;
    struct q_err e;
    save(at("a.session"), 5);
    h = head_of(at("a.session"));
    assert_int_equal(session_check_id("f", &h, id_text, &e), Q_OK);
    assert_int_equal(session_check_id("f", &h, "model=00112233445566778890 kv=q8+q8 numerics=strict", &e), Q_EINPUT);
    assert_string_equal(e.text, "f: a session of another model: expected 001122334455..., found 001122334455...");
    assert_int_equal(session_check_id("f", &h, "model=00112233445566778899 kv=q8+r3 numerics=free", &e), Q_EINPUT);
    assert_string_equal(e.text, "f: a session whose KV is f16+f16; this engine's is q8+r3 (K+V)");
    assert_int_equal(session_check_id("f", &h, "model=00112233445566778899 kv=f16+f16 numerics=strict rope=yarn,2", &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "this engine's are by yarn,2"));
    assert_int_equal(session_check_id("f", &h, "model=00112233445566778899 kv=f16+f16 numerics=pinned-1234", &e), Q_EINPUT);
    assert_string_equal(e.text, "f: a session computed with numerics strict; this engine computes with pinned-1234");
}

static int put_nothing(void *arg, size_t where, const void *src, size_t n, struct q_err *e)
{
    if (where == 0 && truncate(arg, 400)) return q_fail(e, Q_EIO, "truncate");
    return Q_OK;
}

static void test_shrinks_while_read(void **state)
{
    struct session *s;
    struct q_err e;
    save(at("a.session"), 5);
    assert_int_equal(session_open(&s, at("a.session"), &e), Q_OK);
    assert_int_equal(session_read(s, 1, put_nothing, at("a.session"), &e), Q_EINPUT);
    assert_non_null(strstr(e.text, "cut off: byte"));
    session_close(s);
}

/* ---- writers that do not end well ---- */

static int n_temps(void)
{
    char line[Q_PATH + 60] = "";
    snprintf(line, sizeof line, "ls -a %s | grep -c '^\\.quarry-session-'", dir);
    FILE *f = popen(line, "r");
    int n = -1;
    assert_int_equal(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

static int read_and_stop(void *arg, int part, size_t where, void *dst, size_t n, struct q_err *e)
{
    int *fd = arg;
    memset(dst, 1, n);
    if (part == 1 && write(*fd, "x", 1) == 1) pause();
    return Q_OK;
}

static void test_killed_writer(void **state)
{
    struct q_err e;
    int fd[2], status;
    char c;
    save(at("a.session"), 6);
    assert_int_equal(pipe(fd), 0);
    pid_t child = fork();
    if (!child) {
        struct session_source s = source(NULL);
        s.read = read_and_stop;
        s.arg = &fd[1];
        session_write(at("a.session"), &s, NULL, NULL, &e);
        _exit(1);
    }
    assert_int_equal(read(fd[0], &c, 1), 1);
    session_clean(dir);
    assert_int_equal(n_temps(), 1);              /* its writer lives */
    assert_int_equal(read_whole(at("a.session"), 6, &e), Q_OK);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(read_whole(at("a.session"), 6, &e), Q_OK);
    assert_int_equal(n_temps(), 1);
    assert_int_equal(session_dir_open(dir, &e), Q_OK);
    assert_int_equal(n_temps(), 0);
    close(fd[0]);
    close(fd[1]);
}

static int read_fails(void *arg, int part, size_t where, void *dst, size_t n, struct q_err *e)
{
    return part ? q_fail(e, Q_EIO, "the card is gone") : Q_OK;
}

static void test_failing_writers(void **state)
{
    struct q_err e;
    int salt = 7;
    save(at("a.session"), 6);
    struct session_source s = source(&salt);
    s.read = read_fails;
    assert_int_equal(session_write(at("a.session"), &s, NULL, NULL, &e), Q_EIO);
    assert_string_equal(e.text, "the card is gone");
    s = source(&salt);
    s.h.state_bytes = (uint64_t)1 << 43;                       /* no disk has that */
    assert_int_equal(session_write(at("a.session"), &s, NULL, NULL, &e), Q_EIO);
    assert_non_null(strstr(e.text, "MiB are free on that disk"));
    assert_int_equal(session_write("/proc/nowhere/a.session", &s, NULL, NULL, &e), Q_EIO);
    s = source(&salt);
    mkdir(at("folder.session"), 0700);
    assert_int_equal(session_write(at("folder.session"), &s, NULL, NULL, &e), Q_EINPUT);
    rmdir(at("folder.session"));
    struct rlimit old, small = {1000, 1000};                   /* files may not grow beyond */
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    assert_int_equal(session_write(at("a.session"), &s, NULL, NULL, &e), Q_EIO);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(n_temps(), 0);
    assert_int_equal(read_whole(at("a.session"), 6, &e), Q_OK);
}

/* ---- locks ---- */

/* The answer of another process. */
static int other_can_lock(const char *path)
{
    int status;
    struct q_err e;
    pid_t child = fork();
    if (!child) {
        int fd = session_lock(path, &e);
        _exit(fd >= 0 ? 0 : fd == -Q_ELIMIT && strstr(e.text, "another process") ? 1 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return !WEXITSTATUS(status);
}

static void test_locks(void **state)
{
    struct q_err e;
    int salt = 8;
    struct stat st;
    struct session_source s = source(&salt);
    int lock = session_lock(at("l.session"), &e);
    assert_true(lock >= 0);
    assert_int_equal(stat(at("l.session"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_false(other_can_lock(at("l.session")));
    assert_int_equal(session_write(at("l.session"), &s, &lock, NULL, &e), Q_OK);
    assert_false(other_can_lock(at("l.session")));             /* of the new file */
    assert_int_equal(session_write(at("l.session"), &s, &lock, NULL, &e), Q_OK);
    session_unlock(lock, at("l.session"));
    assert_int_equal(read_whole(at("l.session"), 8, &e), Q_OK);
    assert_true(other_can_lock(at("l.session")));
    unlink(at("l.session"));
    lock = session_lock(at("l.session"), &e);
    session_unlock(lock, at("l.session"));
    assert_int_equal(stat(at("l.session"), &st), -1);          /* nothing was saved: nothing stays */
    assert_int_equal(session_lock(dir, &e), -Q_EINPUT);
}

/* A link is what its owner made: the file that it leads to is replaced, there or not. */
static void test_links(void **state)
{
    struct q_err e;
    char target[Q_PATH];
    assert_int_equal(mkdir(at("links"), 0700), 0);
    assert_int_equal(symlink("../far.session", at("links/one")), 0);
    assert_int_equal(symlink("links/one", at("two")), 0);
    assert_int_equal(symlink("round", at("round")), 0);
    assert_int_equal(session_target(target, at("two"), &e), Q_OK);     /* dangling */
    assert_string_equal(target, at("links/../far.session"));
    save(target, 2);
    assert_int_equal(session_target(target, at("two"), &e), Q_OK);
    assert_int_equal(read_whole(at("two"), 2, &e), Q_OK);
    assert_int_equal(session_target(target, at("far.session"), &e), Q_OK);
    assert_string_equal(target, at("far.session"));
    assert_int_equal(session_target(target, at("round"), &e), Q_EIO);
}

/* In a process that is not root's, who may write anywhere. */
static void test_a_folder_that_cannot_be_written(void **state)
{
    struct q_err e;
    int status;
    static const char *const dirs[][2] = {{"a", "."}, {"/a", "/"}, {"b/a", "b"}, {"/c/b/a", "/c/b"}, {"b/", "b"}};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char got[Q_PATH];
        assert_int_equal(path_dir(got, dirs[i][0], &e), Q_OK);
        assert_string_equal(got, dirs[i][1]);
    }
    assert_int_equal(session_can_write(at("a.session"), &e), Q_OK);
    assert_int_equal(session_can_write("a.session", &e), Q_OK);
    assert_int_equal(mkdir(at("shut"), 0555), 0);
    assert_int_equal(chmod(dir, 0755), 0);
    pid_t child = fork();
    if (!child) {
        if (!getuid() && setuid(65534)) _exit(3);
        int rc = session_can_write(at("shut/a.session"), &e);
        _exit(rc == Q_EIO && strstr(e.text, "its folder cannot be written") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- directories ---- */

static void age(const char *name, int seconds)
{
    struct timespec t[2] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
    assert_int_equal(utimensat(AT_FDCWD, at(name), t, 0), 0);
}

static void test_directories(void **state)
{
    struct q_err e;
    struct session_found *list;
    int n;
    char sub[Q_PATH];
    struct stat st;
    assert_int_equal(path_join(sub, &e, dir, "sub/dir", NULL), Q_OK);
    assert_int_equal(session_find_files(sub, &list, &n, &e), Q_EIO);
    assert_int_equal(session_dir_open(sub, &e), Q_OK);
    assert_int_equal(stat(sub, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    save(at("sub/dir/new.session"), 1);
    save(at("sub/dir/old.session"), 1);
    save(at("sub/dir/middle.session"), 1);
    assert_int_equal(stat(at("sub/dir/old.session"), &st), 0);
    assert_int_equal(file_write(at("sub/dir/bad.session"), "quarry", 6, &e), Q_OK);
    assert_int_equal(file_write(at("sub/dir/other.txt"), "quarry", 6, &e), Q_OK);
    assert_int_equal(symlink("old.session", at("sub/dir/link.session")), 0);
    age("sub/dir/old.session", 300);
    age("sub/dir/middle.session", 200);
    age("sub/dir/bad.session", 100);
    session_touch(at("sub/dir/middle.session"));
    age("sub/dir/new.session", 50);
    assert_int_equal(session_find_files(sub, &list, &n, &e), Q_OK);
    assert_int_equal(n, 4);
    static const char *const order[] = {"old.session", "bad.session", "new.session", "middle.session"};
    for (int i = 0; i < n; i++) assert_string_equal(list[i].name, order[i]);
    assert_int_equal(list[0].bytes, st.st_size);
    assert_int_equal(list[1].bytes, 6);
    session_found_free(list, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),     cmocka_unit_test(test_many_pieces),   cmocka_unit_test(test_every_damage),
        cmocka_unit_test(test_the_models_name),
        cmocka_unit_test(test_lying_heads),        cmocka_unit_test(test_another_engine), cmocka_unit_test(test_shrinks_while_read),
        cmocka_unit_test(test_killed_writer),      cmocka_unit_test(test_failing_writers), cmocka_unit_test(test_locks),
        cmocka_unit_test(test_links),               cmocka_unit_test(test_a_folder_that_cannot_be_written),
        cmocka_unit_test(test_directories)};
    return cmocka_run_group_tests(tests, setup, own_dir_remove);
}
