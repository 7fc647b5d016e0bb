/* quarry tune export: this card's own winners, for other machines. */
#include "collect.h"
#include "verbs.h"
#include <string.h>

#ifndef QUARRY_VERSION
#define QUARRY_VERSION "0"
#endif

struct export {
    struct collect c;
    struct q_err *e;
    int rc;
};

/* Winners that were measured here or came in; those that ship are everywhere, and ceilings are of the one card. */
static int visit(void *arg, const struct record *r, const char *path)
{
    struct export *x = arg;
    if (!verb_is_own(r, path)) return 0;
    return x->rc = collect_record(&x->c, r, x->e);
}

static void report(const struct collect *c, const struct collect_out *out)
{
    const char *signer = out->signer;
    if (c->stale) fprintf(stderr, "quarry-tune: %d records are left out: %s\n", c->stale, c->first_stale);
    if (c->bare) fprintf(stderr, "quarry-tune: %d kernels are not in the store, and go without binaries (quarry tune builds them)\n", c->bare);
    if (*signer) fprintf(stderr, "quarry-tune: others use its binaries after: quarry tune trust %s\n", signer);
    printf("%s: %d records%s of %s%s\n", out->path, c->n, c->binaries ? " with binaries" : "", c->card->key, *signer ? ", signed" : "");
}

static int collect(const struct options *o, const struct collect_out *out, struct store *s, struct gen *g, struct bundle *b, struct q_err *e)
{
    struct export x = { .c = { .b = b, .g = g, .s = s, .card = &o->card, .binaries = o->binaries }, .e = e };
    int rc = store_each(s, o->card.key, visit, &x, e);
    if (!rc) rc = x.rc;
    if (!rc && !x.c.n && x.c.stale) return q_fail(e, Q_EMISS, "all %d winners of %s are left out: %s", x.c.stale, o->card.key, x.c.first_stale);
    if (!rc && !x.c.n)
        return q_fail(e, Q_EMISS, "nothing to export: no winners of %s were measured here (quarry tune -m FILE measures)", o->card.key);
    if (!rc) rc = collect_write(&x.c, out, e);
    if (!rc) report(&x.c, out);
    return rc;
}

static int export(const struct options *o, const struct collect_out *out, struct q_err *e)
{
    struct bundle b = { .creator = "quarry " QUARRY_VERSION };
    struct store *s;
    struct gen *g;
    snprintf(b.card, sizeof b.card, "%s", o->card.key);
    int rc = verb_store(o, &s, e);
    if (rc) return rc;
    if (!(rc = gen_open(&g, o->generator, e))) {
        rc = collect(o, out, s, g, &b, e);
        gen_close(g);
    }
    bundle_free(&b);
    store_close(s);
    return rc;
}

int verb_export(const struct options *o, struct q_err *e)
{
    struct collect_out out;
    int rc = collect_out_open(&out, o->sign, o->output, e);
    if (!rc) rc = export(o, &out, e);
    collect_out_close(&out);
    return rc;
}
