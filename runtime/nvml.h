/* What the driver tells of a card while it works: clocks, power, heat and what slows it down. libnvidia-ml.so.1, opened with dlopen; it is
 * part of the driver, but not of every container, and a card may keep some of it to itself. Nothing depends on it: measurements are noted
 * with it where it is there.
 *
 * Prototypes are our own. A value that the card does not tell is 0. */
#ifndef Q_NVML_H
#define Q_NVML_H

#include "err.h"
#include <stddef.h>

struct nvml;

struct nvml_state {
    int sm_mhz, mem_mhz, watts, celsius;
    unsigned long long reasons;      /* why clocks are lower than they could be, of enum nvml_reason */
};

enum nvml_reason {
    NVML_POWER = 0x4,                /* at its power limit: usual where the limit is low, and no accident */
    NVML_SLOWDOWN = 0x8,             /* by hardware: heat, or a power brake */
    NVML_HEAT = 0x20,
    NVML_HEAT_HARD = 0x40,
    NVML_BRAKE = 0x80,               /* the supply asks for less */
};

/* library: instead of libnvidia-ml.so.1, or NULL. address: the card's on the PCI bus, "0000:01:00.0". Q_EMISS: no library, or it knows no
 * such card; Q_EUNSUP: it lacks a function. */
int nvml_open(struct nvml **n, const char *library, const char *address, struct q_err *e);
void nvml_close(struct nvml *n);       /* NULL is fine */
/* Takes well under a millisecond. */
void nvml_read(const struct nvml *n, struct nvml_state *s);
/* Whether what was just measured was slowed by what may be over in a moment: heat or a brake. */
int nvml_is_slowed(const struct nvml_state *s);
/* "power,heat"; "" for no reason that is known here. */
void nvml_words(const struct nvml_state *s, char *dst, size_t cap);

#endif
