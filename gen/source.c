#include "source.h"
#include "embed.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int add_op(struct gen_source *s, int n, const char *name, size_t len)
{
    char **grown = realloc(s->ops, (size_t)(n + 2) * sizeof *grown);
    if (!grown) return -1;
    s->ops = grown;
    grown[n] = strndup(name, len);
    grown[n + 1] = NULL;
    return grown[n] ? 0 : -1;
}

static int is_op(const struct gen_source *s, const char *name)
{
    char file[320];
    struct gen_text t;
    snprintf(file, sizeof file, "templates/%.255s/space.lua", name);
    if (name[0] == '.' || source_read(s, file, &t)) return 0;
    source_free(&t);
    return 1;
}

static int list_dir(struct gen_source *s, struct q_err *e)
{
    char path[4096];
    int n = 0, rc = 0;
    snprintf(path, sizeof path, "%s/templates", s->dir);
    DIR *d = opendir(path);
    if (!d) return q_fail(e, Q_EIO, "%s: expected a source tree with templates/", s->dir);
    for (struct dirent *f; !rc && (f = readdir(d));)
        if (is_op(s, f->d_name)) rc = add_op(s, n++, f->d_name, strlen(f->d_name));
    closedir(d);
    if (rc) return q_fail(e, Q_EMEM, "no memory for the list of ops");
    if (n) qsort(s->ops, (size_t)n, sizeof *s->ops, by_name);
    return Q_OK;
}

/* The embedded files are sorted, so the ops come out sorted. */
static int list_embedded(struct gen_source *s, struct q_err *e)
{
    int n = 0, rc = 0;
    for (int i = 0; !rc && i < gen_n_files; i++) {
        const char *name = gen_files[i].name, *slash;
        if (strncmp(name, "templates/", 10) || !(slash = strchr(name + 10, '/')) || strcmp(slash, "/space.lua")) continue;
        rc = add_op(s, n++, name + 10, (size_t)(slash - name - 10));
    }
    return rc ? q_fail(e, Q_EMEM, "no memory for the list of ops") : Q_OK;
}

int source_open(struct gen_source *s, const char *dir, struct q_err *e)
{
    memset(s, 0, sizeof *s);
    s->ops = calloc(1, sizeof *s->ops);
    if (!s->ops || (dir && !(s->dir = strdup(dir)))) return q_fail(e, Q_EMEM, "no memory for a generator");
    return dir ? list_dir(s, e) : list_embedded(s, e);
}

void source_close(struct gen_source *s)
{
    for (int i = 0; s->ops && s->ops[i]; i++) free(s->ops[i]);
    free(s->ops);
    free(s->dir);
}

static int by_file_name(const void *key, const void *f) { return strcmp(key, ((const struct gen_file *)f)->name); }

static int read_embedded(const char *name, struct gen_text *t)
{
    const struct gen_file *f = bsearch(name, gen_files, (size_t)gen_n_files, sizeof *gen_files, by_file_name);
    if (f) *t = (struct gen_text){f->text, f->size, NULL};
    return f ? 0 : -1;
}

/* All of a file up to 4 MiB; NULL if it cannot be read or is larger. */
static char *read_all(FILE *f, size_t *size)
{
    enum { MOST = 4 << 20 };
    char *text = NULL;
    if (!fseek(f, 0, SEEK_END)) {
        long n = ftell(f);
        rewind(f);
        text = n >= 0 && n < MOST ? malloc((size_t)n + 1) : NULL;
        *size = text ? fread(text, 1, (size_t)n, f) : 0;
        if (text) text[*size] = 0;
    }
    return text;
}

int source_read(const struct gen_source *s, const char *name, struct gen_text *t)
{
    char path[4096];
    if (!s->dir) return read_embedded(name, t);
    if (strstr(name, "..") || snprintf(path, sizeof path, "%s/%s", s->dir, name) >= (int)sizeof path) return -1;
    FILE *f = fopen(path, "rb");
    if (!f) return -1;
    t->owned = read_all(f, &t->size);
    t->text = t->owned;
    fclose(f);
    return t->owned ? 0 : -1;
}

void source_free(struct gen_text *t)
{
    free(t->owned);
    t->owned = NULL;
}

const char *const *source_ops(const struct gen_source *s) { return (const char *const *)s->ops; }
