/* NVRTC: which of those found serves a card under a driver; what is said where none does; real libraries where there are any; cubins. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "autotune/cubin.h"
#include "autotune/nvrtc.h"
#include "autotune/nvrtc_api.h"
#include <elf.h>
#include <sanitizer/lsan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Our prototypes beside the toolkit's: a function that changed does not compile. */
#if __has_include("/usr/local/cuda/include/nvrtc.h")
#include "/usr/local/cuda/include/nvrtc.h"
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#define BESIDE(name, result, arguments) extern result (*const ours_##name) arguments; result (*const ours_##name) arguments = name;
#pragma weak nvrtcVersion
#pragma weak nvrtcGetNumSupportedArchs
#pragma weak nvrtcGetSupportedArchs
#pragma weak nvrtcCreateProgram
#pragma weak nvrtcDestroyProgram
#pragma weak nvrtcCompileProgram
#pragma weak nvrtcGetProgramLogSize
#pragma weak nvrtcGetProgramLog
#pragma weak nvrtcGetCUBINSize
#pragma weak nvrtcGetCUBIN
#pragma weak nvrtcGetPTXSize
#pragma weak nvrtcGetPTX
#pragma weak nvrtcGetErrorString
NVRTC_FUNCTIONS(BESIDE)
_Static_assert(NVRTC_OK == (int)NVRTC_SUCCESS && NVRTC_UNKNOWN_OPTION == (int)NVRTC_ERROR_INVALID_OPTION, "results as the toolkit numbers them");
#endif

/* --- the table --------------------------------------------------------------------------------------------------------- */

static const int archs_11_8[] = { 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 0 };
static const int archs_12_9[] = { 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121, 0 };
static const int archs_13[] = { 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121, 0 };

static void put(struct nvrtc_list *l, int major, int minor, const int *archs)
{
    struct nvrtc *v = &l->v[l->n++];
    v->major = major;
    v->minor = minor;
    snprintf(v->path, sizeof v->path, "/opt/nvrtc-%d.%d/libnvrtc.so", major, minor);
    while (archs[v->n_archs]) v->archs[v->n_archs] = archs[v->n_archs], v->n_archs++;
}

static struct nvrtc_list empty(void)
{
    struct nvrtc_list l = { .v = calloc(NVRTC_MOST, sizeof *l.v) };
    assert_non_null(l.v);
    return l;
}

/* Drivers 470, 535, 580, 590 speak CUDA 11.4, 12.2, 13.0, 13.1. What is chosen of 11.8, 12.9, 13.0, 13.1: major * 10 + minor, 0: none. */
static const int drivers[] = { 11040, 12020, 13000, 13010 };
static const struct { int cc, want[4]; } table[] = {
    { 60, { 118, 129, 129, 129 } }, { 61, { 118, 129, 129, 129 } }, { 70, { 118, 129, 129, 129 } }, { 75, { 118, 129, 131, 131 } },
    { 80, { 118, 129, 131, 131 } }, { 90, { 118, 129, 131, 131 } }, { 120, { 0, 129, 131, 131 } },
};

static int choose(const struct nvrtc_list *l, int driver, int cc, struct q_err *e)
{
    const struct nvrtc *v;
    int rc = nvrtc_choose(l, driver, cc, &v, e);
    assert_int_equal(!rc, v != NULL);
    return v ? v->major * 10 + v->minor : 0;
}

static void chooses_by_driver_and_card(void **state)
{
    struct nvrtc_list l = empty();
    put(&l, 12, 9, archs_12_9);
    put(&l, 13, 1, archs_13);
    put(&l, 11, 8, archs_11_8);
    put(&l, 13, 0, archs_13);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int d = 0; d < 4; d++) assert_int_equal(choose(&l, drivers[d], table[i].cc, NULL), table[i].want[d]);
    nvrtc_list_free(&l);
}

/* Each alone: what a machine with one toolkit can do. */
static void one_alone(void **state)
{
    static const struct { int major, minor; const int *archs; } versions[] = { { 11, 8, archs_11_8 }, { 12, 9, archs_12_9 }, { 13, 0, archs_13 } };
    for (int v = 0; v < 3; v++)
        for (int d = 0; d < 4; d++)
            for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
                struct nvrtc_list l = empty();
                int knows = 0;
                put(&l, versions[v].major, versions[v].minor, versions[v].archs);
                for (const int *a = versions[v].archs; *a; a++) knows |= *a == table[i].cc;
                int serves = knows && versions[v].major <= drivers[d] / 1000;
                assert_int_equal(choose(&l, drivers[d], table[i].cc, NULL) != 0, serves);
                nvrtc_list_free(&l);
            }
}

static void any_driver_where_there_is_none(void **state)
{
    struct nvrtc_list l = empty();
    put(&l, 12, 9, archs_12_9);
    put(&l, 13, 0, archs_13);
    assert_int_equal(choose(&l, 0, 61, NULL), 129);
    assert_int_equal(choose(&l, 0, 120, NULL), 130);
    nvrtc_list_free(&l);
}

static void says_what_was_found_and_what_to_do(void **state)
{
    struct nvrtc_list l = empty();
    struct q_err e;
    assert_int_equal(choose(&l, 12020, 70, &e), 0);
    assert_string_equal(e.text, "no NVRTC compiles for sm_70 under a driver of CUDA 12.2: none was found; "
                                "pip install nvidia-cuda-nvrtc-cu12==12.9.86, or name one: --nvrtc PATH");
    put(&l, 13, 0, archs_13);
    assert_int_equal(choose(&l, 13000, 70, &e), 0);
    assert_string_equal(e.text, "no NVRTC compiles for sm_70 under a driver of CUDA 13.0: found 13.0 (/opt/nvrtc-13.0/libnvrtc.so) does not know the card; "
                                "pip install nvidia-cuda-nvrtc-cu12==12.9.86, or name one: --nvrtc PATH");
    put(&l, 12, 9, archs_12_9);
    assert_int_equal(choose(&l, 11040, 61, &e), 0);
    assert_string_equal(e.text, "no NVRTC compiles for sm_61 under a driver of CUDA 11.4: found 13.0 (/opt/nvrtc-13.0/libnvrtc.so) is newer than the driver, "
                                "12.9 (/opt/nvrtc-12.9/libnvrtc.so) is newer than the driver; pip install nvidia-cuda-nvrtc-cu11, or name one: --nvrtc PATH");
    put(&l, 11, 1, (const int[]){ 0 });
    assert_int_equal(choose(&l, 11040, 120, &e), 0);
    assert_non_null(strstr(e.text, "11.1 (/opt/nvrtc-11.1/libnvrtc.so) does not tell for which cards it compiles; install a driver of CUDA 12 or newer, then: pip"));
    assert_int_equal(choose(&l, 10020, 61, &e), 0);
    assert_non_null(strstr(e.text, "the driver is too old: install one of the 470 series or newer"));
    nvrtc_list_free(&l);
}

/* --- real files -------------------------------------------------------------------------------------------------------- */

static void a_given_path_is_the_only_one(void **state)
{
    struct nvrtc_list l;
    struct q_err e;
    struct nvrtc_places nowhere = { .given = "/nonexistent/libnvrtc.so" }, other = { .given = "/lib/x86_64-linux-gnu/libm.so.6" }, folder = { .given = "/etc" };
    assert_int_equal(nvrtc_search(&l, &nowhere, NULL), 0);
    assert_int_equal(choose(&l, 0, 70, &e), 0);
    assert_non_null(strstr(e.text, "--nvrtc /nonexistent/libnvrtc.so: cannot open: No such file or directory"));
    nvrtc_list_free(&l);
    assert_int_equal(nvrtc_search(&l, &other, NULL), 0);
    assert_int_equal(choose(&l, 0, 70, &e), 0);
    assert_non_null(strstr(e.text, "no NVRTC"));
    nvrtc_list_free(&l);
    assert_int_equal(nvrtc_search(&l, &folder, NULL), 0);
    assert_int_equal(choose(&l, 0, 70, &e), 0);
    assert_non_null(strstr(e.text, "--nvrtc /etc: the folder holds no libnvrtc.so"));
    nvrtc_list_free(&l);
}

/* In a folder, too: a pipe that nobody writes, a file that is cut off, a text. The search goes on, and tells of the last. */
static void what_is_no_library_is_passed_over(void **state)
{
    static const char part[200] = ELFMAG "\2\1\1";
    struct nvrtc_list l;
    struct q_err e;
    char dir[Q_PATH], path[Q_PATH];
    struct nvrtc_places here = { .given = dir };
    assert_int_equal(dir_temp(dir, "/tmp/quarry-test-", NULL), 0);
    assert_int_equal(path_join(path, NULL, dir, "libnvrtc.so.1", NULL), 0);
    assert_int_equal(file_write(path, part, sizeof part, NULL), 0);
    assert_int_equal(path_join(path, NULL, dir, "libnvrtc.so.2", NULL), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(nvrtc_search(&l, &here, NULL), 0);
    assert_int_equal(l.n, 0);
    assert_int_equal(choose(&l, 0, 70, &e), 0);
    assert_non_null(strstr(e.text, "libnvrtc.so.2: expected a regular file, found a FIFO"));
    nvrtc_list_free(&l);
    dir_remove(dir);
}

/* Whatever is here: every one is whole, found once, and newer versions know what the table says. */
static void what_is_here_tells_its_cards(void **state)
{
    struct nvrtc_list l;
    struct nvrtc_places places = { .home = getenv("HOME"), .prefix = { getenv("VIRTUAL_ENV") } };
    __lsan_disable();     /* what the libraries' own start leaves behind when they are closed is theirs */
    assert_int_equal(nvrtc_search(&l, &places, NULL), 0);
    __lsan_enable();
    if (!l.n) {
        nvrtc_list_free(&l);
        print_message("no NVRTC on this machine: install CUDA's toolkit or pip's nvidia-cuda-nvrtc-cu12\n");
        skip();
    }
    for (int i = 0; i < l.n; i++) {
        assert_true(l.v[i].major >= 8 && l.v[i].path[0] == '/');
        for (int j = 0; j < i; j++) assert_string_not_equal(l.v[i].path, l.v[j].path);
        int knows_75 = 0;
        for (int j = 0; j < l.v[i].n_archs; j++) knows_75 |= l.v[i].archs[j] == 75;
        assert_true(knows_75 || !l.v[i].n_archs);
    }
    nvrtc_list_free(&l);
}

/* --- cubins ------------------------------------------------------------------------------------------------------------ */

struct cubin {
    Elf64_Ehdr head;
    char names[32];
    Elf64_Sym sym[3];
    Elf64_Shdr section[3];
};

/* Kernels k and k_2. */
static struct cubin sample(void)
{
    struct cubin c = { .head = { .e_machine = 190, .e_shoff = offsetof(struct cubin, section), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3 } };
    memcpy(c.head.e_ident, ELFMAG "\2\1", 6);
    memcpy(c.names, "\0k\0k_2", 7);
    c.sym[1] = (Elf64_Sym){ .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 7 };
    c.sym[2] = (Elf64_Sym){ .st_name = 3, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 8 };
    c.section[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct cubin, names), .sh_size = sizeof c.names };
    c.section[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB, .sh_offset = offsetof(struct cubin, sym), .sh_size = sizeof c.sym, .sh_link = 1 };
    return c;
}

static int verdict(const void *data, size_t n, const char *name, int phases)
{
    char dir[Q_PATH], path[Q_PATH];
    assert_int_equal(dir_temp(dir, "/tmp/quarry-test-", NULL), 0);
    assert_int_equal(path_join(path, NULL, dir, "k.cubin", NULL), 0);
    assert_int_equal(file_write(path, data, n, NULL), 0);
    int rc = cubin_check(path, name, phases, NULL);
    dir_remove(dir);
    return rc;
}

static void a_cubin_must_hold_its_kernels(void **state)
{
    struct cubin c = sample();
    assert_int_equal(verdict(&c, sizeof c, "k", 1), Q_OK);
    assert_int_equal(verdict(&c, sizeof c, "k", 2), Q_OK);
    assert_int_equal(verdict(&c, sizeof c, "k", 3), Q_EINTERNAL);
    assert_int_equal(verdict(&c, sizeof c, "kk", 1), Q_EINTERNAL);
    assert_int_equal(verdict(&c, sizeof c, "k", 0), Q_EINTERNAL);
    c.sym[1].st_shndx = SHN_UNDEF;
    assert_int_equal(verdict(&c, sizeof c, "k", 1), Q_EINTERNAL);
    c = sample();
    c.head.e_machine = EM_X86_64;
    assert_int_equal(verdict(&c, sizeof c, "k", 1), Q_EINTERNAL);
}

/* Every cut and every damaged number is a refusal and no fault (the sanitizers watch). */
static void a_damaged_cubin_is_refused(void **state)
{
    struct cubin c = sample();
    for (size_t n = 0; n < sizeof c; n += 7) assert_int_equal(verdict(&c, n, "k", 1), Q_EINTERNAL);
    for (size_t at = 0; at < sizeof c; at += 3) {
        c = sample();
        ((unsigned char *)&c)[at] ^= 0xFF;
        verdict(&c, sizeof c, "k", 2);
    }
    c = sample();
    c.sym[1].st_name = sizeof c.names - 1;
    assert_int_equal(verdict(&c, sizeof c, "k", 1), Q_EINTERNAL);
    c = sample();
    c.section[2].sh_size = ~0ull;
    assert_int_equal(verdict(&c, sizeof c, "k", 1), Q_EINTERNAL);
}

static void the_log_tells_registers(void **state)
{
    int regs, spill;
    cubin_log("ptxas info    : 0 bytes gmem\nptxas         .     64 bytes stack frame, 60 bytes spill stores, 124 bytes spill loads\n"
              "ptxas info    : Used 168 registers, used 1 barriers\nptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
              "ptxas info    : Used 39 registers, 16388 bytes smem\n", &regs, &spill);
    assert_int_equal(regs, 168);
    assert_int_equal(spill, 124);
    cubin_log("", &regs, &spill);
    assert_int_equal(regs + spill, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_by_driver_and_card), cmocka_unit_test(one_alone), cmocka_unit_test(any_driver_where_there_is_none),
        cmocka_unit_test(says_what_was_found_and_what_to_do), cmocka_unit_test(a_given_path_is_the_only_one), cmocka_unit_test(what_is_no_library_is_passed_over), cmocka_unit_test(what_is_here_tells_its_cards),
        cmocka_unit_test(a_cubin_must_hold_its_kernels), cmocka_unit_test(a_damaged_cubin_is_refused), cmocka_unit_test(the_log_tells_registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
