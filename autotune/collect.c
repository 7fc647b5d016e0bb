#include "collect.h"
#include "judge.h"
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void member_name(char path[BUNDLE_PATH], const struct record *r)
{
    struct store_key k = { r->op, r->shape, r->rows, r->ctx, r->profile, r->card, r->generator };
    char file[64];
    store_file_name(file, &k);
    snprintf(path, BUNDLE_PATH, "records/%s/%s", r->op, file);
}

static int add_source(struct collect *c, const struct gen_kernel *k, struct q_err *e)
{
    char path[BUNDLE_PATH];
    if (!k->source || !*k->source) return Q_OK;
    snprintf(path, sizeof path, "src/%.160s.%s", k->name, strcmp(k->kind, "cubin") ? "c" : "cu");
    return bundle_find(c->b, path) ? Q_OK : bundle_add(c->b, path, k->source, strlen(k->source), e);
}

static int add_object(struct collect *c, const struct record_object *o, struct q_err *e)
{
    char path[Q_PATH], member[BUNDLE_PATH], *data;
    size_t n;
    if (store_object(c->s, o->name, path, NULL)) return Q_EMISS;
    int rc = file_read(path, BUNDLE_OBJECT, &data, &n, e);
    if (rc) return rc;
    snprintf(member, sizeof member, "objects/%s.%s", o->name, o->kind);
    rc = bundle_add(c->b, member, data, n, e);
    free(data);
    return rc;
}

static int add_objects(struct collect *c, const struct record *r, const struct gen_kernel *k, struct q_err *e)
{
    const struct record_object *o = judge_object(r, k);
    if (!c->binaries || !k->unit || !*k->unit) return Q_OK;
    int rc = o ? add_object(c, o, e) : Q_EMISS;
    c->bare += rc == Q_EMISS;
    return rc == Q_EMISS ? Q_OK : rc;
}

static int add_record(struct collect *c, const char *path, const struct record *r, const struct gen_kernel *k, struct q_err *e)
{
    char *text = record_print(r);
    int rc = text ? bundle_add(c->b, path, text, strlen(text), e) : q_fail(e, Q_EMEM, "no memory for a record");
    free(text);
    if (!rc) rc = add_source(c, k, e);
    if (!rc) rc = add_objects(c, r, k, e);
    c->n += !rc;
    return rc;
}

/* What a ceiling's kernel measured is of the one card that it ran on: the kernel travels alone. */
static void forget_measured(struct record *r)
{
    strcpy(r->origin, "default");
    r->effort[0] = r->from[0] = 0;
    r->n_times = 0;
}

int collect_record(struct collect *c, const struct record *given, struct q_err *e)
{
    struct record *r = calloc(2, sizeof *r), *own = r + 1;
    struct gen_kernel k;
    struct q_err why;
    char path[BUNDLE_PATH];
    if (!r) return q_fail(e, Q_EMEM, "no memory for a record");
    *r = *given;
    if (!strcmp(r->op, "ceiling")) forget_measured(r);
    member_name(path, r);
    int rc = bundle_find(c->b, path) ? Q_EMISS : judge_record(c->g, c->card, r, own, &k, &why);
    if (!rc) {
        rc = add_record(c, path, r, &k, e);
        gen_kernel_free(&k);
    } else if (rc != Q_EMISS && !c->stale++) {
        snprintf(c->first_stale, sizeof c->first_stale, "%.199s", why.text);
    }
    free(r);
    return rc == Q_EMISS || rc == Q_EUNSUP || rc == Q_EINPUT ? Q_OK : rc;
}

/* --- writing ----------------------------------------------------------------------------------------------------------- */

/* The public half is the secret's second. */
static void public_of(char line[MINISIGN_LINE], const struct minisign_secret *s)
{
    struct minisign_public p;
    memcpy(p.id, s->id, sizeof p.id);
    memcpy(p.key, s->key + 32, sizeof p.key);
    minisign_public_print(line, &p);
}

int collect_out_open(struct collect_out *out, const char *sign, const char *path, struct q_err *e)
{
    char dir[Q_PATH];
    memset(out, 0, sizeof *out);
    out->path = path ? path : "set.tar.zst";
    out->is_signed = sign != NULL;
    int rc = path_dir(dir, out->path, e);
    if (!rc && !path && !access(out->path, F_OK))
        rc = q_fail(e, Q_EINPUT, "%s is there already: -o %s replaces it, -o FILE writes another", out->path, out->path);
    if (!rc && access(dir, W_OK)) rc = q_fail(e, Q_EIO, "%s: cannot be written there: %s", out->path, strerror(errno));
    if (rc || !sign) return rc;
    if ((rc = minisign_secret_read(&out->secret, sign, e))) return rc;
    public_of(out->signer, &out->secret);
    return Q_OK;
}

void collect_out_close(struct collect_out *out) { sodium_memzero(&out->secret, sizeof out->secret); }

int collect_write(const struct collect *c, const struct collect_out *out, struct q_err *e)
{
    char *data;
    size_t n;
    int rc = bundle_pack(c->b, out->is_signed ? &out->secret : NULL, &data, &n, e);
    if (rc) return rc;
    if (n > BUNDLE_FILE) rc = q_fail(e, Q_ELIMIT, "%s: a kernel set of %zu MiB: expected at most %d", out->path, n >> 20, BUNDLE_FILE >> 20);
    char real[Q_PATH];
    const char *path = realpath(out->path, real) ? real : out->path;      /* what a link names is written, the link stays */
    if (!rc) rc = file_write(path, data, n, e);
    if (!rc) rc = file_let_read(path, e);
    free(data);
    return rc;
}
