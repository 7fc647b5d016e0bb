#include "keys.h"
#include "runtime/cli.h"
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { HASH = crypto_generichash_BYTES };

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

static int add_lines(struct keys *k, const char *text, struct q_err *e)
{
    int rc = Q_OK;
    for (const char *p = text; *p && !rc;) {
        size_t line = strcspn(p, "\n");
        const char *s = p + strspn(p, " \t");
        size_t n = s < p + line ? (size_t)(p + line - s) : 0;
        while (n && strchr(" \t\r", s[n - 1])) n--;
        if (n && *s != '#') rc = add(k, s, n, e);
        p += line + (p[line] == '\n');
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
    int before = k->n, rc = cli_read_file(path, &text, &n, e);
    if (rc) return rc;
    rc = add_lines(k, text, e);
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
