/* `quarry doctor`: prints what doctor_look found and what it means, one line each. */
#include "cmd.h"
#include "cli.h"
#include "doctor.h"
#include "shared_object.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_JSON = CLI_OWN, OPT_QUICK, OPT_PCI, OPT_LIBCUDA };

struct options {
    struct q_cli cli;
    struct doctor_places places;
    char libcuda[Q_PATH];      /* where places.libcuda may point */
    int json;
};

static void help(void)
{
    printf("usage: quarry doctor [--json] [--quick]\n\n"
           "Looks for NVIDIA cards, what stands between them and quarry, and what to do about it.\n\n"
           "  --json              one JSON object on one line\n"
           "  --quick             measure nothing: no copies, no ceilings\n"
           "  --tunes DIR         look for measured ceilings in DIR first\n"
           "  --pci DIR           look at DIR instead of /sys/bus/pci/devices\n"
           "  --libcuda FILE      open FILE instead of libcuda.so.1\n");
}

static const struct option longs[] = {{"json", 0, 0, OPT_JSON}, {"quick", 0, 0, OPT_QUICK},     {"tunes", 1, 0, CLI_TUNES},
                                      {"pci", 1, 0, OPT_PCI},   {"libcuda", 1, 0, OPT_LIBCUDA}, {"version", 0, 0, CLI_VERSION},
                                      {"help", 0, 0, CLI_HELP}, {0, 0, 0, 0}};

/* 0, or the exit status + 1. */
static int parse(struct options *o, int argc, char **argv)
{
    memset(o, 0, sizeof *o);
    cli_start(&o->cli, "doctor");
    o->places.measure = 1;
    o->places.program_dir = o->cli.program_dir;
    for (int opt; (opt = cli_next(&o->cli, argc, argv, ":h", longs)) != -1;) {
        switch (opt) {
        case CLI_WRONG: return 3;
        case OPT_JSON: o->json = 1; break;
        case OPT_QUICK: o->places.measure = 0; break;
        case OPT_PCI: o->places.pci = optarg; break;
        case OPT_LIBCUDA: o->places.libcuda = shared_object_named(optarg, o->libcuda); break;
        case CLI_TUNES:
            if (cli_option(&o->cli, opt, optarg)) return 3;
            o->places.tunes = optarg;
            break;
        case 'h':
        case CLI_HELP: help(); return 1;
        case CLI_VERSION: cli_version(); return 1;
        }
    }
    if (o->places.libcuda && !*o->places.libcuda) return cli_usage(&o->cli, "--libcuda expects a file, not ''") + 1;
    return optind < argc ? cli_stray(&o->cli, argv[optind], "") + 1 : 0;
}

/* --- text --------------------------------------------------------------------------------------------------------------------- */

static double gib(size_t bytes) { return (double)bytes / 1073741824; }

static void print_pci(const struct pci_device *p)
{
    printf("bus      %s 10de:%04x, kernel driver %s", p->address, p->device, *p->driver ? p->driver : "none");
    if (p->width) printf(", link x%d at %.1f GT/s (at most x%d, %.1f)", p->width, p->speed, p->max_width, p->max_speed);
    printf("\n");
}

static void print_bus(const struct doctor *d)
{
    if (!d->n_pci && !d->n_cards) puts("bus      no NVIDIA device on the PCI bus");
    for (int i = 0; i < d->n_pci; i++) print_pci(&d->pci[i]);
    if (d->more_pci) printf("bus      and %d more\n", d->more_pci);
}

/* Without a device a driver would be no help: why the usual one is not there, and how to have it, is then beside the point. */
static void print_driver(const struct doctor *d, int named)
{
    if (!d->cuda && !d->n_pci && !*d->driver && !named) puts("driver   none");
    else if (d->cuda) printf("driver   %s%sCUDA %d.%d\n", d->driver, *d->driver ? ", " : "", d->cuda / 1000, d->cuda % 1000 / 10);
    else printf("driver   %s\n", d->driver_problem);
}

static void print_rate(const char *what, double rate, const char *unit, int *n)
{
    if (rate > 0) printf("%s%s %.3g %s", (*n)++ ? ", " : "", what, rate / (*unit == 'G' ? 1e9 : 1e12), unit);
}

static void print_roofs(const struct doctor_card *c)
{
    const struct q_roofs *r = &c->roofs;
    int n = 0;
    printf("cuda:%-4dceilings: ", c->index);
    print_rate("read", r->read, "GB/s", &n);
    print_rate("dp4a", r->dp4a, "TOPS", &n);
    print_rate("hfma2", r->hfma2, "TFLOP/s", &n);
    print_rate("ffma", r->ffma, "TFLOP/s", &n);
    print_rate("mma_f16", r->mma_f16, "TFLOP/s", &n);
    print_rate("mma_i8", r->mma_i8, "TOPS", &n);
    printf("%s\n", n ? "" : "not measured");
}

static void print_card(const struct doctor_card *c)
{
    printf("cuda:%-4d%s (sm_%d) at %s, %d SMs", c->index, c->name, c->card.cc, *c->address ? c->address : "?", c->card.sms);
    if (c->clock_mhz) printf(" of %d MHz", c->clock_mhz);
    printf(", %.1f GiB", gib(c->total));
    if (c->free) printf(" (%.1f free)", gib(c->free));
    printf("\n");
    if (c->card.key[0]) printf("cuda:%-4dcard %s\n", c->index, c->card.key);
    if (c->nvrtc[0]) printf("cuda:%-4dNVRTC %s\n", c->index, c->nvrtc);
    if (c->to_card > 0) printf("cuda:%-4dhost copy, pinned: %.2f GB/s to the card, %.2f GB/s back\n", c->index, c->to_card / 1e9, c->from_card / 1e9);
    if (!c->problem[0]) print_roofs(c);
}

/* named: the driver's library is one that the user named. */
static void print_text(const struct doctor *d, const struct doctor_lines *lines, int named)
{
    print_bus(d);
    print_driver(d, named);
    for (int i = 0; i < d->n_cards; i++) print_card(&d->card[i]);
    if (d->more_cards) printf("cuda:%d.. and %d more cards, not looked at\n", d->n_cards, d->more_cards);
    for (int action = 0; action <= 1; action++)
        for (int i = 0; i < lines->n; i++)
            if (lines->line[i].action == action) printf("%-9s%s\n", action ? "to do" : "means", lines->line[i].text);
}

/* --- JSON: bytes, bytes and operations a second; fields are added, never renamed -------------------------------------------------- */

#define NUM(o, name, v) cJSON_AddNumberToObject(o, name, (double)(v))
#define STR(o, name, v) cJSON_AddStringToObject(o, name, v)

static void add_pci(cJSON *to, const struct pci_device *p)
{
    cJSON *o = cJSON_CreateObject();
    STR(o, "address", p->address);
    NUM(o, "device", p->device);
    STR(o, "driver", p->driver);
    NUM(o, "link_width", p->width);
    NUM(o, "link_width_max", p->max_width);
    NUM(o, "link_gts", p->speed);
    NUM(o, "link_gts_max", p->max_speed);
    cJSON_AddItemToArray(to, o);
}

static void add_roofs(cJSON *to, const struct q_roofs *r)
{
    const struct { const char *name; double v; } rows[] = {{"read", r->read}, {"dp4a", r->dp4a},       {"hfma2", r->hfma2},
                                                           {"ffma", r->ffma}, {"mma_f16", r->mma_f16}, {"mma_i8", r->mma_i8}};
    cJSON *o = cJSON_AddObjectToObject(to, "ceilings");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].v > 0) NUM(o, rows[i].name, rows[i].v);
    if (r->doubtful) NUM(o, "doubtful", r->doubtful);
}

static void add_card(cJSON *to, const struct doctor_card *c)
{
    cJSON *o = cJSON_CreateObject();
    NUM(o, "index", c->index);
    STR(o, "name", c->name);
    STR(o, "address", c->address);
    STR(o, "card", c->card.key);
    NUM(o, "compute_capability", c->card.cc);
    NUM(o, "multiprocessors", c->card.sms);
    NUM(o, "clock_mhz", c->clock_mhz);
    NUM(o, "memory", c->total);
    NUM(o, "memory_free", c->free);
    STR(o, "problem", c->problem);
    STR(o, "nvrtc", c->nvrtc);
    STR(o, "nvrtc_problem", c->nvrtc_problem);
    NUM(o, "copy_to_card", c->to_card);
    NUM(o, "copy_from_card", c->from_card);
    add_roofs(o, &c->roofs);
    cJSON_AddItemToArray(to, o);
}

static int print_json(const struct doctor *d, const struct doctor_lines *lines)
{
    cJSON *o = cJSON_CreateObject(), *pci = cJSON_AddArrayToObject(o, "pci"), *driver = cJSON_AddObjectToObject(o, "driver");
    cJSON *cards = cJSON_AddArrayToObject(o, "cards"), *text[] = {cJSON_AddArrayToObject(o, "means"), cJSON_AddArrayToObject(o, "to_do")};
    STR(driver, "version", d->driver);
    NUM(driver, "cuda", d->cuda);
    STR(driver, "problem", d->driver_problem);
    for (int i = 0; i < d->n_pci; i++) add_pci(pci, &d->pci[i]);
    for (int i = 0; i < d->n_cards; i++) add_card(cards, &d->card[i]);
    NUM(o, "pci_more", d->more_pci);
    NUM(o, "cards_more", d->more_cards);
    for (int i = 0; i < lines->n; i++) cJSON_AddItemToArray(text[lines->line[i].action], cJSON_CreateString(lines->line[i].text));
    char *line = cJSON_PrintUnformatted(o);
    cJSON_Delete(o);
    if (line) puts(line);
    free(line);
    return line ? 0 : 1;
}

int cmd_doctor(int argc, char **argv)
{
    struct options o;
    struct doctor *d = malloc(sizeof *d);
    struct doctor_lines *lines = malloc(sizeof *lines);
    int rc = parse(&o, argc, argv);
    if (rc || !d || !lines) {
        rc = rc ? rc - 1 : 1;
    } else {
        doctor_look(d, &o.places);
        doctor_means(d, lines);
        rc = o.json ? print_json(d, lines) : (print_text(d, lines, o.places.libcuda != NULL), 0);
    }
    free(d);
    free(lines);
    return rc;
}
