/* tune_op OP MODEL CC PROGRAM: a tune of one op's problems with every legal candidate, the product's own but for the gate, and built with
 * sanitizers. On one thread. PROGRAM: quarry-tune, whose measuring child runs the candidates. Exit status as quarry-tune's. */
#include "autotune/target.h"
#include "autotune/tune.h"
#include "autotune/verbs.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int tune(char **argv, struct store *s, struct gen *g, struct q_err *e)
{
    struct target t = { .numerics = Q_PINNED, .kv_k = "f16", .kv_v = "f16" };
    struct compiler compiler = { 0 };
    struct compiler_given given = { .cc = argv[3] };
    struct build_pace pace = { 0 };
    struct build_opts b = { .store = s, .compiler = &compiler, .pace = &pace, .jobs = 2, .deadline_s = 60, .signal_fd = verb_catch_signals() };
    struct tune_opts o = { .t = &t, .g = g, .build = &b, .compiler = &compiler, .given = &given, .device = "cpu", .effort = "exhaustive",
                           .model = argv[2], .type = "q8_0", .program = argv[4], .progress = stderr, .results = stdout, .op = argv[1] };
    int rc = card_detect_cpu(&t.card, 1, e);
    if (!rc) rc = target_open(&t, argv[2], NULL, NULL, e);
    if (!rc) rc = tune_make(&o, e);
    target_close(&t);
    close(b.signal_fd);
    return rc;
}

int main(int argc, char **argv)
{
    struct store_opts so = { .say = verb_say };
    struct store *s;
    struct gen *g;
    struct q_err e;
    signal(SIGXFSZ, SIG_IGN);
    if (argc == 4 && !strcmp(argv[1], "--open")) {
        signal(SIGSEGV, SIG_DFL);      /* what an object does when it is opened is no fault of ours */
        return build_open_child(argv[2], argv[3]);
    }
    if (argc != 5) return fputs("usage: tune_op OP MODEL CC PROGRAM\n", stderr), 2;
    int rc = store_open(&s, &so, &e);
    if (!rc && !(rc = gen_open(&g, NULL, &e))) {
        rc = tune(argv, s, g, &e);
        gen_close(g);
        store_close(s);
    }
    if (rc) verb_say(NULL, e.text);
    return rc != 0;
}
