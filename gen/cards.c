#include "cards.h"
#include "embed.h"
#include "runtime/card.h"
#include "runtime/data_file.h"
#include "runtime/plain.h"
#include "source.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { CARD_NAME = 64, CARD_FILES = 256 };

static int open_named(struct data_file *d, const char *dir, const char *name, struct q_err *e)
{
    char file[CARD_NAME + 32], stem[CARD_NAME];
    struct gen_source s = { .dir = (char *)dir };
    struct gen_text t;
    snprintf(file, sizeof file, "gen/cards/%.*s.lua", CARD_NAME, name);
    if (data_file_stem(stem, sizeof stem, name, NULL) || strcmp(stem, name) || source_read(&s, file, &t))
        return q_fail(e, Q_EINPUT, "card '%.200s': expected a key (cpu:... or cuda:...), a name that quarry-gen --cards lists, or a file NAME.lua",
                      name);
    int rc = data_file_run(d, t.text, t.size, file, e);
    source_free(&t);
    return rc;
}

/* A fact at the top of the stack: "a" or { "a", "where" }. */
static int is_fact(struct data_file *d)
{
    int fact = lua_gettop(d->L), texts = lua_istable(d->L, fact) && lua_rawlen(d->L, fact) == 2;
    for (int i = 1; i <= 2 && texts; i++) texts = lua_rawgeti(d->L, fact, i) == LUA_TSTRING;
    int is = texts || lua_type(d->L, fact) == LUA_TSTRING;
    lua_settop(d->L, fact);
    return is;
}

/* What is not shown would be lost without a word: the field is absent, or all of it is facts. */
static int check_facts(struct data_file *d, const char *name, const char *where, struct q_err *e)
{
    int type = data_file_field(d, 1, name), ok = type == LUA_TTABLE || type == LUA_TNIL, n = 0;
    lua_pushnil(d->L);
    for (; type == LUA_TTABLE && ok && lua_next(d->L, 2); n++, lua_pop(d->L, 1)) ok = is_fact(d);
    if (ok && type == LUA_TTABLE) ok = (int)lua_rawlen(d->L, 2) == n;
    lua_settop(d->L, 1);
    return ok ? Q_OK : q_fail(e, Q_EINPUT, "%.500s: field '%s': expected a list, each a \"text\" or { \"text\", \"source\" }", where, name);
}

static int check_fields(struct data_file *d, const char *where, struct q_err *e)
{
    static const char *const known[] = { "key", "title", "measured", "published", "unknown" };
    int rc = data_file_only(d, known, sizeof known / sizeof *known, where, e);
    if (!rc && data_file_field(d, 1, "title") != LUA_TNIL && !data_file_text(d, "title"))
        rc = q_fail(e, Q_EINPUT, "%.500s: field 'title': expected a text", where);
    lua_settop(d->L, 1);
    for (int i = 2; i < 5 && !rc; i++) rc = check_facts(d, known[i], where, e);
    return rc;
}

static int check_key(struct data_file *d, const char *text, struct q_err *e)
{
    const char *key = data_file_text(d, "key");
    struct q_card card;
    if (key && strchr(key, ':') && strlen(key) < CARD_KEY) return card_parse(&card, key, e);
    return q_fail(e, Q_EINPUT, "card '%.300s': expected key = \"cpu:...\" or key = \"cuda:...\" in the file, found %.200s", text, key ? key : "none");
}

static int open_card(struct data_file *d, const char *dir, const char *text, struct q_err *e)
{
    int rc = data_file_is_path(text) ? data_file_open(d, text, e) : open_named(d, dir, text, e);
    if (rc) return rc;
    if (!(rc = check_fields(d, text, e))) rc = check_key(d, text, e);
    if (rc) data_file_close(d);
    return rc;
}

int gen_card_key(const char *dir, const char *text, char key[CARD_KEY], struct q_err *e)
{
    struct data_file d;
    if (strchr(text, ':') && !data_file_is_path(text)) {
        if (strlen(text) >= CARD_KEY) return q_fail(e, Q_EINPUT, "card '%.200s': expected at most %d characters", text, CARD_KEY - 1);
        strcpy(key, text);
        return Q_OK;
    }
    int rc = open_card(&d, dir, text, e);
    if (rc) return rc;
    strcpy(key, data_file_text(&d, "key"));
    data_file_close(&d);
    return Q_OK;
}

/* --- for people --------------------------------------------------------------------------------------------------------- */

/* A file of others may hold what a terminal obeys. */
static void print_top(FILE *f, lua_State *L)
{
    size_t n = 0;
    const char *text = lua_tolstring(L, -1, &n);
    plain_print(f, text ? text : "", n);
}

static void print_title(FILE *f, struct data_file *d)
{
    data_file_field(d, 1, "title");
    print_top(f, d->L);
    lua_settop(d->L, 1);
}

/* "a" or { "a", "b" } as "a [b]". */
static void print_fact(FILE *f, struct data_file *d)
{
    int fact = lua_gettop(d->L);
    int alone = lua_type(d->L, fact) == LUA_TSTRING;
    if (alone) lua_pushvalue(d->L, fact);
    else lua_rawgeti(d->L, fact, 1);
    fputs("  ", f);
    print_top(f, d->L);
    if (!alone) {
        lua_rawgeti(d->L, fact, 2);
        fputs(" [", f);
        print_top(f, d->L);
        fputs("]", f);
    }
    fputs("\n", f);
    lua_settop(d->L, fact);
}

static void print_facts(FILE *f, struct data_file *d, const char *name, const char *heading)
{
    int n = data_file_field(d, 1, name) == LUA_TTABLE ? (int)lua_rawlen(d->L, -1) : 0;
    fprintf(f, "%s\n", heading);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(d->L, 2, i);
        print_fact(f, d);
        lua_settop(d->L, 2);
    }
    if (!n) fputs("  nothing\n", f);
    lua_settop(d->L, 1);
}

int gen_card_show(FILE *f, const char *dir, const char *text, struct q_err *e)
{
    struct data_file d;
    int rc = open_card(&d, dir, text, e);
    if (rc) return rc;
    print_title(f, &d);
    fprintf(f, "\n%s\n", data_file_text(&d, "key"));
    print_facts(f, &d, "measured", "measured by this program:");
    print_facts(f, &d, "published", "published by others:");
    print_facts(f, &d, "unknown", "measured by nobody:");
    data_file_close(&d);
    return Q_OK;
}

/* --- the list ------------------------------------------------------------------------------------------------------------- */

struct names {
    char name[CARD_FILES][CARD_NAME];
    int n;
};

/* "t4.lua" of a folder. */
static void add_name(struct names *l, const char *file)
{
    size_t n = strlen(file);
    if (n > 4 && n - 4 < CARD_NAME && file[0] != '.' && !strcmp(file + n - 4, ".lua") && l->n < CARD_FILES)
        snprintf(l->name[l->n++], CARD_NAME, "%.*s", (int)(n - 4), file);
}

static int names_of_dir(struct names *l, const char *dir, struct q_err *e)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/gen/cards", dir);
    DIR *d = opendir(path);
    if (!d) return q_fail(e, Q_EIO, "%.3000s: expected a source tree with gen/cards/", dir);
    for (struct dirent *f; (f = readdir(d));) add_name(l, f->d_name);
    closedir(d);
    return Q_OK;
}

static void names_of_program(struct names *l)
{
    static const char folder[] = "gen/cards/";
    for (int i = 0; i < gen_n_files; i++)
        if (!strncmp(gen_files[i].name, folder, sizeof folder - 1)) add_name(l, gen_files[i].name + sizeof folder - 1);
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static int list_one(FILE *f, const char *dir, const char *name, struct q_err *e)
{
    struct data_file d;
    int rc = open_card(&d, dir, name, e);
    if (rc) return rc;
    const char *text = data_file_text(&d, "title");
    char title[256];
    snprintf(title, sizeof title, "%s", text ? text : "");
    plain_line(title);
    fprintf(f, "%-16s %-44s %s\n", name, title, data_file_text(&d, "key"));
    data_file_close(&d);
    return Q_OK;
}

int gen_cards_list(FILE *f, const char *dir, struct q_err *e)
{
    struct names *l = calloc(1, sizeof *l);
    if (!l) return q_fail(e, Q_EMEM, "no memory for a list of cards");
    int rc = dir ? names_of_dir(l, dir, e) : Q_OK;
    if (!dir) names_of_program(l);
    qsort(l->name, (size_t)l->n, sizeof *l->name, by_text);
    for (int i = 0; !rc && i < l->n; i++) rc = list_one(f, dir, l->name[i], e);
    free(l);
    return rc;
}
