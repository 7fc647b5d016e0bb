/* What the doctor concludes from what there is, and how it asks a driver and the tuner. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "doctor.h"
#include "files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE TEST_BUILD_DIR "/tests/fake_cuda/now/libcuda.so.1"

static struct doctor_lines lines;

/* Whether a line holds both texts and is of that kind. */
static int says(int action, const char *a, const char *b)
{
    for (int i = 0; i < lines.n; i++)
        if (lines.line[i].action == action && strstr(lines.line[i].text, a) && strstr(lines.line[i].text, b)) return 1;
    return 0;
}

static void must_say(int action, const char *a, const char *b)
{
    if (says(action, a, b)) return;
    for (int i = 0; i < lines.n; i++) print_error("%d %s\n", lines.line[i].action, lines.line[i].text);
    fail_msg("no line with '%s' and '%s'", a, b);
}

static struct doctor one_card(int cc, int sms, int clock_mhz)
{
    struct doctor d = {.n_pci = 1, .cuda = 12090, .n_cards = 1};
    d.pci[0] = (struct pci_device){.address = "0000:01:00.0", .device = 0x1db1, .driver = "nvidia", .width = 16, .max_width = 16};
    d.card[0] = (struct doctor_card){.name = "Card", .address = "0000:01:00.0", .card = {.cc = cc, .sms = sms}, .clock_mhz = clock_mhz,
                                     .total = (size_t)16 << 30, .free = (size_t)15 << 30, .nvrtc = "12.9 /x"};
    return d;
}

static void no_device(void **state)
{
    struct doctor d = {.driver_problem = "no NVIDIA driver"};
    doctor_means(&d, &lines);
    assert_int_equal(lines.n, 1);
    must_say(0, "no NVIDIA device", "quarry runs on the CPU");
}

static void a_device_without_its_driver(void **state)
{
    static const struct { unsigned device; const char *driver, *a, *b; } cases[] = {
        {0x1dc1, "", "0000:05:00.0: no driver holds it", "of the 580 series, the last for Pascal and Volta"},
        {0x1dc1, "nouveau", "the system's driver nouveau holds it", "of the 580 series, the last for Pascal and Volta"},
        {0x2335, "", "no driver holds it", "of the 580 series or newer"},
        {0x1040, "", "no driver holds it", "compute capability 6.0 is the least"},
        {0x2335, "vfio-pci", "it is given to a virtual machine (vfio-pci)", ""},
        {0x2335, "nvidia", "the kernel driver holds it and the library does not work", "the reason"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct doctor d = {.n_pci = 1, .driver_problem = "the reason"};
        d.pci[0] = (struct pci_device){.address = "0000:05:00.0", .device = cases[i].device};
        strcpy(d.pci[0].driver, cases[i].driver);
        doctor_means(&d, &lines);
        must_say(1, cases[i].a, cases[i].b);
    }
}

static void ceilings_that_are_doubtful(void **state)
{
    struct doctor d = one_card(70, 80, 1530);
    d.card[0].roofs = (struct q_roofs){.read = 800e9, .doubtful = 2};
    doctor_means(&d, &lines);
    must_say(0, "cuda:0: something else used the card", "2 of its ceilings");
    d.card[0].roofs.doubtful = 0;
    doctor_means(&d, &lines);
    assert_false(says(0, "something else used the card", ""));
}

static void a_card_that_the_driver_does_not_show(void **state)
{
    struct doctor d = one_card(70, 80, 1530);
    d.n_pci = 2;
    d.pci[1] = (struct pci_device){.address = "0000:02:00.0", .device = 0x1db1, .driver = "nvidia"};
    doctor_means(&d, &lines);
    must_say(1, "0000:02:00.0: the driver does not show it", "dmesg");
    assert_false(says(1, "0000:01:00.0", ""));
}

static void links_and_loading(void **state)
{
    struct doctor d = one_card(70, 68, 1380);
    d.pci[0].width = 1;
    d.card[0].to_card = 0.21e9;
    doctor_means(&d, &lines);
    must_say(0, "cuda:0: the link has 1 of 16 lanes", "");
    must_say(0, "load in 46 s at best", "");
}

/* A V100 as its maker meant it, a CMP 100-210 as people measured it, and an H200 by mma.sync. */
static void throttled_units_are_told_and_healthy_ones_are_not(void **state)
{
    struct doctor d = one_card(70, 80, 1530);
    d.card[0].roofs = (struct q_roofs){.read = 840e9, .dp4a = 60e12, .hfma2 = 30e12, .ffma = 15e12, .mma_f16 = 105e12};
    doctor_means(&d, &lines);
    assert_false(says(0, "of the rate", ""));
    must_say(0, "prompts are read by mma_f16", "");
    d = one_card(70, 68, 1380);
    d.card[0].roofs = (struct q_roofs){.read = 759e9, .dp4a = 46e12, .hfma2 = 23e12, .ffma = 11.8e12, .mma_f16 = 6.0e12};
    doctor_means(&d, &lines);
    must_say(0, "tensor cores (fp16) at 1/16 of the rate: dp4a path; no software unlocks this", "");
    assert_false(says(0, "dp4a at", ""));
    d.card[0].roofs.mma_f16 = 96.1e12 / 64;
    doctor_means(&d, &lines);
    must_say(0, "tensor cores (fp16) at 1/64 of the rate", "");
    d = one_card(90, 132, 1980);
    d.card[0].roofs = (struct q_roofs){.read = 4.66e12, .dp4a = 133e12, .hfma2 = 130e12, .ffma = 65e12, .mma_f16 = 660e12, .mma_i8 = 1273e12};
    doctor_means(&d, &lines);
    assert_false(says(0, "of the rate", ""));
    must_say(0, "prompts are read by mma_i8", "");
}

static void what_a_card_needs(void **state)
{
    struct doctor d = one_card(60, 56, 1328);
    d.card[0].nvrtc[0] = 0;
    strcpy(d.card[0].nvrtc_problem, "no NVRTC compiles for sm_60: found 13.0; pip install x");
    strcpy(d.card[0].problem, "cuDevicePrimaryCtxRetain: CUDA_ERROR_DEVICE_UNAVAILABLE (46): another process has it");
    d.card[0].display = 1;
    doctor_means(&d, &lines);
    must_say(1, "kernels cannot be built here: no NVRTC compiles for sm_60", "pip install x");
    must_say(1, "cuda:0: cuDevicePrimaryCtxRetain", "(46)");
    must_say(0, "sm_60 has no dp4a", "");
    must_say(0, "keep the driver at the 580 series", "");
    must_say(0, "a screen hangs on it", "");
    d = one_card(35, 2, 900);
    doctor_means(&d, &lines);
    assert_int_equal(lines.n, 1);
    must_say(0, "compute capability 3.5 is too old", "6.0");
}

/* --- asking ------------------------------------------------------------------------------------------------------------------ */

static char dir[Q_PATH];

static void write_tuner(const char *script)
{
    char path[Q_PATH + 16];
    snprintf(path, sizeof path, "%s/quarry-tune", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    chmod(path, 0700);
}

static void a_driver_and_a_tuner_are_asked(void **state)
{
    struct doctor *d = malloc(sizeof *d);
    struct doctor_places at = {.libcuda = FAKE, .pci = dir, .program_dir = dir, .tunes = dir, .measure = 1};
    setenv("FAKE_CUDA", "cc=70,cards=2,memory=1024,version=12090", 1);
    write_tuner("[ $1 = --nvrtc-report ] || { echo 'quarry-tune: cannot measure' >&2; exit 1; }\n"
                "echo \"13.0 no\"; echo \"12.9 for sm_$2 under $3\"");
    doctor_look(d, &at);
    assert_int_equal(d->cuda, 12090);
    assert_int_equal(d->n_cards, 2);
    assert_string_equal(d->card[1].name, "Fake Card 1");
    assert_string_equal(d->card[1].address, "0000:02:00.0");
    assert_string_equal(d->card[1].problem, "");
    assert_string_equal(d->card[1].card.key, "cuda:sm_70,sms=68,l2=6144,bus=4096,smem=96");
    assert_int_equal(d->card[0].clock_mhz, 1380);
    assert_int_equal(d->card[0].free, (size_t)1 << 30);
    assert_string_equal(d->card[0].nvrtc, "12.9 for sm_70 under 12090");
    assert_string_equal(d->card[0].roofs_problem, "cannot measure");
    setenv("FAKE_CUDA", "retain=46", 1);
    write_tuner("echo 'quarry-tune: no NVRTC compiles for it' >&2; exit 1");
    doctor_look(d, &at);
    assert_non_null(strstr(d->card[0].problem, "CUDA_ERROR_DEVICE_UNAVAILABLE (46)"));
    assert_string_equal(d->card[0].nvrtc, "");
    assert_string_equal(d->card[0].nvrtc_problem, "no NVRTC compiles for it");
    setenv("FAKE_CUDA", "init=803", 1);
    doctor_look(d, &at);
    assert_int_equal(d->cuda, 0);
    assert_int_equal(d->n_cards, 0);
    assert_non_null(strstr(d->driver_problem, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"));
    free(d);
}

static int count_lines(int action, const char *part)
{
    int n = 0;
    for (int i = 0; i < lines.n; i++) n += lines.line[i].action == action && strstr(lines.line[i].text, part);
    return n;
}

/* A driver that shows more cards than there is room for, and more on the bus than it shows. */
static void what_is_left_out_is_counted(void **state)
{
    struct doctor *d = malloc(sizeof *d);
    struct doctor_places at = {.libcuda = FAKE, .pci = dir, .program_dir = dir, .tunes = dir};
    setenv("FAKE_CUDA", "cc=52,cards=35,memory=8", 1);   /* too old: nothing more is asked about them */
    doctor_look(d, &at);
    assert_int_equal(d->n_cards, DOCTOR_CARDS);
    assert_int_equal(d->more_cards, 35 - DOCTOR_CARDS);
    struct doctor_card good = one_card(70, 80, 1530).card[0];
    for (int i = 0; i < DOCTOR_CARDS; i++) d->card[i] = good;
    d->n_pci = PCI_MOST;
    d->more_pci = 3;
    for (int i = 0; i < PCI_MOST; i++) d->pci[i] = (struct pci_device){.address = "0000:77:00.0", .device = 0x1db1, .driver = "nvidia"};
    doctor_means(d, &lines);
    assert_true(lines.n < DOCTOR_LINES);
    assert_int_equal(count_lines(1, "the driver does not show it"), 0);
    assert_int_equal(count_lines(1, "no ceilings measured"), DOCTOR_CARDS);
    free(d);
}

static void a_count_below_none_is_a_broken_driver(void **state)
{
    struct doctor *d = malloc(sizeof *d);
    struct doctor_places at = {.libcuda = FAKE, .pci = dir, .program_dir = dir, .tunes = dir};
    setenv("FAKE_CUDA", "cards=-3", 1);
    doctor_look(d, &at);
    assert_int_equal(d->n_cards, 0);
    assert_int_equal(d->cuda, 0);
    assert_string_equal(d->driver_problem, "cuDeviceGetCount: the driver counts -3 cards; install it again");
    free(d);
}

/* The tuner knows no such card and would only be puzzled. */
static void a_card_that_is_too_old_has_no_key(void **state)
{
    struct doctor *d = malloc(sizeof *d);
    struct doctor_places at = {.libcuda = FAKE, .pci = dir, .program_dir = dir, .tunes = dir, .measure = 1};
    write_tuner("touch \"$0-was-asked\"");
    setenv("FAKE_CUDA", "cc=52", 1);
    doctor_look(d, &at);
    assert_int_equal(d->card[0].card.cc, 52);
    assert_string_equal(d->card[0].card.key, "");
    assert_string_equal(d->card[0].nvrtc_problem, "");
    char asked[Q_PATH];
    assert_int_equal(path_join(asked, NULL, dir, "quarry-tune-was-asked", NULL), 0);
    assert_int_not_equal(access(asked, F_OK), 0);
    free(d);
}

static int child(const char *script, int seconds, char out[64], char why[64])
{
    char *argv[] = {NULL, "x", NULL};
    write_tuner(script);
    return doctor_child(dir, argv, seconds, out, 64, why, 64);
}

static void children_answer_fail_or_are_late(void **state)
{
    char out[64], why[64], *argv[] = {NULL, NULL};
    assert_int_equal(child("echo a; echo b >&2; echo $1; echo quarry-tune: c >&2", 10, out, why), 0);
    assert_string_equal(out, "a\nx\n");
    assert_string_equal(why, "c");
    assert_int_equal(child("exit 3", 10, out, why), 3);
    assert_string_equal(why, "");
    assert_int_equal(child("yes 0123456789", 1, out, why), -1);
    assert_string_equal(why, "quarry-tune did not answer in 1 seconds");
    assert_int_equal(strlen(out), 63);
    assert_int_equal(child("kill -9 $$", 10, out, why), -1);
    assert_int_equal(doctor_child("/nowhere", argv, 1, out, 64, why, 64), -1);
    assert_non_null(strstr(why, "/nowhere/quarry-tune: cannot start it"));
}

static int make_dir(void **state) { return dir_temp(dir, "/tmp/quarry-test-doctor-", NULL); }
static int remove_dir(void **state) { return dir_remove(dir), 0; }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_device),
        cmocka_unit_test(a_device_without_its_driver),
        cmocka_unit_test(ceilings_that_are_doubtful), cmocka_unit_test(a_card_that_the_driver_does_not_show),
        cmocka_unit_test(links_and_loading),
        cmocka_unit_test(throttled_units_are_told_and_healthy_ones_are_not),
        cmocka_unit_test(what_a_card_needs),
        cmocka_unit_test(a_driver_and_a_tuner_are_asked),
        cmocka_unit_test(what_is_left_out_is_counted),
        cmocka_unit_test(a_count_below_none_is_a_broken_driver),
        cmocka_unit_test(a_card_that_is_too_old_has_no_key),
        cmocka_unit_test(children_answer_fail_or_are_late),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
