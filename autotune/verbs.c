#include "verbs.h"
#include "runtime/option_words.h"
#include <stdio.h>
#include <string.h>

static const struct verb verbs[] = {
    { "tune", VERB_MODEL | VERB_CARD | VERB_MEASURES | VERB_STOPS, 0, 0, "", verb_tune },
    { "plan", VERB_MODEL | VERB_CARD, 0, 1, "an op or nothing", verb_plan },
    { "explain", VERB_CARD | VERB_MODEL_TOO, 1, 2, "an OP and, if you like, a part of a shape", verb_explain },
    { "verify", VERB_CARD | VERB_MODEL_TOO | VERB_HERE | VERB_STOPS, 0, 1, "an op or nothing", verb_verify },
    { "compare", VERB_CARD | VERB_MODEL_TOO | VERB_HERE | VERB_STOPS, 1, 1, "one FILE of `tune list --measured`", verb_compare },
    { "list", VERB_CARD | VERB_MODEL_TOO, 0, 0, "", verb_list },
    { "export", VERB_CARD | VERB_OUTPUT, 0, 0, "", verb_export },
    { "build", VERB_MODEL | VERB_CARD | VERB_OUTPUT | VERB_STOPS, 0, 0, "", verb_build },
    { "import", VERB_STOPS, 1, 1, "one FILE", verb_import },
    { "trust", VERB_KEYS, 0, 1, "one KEY or its file", verb_trust },
    { "contribute", VERB_CARD, 0, 0, "", verb_contribute },
    { "admit", 0, 1, 2, "a contribution's FILE, and the folder tuned/ that it goes to", verb_admit },
};

enum { N_VERBS = sizeof verbs / sizeof *verbs };

const struct verb *verb_find(const char *name)
{
    for (int i = 0; i < N_VERBS; i++)
        if (!strcmp(verbs[i].name, name)) return &verbs[i];
    return NULL;
}

void verb_names(char *dst, size_t cap)
{
    size_t n = 0;
    *dst = 0;
    for (int i = 0; i < N_VERBS && n < cap; i++)
        n += (size_t)snprintf(dst + n, cap - n, "%s%s", !i ? "" : i == N_VERBS - 1 ? " or " : ", ", verbs[i].name);
}

const char *verb_near(const char *word, char text[60])
{
    struct near n;
    near_start(&n, word);
    for (int i = 0; i < N_VERBS; i++) near_try(&n, verbs[i].name);
    *text = 0;
    if (n.best) snprintf(text, 60, "; is '%s' meant?", n.best);
    return text;
}
