/* Damaged files of the store, told in one line a place however many they are: see store.h. */
#include "store_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each file counts once: it is met again on every look-up. */
static int seen(const struct store *s, const char *path)
{
    size_t n = strlen(path);
    for (const char *at = s->damaged; at && (at = strstr(at, path)); at += n)
        if ((at == s->damaged || at[-1] == '\n') && at[n] == '\n') return 1;
    return 0;
}

static int remember(struct store *s, const char *path)
{
    size_t have = s->damaged ? strlen(s->damaged) : 0, n = strlen(path);
    char *more = realloc(s->damaged, have + n + 2);
    if (!more) return 0;
    memcpy(more + have, path, n);
    memcpy(more + have + n, "\n", 2);
    s->damaged = more;
    return 1;
}

void store_damaged(struct store *s, int place, const char *path, const char *why)
{
    struct store_damage *d = &s->damage[place == s->defaults ? STORE_CACHE : place];
    if (seen(s, path) || !remember(s, path)) return;
    if (!d->n++) snprintf(d->first, sizeof d->first, "%.1100s", why);
}

/* Only a tune mends a winner; all else is built again. */
static void tell(const struct store *s, int place)
{
    const struct store_damage *d = &s->damage[place];
    int cache = place == STORE_CACHE;
    const char *dir = cache ? s->cache : s->layers[place].dir;
    if (d->n == 1) store_say(s, "%s; not used", d->first);
    else if (d->n) store_say(s, "%d damaged files under %s (first: %s); %s", d->n, dir, d->first, cache ? "built anew when needed" : "not used");
}

void store_tell(struct store *s)
{
    for (int i = 0; i <= STORE_CACHE; i++) tell(s, i);
    memset(s->damage, 0, sizeof s->damage);
}
