/* quarry tune contribute: this card's own winners as one text for the project, with what a reviewer wants to know (contribution.h). */
#include "contribution.h"
#include "judge.h"
#include "runtime/ceilings.h"
#include "verbs.h"
#include <stdlib.h>
#include <string.h>

struct contributing {
    struct contribution c;
    struct gen *g;
    const struct q_card *card;
    int stale;                 /* left out: of other templates than this build's */
    struct q_err *e;
    int rc;
};

/* Only what `quarry tune admit` would take. Ceilings are of the one card: the heading tells them. */
static int visit(void *arg, const struct record *r, const char *path)
{
    struct contributing *x = arg;
    struct record own;
    struct gen_kernel k;
    if (!verb_is_own(r, path) || card_lines_find(&x->c.lines, r)) return 0;
    if (judge_record(x->g, x->card, r, &own, &k, NULL)) {
        x->stale++;
        return 0;
    }
    gen_kernel_free(&k);
    return x->rc = contribution_add(&x->c, r, x->e);
}

static int print(struct contributing *x, struct q_err *e)
{
    const char *key = x->card->key;
    if (!x->c.lines.n && x->stale)
        return q_fail(e, Q_EMISS, "all %d winners of %s are of other templates than this version's: tune again", x->stale, key);
    if (!x->c.lines.n) return q_fail(e, Q_EMISS, "nothing to contribute: no winners of %s were measured here (quarry tune -m FILE measures)", key);
    char *text = contribution_print(&x->c);
    if (!text) return q_fail(e, Q_EMEM, "no memory for a list of records");
    fputs(text, stdout);
    free(text);
    if (x->stale) fprintf(stderr, "quarry-tune: %d records are left out: of other templates than this version's\n", x->stale);
    fprintf(stderr, "quarry-tune: %d records of %s; read the text, then send it as tuned/README.md says\n", x->c.lines.n, key);
    return Q_OK;
}

int verb_contribute(const struct options *o, struct q_err *e)
{
    struct contributing x = { .card = &o->card, .e = e };
    struct store *s;
    strcpy(x.c.card, o->card.key);
    int rc = verb_store(o, &s, e);
    if (rc) return rc;
    ceilings_read(s, o->card.key, &x.c.roofs);
    if (!(rc = gen_open(&x.g, o->generator, e))) {
        rc = store_each(s, o->card.key, visit, &x, e);
        if (!rc) rc = x.rc;
        if (!rc) rc = print(&x, e);
        gen_close(x.g);
    }
    contribution_free(&x.c);
    store_close(s);
    return rc;
}
