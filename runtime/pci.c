#define _GNU_SOURCE
#include "pci.h"
#include "files.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NVIDIA = 0x10de, VGA = 0x0300, THREE_D = 0x0302, PATH = 4096 };

/* The first line of ROOT/ADDRESS/NAME, "" if it cannot be read. */
static void read_line(const char *root, const char *address, const char *name, char *line, size_t n)
{
    char path[PATH];
    line[0] = 0;
    snprintf(path, sizeof path, "%s/%s/%s", root, address, name);
    char *text;
    size_t bytes;
    if (file_read(path, 4096, &text, &bytes, NULL)) return;
    snprintf(line, n, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
}

static unsigned read_hex(const char *root, const char *address, const char *name)
{
    char line[32];
    read_line(root, address, name, line, sizeof line);
    return (unsigned)strtoul(line, NULL, 16);
}

/* "8.0 GT/s PCIe", "16", "Unknown": the number, 0 if there is none. */
static double read_number(const char *root, const char *address, const char *name)
{
    char line[64];
    read_line(root, address, name, line, sizeof line);
    double v = strtod(line, NULL);
    return v > 0 && v < 255 ? v : 0;   /* 255 lanes: a device that does not say */
}

/* The last part of the link ROOT/ADDRESS/driver. */
static void read_driver(const char *root, const char *address, char *driver, size_t n)
{
    char path[PATH], target[PATH];
    snprintf(path, sizeof path, "%s/%s/driver", root, address);
    ssize_t got = readlink(path, target, sizeof target - 1);
    target[got > 0 ? got : 0] = 0;
    const char *slash = strrchr(target, '/');
    snprintf(driver, n, "%.31s", slash ? slash + 1 : target);
}

/* "0000:01:00.0": domain (of 4 digits or more), bus, device, function. What has another name is no device. */
static int is_address(const char *name)
{
    unsigned domain, bus, device, function;
    int end = 0;
    if (strspn(name, "0123456789abcdef:.") != strlen(name)) return 0;
    return sscanf(name, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) == 4 && !name[end];
}

static int is_card(const char *root, const char *address)
{
    unsigned class = read_hex(root, address, "class") >> 8;
    return (class == VGA || class == THREE_D) && read_hex(root, address, "vendor") == NVIDIA;
}

static void fill(struct pci_device *d, const char *root, const char *address)
{
    snprintf(d->address, sizeof d->address, "%.15s", address);
    d->device = read_hex(root, address, "device");
    read_driver(root, address, d->driver, sizeof d->driver);
    d->width = (int)read_number(root, address, "current_link_width");
    d->max_width = (int)read_number(root, address, "max_link_width");
    d->speed = read_number(root, address, "current_link_speed");
    d->max_speed = read_number(root, address, "max_link_speed");
}

int pci_nvidia(const char *root, struct pci_device *out, int most)
{
    struct dirent **names;
    int found = 0;
    if (!root) root = "/sys/bus/pci/devices";
    int n = scandir(root, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *address = names[i]->d_name;
        if (is_address(address) && is_card(root, address)) {
            if (found < most) fill(&out[found], root, address);
            found++;
        }
        free(names[i]);
    }
    if (n >= 0) free(names);
    return found;
}
