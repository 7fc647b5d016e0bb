#define _GNU_SOURCE
#include "compiler.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int self_path(char path[Q_PATH], struct q_err *e)
{
    ssize_t n = readlink("/proc/self/exe", path, Q_PATH - 1);
    if (n <= 0) return q_fail(e, Q_EIO, "this program's own path is not known: /proc/self/exe");
    path[n] = 0;
    return Q_OK;
}

/* A driver of CUDA 12 or newer loads what any NVRTC of 12 makes; a newer one is taken only for cards that those do not know. */
static int choose(const struct nvrtc_list *l, int cc, int elsewhere, const struct nvrtc **v, struct q_err *e)
{
    if (!elsewhere) return nvrtc_choose(l, nvrtc_driver(), cc, v, e);
    return nvrtc_choose(l, 12000, cc, v, NULL) ? nvrtc_choose(l, 0, cc, v, e) : Q_OK;
}

static int find_nvrtc(struct compiler *c, int cc, const struct compiler_given *given, struct q_err *e)
{
    struct nvrtc_list l;
    const struct nvrtc *v;
    int rc = nvrtc_search(&l, &given->nvrtc, e);
    if (!rc) rc = choose(&l, cc, given->elsewhere, &v, e);
    if (!rc) rc = self_path(c->self, e);
    if (!rc) {
        strcpy(c->program, v->path);
        snprintf(c->version, sizeof c->version, "NVRTC %d.%d", v->major, v->minor);
        snprintf(c->brief, sizeof c->brief, "%.60s", c->version);
    }
    nvrtc_list_free(&l);
    return rc;
}

int compiler_find(struct compiler *c, const struct q_card *card, const struct compiler_given *given, struct q_err *e)
{
    return card->kind == Q_CARD_CUDA ? find_nvrtc(c, card->cc, given, e) : cc_find(c, given->cc, e);
}
