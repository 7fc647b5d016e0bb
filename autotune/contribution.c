#define _GNU_SOURCE
#include "contribution.h"
#include "progress.h"
#include "runtime/files.h"
#include "runtime/json_check.h"
#include <stdlib.h>
#include <string.h>

#ifndef QUARRY_VERSION
#define QUARRY_VERSION "0"
#endif

enum { RECORD_DEPTH = 8 };

#define FIRST_LINE "# quarry contribution 1"
#define HASH_LINE "sha256 "

void contribution_free(struct contribution *c)
{
    card_lines_free(&c->lines);
}

static void add_compiler(struct contribution *c, const char *compiler)
{
    for (int i = 0; i < c->n_compilers; i++)
        if (!strcmp(c->compiler[i], compiler)) return;
    if (c->n_compilers < CONTRIBUTION_CODES) strcpy(c->compiler[c->n_compilers++], compiler);
}

int contribution_add(struct contribution *c, const struct record *r, struct q_err *e)
{
    for (int i = 0; i < r->n_objects; i++) add_compiler(c, r->objects[i].compiler);
    return card_lines_put(&c->lines, r, e);
}

/* --- writing ----------------------------------------------------------------------------------------------------------- */

static void print_rate(FILE *f, const char *name, double rate, double unit, const char *unit_name)
{
    if (rate > 0) fprintf(f, " %s %.1f %s", name, rate / unit, unit_name);
}

static void print_ceilings(FILE *f, const struct q_roofs *r)
{
    fputs("# ceilings ", f);
    print_rate(f, "read", r->read, 1e9, "GB/s,");
    print_rate(f, "dp4a", r->dp4a, 1e12, "TOP/s,");
    print_rate(f, "hfma2", r->hfma2, 1e12, "TFLOP/s,");
    print_rate(f, "ffma", r->ffma, 1e12, "TFLOP/s,");
    print_rate(f, "mma_f16", r->mma_f16, 1e12, "TFLOP/s,");
    print_rate(f, "mma_i8", r->mma_i8, 1e12, "TOP/s,");
    fputs(r->read > 0 ? " measured on it\n" : " not recorded\n", f);
}

/* Each driver that a record names, once. */
static void print_drivers(FILE *f, const struct card_lines *l)
{
    int known = 0;
    fputs("# driver    ", f);
    for (int i = 0; i < l->n; i++) {
        int before = 0;
        for (int j = 0; j < i; j++) before |= !strcmp(l->v[j].record.driver, l->v[i].record.driver);
        if (before || !l->v[i].record.driver[0]) continue;
        fprintf(f, "%s%s", known++ ? ", " : "", l->v[i].record.driver);
    }
    fputs(known ? "\n" : "none, or not recorded\n", f);
}

static void print_compilers(FILE *f, const struct contribution *c)
{
    fputs("# compiler  ", f);
    for (int i = 0; i < c->n_compilers; i++) fprintf(f, "%s%s", i ? "; " : "", c->compiler[i]);
    fputs(c->n_compilers ? "\n" : "not recorded\n", f);
}

/* What a winner did at one size, and how it was judged. */
static void print_row(FILE *f, const struct record *r)
{
    double us = r->n_times ? r->time[0].median_us : 0, mad = r->n_times ? r->time[0].mad_us : 0;
    int rows = r->n_times ? r->time[0].rows : 0, past = r->n_times ? r->time[0].past : 0;
    char roof[PROGRESS_ROOF];
    if (!r->kernel[0]) {
        fprintf(f, "# | %-12s | %-68s | a choice, timed with what it is for | %s\n", r->op, r->shape, r->params);
        return;
    }
    progress_roof_cell(roof, r);
    fprintf(f, "# | %-12s | %-68s | %5d %6d | %10.2f | %5.1f | %-11s | %10.2f | %5.1f | %-6s | %s\n", r->op, r->shape, rows, past, us,
            us > 0 ? 100 * mad / us : 0, roof, r->base_us, 100 * r->gain, r->effort, r->params);
}

static void print_head(FILE *f, const struct contribution *c)
{
    fprintf(f, FIRST_LINE "\n# card      %s\n# quarry    " QUARRY_VERSION "\n", c->card);
    print_drivers(f, &c->lines);
    print_compilers(f, c);
    fputs("# clocks    not recorded\n", f);
    print_ceilings(f, &c->roofs);
    fprintf(f, "# records   %d\n#\n", c->lines.n);
    fprintf(f, "# | %-12s | %-68s | %12s | %10s | %5s | %11s | %10s | %5s | %-6s | %s\n", "op", "shape", "rows   past", "us", "+- %", "% of roof",
            "default us", "gain%", "effort", "params");
}

char *contribution_print(struct contribution *c)
{
    char *text = NULL, *lines = NULL, hex[65];
    size_t n = 0, lines_n = 0;
    FILE *below = open_memstream(&lines, &lines_n), *f = open_memstream(&text, &n);
    if (below) card_lines_print(below, &c->lines);
    int failed = !below || fclose(below);
    if (f && !failed) {
        sha_bytes(hex, lines, lines_n);
        print_head(f, c);
        for (int i = 0; i < c->lines.n; i++) print_row(f, &c->lines.v[i].record);
        fprintf(f, "#\n%s" HASH_LINE "%s\n", lines, hex);
    }
    failed |= !f || fclose(f);
    free(lines);
    if (!failed) return text;
    free(text);
    return NULL;
}

/* --- reading ----------------------------------------------------------------------------------------------------------- */

struct reading {
    struct contribution *c;
    const char *where;
    int number;                /* of the line, from 1 */
    char *records;             /* owned: their lines as they were read, for the hash */
    size_t n;
    char hash[65];             /* "" until it was read */
    struct record record;
};

static int bad_line(const struct reading *rd, const char *expected, const char *line, size_t n, struct q_err *e)
{
    return q_fail(e, Q_EINPUT, "%s:%d: expected %s, found '%.*s'", rd->where, rd->number, expected, n > 60 ? 60 : (int)n, line);
}

static int read_record(struct reading *rd, const char *line, size_t n, struct q_err *e)
{
    char where[Q_PATH + 32];
    struct record *r = &rd->record;
    snprintf(where, sizeof where, "%s:%d", rd->where, rd->number);
    int rc = json_check(line, n, RECORD_DEPTH, where, e);
    if (rc || (rc = record_parse(r, line, n, where, e))) return rc;
    if (!rd->c->card[0]) strcpy(rd->c->card, r->card);
    if (strcmp(rd->c->card, r->card))
        return q_fail(e, Q_EINPUT, "%s: expected records of one card, %s, found one of %s", where, rd->c->card, r->card);
    if (card_lines_find(&rd->c->lines, r)) return q_fail(e, Q_EINPUT, "%s: a second record of %s %s", where, r->op, r->shape);
    memcpy(rd->records + rd->n, line, n);
    rd->records[rd->n + n] = '\n';
    rd->n += n + 1;
    return card_lines_put(&rd->c->lines, r, e);
}

static int read_hash(struct reading *rd, const char *line, size_t n, struct q_err *e)
{
    size_t word = strlen(HASH_LINE);
    if (n != word + 64 || strspn(line + word, "0123456789abcdef") < 64) return bad_line(rd, "sha256 and 64 hexadecimal digits", line, n, e);
    memcpy(rd->hash, line + word, 64);
    return Q_OK;
}

/* A mailer's carriage return at the end is left out before. */
static int read_line(struct reading *rd, const char *line, size_t n, struct q_err *e)
{
    int first = n == strlen(FIRST_LINE) && !memcmp(line, FIRST_LINE, n);
    if (rd->number == 1) return first ? Q_OK : bad_line(rd, "'" FIRST_LINE "'", line, n, e);
    if (!n || line[0] == '#') return Q_OK;
    if (rd->hash[0]) return bad_line(rd, "nothing behind the hash", line, n, e);
    if (line[0] == '{') return read_record(rd, line, n, e);
    if (n >= strlen(HASH_LINE) && !memcmp(line, HASH_LINE, strlen(HASH_LINE))) return read_hash(rd, line, n, e);
    return bad_line(rd, "a record, a line with '#' or the hash", line, n, e);
}

static int check_whole(const struct reading *rd, struct q_err *e)
{
    char hex[65];
    if (!rd->c->lines.n) return q_fail(e, Q_EINPUT, "%s: expected records, found none", rd->where);
    if (!rd->hash[0]) return q_fail(e, Q_EINPUT, "%s: expected 'sha256 ..' as its last line: the text is cut", rd->where);
    sha_bytes(hex, rd->records, rd->n);
    return strcmp(hex, rd->hash) ? q_fail(e, Q_EINPUT, "%s: the records were changed on their way: their hash is %s", rd->where, hex) : Q_OK;
}

int contribution_parse(struct contribution *c, const char *text, size_t n, const char *where, struct q_err *e)
{
    struct reading *rd = calloc(1, sizeof *rd);
    int rc = 0;
    memset(c, 0, sizeof *c);
    if (!rd || !(rd->records = malloc(n + 1))) rc = q_fail(e, Q_EMEM, "%s: no memory to read it", where);
    if (rd) rd->c = c, rd->where = where;
    if (!rc && !utf8_valid(text, n)) rc = q_fail(e, Q_EINPUT, "%s: expected UTF-8 text", where);
    for (const char *at = text, *end; !rc && at < text + n; at = end + 1) {
        if (!(end = memchr(at, '\n', (size_t)(text + n - at)))) end = text + n;
        rd->number++;
        rc = read_line(rd, at, (size_t)(end - at - (end > at && end[-1] == '\r')), e);
    }
    if (!rc) rc = check_whole(rd, e);
    if (rd) free(rd->records);
    free(rd);
    if (rc) contribution_free(c);
    return rc;
}
