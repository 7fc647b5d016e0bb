/* A bundle's manifest, and the names that members may have: see bundle.h. */
#define _GNU_SOURCE
#include "bundle.h"
#include "runtime/json_check.h"
#include "runtime/record.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD "abcdefghijklmnopqrstuvwxyz0123456789_"
#define HEX "0123456789abcdef"

enum { DEPTH = 4 };

/* --- names ------------------------------------------------------------------------------------------------------------- */

/* A run of `alphabet` of least..most bytes at *p, which moves behind it. */
static int run(const char **p, const char *alphabet, size_t least, size_t most)
{
    size_t n = strspn(*p, alphabet);
    *p += n;
    return n >= least && n <= most;
}

static int word(const char **p, const char *want)
{
    size_t n = strlen(want);
    int same = !strncmp(*p, want, n);
    *p += same ? n : 0;
    return same;
}

static int is_record(const char *p)
{
    return word(&p, "records/") && run(&p, WORD, 1, 23) && word(&p, "/") && run(&p, HEX, 24, 24) && word(&p, "-") && run(&p, HEX, 12, 12)
           && !strcmp(p, ".json");
}

static int is_source(const char *p) { return word(&p, "src/") && run(&p, WORD, 1, 159) && (!strcmp(p, ".c") || !strcmp(p, ".cu")); }

static int is_binary(const char *p) { return word(&p, "objects/") && run(&p, HEX, 64, 64) && (!strcmp(p, ".so") || !strcmp(p, ".cubin")); }

enum bundle_kind bundle_kind_of(const char *path, size_t *most)
{
    enum bundle_kind k = is_record(path) ? BUNDLE_RECORD : is_source(path) ? BUNDLE_SOURCE : is_binary(path) ? BUNDLE_BINARY : BUNDLE_NONE;
    static const size_t bound[] = { 0, RECORD_BYTES, BUNDLE_TEXT, BUNDLE_OBJECT };
    *most = bound[k];
    return k;
}

/* --- writing: keys ascend -------------------------------------------------------------------------------------------------- */

static cJSON *member_json(const struct bundle_member *m)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "path", m->path);
    cJSON_AddStringToObject(o, "sha256", m->sha);
    cJSON_AddNumberToObject(o, "size", (double)m->n);
    return o;
}

char *bundle_print_manifest(const struct bundle *b)
{
    cJSON *o = cJSON_CreateObject();
    const char *card = b->card;
    cJSON_AddItemToObject(o, "cards", cJSON_CreateStringArray(&card, 1));
    cJSON_AddStringToObject(o, "creator", b->creator);
    cJSON_AddNumberToObject(o, "format", BUNDLE_FORMAT);
    cJSON *members = cJSON_AddArrayToObject(o, "members"), *models;
    for (int i = 0; i < b->n; i++) cJSON_AddItemToArray(members, member_json(&b->m[i]));
    models = cJSON_AddArrayToObject(o, "models");
    for (int i = 0; i < b->n_models; i++) cJSON_AddItemToArray(models, cJSON_CreateString(b->model[i]));
    char *printed = cJSON_Print(o), *text = NULL;
    cJSON_Delete(o);
    if (printed && asprintf(&text, "%s\n", printed) < 0) text = NULL;
    cJSON_free(printed);
    return text;
}

/* --- reading ----------------------------------------------------------------------------------------------------------- */

struct reader {
    const char *where;
    struct q_err *e;
};

static int bad(const struct reader *r, const char *what) { return q_fail(r->e, Q_EINPUT, "%s: manifest: %s", r->where, what); }

/* What a terminal obeys: C0, DEL, and C1 as UTF-8 has it. */
static int is_control(const char *s)
{
    unsigned char c = (unsigned char)s[0], next = (unsigned char)s[1];
    return c < 0x20 || c == 0x7F || (c == 0xC2 && next >= 0x80 && next < 0xA0);
}

/* A text of 1..cap - 1 bytes without controls. */
static int take(const cJSON *item, char *dst, size_t cap)
{
    const char *s = cJSON_GetStringValue(item);
    size_t n = s ? strlen(s) : 0;
    for (size_t i = 0; i < n; i++)
        if (is_control(s + i)) return 0;
    if (!n || n >= cap) return 0;
    memcpy(dst, s, n + 1);
    return 1;
}

static const cJSON *field(const cJSON *o, const char *name) { return cJSON_GetObjectItemCaseSensitive(o, name); }

static int parse_member(const struct reader *r, struct bundle *b, const cJSON *item, size_t *total)
{
    struct bundle_member *m = &b->m[b->n];
    const cJSON *size = field(item, "size");
    size_t most;
    if (!take(field(item, "path"), m->path, sizeof m->path) || bundle_kind_of(m->path, &most) == BUNDLE_NONE)
        return bad(r, "a member's path is of no form that bundles have");
    if (b->n && strcmp(m[-1].path, m->path) >= 0) return bad(r, "members are not in order, each once");
    if (!take(field(item, "sha256"), m->sha, sizeof m->sha) || strlen(m->sha) != 64 || m->sha[strspn(m->sha, HEX)])
        return bad(r, "a member's sha256 is no SHA-256");
    double n = cJSON_IsNumber(size) ? size->valuedouble : -1;
    if (!(n >= 0 && n <= (double)most && n == (double)(size_t)n))
        return q_fail(r->e, Q_EINPUT, "%s: manifest: %s: expected a size of 0..%zu", r->where, m->path, most);
    m->n = (size_t)n;
    *total += m->n;
    if (*total > BUNDLE_FILE) return q_fail(r->e, Q_ELIMIT, "%s: manifest: expected at most %d MiB in all", r->where, BUNDLE_FILE >> 20);
    b->n++;
    return Q_OK;
}

static int parse_members(const struct reader *r, struct bundle *b, const cJSON *list)
{
    int n = cJSON_GetArraySize(list), rc = Q_OK;
    const cJSON *item;
    size_t total = 0;
    if (!cJSON_IsArray(list) || n > BUNDLE_MEMBERS)
        return q_fail(r->e, Q_EINPUT, "%s: manifest: expected a list 'members' of at most %d", r->where, BUNDLE_MEMBERS);
    if (!(b->m = calloc((size_t)n + 1, sizeof *b->m))) return q_fail(r->e, Q_EMEM, "no memory for a bundle of %d members", n);
    cJSON_ArrayForEach(item, list)
        if (!rc) rc = parse_member(r, b, item, &total);
    return rc;
}

static int parse_models(const struct reader *r, struct bundle *b, const cJSON *list)
{
    const cJSON *item;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > BUNDLE_MODELS)
        return q_fail(r->e, Q_EINPUT, "%s: manifest: expected a list 'models' of at most %d", r->where, BUNDLE_MODELS);
    cJSON_ArrayForEach(item, list)
        if (!take(item, b->model[b->n_models++], sizeof b->model[0])) return bad(r, "a model's name is none");
    return Q_OK;
}

static int parse_object(const struct reader *r, struct bundle *b, const cJSON *o)
{
    const cJSON *format = field(o, "format"), *cards = field(o, "cards");
    if (!cJSON_IsNumber(format)) return bad(r, "no format number");
    if (format->valuedouble != BUNDLE_FORMAT)
        return q_fail(r->e, Q_EUNSUP, "%s: bundle of format %g, this version reads %d", r->where, format->valuedouble, BUNDLE_FORMAT);
    if (!take(field(o, "creator"), b->creator, sizeof b->creator)) return bad(r, "no creator");
    if (!cJSON_IsArray(cards) || cJSON_GetArraySize(cards) != 1 || !take(cJSON_GetArrayItem(cards, 0), b->card, sizeof b->card))
        return bad(r, "expected one card");
    int rc = parse_models(r, b, field(o, "models"));
    return rc ? rc : parse_members(r, b, field(o, "members"));
}

int bundle_parse_manifest(struct bundle *b, const char *text, size_t n, const char *where, struct q_err *e)
{
    struct reader r = { where, e };
    char name[1100];
    snprintf(name, sizeof name, "%.1000s: manifest", where);
    int rc = json_check(text, n, DEPTH, name, e);
    if (rc) return rc;
    cJSON *o = cJSON_ParseWithLength(text, n);
    rc = cJSON_IsObject(o) ? parse_object(&r, b, o) : bad(&r, "expected an object");
    cJSON_Delete(o);
    return rc;
}
