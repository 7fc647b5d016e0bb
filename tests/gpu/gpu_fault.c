/* gpu_fault: a kernel that writes where nothing is, on the card that is here: the line that comes must name op and kernel, every later call
 * must fail with the same line, and the process must end by itself. Exit 0 only if so.
 *
 *   gpu_fault [DEVICE]     (cuda:0) */
#define _GNU_SOURCE
#include "autotune/child.h"
#include "autotune/compiler.h"
#include "gen/gen.h"
#include "runtime/device.h"
#include "runtime/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "extern \"C\" __global__ void faulty(int *p) { p[threadIdx.x] = 1; }\n";

/* DIR/faulty.cubin, by NVRTC as the tuner calls it. */
static int make(char object[Q_PATH], const struct q_card *card, const char *dir, struct q_err *e)
{
    struct compiler c = { 0 };
    struct compiler_given given = { .nvrtc = { .home = getenv("HOME") } };
    char source[Q_PATH], arch[64], line[300];
    int status, rc = compiler_find(&c, card, &given, e);
    if (rc) return rc;
    if ((rc = self_path(c.self, e))) return rc;
    strcpy(strrchr(c.self, '/') + 1, "quarry-tune");
    snprintf(source, sizeof source, "%.3800s/faulty.cu", dir);
    snprintf(object, Q_PATH, "%.3800s/faulty.cubin", dir);
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", card->cc);
    if ((rc = file_write(source, text, strlen(text), e))) return rc;
    char *argv[] = { c.self, "--compile", c.program, source, object, arch, NULL };
    rc = child_first_line(argv, line, sizeof line, &status, e);
    return !rc && access(object, R_OK) ? q_fail(e, Q_EINTERNAL, "no cubin was made: %s", line) : rc;
}

static int fail(const char *what, const char *line)
{
    printf("FAIL %s: %s\n", what, line);
    return 1;
}

/* The first run of a list names the kernel; what comes after it repeats the line. */
static int provoke(struct q_device *d, const char *object)
{
    struct q_phases phases = { .n = 1, .phase = { { .threads = 32, .grid = { { 1 }, { 1 }, { 1 } } } } };
    struct q_list list = { .stable = 1 };
    struct q_kernel k;
    struct q_err e = { 0 }, again = { 0 };
    int *nowhere = (int *)16;
    if (d->ops->load(d, object, "faulty", &phases, &k, &e)) return fail("load", e.text);
    if (list_push(&list, &k, "rmsnorm", &nowhere, sizeof nowhere, &e)) return fail("list", e.text);
    int rc = d->ops->submit(d, &list, &(struct q_extent){ 1, 1, 1 }, NULL, &e);
    if (!rc) rc = d->ops->wait(d, &e);
    if (!rc) return fail("a write to address 16", "went unnoticed");
    if (!strstr(e.text, "rmsnorm") || !strstr(e.text, "faulty")) return fail("the line does not name op and kernel", e.text);
    if (!d->ops->wait(d, &again) || strcmp(again.text, e.text)) return fail("a later call says otherwise", again.text);
    printf("ok   %s\n", e.text);
    return 0;
}

int main(int argc, char **argv)
{
    struct q_device *d;
    struct q_err e = { 0 };
    char dir[Q_PATH], object[Q_PATH];
    if (argc > 2 || (argc == 2 && strncmp(argv[1], "cuda", 4))) {
        fputs("usage: gpu_fault [cuda:N]\n", stderr);
        return 2;
    }
    if (device_open(&d, argc > 1 ? argv[1] : "cuda:0", 0, &e) || dir_temp(dir, "/tmp/quarry-fault-", &e)) return fail("open", e.text);
    int bad = make(object, &d->card, dir, &e) ? fail("make", e.text) : provoke(d, object);
    d->ops->close(d);
    dir_remove(dir);
    return bad;
}
