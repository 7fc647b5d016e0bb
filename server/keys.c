#include "keys.h"
#include "runtime/cli.h"
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { HASH = crypto_generichash_BYTES, MOST_KEY = 4096 };

/* Hashes have one length, so comparing them tells nothing about a key's. */
struct keys {
    int n;
    unsigned char (*hash)[HASH]; /* owned: [n] */
};

static void hash_of(const char *s, size_t n, unsigned char out[HASH])
{
    crypto_generichash(out, HASH, (const unsigned char *)s, n, NULL, 0);
}

static int add(struct keys *k, const char *s, size_t n, struct q_err *e)
{
    void *more = realloc(k->hash, (size_t)(k->n + 1) * sizeof *k->hash);
    if (!more) return q_fail(e, Q_EMEM, "no memory for API keys");
    k->hash = more;
    hash_of(s, n, k->hash[k->n++]);
    return Q_OK;
}

/* What no header can bring would be a key that never fits; and of a text that is cut at a zero byte, its beginning would do. */
static int check_line(const char *s, size_t n, struct q_err *e)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 && s[i] != '\t')
            return q_fail(e, Q_EINPUT, "expected API keys of printable characters, found byte 0x%02x", (unsigned char)s[i]);
    return n > MOST_KEY ? q_fail(e, Q_EINPUT, "expected API keys of at most %d bytes, found one of %zu", MOST_KEY, n) : Q_OK;
}

/* Some editors put a byte order mark in front. */
static int add_lines(struct keys *k, const char *text, size_t size, struct q_err *e)
{
    const char *end = text + size, *p = text + (size >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0);
    int rc = Q_OK;
    for (const char *next; p < end && !rc; p = next) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *last = newline ? newline : end;
        next = newline ? newline + 1 : end;
        while (p < last && (*p == ' ' || *p == '\t')) p++;
        while (last > p && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r')) last--;
        if (p == last || *p == '#') continue;
        rc = check_line(p, (size_t)(last - p), e);
        if (!rc) rc = add(k, p, (size_t)(last - p), e);
    }
    return rc;
}

int keys_open(struct keys **out, struct q_err *e)
{
    *out = sodium_init() < 0 ? NULL : calloc(1, sizeof **out);
    return *out ? Q_OK : q_fail(e, Q_EMEM, "no memory for API keys");
}

int keys_add(struct keys *k, const char *key, struct q_err *e) { return add(k, key, strlen(key), e); }

int keys_add_file(struct keys *k, const char *path, struct q_err *e)
{
    char *text;
    size_t n;
    struct q_err why;
    int before = k->n, rc = cli_read_file(path, &text, &n, e);
    if (rc) return rc;
    if (add_lines(k, text, n, &why)) rc = q_fail(e, why.code, "%s: %s", path, why.text);
    sodium_memzero(text, n);
    free(text);
    return rc || k->n > before ? rc : q_fail(e, Q_EINPUT, "%s: expected API keys, one a line, found none", path);
}

void keys_close(struct keys *k)
{
    if (!k) return;
    free(k->hash);
    free(k);
}

int keys_match(const struct keys *k, const char *given)
{
    unsigned char h[HASH];
    int which = 0;
    hash_of(given, strlen(given), h);
    /* The last of equal ones; no branch. */
    for (int i = 0; i < k->n; i++) {
        int same = -!sodium_memcmp(h, k->hash[i], HASH);
        which = (which & ~same) | ((i + 1) & same);
    }
    return which;
}
