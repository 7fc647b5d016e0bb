/* Prompts of a wanted length for a server whose tokenizer is not here: the server's own counts of two short prompts give the scale. */
#include "bench_url.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Frequent English words, one token or two in the vocabularies in use. */
static const char *const words[] = {
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state", "family", "student", "group",
    "country", "problem", "hand", "part", "place", "case", "week", "company", "system", "program", "question", "work", "government", "number",
    "night", "point", "home", "water", "room", "mother", "area", "money", "story", "fact", "month", "lot", "right", "study", "book", "eye",
    "job", "word", "business", "issue", "side", "kind", "head", "house", "service", "friend", "father", "power", "hour", "game", "line", "end",
    "member", "law"
};
enum { N_WORDS = sizeof words / sizeof *words, SHORT = 60, LONG = 460 };
static const struct bench_url_scale usual = {.fixed = 12, .each = 1.3};

/* splitmix64 (Steele, Lea, Flood 2014). */
static unsigned long long next(unsigned long long *state)
{
    unsigned long long z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static char *text_of(long n, unsigned long long salt)
{
    size_t cap = (size_t)n * 12 + 32, at = 0;
    char *s = malloc(cap);
    if (!s) return NULL;
    unsigned long long state = salt;
    at += (size_t)snprintf(s, cap, "%s %s", words[next(&state) % N_WORDS], words[next(&state) % N_WORDS]);
    for (long i = 2; i < n; i++) at += (size_t)snprintf(s + at, cap - at, "%s%s", i % 24 ? " " : ".\n", words[next(&state) % N_WORDS]);
    return s;
}

char *bench_url_text(const struct bench_url_scale *s, int tokens, unsigned long long salt)
{
    double n = (tokens - s->fixed) / s->each;
    return text_of(n < 2 ? 2 : (long)(n + 0.5), salt);
}

static int count(struct http_client *c, const struct bench_url_ask *like, long n, unsigned long long salt, int *tokens, struct q_err *e)
{
    struct bench_url_ask ask = *like;
    struct bench_url_got got;
    char *text = text_of(n, salt);
    if (!text) return q_fail(e, Q_EMEM, "no memory for a prompt");
    ask.text = text;
    ask.generate = 2;
    int rc = bench_url_run(c, &ask, &got, e);
    free(text);
    *tokens = got.prompt;
    return rc;
}

int bench_url_scale(struct http_client *c, const struct bench_url_ask *like, struct bench_url_scale *s, struct q_err *e)
{
    int few, many;
    int rc = count(c, like, SHORT, 1, &few, e);
    if (!rc) rc = count(c, like, LONG, 2, &many, e);
    if (rc) return rc;
    *s = usual;
    if (few <= 0 || many <= few) return Q_OK;
    s->each = (double)(many - few) / (LONG - SHORT);
    s->fixed = few - SHORT * s->each;
    return Q_OK;
}
