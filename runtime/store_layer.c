/* One layer of the store, whichever form it has: a file a record, or shipped in one file a card, a record a line. */
#define _GNU_SOURCE
#include "store_impl.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CARD_BYTES = 16 << 20 };

void store_folder(char dst[STORE_FOLDER], const char *card)
{
    size_t n = 0;
    for (; card[n] && n + 1 < STORE_FOLDER; n++) {
        char c = card[n];
        int plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
        dst[n] = plain ? c : '_';
    }
    dst[n] = 0;
}

struct visit {
    int (*fn)(void *arg, const struct record *r, const char *path);
    void *arg;
    struct store *s;
    int layer;
    const char *op;       /* NULL: all */
};

static int not_hidden(const struct dirent *d) { return d->d_name[0] != '.'; }

/* --- a file a record ---------------------------------------------------------------------------------------------------- */

static int visit_file(const struct visit *v, const char *path)
{
    struct record r;
    struct q_err why;
    if (!store_read(&r, &v->s->layers[v->layer], path, &why)) return v->fn(v->arg, &r, path);
    store_damaged(v->s, v->layer, path, why.text);
    return 0;
}

static int is_record(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && !strcmp(name + n - 5, ".json");
}

/* Visits the records of one op's folder. */
static int each_file(const struct visit *v, const char *dir)
{
    struct dirent **names;
    char path[Q_PATH];
    int n = scandir(dir, &names, not_hidden, alphasort), stop = 0;
    for (int i = 0; i < n; i++) {
        if (!stop && is_record(names[i]->d_name) && !path_join(path, NULL, dir, names[i]->d_name, NULL)) stop = visit_file(v, path);
        free(names[i]);
    }
    if (n >= 0) free(names);
    return stop;
}

static int each_op(const struct visit *v, const char *dir)
{
    struct dirent **ops;
    char op_dir[Q_PATH];
    int n = scandir(dir, &ops, not_hidden, alphasort), stop = 0;
    for (int i = 0; i < n; i++) {
        int wanted = !v->op || !strcmp(v->op, ops[i]->d_name);
        if (!stop && wanted && !path_join(op_dir, NULL, dir, ops[i]->d_name, NULL)) stop = each_file(v, op_dir);
        free(ops[i]);
    }
    if (n >= 0) free(ops);
    return stop;
}

/* --- a record a line ----------------------------------------------------------------------------------------------------- */

static int visit_line(const struct visit *v, const char *line, size_t n, const char *path, int number)
{
    struct record r;
    struct q_err why;
    char where[Q_PATH + 16];
    snprintf(where, sizeof where, "%s:%d", path, number);
    if (!record_parse(&r, line, n, where, &why) && !record_check(&r, where, &why)) return v->op && strcmp(v->op, r.op) ? 0 : v->fn(v->arg, &r, path);
    store_damaged(v->s, v->layer, where, why.text);
    return 0;
}

/* Lines of other ops are told by their text, which saves most of the parsing. */
static int each_line(const struct visit *v, const char *path)
{
    char *text, *rest, *line, needle[64] = "";
    size_t n;
    struct q_err why;
    int number = 0, stop = 0;
    if (v->op) snprintf(needle, sizeof needle, "\"op\":\"%s\"", v->op);
    int bad = file_read(path, CARD_BYTES, &text, &n, &why);
    if (!bad && !file_is_ours(path)) {
        bad = q_fail(&why, Q_EINPUT, "%s: others may write it", path);
        free(text);
    }
    if (bad && bad != Q_EMISS) store_damaged(v->s, v->layer, path, why.text);
    if (bad) return 0;
    for (rest = text; !stop && (line = strsep(&rest, "\n"));) {
        number++;
        if (*line && strstr(line, needle)) stop = visit_line(v, line, strlen(line), path, number);
    }
    free(text);
    return stop;
}

int store_each_in(struct store *s, int layer, const char *folder, const char *op, int (*fn)(void *, const struct record *, const char *), void *arg)
{
    struct visit v = { fn, arg, s, layer, op };
    const struct store_layer *l = &s->layers[layer];
    char path[Q_PATH], file[STORE_FOLDER + 8];
    snprintf(file, sizeof file, l->lines ? "%s.jsonl" : "%s", folder);
    if (path_join(path, NULL, l->dir, file, NULL)) return 0;
    return l->lines ? each_line(&v, path) : each_op(&v, path);
}

int store_cards_in(const struct store *s, int layer, int (*fn)(void *arg, int layer, const char *folder), void *arg)
{
    struct dirent **names;
    int n = scandir(s->layers[layer].dir, &names, not_hidden, alphasort), stop = 0;
    for (int i = 0; i < n; i++) {
        char *dot = strstr(names[i]->d_name, ".jsonl");
        if (dot && s->layers[layer].lines) *dot = 0;
        if (!stop) stop = fn(arg, layer, names[i]->d_name);
        free(names[i]);
    }
    if (n >= 0) free(names);
    return stop;
}
