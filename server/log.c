#include "log.h"
#include "options.h"
#include <stdio.h>
#include <time.h>

/* -q is for people; who asked for lines that a program reads gets them. */
static int is_quiet(const struct options *o) { return o->cli.quiet && !o->log_json; }

/* {"time":"2026-01-31T23:59:59.123Z" and no end yet. */
static void begin_json(struct text *t)
{
    struct timespec now;
    struct tm utc;
    char s[40];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(s, sizeof s, "%Y-%m-%dT%H:%M:%S", &utc);
    text_printf(t, "{\"time\":\"%s.%03ldZ\"", s, now.tv_nsec / 1000000);
}

static void put_member(struct text *t, const char *name, const char *value)
{
    text_printf(t, ",\"%s\":", name);
    text_json_z(t, value);
}

/* Whole lines in one write, so that those of several threads do not mix. */
static void write_line(struct text *t)
{
    text_put(t, "\n");
    if (text_ok(t)) fwrite(t->at, 1, t->n, stderr);
    text_free(t);
}

void log_line(const struct options *o, const char *line)
{
    struct text t = {0};
    if (is_quiet(o)) return;
    if (o->log_json) {
        begin_json(&t);
        put_member(&t, "message", line);
        text_put(&t, "}");
    } else {
        text_printf(&t, "# %s", line);
    }
    write_line(&t);
}

void log_request(const struct options *o, const struct log_request *r)
{
    struct text t = {0};
    if (is_quiet(o)) return;
    if (o->log_json) {
        begin_json(&t);
        put_member(&t, "id", r->id);
        put_member(&t, "client", r->client);
        put_member(&t, "method", r->method);
        put_member(&t, "path", r->path);
        text_printf(&t, ",\"status\":%d,\"seconds\":%.3f,\"body_bytes\":%zu", r->status, r->seconds, r->body_bytes);
        put_member(&t, "note", r->note);
        text_put(&t, "}");
    } else {
        text_printf(&t, "# %s %s %d %.3f s%s%s", r->method, r->path, r->status, r->seconds, r->note[0] ? ": " : "", r->note);
    }
    write_line(&t);
}

void log_text(const struct options *o, const char *id, const char *what, const struct text *text)
{
    struct text t = {0};
    if (is_quiet(o) || !text->n) return;
    if (o->log_json) {
        begin_json(&t);
        put_member(&t, "id", id);
        text_printf(&t, ",\"%s\":", what);
    } else {
        text_printf(&t, "# %s %s: ", id, what);
    }
    text_json(&t, text->at, text->n);
    if (o->log_json) text_put(&t, "}");
    write_line(&t);
}
