/* What was found means, and what to do about it. Nothing is looked at here but the struct. */
#include "doctor.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { THROTTLED = 4, PASCAL_FIRST = 0x15f0, VOLTA_LAST = 0x1dff };

static void add(struct doctor_lines *out, int action, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void add(struct doctor_lines *out, int action, const char *fmt, ...)
{
    va_list ap;
    if (out->n == DOCTOR_LINES) return;
    va_start(ap, fmt);
    vsnprintf(out->line[out->n].text, DOCTOR_TEXT, fmt, ap);
    va_end(ap);
    out->line[out->n++].action = action;
}

/* --- the bus and the driver ------------------------------------------------------------------------------------------------- */

static const struct doctor_card *card_at(const struct doctor *d, const char *address)
{
    for (int i = 0; i < d->n_cards; i++)
        if (!strcmp(d->card[i].address, address)) return &d->card[i];
    return NULL;
}

/* By the ids that Pascal and Volta have: no later driver shows them, and none before sm_60 matters here. */
static const char *driver_for(unsigned device)
{
    if (device >= PASCAL_FIRST && device <= VOLTA_LAST) return "of the 580 series, the last for Pascal and Volta";
    return device < PASCAL_FIRST ? "that knows it; compute capability 6.0 is the least that quarry runs on" : "of the 580 series or newer";
}

static void explain_hidden(const struct doctor *d, const struct pci_device *p, struct doctor_lines *out)
{
    if (!strcmp(p->driver, "nouveau") || !strcmp(p->driver, "nova"))
        add(out, 1, "%s: the system's driver %s holds it; install NVIDIA's driver %s (it takes nouveau's place after a restart)", p->address,
            p->driver, driver_for(p->device));
    else if (!strncmp(p->driver, "vfio", 4))
        add(out, 1, "%s: it is given to a virtual machine (%s); quarry can use it there", p->address, p->driver);
    else if (!d->cuda && strcmp(p->driver, "nvidia"))
        add(out, 1, "%s: no driver holds it; install NVIDIA's driver %s", p->address, driver_for(p->device));
    else if (!d->cuda)
        add(out, 1, "%s: the kernel driver holds it and the library does not work: %.250s", p->address, d->driver_problem);
    else if (!d->more_cards)   /* else it may be one of those that were not looked at */
        add(out, 1, "%s: the driver does not show it; look at CUDA_VISIBLE_DEVICES, and at `dmesg | grep NVRM` for power, a riser, or "
            "\"Above 4G decoding\" in the firmware", p->address);
}

static void explain_bus(const struct doctor *d, struct doctor_lines *out)
{
    if (!d->n_pci && !d->n_cards) {
        add(out, 0, "no NVIDIA device: quarry runs on the CPU");
        return;
    }
    for (int i = 0; i < d->n_pci; i++)
        if (!card_at(d, d->pci[i].address)) explain_hidden(d, &d->pci[i], out);
}

/* --- a card ------------------------------------------------------------------------------------------------------------------- */

static void explain_link(const struct doctor *d, const struct doctor_card *c, struct doctor_lines *out)
{
    for (int i = 0; i < d->n_pci; i++) {
        const struct pci_device *p = &d->pci[i];
        if (strcmp(p->address, c->address) || !p->width || p->width >= p->max_width) continue;
        add(out, 0, "cuda:%d: the link has %d of %d lanes (a riser, or the slot): loading and splitting a model are slower, answering is not",
            c->index, p->width, p->max_width);
    }
    if (c->to_card > 0) add(out, 0, "cuda:%d: 9.5 GB of weights (9B, q8_0) load in %.0f s at best", c->index, 9.5e9 / c->to_card + 0.5);
}

/* Operations a clock and multiprocessor that the silicon was made for, a multiply-add is two. 0: it has no such unit. What mma.sync reaches
 * on sm_90 is about half of this table, so a throttled card is one far below it. */
static const struct silicon {
    int cc, dp4a, hfma2, ffma, mma_f16, mma_i8;
} silicon[] = {
    {60, 0, 256, 128, 0, 0},          {61, 1024, 0, 256, 0, 0},         {62, 1024, 512, 256, 0, 0},       {70, 512, 256, 128, 1024, 0},
    {72, 512, 256, 128, 1024, 0},     {75, 512, 256, 128, 512, 2048},   {80, 512, 512, 128, 2048, 4096},  {86, 512, 256, 256, 512, 2048},
    {87, 512, 256, 256, 1024, 4096},  {89, 512, 256, 256, 512, 2048},   {90, 512, 512, 256, 4096, 8192},  {100, 512, 512, 256, 4096, 8192},
    {103, 512, 512, 256, 4096, 8192}, {120, 512, 256, 256, 512, 2048},  {121, 512, 256, 256, 512, 2048},
};

static const struct silicon *silicon_of(int cc)
{
    for (size_t i = 0; i < sizeof silicon / sizeof *silicon; i++)
        if (silicon[i].cc == cc) return &silicon[i];
    return NULL;
}

/* How many times too slow a unit is, as a power of two; 1 when it is not, or cannot be told. */
static int slowdown(const struct doctor_card *c, double measured, int made_for)
{
    double expected = (double)made_for * c->card.sms * c->clock_mhz * 1e6;
    int times = 1;
    if (!(measured > 0) || !(expected > 0)) return 1;
    while (times < 1024 && expected / measured > times * 1.42) times *= 2;   /* to the nearest power */
    return times >= THROTTLED ? times : 1;
}

static const char *best_int8(const struct doctor_card *c)
{
    const struct q_roofs *r = &c->roofs;
    if (r->mma_i8 > r->dp4a && r->mma_i8 > r->mma_f16) return "mma_i8";
    if (r->mma_f16 > r->dp4a) return "mma_f16";
    return r->dp4a > r->hfma2 / 2 ? "dp4a" : "hfma2";
}

/* Fuses, or the maker, took a unit away: the tuner goes round it by itself. */
static void explain_rates(const struct doctor_card *c, struct doctor_lines *out)
{
    const struct silicon *s = silicon_of(c->card.cc);
    const struct q_roofs *r = &c->roofs;
    if (!s) return;
    const struct { const char *what; double rate; int made_for; } unit[] = {
        {"tensor cores (fp16)", r->mma_f16, s->mma_f16}, {"tensor cores (int8)", r->mma_i8, s->mma_i8}, {"dp4a", r->dp4a, s->dp4a},
        {"half2 multiply-adds", r->hfma2, s->hfma2},     {"fp32 multiply-adds", r->ffma, s->ffma},
    };
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
        int times = slowdown(c, unit[i].rate, unit[i].made_for);
        if (times > 1)
            add(out, 0, "cuda:%d: %s at 1/%d of the rate: %s path; no software unlocks this", c->index, unit[i].what, times, best_int8(c));
    }
    if (r->dp4a > 0 || r->mma_i8 > 0 || r->hfma2 > 0)
        add(out, 0, "cuda:%d: prompts are read by %s where the tuner finds nothing better", c->index, best_int8(c));
}

static void explain_card(const struct doctor *d, const struct doctor_card *c, struct doctor_lines *out)
{
    if (c->card.cc < CARD_OLDEST_CC) {
        add(out, 0, "cuda:%d: compute capability %d.%d is too old for quarry, which needs 6.0", c->index, c->card.cc / 10, c->card.cc % 10);
        return;
    }
    if (c->problem[0]) add(out, 1, "cuda:%d: %.300s", c->index, c->problem);
    if (!c->nvrtc[0])
        add(out, 1, "cuda:%d: kernels cannot be built here: %.300s", c->index,
            *c->nvrtc_problem ? c->nvrtc_problem : "quarry-tune does not tell why");
    if (c->card.cc == 60) add(out, 0, "cuda:%d: sm_60 has no dp4a: products go through half2 and fp32", c->index);
    if (c->card.cc <= 72 && d->cuda)
        add(out, 0, "cuda:%d: keep the driver at the 580 series, the last for this card, and NVRTC at 12.x or older", c->index);
    if (c->display) add(out, 0, "cuda:%d: a screen hangs on it: a kernel that runs for seconds is ended", c->index);
    explain_link(d, c, out);
    explain_rates(c, out);
    if (c->roofs.doubtful)
        add(out, 0, "cuda:%d: something else used the card, or held it back, while %d of its ceilings were measured: they may be too low, and are "
                    "measured again the next time", c->index, c->roofs.doubtful);
    if (!c->problem[0] && !(c->roofs.read > 0))
        add(out, 1, "cuda:%d: no ceilings measured (%.200s); `quarry tune` measures them", c->index, c->roofs_problem);
}

void doctor_means(const struct doctor *d, struct doctor_lines *out)
{
    out->n = 0;
    explain_bus(d, out);
    for (int i = 0; i < d->n_cards; i++) explain_card(d, &d->card[i], out);
}
