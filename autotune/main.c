/* quarry-tune: kernel sets made, measured, listed and carried about (verbs.h). `--measure`, `--compile` and `--gate` make it
 * its own measuring, compiling and judging child. */
#include "gate.h"
#include "measure.h"
#include "nvrtc.h"
#include "options.h"
#include "verbs.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int fail(const struct q_err *e)
{
    verb_say(NULL, e->text);
    return e->code == Q_OK ? 0 : 1;
}

static int wrong_usage(const struct q_err *e)
{
    fprintf(stderr, "quarry-tune: %s (`quarry tune --help` lists the options)\n", e->text);
    return 2;
}

/* --- NVRTC ------------------------------------------------------------------------------------------------------------- */

/* Where pip may have put NVRTC: the user's own packages, the environment in use, those that ./check and ./quickstart make beside this
 * program. */
static void find_places(struct nvrtc_places *p)
{
    static const char *const names[] = { "/venv", "/nvrtc" };
    static char beside[2][Q_PATH + 8];
    p->home = getenv("HOME");
    p->prefix[0] = getenv("VIRTUAL_ENV");
    p->prefix[1] = getenv("CONDA_PREFIX");
    for (int i = 0; i < 2 && !self_path(beside[i], NULL); i++) {
        strcpy(strrchr(beside[i], '/'), names[i]);
        p->prefix[2 + i] = beside[i];
    }
}

/* --compile-ptx UNIT.cu OUT.ptx CC: for tests on a newer card, whose driver compiles the PTX of an older one. */
static int compile_ptx(char **argv)
{
    struct compiler c;
    struct compiler_given given = { 0 };
    struct q_card card = { .kind = Q_CARD_CUDA, .cc = atoi(argv[2]) };
    struct q_err e;
    char arch[40];
    find_places(&given.nvrtc);
    if (compiler_find(&c, &card, &given, &e)) return fail(&e);
    snprintf(arch, sizeof arch, "--gpu-architecture=compute_%d", card.cc);
    char *const options[] = { c.program, argv[0], argv[1], arch, "--fmad=false", "--std=c++17", "--device-as-default-execution-space" };
    return nvrtc_child(7, (char **)options);
}

/* --nvrtc-report CC VERSION, for `quarry doctor`: a line for each library here; the last one is what serves sm_CC under a driver that
 * speaks CUDA VERSION (12090). Status 1 and the reason where none does. */
static int nvrtc_report(char **argv)
{
    struct nvrtc_places places = { 0 };
    struct nvrtc_list found;
    const struct nvrtc *chosen;
    struct q_err e;
    find_places(&places);
    if (nvrtc_search(&found, &places, &e)) return fail(&e);
    int r = nvrtc_choose(&found, atoi(argv[1]), atoi(argv[0]), &chosen, &e);
    for (int i = 0; i < found.n; i++) printf("found %d.%d %s\n", found.v[i].major, found.v[i].minor, found.v[i].path);
    if (!r) printf("%d.%d %s\n", chosen->major, chosen->minor, chosen->path);
    nvrtc_list_free(&found);
    return r ? fail(&e) : 0;
}

/* What went to a full disk or a closed pipe is no result, whatever was done for it. */
static int told(int status)
{
    struct q_err e;
    if (!fflush(stdout) && !ferror(stdout)) return status;
    q_fail(&e, Q_EIO, "could not write the result");
    return status ? status : fail(&e);
}

int main(int argc, char **argv)
{
    struct options o;
    struct q_err e = { 0 };
    signal(SIGXFSZ, SIG_IGN);   /* a file size limit is then an error of write, with its line; the children inherit it */
    if (argc == 3 && !strcmp(argv[1], "--measure")) return measure_child(argv[2]);
    if (argc == 4 && !strcmp(argv[1], "--open")) return build_open_child(argv[2], argv[3]);
    if (argc > 1 && !strcmp(argv[1], "--compile")) return nvrtc_child(argc - 2, argv + 2);
    if (argc == 2 && !strcmp(argv[1], "--gate")) return gate_child();
    if (argc == 4 && !strcmp(argv[1], "--nvrtc-report")) return nvrtc_report(argv + 2);
    if (argc == 5 && !strcmp(argv[1], "--compile-ptx")) return compile_ptx(argv + 2);
    verb_hold_signals(1);       /* options may ask a driver which card is here */
    /* A card that cannot be used is not wrong usage. */
    if (options_read(&o, argc, argv, &e)) return e.code == Q_EINPUT ? wrong_usage(&e) : fail(&e);
    if (o.done) return told(0);
    if (!(o.verb->needs & VERB_STOPS)) verb_hold_signals(0);
    find_places(&o.given.nvrtc);
    int r = o.verb->run(&o, &e);
    if (r == VERB_INTERRUPTED) return fail(&e), 130;
    return told(r ? fail(&e) : 0);
}
