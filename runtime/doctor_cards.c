/* The bus, the driver, and each card that the driver shows. */
#include "cuda_api.h"
#include "device_cuda.h"
#include "device_open.h"
#include "doctor.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static int ask(const struct cuda_api *cu, unsigned int attribute, cu_device device)
{
    int v = 0;
    return cu->cuDeviceGetAttribute(&v, attribute, device) ? 0 : v;
}

/* The driver's "0000:0A:00.0" as the bus has it. */
static void read_address(const struct cuda_api *cu, struct doctor_card *c, cu_device device)
{
    if (cu->cuDeviceGetPCIBusId(c->address, sizeof c->address, device)) c->address[0] = 0;
    for (char *p = c->address; *p; p++) *p = (char)tolower((unsigned char)*p);
}

static void read_card(const struct cuda_api *cu, struct doctor_card *c, cu_device device)
{
    if (cu->cuDeviceGetName(c->name, sizeof c->name, device)) strcpy(c->name, "?");
    read_address(cu, c, device);
    c->card.cc = 10 * ask(cu, CU_CC_MAJOR, device) + ask(cu, CU_CC_MINOR, device);
    c->card.sms = ask(cu, CU_MULTIPROCESSORS, device);
    c->card.l2 = ask(cu, CU_L2_BYTES, device) / 1024;
    c->card.bus = ask(cu, CU_MEMORY_BUS_WIDTH, device);
    c->card.smem = ask(cu, CU_SHARED_BYTES_OPTIN, device) / 1024;
    card_cuda_key(&c->card);
    c->clock_mhz = ask(cu, CU_CLOCK_RATE, device) / 1000;
    c->display = ask(cu, CU_KERNEL_EXEC_TIMEOUT, device);
    if (cu->cuDeviceTotalMem(&c->total, device)) c->total = 0;
}

/* Opens it as a run would, and closes it again. */
static void try_card(struct doctor_card *c, const char *libcuda)
{
    struct q_device *d;
    struct q_err e;
    size_t total;
    if (device_cuda_open_with(&d, c->index, libcuda, &e)) {
        snprintf(c->problem, sizeof c->problem, "%.399s", e.text);
        return;
    }
    struct cuda *cuda = (struct cuda *)d;
    if (cuda->api.cuMemGetInfo(&c->free, &total)) c->free = 0;
    d->ops->close(d);
}

static int start_driver(struct cuda_api *cu, struct doctor *d, const char *libcuda)
{
    struct q_err e;
    int n = 0, rc = cuda_open(cu, libcuda, &e);
    if (!rc) rc = cuda_start(cu, &e);
    if (!rc) rc = cuda_count(cu, &n, &e);
    if (rc) {
        snprintf(d->driver_problem, sizeof d->driver_problem, "%.399s", e.text);
        return 0;
    }
    d->cuda = cu->version;
    return n;
}

static void keep(int *n, int *more, int found, int most)
{
    *n = found < most ? found : most;
    *more = found - *n;
}

void doctor_look(struct doctor *d, const struct doctor_places *at)
{
    struct cuda_api cu;
    memset(d, 0, sizeof *d);
    keep(&d->n_pci, &d->more_pci, pci_nvidia(at->pci, d->pci, PCI_MOST), PCI_MOST);
    cuda_driver_version(d->driver, sizeof d->driver, NULL);
    keep(&d->n_cards, &d->more_cards, start_driver(&cu, d, at->libcuda), DOCTOR_CARDS);
    for (int i = 0; i < d->n_cards; i++) {
        struct doctor_card *c = &d->card[i];
        cu_device device;
        c->index = i;
        if (cu.cuDeviceGet(&device, i)) continue;
        read_card(&cu, c, device);
        try_card(c, at->libcuda);
        if (!c->problem[0] && at->measure) doctor_copy(c, at->libcuda);
        if (c->card.cc >= CARD_OLDEST_CC) doctor_ask_tuner(c, d->cuda, at);
        else c->card.key[0] = 0;   /* no program takes such a key */
    }
    cuda_close(&cu);
}
