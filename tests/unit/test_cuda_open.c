/* Which device a name stands for, when there is a card, when there is none, and when there is one that cannot be used. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "device_open.h"
#include "files.h"
#include "pci.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE TEST_BUILD_DIR "/tests/fake_cuda/now/libcuda.so.1"
#define NOWHERE "/nowhere/libcuda.so.1"

static char bus[Q_PATH], empty[Q_PATH];

static void put(const char *address, const char *name, const char *text)
{
    char path[2 * Q_PATH];
    snprintf(path, sizeof path, "%s/%s", bus, address);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", bus, address, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static void put_device(const char *address, const char *class, const char *vendor, const char *device)
{
    put(address, "class", class);
    put(address, "vendor", vendor);
    put(address, "device", device);
}

/* A bus with a bridge, another maker's display, a card with its sound, and a card on one lane. */
static int make_bus(void **state)
{
    char path[2 * Q_PATH];
    if (dir_temp(bus, "/tmp/quarry-test-bus-", NULL) || dir_temp(empty, "/tmp/quarry-test-bus-", NULL)) return -1;
    put_device("0000:00:00.0", "0x060000", "0x8086", "0x1237");
    put_device("0000:00:02.0", "0x030000", "0x1234", "0x1111");
    put_device("0000:01:00.0", "0x030000", "0x10de", "0x1e04");
    put_device("0000:01:00.1", "0x040300", "0x10de", "0x10f7");
    put_device("0000:05:00.0", "0x030200", "0x10de", "0x1dc1");
    put("0000:05:00.0", "current_link_width", "1");
    put("0000:05:00.0", "max_link_width", "16");
    put("0000:05:00.0", "current_link_speed", "2.5 GT/s PCIe");
    put("0000:05:00.0", "max_link_speed", "8.0 GT/s PCIe");
    put("0000:01:00.0", "current_link_speed", "Unknown");
    put("0000:01:00.0", "current_link_width", "255");
    snprintf(path, sizeof path, "%s/0000:01:00.0/driver", bus);
    return symlink("../../../bus/pci/drivers/nouveau", path);
}

static int remove_bus(void **state)
{
    dir_remove(bus);
    dir_remove(empty);
    return 0;
}

static void cards_of_a_bus(void **state)
{
    struct pci_device d[4];
    assert_int_equal(pci_nvidia(bus, d, 4), 2);
    assert_string_equal(d[0].address, "0000:01:00.0");
    assert_string_equal(d[0].driver, "nouveau");
    assert_int_equal(d[0].device, 0x1e04);
    assert_int_equal(d[0].width, 0);
    assert_true(d[0].speed == 0);
    assert_string_equal(d[1].address, "0000:05:00.0");
    assert_string_equal(d[1].driver, "");
    assert_int_equal(d[1].width, 1);
    assert_int_equal(d[1].max_width, 16);
    assert_true(d[1].speed == 2.5 && d[1].max_speed == 8);
    assert_int_equal(pci_nvidia(bus, d, 1), 2);
    assert_int_equal(pci_nvidia(empty, d, 4), 0);
    assert_int_equal(pci_nvidia("/nowhere", d, 4), 0);
}

static int open_device(struct q_device **d, const char *which, const char *fake, const char *library, const char *pci, struct q_err *e)
{
    *d = NULL;
    setenv("FAKE_CUDA", fake, 1);
    return device_open_at(d, which, 1, &(struct device_places){library, pci}, e);
}

static void opens(const char *which, const char *fake, const char *library, const char *pci, const char *name)
{
    struct q_device *d;
    struct q_err e = {0};
    if (open_device(&d, which, fake, library, pci, &e)) fail_msg("%s", e.text);
    assert_string_equal(d->ops->name, name);
    d->ops->close(d);
}

static void refuses(const char *which, const char *fake, const char *library, const char *pci, const char *line)
{
    struct q_device *d;
    struct q_err e;
    assert_int_not_equal(open_device(&d, which, fake, library, pci, &e), 0);
    if (!strstr(e.text, line)) fail_msg("%s", e.text);
    assert_null(d);
    assert_null(strchr(e.text, '\n'));
}

static void auto_takes_the_card(void **state)
{
    opens("auto", "", FAKE, bus, "cuda");
    opens(NULL, "", FAKE, bus, "cuda");
    opens("auto", "", FAKE, empty, "cuda");   /* a container may show no bus */
}

static void auto_without_a_card_is_the_cpu(void **state)
{
    opens("auto", "", NOWHERE, empty, "cpu");
    opens("auto", "init=100", FAKE, empty, "cpu");
    opens("auto", "cards=0", FAKE, empty, "cpu");
}

static void auto_does_not_fall_back_from_a_card(void **state)
{
    const char *found = "there is an NVIDIA device (0000:01:00.0, 10de:1e04, kernel driver nouveau), but it cannot be used: ";
    refuses("auto", "", NOWHERE, bus, found);
    refuses("auto", "", NOWHERE, bus, "install the driver (its libcuda.so.1) (`quarry doctor` tells more; --device cpu runs on the CPU)");
    refuses("auto", "init=803", FAKE, bus, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)");
    refuses("auto", "version=10010", FAKE, bus, "the NVIDIA driver is too old: it stands for CUDA 10.1");
    refuses("auto", "retain=2", FAKE, empty, "there is a card, but it cannot be used: cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY");
    refuses("auto", "cc=35", FAKE, empty, "compute capability 3.5");
}

static void what_is_named_is_meant(void **state)
{
    opens("cpu", "", FAKE, bus, "cpu");
    opens("cuda", "", FAKE, bus, "cuda");
    opens("cuda:1", "cards=2", FAKE, bus, "cuda");
    refuses("cuda:1", "cards=1", FAKE, bus, "cuda:1 is not there: the driver shows 1 card");
    refuses("cuda", "", NOWHERE, bus, "no NVIDIA driver");
    refuses("cuda", "", NOWHERE, empty, "cuda: no NVIDIA device is on the PCI bus; look at its slot, riser and power");
    refuses("cuda:1", "", NOWHERE, "/nowhere", "cuda:1: no NVIDIA device is on the PCI bus; ");
    refuses("cuda", "init=100", FAKE, empty, "cuda: no NVIDIA device is on the PCI bus, and cuInit: CUDA_ERROR_NO_DEVICE (100)");
    refuses("cuda", "cards=0", FAKE, empty, "cuda: no NVIDIA device is on the PCI bus, and cuDeviceGetCount: CUDA_ERROR_NO_DEVICE (100)");
    refuses("cuda", "init=803", FAKE, empty, "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)");
    refuses("cuda", "cards=2,retain=46", FAKE, empty, "cuDevicePrimaryCtxRetain: CUDA_ERROR_DEVICE_UNAVAILABLE (46)");
    static const char *const bad[] = {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:99999", "cuda1", "CPU"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refuses(bad[i], "", FAKE, bus, "a device is auto, cpu, cuda or cuda:N");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_of_a_bus),
        cmocka_unit_test(auto_takes_the_card),
        cmocka_unit_test(auto_without_a_card_is_the_cpu),
        cmocka_unit_test(auto_does_not_fall_back_from_a_card),
        cmocka_unit_test(what_is_named_is_meant),
    };
    return cmocka_run_group_tests(tests, make_bus, remove_bus);
}
