#include "measured.h"
#include "card_lines.h"
#include <string.h>

struct collecting {
    struct card_lines l;
    struct q_err *e;
    int rc;
};

/* Layer by layer: the first answer is the one that is used. */
static int collect(void *arg, const struct record *r, const char *path)
{
    struct collecting *c = arg;
    (void)path;
    if (strcmp(r->origin, "tuned") || card_lines_find(&c->l, r)) return 0;
    return c->rc = card_lines_put(&c->l, r, c->e);
}

int measured_print(FILE *f, struct store *s, const char *card, struct q_err *e)
{
    struct collecting c = { .e = e };
    int rc = store_each(s, card, collect, &c, e);
    if (!rc) rc = c.rc;
    if (!rc) card_lines_print(f, &c.l);
    card_lines_free(&c.l);
    return rc;
}
