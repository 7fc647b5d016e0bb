/* quarry tune trust: the keys whose binaries are used here, and a key of one's own to sign with. */
#include "runtime/files.h"
#include "trusted.h"
#include "verbs.h"
#include <stdlib.h>
#include <string.h>

static void print_key(const struct minisign_public *k, const char *comment)
{
    char line[MINISIGN_LINE], id[MINISIGN_ID];
    minisign_public_print(line, k);
    minisign_id(id, k->id);
    printf("%s %s%s%s\n", line, id, *comment ? " " : "", comment);
}

static int list(struct q_err *e)
{
    struct trusted_list l;
    int rc = trusted_read(&l, e);
    for (int i = 0; i < l.n && !rc; i++) print_key(&l.v[i].key, l.v[i].comment);
    if (!rc && !l.n) fputs("quarry-tune: no key is trusted: kernel sets come in as data, and every kernel is compiled here\n", stderr);
    return rc;
}

/* *e: what its text lacks. */
static void fail_file(const char *path, const char *text, struct q_err *e)
{
    struct q_err why = *e;
    if (!minisign_is_secret(text)) q_fail(e, why.code, "%.200s: %.400s", path, why.text);
    else q_fail(e, why.code, "%s holds a secret key: expected the public one, the line of 56 characters that was printed when it was made", path);
}

/* A key's line, or a file that holds it behind minisign's comment. */
static int read_key(struct minisign_public *k, char comment[128], const char *word, struct q_err *e)
{
    char *text;
    size_t n;
    comment[0] = 0;
    if (!minisign_public_parse(k, word, e)) return Q_OK;
    if (file_read(word, 4096, &text, &n, NULL))
        return q_fail(e, Q_EINPUT, "'%.100s' is neither a public key (56 characters that begin with RW) nor a file with one", word);
    static const char lead[] = "untrusted comment: ";
    int rc = minisign_public_parse(k, text, e);
    if (rc) fail_file(word, text, e);
    if (!strncmp(text, lead, sizeof lead - 1)) snprintf(comment, 128, "%.*s", (int)strcspn(text + sizeof lead - 1, "\r\n"), text + sizeof lead - 1);
    free(text);
    return rc;
}

static int add(const char *word, struct q_err *e)
{
    struct trusted_list l;
    struct minisign_public k;
    char comment[128], id[MINISIGN_ID];
    int known, rc = trusted_read(&l, e);
    if (!rc) rc = read_key(&k, comment, word, e);
    if (!rc) rc = trusted_add(&l, &k, comment, &known, e);
    if (!rc && !known) rc = trusted_write(&l, e);
    if (rc) return rc;
    minisign_id(id, k.id);
    printf("%s %s: kernels in sets that this key signed run as they come\n", known ? "trusted already" : "trusted", id);
    return Q_OK;
}

static int drop(const char *which, struct q_err *e)
{
    struct trusted_list l;
    int rc = trusted_read(&l, e);
    if (!rc) rc = trusted_remove(&l, which, e);
    if (!rc) rc = trusted_write(&l, e);
    if (!rc) printf("no longer trusted: %s\n", which);
    return rc;
}

static int make(const char *path, struct q_err *e)
{
    struct minisign_public k;
    int rc = minisign_new(path, &k, e);
    if (rc) return rc;
    fprintf(stderr, "quarry-tune: %s: a new secret key, without a password: keep it to yourself; the public one for others to trust:\n", path);
    print_key(&k, "");
    return Q_OK;
}

int verb_trust(const struct options *o, struct q_err *e)
{
    if (o->new_key) return make(o->new_key, e);
    if (o->remove) return drop(o->remove, e);
    return o->n_args ? add(o->args[0], e) : list(e);
}
