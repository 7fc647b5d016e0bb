/* The driver's library: found or told why not, its results as lines, its own version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cuda_api.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKE(age) TEST_BUILD_DIR "/tests/fake_cuda/" age "/libcuda.so.1"

static void no_library(void **state)
{
    struct cuda_api cu;
    struct q_err e;
    assert_int_equal(cuda_open(&cu, "/nowhere/libcuda.so.1", &e), Q_EMISS);
    assert_non_null(strstr(e.text, "no NVIDIA driver: /nowhere/libcuda.so.1"));
    assert_non_null(strstr(e.text, "install the driver"));
    assert_null(strchr(e.text, '\n'));
}

static void all_functions_are_found(void **state)
{
    struct cuda_api cu;
    setenv("FAKE_CUDA", "version=12090", 1);
    assert_int_equal(cuda_open(&cu, FAKE("now"), NULL), 0);
    assert_non_null(cu.cuLaunchKernelEx);
    assert_non_null(cu.cuGraphLaunch);
    assert_int_equal(cuda_start(&cu, NULL), 0);
    assert_int_equal(cu.version, 12090);
    cuda_close(&cu);
}

/* Those of the 470 series: what they lack is NULL, and no error. */
static void an_old_driver_lacks_what_is_optional(void **state)
{
    struct cuda_api cu;
    setenv("FAKE_CUDA", "version=11040", 1);
    assert_int_equal(cuda_open(&cu, FAKE("old"), NULL), 0);
    assert_null(cu.cuLaunchKernelEx);
    assert_null(cu.cuGraphUpload);
    assert_int_equal(cuda_start(&cu, NULL), 0);
    cuda_close(&cu);
}

static void too_old_by_its_functions(void **state)
{
    struct cuda_api cu;
    struct q_err e;
    assert_int_equal(cuda_open(&cu, FAKE("ancient"), &e), Q_EUNSUP);
    assert_non_null(strstr(e.text, "cuGraphInstantiateWithFlags"));
    assert_non_null(strstr(e.text, "470 series or newer"));
    assert_null(cu.library);
}

static void too_old_by_its_version(void **state)
{
    struct cuda_api cu;
    struct q_err e;
    setenv("FAKE_CUDA", "version=10020", 1);
    assert_int_equal(cuda_open(&cu, FAKE("now"), NULL), 0);
    assert_int_equal(cuda_start(&cu, &e), Q_EUNSUP);
    assert_string_equal(e.text, "the NVIDIA driver is too old: it stands for CUDA 10.2 and quarry needs 11.4; install one of the 470 series or newer");
    cuda_close(&cu);
}

static void what_start_refuses_tells_what_to_do(void **state)
{
    static const struct { const char *fake; int code; const char *line; } cases[] = {
        {"init=100", Q_EMISS, "cuInit: CUDA_ERROR_NO_DEVICE (100): the driver shows no card; look at nvidia-smi"},
        {"init=803", Q_EIO, "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): the driver's library and its kernel module differ; restart"},
        {"init=802", Q_EIO, "cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802): the NVSwitch fabric is not up"},
        {"init=804", Q_EUNSUP, "cuInit: CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804): a CUDA compatibility package is in use"},
        {"init=34", Q_EIO, "cuInit: CUDA_ERROR_STUB_LIBRARY (34): the libcuda.so.1 found is the toolkit's stub"},
        {"init=12345", Q_EIO, "cuInit: CUDA_ERROR_FAKE (12345)"},
        {"init=54321", Q_EIO, "cuInit: an unknown error (54321)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cuda_api cu;
        struct q_err e;
        setenv("FAKE_CUDA", cases[i].fake, 1);
        assert_int_equal(cuda_open(&cu, FAKE("now"), NULL), 0);
        assert_int_equal(cuda_start(&cu, &e), cases[i].code);
        assert_memory_equal(e.text, cases[i].line, strlen(cases[i].line));
        cuda_close(&cu);
    }
}

static void faults_end_all_and_others_do_not(void **state)
{
    static const cu_result sticky[] = {214, 700, 702, 710, 714, 715, 716, 717, 718, 719}, passing[] = {0, 1, 2, 100, 200, 209, 500, 600, 701, 801, 901};
    for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++) assert_true(cuda_is_sticky(sticky[i]));
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) assert_false(cuda_is_sticky(passing[i]));
}

static void version_of(const char *text, const char *expected)
{
    char path[] = "/tmp/quarry-test-XXXXXX", got[32];
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    cuda_driver_version(got, sizeof got, path);
    unlink(path);
    assert_string_equal(got, expected);
}

static void the_drivers_own_version(void **state)
{
    char got[32];
    version_of("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024\nGCC version:  gcc 12\n", "470.256.02");
    version_of("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (x@y)  Sun Jul 27\n", "580.65.06");
    version_of("nonsense\n", "");
    version_of("", "");
    cuda_driver_version(got, sizeof got, "/nowhere/version");
    assert_string_equal(got, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_library),
        cmocka_unit_test(all_functions_are_found),
        cmocka_unit_test(an_old_driver_lacks_what_is_optional),
        cmocka_unit_test(too_old_by_its_functions),
        cmocka_unit_test(too_old_by_its_version),
        cmocka_unit_test(what_start_refuses_tells_what_to_do),
        cmocka_unit_test(faults_end_all_and_others_do_not),
        cmocka_unit_test(the_drivers_own_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
