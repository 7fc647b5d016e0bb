#include "device_open.h"
#include "cuda_api.h"
#include "pci.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int device_name_good(const char *which, int *index)
{
    *index = 0;
    if (!strcmp(which, "auto") || !strcmp(which, "cpu") || !strcmp(which, "cuda")) return 1;
    if (strncmp(which, "cuda", 4)) return 0;
    const char *at = which + 4;
    if (*at == ':') {
        if (!isdigit((unsigned char)at[1]) || strspn(at + 1, "0123456789") > 3) return 0;
        char *end;
        *index = (int)strtol(at + 1, &end, 10);
        at = end;
    }
    return !card_take_without(&(struct q_card){0}, at);
}

/* The card as if it had no tensor cores: another card, with records of its own. which: a good name. */
static int open_card(struct q_device **d, const char *which, int index, const char *libcuda, struct q_err *e)
{
    int rc = device_cuda_open_with(d, index, libcuda, e);
    if (rc || !strchr(which, ',')) return rc;
    card_take_without(&(*d)->card, strchr(which, ','));
    card_cuda_key(&(*d)->card);
    return Q_OK;
}

/* Cards that the driver counts, whether or not they can be used; -1: there is no driver. */
static int cards_shown(const char *libcuda)
{
    struct cuda_api cu;
    int n = 0;
    if (cuda_open(&cu, libcuda, NULL)) return -1;
    if (cuda_start(&cu, NULL) || cuda_count(&cu, &n, NULL)) n = 0;
    cuda_close(&cu);
    return n;
}

/* A run on the CPU where a card was meant is a hundred times slower and looks the same: so it has to be asked for. */
static int refuse(const struct pci_device *found, int n, const char *why, struct q_err *e)
{
    char where[160] = "a card";
    const char *driver = n && *found->driver ? found->driver : "none";
    if (n) snprintf(where, sizeof where, "an NVIDIA device (%s, 10de:%04x, kernel driver %s)", found->address, found->device, driver);
    return q_fail(e, Q_EUNSUP, "there is %s, but it cannot be used: %.500s (`quarry doctor` tells more; --device cpu runs on the CPU)",
                  where, why);
}

static int open_auto(struct q_device **d, int threads, const struct device_places *at, struct q_err *e)
{
    struct q_err why;
    struct pci_device found[1];
    if (!device_cuda_open_with(d, 0, at->libcuda, &why)) return Q_OK;
    int n = pci_nvidia(at->pci, found, 1);
    if (n || cards_shown(at->libcuda) > 0) return refuse(found, n, why.text, e);
    return device_cpu_open(d, threads, e);
}

/* Without a device a driver is no help: only a driver that works and shows no card has a say (a container may hide the bus and not the card). */
static int open_named(struct q_device **d, const char *which, int index, const struct device_places *at, struct q_err *e)
{
    struct q_err why;
    struct pci_device none[1];
    int rc = open_card(d, which, index, at->libcuda, &why), shown;
    if (!rc) return Q_OK;
    if (rc != Q_EMISS || pci_nvidia(at->pci, none, 0) || (shown = cards_shown(at->libcuda)) > 0) return q_fail(e, rc, "%s", why.text);
    return q_fail(e, Q_EMISS, "%.40s: no NVIDIA device is on the PCI bus%s%.300s; look at its slot, riser and power, and in a container or virtual "
                  "machine at whether it was passed in (--device cpu runs on the CPU)", which, shown < 0 ? "" : ", and ", shown < 0 ? "" : why.text);
}

int device_open_at(struct q_device **d, const char *which, int threads, const struct device_places *at, struct q_err *e)
{
    int index;
    if (!which) which = "auto";
    if (!device_name_good(which, &index))
        return q_fail(e, Q_EINPUT, "a device is auto, cpu, cuda or cuda:N (cuda:N,without=mma: without its tensor cores; "
                      "without=mma+dp4a: nor dp4a), not '%.60s'", which);
    if (!strcmp(which, "cpu")) return device_cpu_open(d, threads, e);
    if (!strcmp(which, "auto")) return open_auto(d, threads, at, e);
    return open_named(d, which, index, at, e);
}

int device_open(struct q_device **d, const char *which, int threads, struct q_err *e)
{
    return device_open_at(d, which, threads, &(struct device_places){0}, e);
}
