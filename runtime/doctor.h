/* `quarry doctor`: what NVIDIA devices a machine has, what stands between them and quarry, and what to do about each.
 *
 * doctor_cards.c asks the bus and the driver, doctor_copy.c measures the link, doctor_child.c asks quarry-tune, which knows the compilers
 * and measures ceilings; doctor_means.c draws conclusions, a pure function of what was found. cmd_doctor.c prints.
 */
#ifndef Q_DOCTOR_H
#define Q_DOCTOR_H

#include "card.h"
#include "pci.h"
#include "roof.h"
#include <stddef.h>

enum { DOCTOR_CARDS = 32, DOCTOR_TEXT = 400, DOCTOR_LINES = 500 };

struct doctor_card {
    int index;                         /* cuda:N */
    char name[64], address[16];        /* on the bus, as pci_device has it */
    struct q_card card;
    int clock_mhz;                     /* of the multiprocessors at most; 0: the driver does not say */
    size_t total, free;                /* bytes; free 0 when `problem` */
    int display;                       /* 1: kernels have a time limit, a screen hangs on it */
    char problem[DOCTOR_TEXT];         /* why it cannot be used; "": it can */
    double to_card, from_card;         /* bytes a second through pinned memory; 0: not measured */
    char nvrtc[DOCTOR_TEXT];           /* the compiler that serves it, or "" and: */
    char nvrtc_problem[DOCTOR_TEXT];
    struct q_roofs roofs;              /* 0: not measured */
    char roofs_problem[DOCTOR_TEXT];   /* why nothing is measured */
};

struct doctor {
    struct pci_device pci[PCI_MOST];
    int n_pci, more_pci;               /* more: there are, and are not in the array */
    char driver[32];                   /* "580.159.03", "" if the system does not say */
    int cuda;                          /* version that the driver speaks, 13000; 0: it does not work, and: */
    char driver_problem[DOCTOR_TEXT];
    struct doctor_card card[DOCTOR_CARDS];
    int n_cards, more_cards;
};

struct doctor_places {
    const char *libcuda, *pci;         /* as device_open.h has them */
    const char *program_dir;           /* where quarry-tune lies */
    const char *tunes;                 /* --tunes DIR or NULL */
    int measure;                       /* 1: also what takes time: copies, ceilings */
};

/* Fills in all that can be found; what cannot is a problem's line in it. */
void doctor_look(struct doctor *d, const struct doctor_places *at);
void doctor_copy(struct doctor_card *c, const char *libcuda);
void doctor_ask_tuner(struct doctor_card *c, int cuda, const struct doctor_places *at);
/* Runs quarry-tune with these arguments (ended by NULL; argv[0] is set). Its standard output in `out`; returns its exit status, -1 when it
 * could not run or took longer than `seconds`. `why` is its last line of stderr, or what went wrong. */
int doctor_child(const char *program_dir, char **argv, int seconds, char *out, size_t n, char *why, size_t why_n);

/* What it means, and (action 1) what to do: one line each. */
struct doctor_lines {
    struct { char text[DOCTOR_TEXT]; int action; } line[DOCTOR_LINES];
    int n;
};
void doctor_means(const struct doctor *d, struct doctor_lines *out);

#endif
