/* Which NVRTC compiles for a card under a driver, and what to install where none does. Pure: see nvrtc.h. */
#include "nvrtc.h"
#include "runtime/card.h"
#include <stdio.h>
#include <string.h>

static int has_arch(const struct nvrtc *v, int cc)
{
    for (int i = 0; i < v->n_archs; i++)
        if (v->archs[i] == cc) return 1;
    return 0;
}

/* NULL: it serves. Within a CUDA major a driver loads objects of newer minor versions too. */
static const char *refusal(const struct nvrtc *v, int driver, int cc)
{
    if (driver && v->major > driver / 1000) return "is newer than the driver";
    if (!v->n_archs) return "does not tell for which cards it compiles";
    return has_arch(v, cc) ? NULL : "does not know the card";
}

static int is_newer(const struct nvrtc *a, const struct nvrtc *b) { return a->major != b->major ? a->major > b->major : a->minor > b->minor; }

/* --- what to do -------------------------------------------------------------------------------------------------------- */

/* CUDA 11.8 ends at sm_90; 12.9 goes from sm_50 to sm_121 but for sm_88 and sm_110, which came with 13. */
static void advise(char *dst, size_t cap, int driver, int cc)
{
    int major = driver / 1000;
    if (!card_cuda_exists(cc)) {
        snprintf(dst, cap, "no card has compute capability %d.%d", cc / 10, cc % 10);
        return;
    }
    const char *wheel = cc == 88 || cc == 110 || cc > 121 ? "nvidia-cuda-nvrtc"
                      : major == 11 && cc <= 90           ? "nvidia-cuda-nvrtc-cu11"
                                                          : "nvidia-cuda-nvrtc-cu12==12.9.86";
    int needs = strstr(wheel, "cu11") ? 11 : strstr(wheel, "cu12") ? 12 : 13;
    if (driver && major < 11) snprintf(dst, cap, "the driver is too old: install one of the 470 series or newer");
    else if (driver && major < needs) snprintf(dst, cap, "install a driver of CUDA %d or newer, then: pip install %s", needs, wheel);
    else snprintf(dst, cap, "pip install %s, or name one: --nvrtc PATH", wheel);
}

static void list_refused(char *dst, size_t cap, const struct nvrtc_list *l, int driver, int cc)
{
    size_t n = 0;
    dst[0] = 0;
    for (int i = 0; i < l->n && n + 1 < cap; i++)
        n += (size_t)snprintf(dst + n, cap - n, "%s%d.%d (%.150s) %s", i ? ", " : "found ", l->v[i].major, l->v[i].minor, l->v[i].path,
                              refusal(&l->v[i], driver, cc));
    if (l->refused[0]) snprintf(dst, cap, "--nvrtc %.200s: %s", l->given, l->refused);
    else if (!l->n) snprintf(dst, cap, "none was found");
}

int nvrtc_choose(const struct nvrtc_list *l, int driver, int cc, const struct nvrtc **chosen, struct q_err *e)
{
    char found[600], advice[160], speaks[40] = "";
    *chosen = NULL;
    for (int i = 0; i < l->n; i++)
        if (!refusal(&l->v[i], driver, cc) && (!*chosen || is_newer(&l->v[i], *chosen))) *chosen = &l->v[i];
    if (*chosen) return Q_OK;
    list_refused(found, sizeof found, l, driver, cc);
    advise(advice, sizeof advice, driver, cc);
    if (driver) snprintf(speaks, sizeof speaks, " under a driver of CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    return q_fail(e, Q_EMISS, "no NVRTC compiles for sm_%d%s: %s; %s", cc, speaks, found, advice);
}
