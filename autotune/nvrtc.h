/* NVRTC, the CUDA compiler as a library: which are on this machine, and which of them serves a card under a driver.
 *
 * No one version serves all: those of CUDA 13 know no card before sm_75, and a driver loads no object of a CUDA major beyond its own.
 * So every library that is found is asked for its version and its architectures, and one is chosen for each card. */
#ifndef Q_NVRTC_H
#define Q_NVRTC_H

#include "runtime/files.h"

enum { NVRTC_ARCHS = 64, NVRTC_MOST = 32, NVRTC_PREFIXES = 4 };

struct nvrtc {
    char path[Q_PATH];
    int major, minor;
    int archs[NVRTC_ARCHS], n_archs;     /* 60, 61, ..; n 0: it does not tell (before 11.2) */
};

struct nvrtc_list {
    struct nvrtc *v;                     /* owned: [NVRTC_MOST] */
    int n;
    char given[Q_PATH];                  /* --nvrtc, "" if it was not given */
    char refused[300];                   /* of a given one: why it is none */
};

/* Where else than in the system's folders: all may be NULL. */
struct nvrtc_places {
    const char *given;                   /* --nvrtc PATH, a file or a folder: nothing else is looked at */
    const char *home;                    /* its ~/.local holds what pip installs for a user */
    const char *prefix[NVRTC_PREFIXES];  /* virtual environments: their lib/python3*\/site-packages */
};

/* All that can be opened here, each once. */
int nvrtc_search(struct nvrtc_list *l, const struct nvrtc_places *places, struct q_err *e);
void nvrtc_list_free(struct nvrtc_list *l);
/* The CUDA version that the driver here speaks: 13000 for 13.0; 0 without one. */
int nvrtc_driver(void);
/* The newest that compiles for sm_`cc` and whose objects a driver of CUDA version `driver` (0: any) loads; NULL and Q_EMISS with one line on
 * what was found, why each does not serve and what to install. A pure function. */
int nvrtc_choose(const struct nvrtc_list *l, int driver, int cc, const struct nvrtc **chosen, struct q_err *e);

/* --- nvrtc_compile.c: the life of a compiling child, `quarry-tune --compile LIBRARY IN.cu OUT OPTION..` ---
 * Writes OUT, a cubin for --gpu-architecture=sm_NN and PTX for compute_NN; prints the compiler's log, which on success tells registers
 * and spills (build.c reads them). Returns the exit status. */
int nvrtc_child(int n, char **argv);

#endif
