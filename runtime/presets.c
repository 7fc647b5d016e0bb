/* A preset is a data file with fields of `struct q_config`: one of gen/models/, which are in the program, or a file of the user's.
 * What it leaves out has the family's value; a field that is not known here is a mistake and is refused. */
#include "presets.h"
#include "data_file.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum form { INT, BOOL, FLOAT, SECTIONS };

/* missing: the family's value, NAN where the file must tell. */
static const struct field {
    const char *name;
    enum form form;
    size_t at;
    double missing;
} fields[] = {
#define AT(field) #field, INT, offsetof(struct q_config, field)
#define AS(field, form) #field, form, offsetof(struct q_config, field)
    { AT(n_layers), NAN }, { AT(n_nextn), 0 },
    { AT(n_embd), NAN }, { AT(n_ff), NAN }, { AT(n_vocab), NAN }, { AT(n_ctx_train), 262144 },
    { AS(rms_eps, FLOAT), 1e-6 },
    { AT(n_head), NAN }, { AT(n_head_kv), NAN }, { AT(head_dim), NAN },
    { AS(attn_scale, FLOAT), 0 },                   /* 0: 1 / sqrt(head_dim) */
    { AT(rope_dims), 64 }, { AS(rope_sections, SECTIONS), 0 }, { AS(rope_base, FLOAT), 1e7 },
    { AT(conv_taps), 4 }, { AT(state_dim), NAN }, { AT(n_k_heads), NAN }, { AT(n_v_heads), NAN },
    { AS(v_grouped, BOOL), 0 }, { AS(tied, BOOL), NAN },
};
enum { N_FIELDS = sizeof fields / sizeof *fields, SECTION_NUMBERS = 4 };

/* Read beside the fields: `name` must be the file's, and `interval` (4) makes every interval-th layer attention, 0 none. */
static const char *const others[] = { "name", "arch", "interval" };

enum { N_OTHERS = sizeof others / sizeof *others };

static int only_known(struct data_file *d, const char *where, struct q_err *e)
{
    const char *known[N_FIELDS + N_OTHERS];
    for (int i = 0; i < N_FIELDS; i++) known[i] = fields[i].name;
    memcpy(known + N_FIELDS, others, sizeof others);
    return data_file_only(d, known, N_FIELDS + N_OTHERS, where, e);
}

/* The value at the top of the stack as a whole number in 0..2^31-1; -1 if it is none. */
static int whole(struct data_file *d)
{
    lua_Integer v = lua_isinteger(d->L, -1) ? lua_tointeger(d->L, -1) : -1;
    return v >= 0 && v <= 0x7FFFFFFF ? (int)v : -1;
}

static int read_sections(struct data_file *d, int out[SECTION_NUMBERS])
{
    int table = lua_gettop(d->L), ok = lua_istable(d->L, table) && lua_rawlen(d->L, table) == SECTION_NUMBERS;
    for (int i = 0; ok && i < SECTION_NUMBERS; i++) {
        lua_rawgeti(d->L, table, i + 1);
        out[i] = whole(d);
        ok = out[i] >= 0;
        lua_pop(d->L, 1);
    }
    return ok;
}

static int take(struct data_file *d, const struct field *f, void *at)
{
    double v;
    switch (f->form) {
    case INT: return (*(int *)at = whole(d)) >= 0;
    case BOOL: return lua_isboolean(d->L, -1) && (*(int *)at = lua_toboolean(d->L, -1), 1);
    case FLOAT:
        v = lua_type(d->L, -1) == LUA_TNUMBER ? lua_tonumber(d->L, -1) : 0;
        *(float *)at = (float)v;
        return isfinite(*(float *)at) && *(float *)at > 0;
    default: return read_sections(d, at);
    }
}

static void take_missing(const struct field *f, void *at)
{
    static const int sections[SECTION_NUMBERS] = { 11, 11, 10, 0 };
    if (f->form == SECTIONS) memcpy(at, sections, sizeof sections);
    else if (f->form == FLOAT) *(float *)at = (float)f->missing;
    else *(int *)at = (int)f->missing;
}

static int read_field(struct data_file *d, const struct field *f, struct q_config *c, const char *where, struct q_err *e)
{
    static const char *const want[] = { "a whole number below 2^31", "true or false", "a number above 0", "four whole numbers" };
    void *at = (char *)c + f->at;
    int absent = data_file_field(d, 1, f->name) == LUA_TNIL, rc = Q_OK;
    if (absent && isnan(f->missing)) rc = q_fail(e, Q_EINPUT, "%s: field '%s' is missing", where, f->name);
    else if (absent) take_missing(f, at);
    else if (!take(d, f, at)) rc = q_fail(e, Q_EINPUT, "%s: field '%s': expected %s", where, f->name, want[f->form]);
    lua_settop(d->L, 1);
    return rc;
}

static int read_names(struct data_file *d, struct q_config *c, const char *stem, const char *where, struct q_err *e)
{
    const char *name = data_file_text(d, "name"), *arch = data_file_text(d, "arch");
    if (!name || strcmp(name, stem)) return q_fail(e, Q_EINPUT, "%s: name is '%.60s', expected the file's name '%s'", where, name ? name : "", stem);
    if (arch && strcmp(arch, "qwen35")) return q_fail(e, Q_EUNSUP, "%s: arch is '%.60s', expected qwen35", where, arch);
    strcpy(c->name, stem);
    strcpy(c->arch, "qwen35");
    return Q_OK;
}

static int read_rhythm(struct data_file *d, struct q_config *c, const char *where, struct q_err *e)
{
    int every = data_file_field(d, 1, "interval") == LUA_TNIL ? 4 : whole(d);
    lua_settop(d->L, 1);
    if (every < 0) return q_fail(e, Q_EINPUT, "%s: field 'interval': expected a whole number below 2^31", where);
    for (int i = 0; i < c->n_layers && i < Q_MAX_LAYERS; i++) c->kind[i] = every && (i + 1) % every == 0 ? Q_LAYER_ATTN : Q_LAYER_GDN;
    return Q_OK;
}

static int read_config(struct data_file *d, struct q_config *c, const char *stem, const char *where, struct q_err *e)
{
    memset(c, 0, sizeof *c);
    int rc = only_known(d, where, e);
    if (!rc) rc = read_names(d, c, stem, where, e);
    for (int i = 0; !rc && i < N_FIELDS; i++) rc = read_field(d, fields + i, c, where, e);
    if (!rc) rc = read_rhythm(d, c, where, e);
    if (!rc && c->attn_scale == 0) c->attn_scale = (float)(1 / sqrt((double)c->head_dim));
    return rc ? rc : config_check(c, where, e);
}

static int from_file(struct q_config *c, const char *path, struct q_err *e)
{
    struct data_file d;
    char stem[sizeof c->name];
    int rc = data_file_stem(stem, sizeof stem, path, e);
    if (rc || (rc = data_file_open(&d, path, e))) return rc;
    rc = read_config(&d, c, stem, path, e);
    data_file_close(&d);
    return rc;
}

static int from_program(struct q_config *c, const struct q_preset *p, struct q_err *e)
{
    struct data_file d;
    int rc = data_file_run(&d, p->text, *p->size, p->name, e);
    if (rc) return rc;
    rc = read_config(&d, c, p->name, p->name, e);
    data_file_close(&d);
    return rc;
}

int config_from_preset(struct q_config *c, const char *name, struct q_err *e)
{
    char known[512] = "";
    if (data_file_is_path(name)) return from_file(c, name, e);
    for (int i = 0; i < q_n_presets; i++) {
        if (!strcmp(q_presets[i].name, name)) return from_program(c, q_presets + i, e);
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", q_presets[i].name);
    }
    return q_fail(e, Q_EMISS, "no preset is called '%s'; there are: %s, or a file of your own, NAME.lua", name, known);
}
