#define _GNU_SOURCE
#include "minisign.h"
#include "runtime/files.h"
#include "runtime/plain.h"
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNTRUSTED "untrusted comment: "
#define TRUSTED "trusted comment: "

/* The three things as they lie in base64. */
struct packed_public {
    unsigned char alg[2], id[8], key[32];
};

struct packed_secret {
    unsigned char alg[2], kdf[2], check_alg[2], salt[32], ops[8], memory[8], id[8], key[64], check[32];
};

struct packed_signature {
    unsigned char alg[2], id[8], sig[64];
};

/* Exactly n bytes of base64 in text[0..len). */
static int decode(void *dst, size_t n, const char *text, size_t len)
{
    size_t got;
    return !sodium_base642bin(dst, n, text, len, NULL, &got, NULL, sodium_base64_VARIANT_ORIGINAL) && got == n;
}

void minisign_id(char dst[MINISIGN_ID], const unsigned char id[8])
{
    for (int i = 0; i < 8; i++) snprintf(dst + 2 * i, 3, "%02X", id[7 - i]);
}

/* --- public keys ------------------------------------------------------------------------------------------------------- */

void minisign_public_print(char dst[MINISIGN_LINE], const struct minisign_public *k)
{
    struct packed_public p = { .alg = "Ed" };
    memcpy(p.id, k->id, sizeof p.id);
    memcpy(p.key, k->key, sizeof p.key);
    sodium_bin2base64(dst, MINISIGN_LINE, (const unsigned char *)&p, sizeof p, sodium_base64_VARIANT_ORIGINAL);
}

/* Behind minisign's comment, if there is one; n: its length. */
static const char *key_line(const char *text, size_t *n)
{
    if (!strncmp(text, UNTRUSTED, strlen(UNTRUSTED))) text += strcspn(text, "\n");
    text += strspn(text, " \r\n");
    *n = strcspn(text, " \r\n");
    return text;
}

static int fail_key(const char *text, struct q_err *e)
{
    char found[61];
    snprintf(found, sizeof found, "%s", text);
    plain_line(found);
    return q_fail(e, Q_EINPUT, "'%s': expected a minisign public key: 56 characters that begin with RW", found);
}

int minisign_public_parse(struct minisign_public *k, const char *text, struct q_err *e)
{
    struct packed_public p;
    size_t n;
    text = key_line(text, &n);
    if (n != MINISIGN_LINE - 1 || !decode(&p, sizeof p, text, n) || memcmp(p.alg, "Ed", 2))
        return fail_key(text, e);
    memcpy(k->id, p.id, sizeof k->id);
    memcpy(k->key, p.key, sizeof k->key);
    return Q_OK;
}

int minisign_is_secret(const char *text)
{
    size_t n;
    text = key_line(text, &n);
    return !strncmp(text, "RW", 2) && n == sodium_base64_ENCODED_LEN(sizeof(struct packed_secret), sodium_base64_VARIANT_ORIGINAL) - 1;
}

/* --- secret keys ------------------------------------------------------------------------------------------------------- */

static void checksum(unsigned char sum[32], const struct packed_secret *p)
{
    crypto_generichash_state st;
    crypto_generichash_init(&st, NULL, 0, 32);
    crypto_generichash_update(&st, p->alg, sizeof p->alg);
    crypto_generichash_update(&st, p->id, sizeof p->id);
    crypto_generichash_update(&st, p->key, sizeof p->key);
    crypto_generichash_final(&st, sum, 32);
}

/* Never over a file that is there: it may be a key that signed what others trust. */
static int write_new(const char *path, const char *text, struct q_err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t n = strlen(text);
    if (fd < 0) return q_fail(e, Q_EIO, "%s: cannot create the key's file: %s", path, strerror(errno));
    int failed = write(fd, text, n) != (ssize_t)n || fsync(fd);
    close(fd);
    if (!failed) return Q_OK;
    unlink(path);
    return q_fail(e, Q_EIO, "%s: cannot write the key's file", path);
}

int minisign_new(const char *path, struct minisign_public *k, struct q_err *e)
{
    struct packed_secret p = { .alg = "Ed", .check_alg = "B2" };   /* kdf of zeros: no password */
    char line[sodium_base64_ENCODED_LEN(sizeof p, sodium_base64_VARIANT_ORIGINAL)], text[sizeof line + 100];
    if (sodium_init() < 0) return q_fail(e, Q_EINTERNAL, "no random numbers for a key");
    randombytes_buf(p.id, sizeof p.id);
    struct minisign_public made;
    crypto_sign_keypair(made.key, p.key);
    memcpy(made.id, p.id, sizeof made.id);
    checksum(p.check, &p);
    sodium_bin2base64(line, sizeof line, (const unsigned char *)&p, sizeof p, sodium_base64_VARIANT_ORIGINAL);
    snprintf(text, sizeof text, UNTRUSTED "quarry secret key, without a password\n%s\n", line);
    int r = write_new(path, text, e);
    if (!r) *k = made;
    sodium_memzero(&p, sizeof p);
    sodium_memzero(line, sizeof line);
    sodium_memzero(text, sizeof text);
    return r;
}

static int unpack_secret(struct minisign_secret *k, const char *path, const char *text, struct q_err *e)
{
    struct packed_secret p;
    unsigned char sum[32];
    const char *line = strchr(text, '\n');
    if (strncmp(text, UNTRUSTED, strlen(UNTRUSTED)) || !line || !decode(&p, sizeof p, line + 1, strcspn(line + 1, "\r\n")) || memcmp(p.alg, "Ed", 2))
        return q_fail(e, Q_EINPUT, "%s: expected a minisign secret key", path);
    if (p.kdf[0] || p.kdf[1])
        return q_fail(e, Q_EUNSUP, "%s: the key has a password: expected one without (minisign -G -W, or quarry tune trust --new FILE)", path);
    checksum(sum, &p);
    if (memcmp(sum, p.check, sizeof sum)) return q_fail(e, Q_EINPUT, "%s: damaged secret key: its checksum is wrong", path);
    memcpy(k->id, p.id, sizeof k->id);
    memcpy(k->key, p.key, sizeof k->key);
    sodium_memzero(&p, sizeof p);
    return Q_OK;
}

/* As ssh does with its keys: one of this user's that others can read may be theirs already. */
static int check_mode(const char *path, struct q_err *e)
{
    struct stat st;
    if (stat(path, &st) || st.st_uid != geteuid() || !(st.st_mode & 077)) return Q_OK;
    return q_fail(e, Q_EINPUT, "%s: others can use this secret key: expected mode 0600, found %04o (chmod 600 %s)", path, st.st_mode & 07777, path);
}

int minisign_secret_read(struct minisign_secret *k, const char *path, struct q_err *e)
{
    char *text;
    size_t n;
    int r = file_read(path, 4096, &text, &n, e);
    if (r) return r;
    r = check_mode(path, e);
    if (!r) r = unpack_secret(k, path, text, e);
    sodium_memzero(text, n);
    free(text);
    return r;
}

/* --- signatures -------------------------------------------------------------------------------------------------------- */

/* What is signed stands for the data: its hash. */
static void hash_data(unsigned char hash[64], const void *data, size_t n) { crypto_generichash(hash, 64, data, n, NULL, 0); }

/* The second signature binds the comment to the first. */
static size_t join(unsigned char *dst, const unsigned char sig[64], const char *comment)
{
    memcpy(dst, sig, 64);
    memcpy(dst + 64, comment, strlen(comment));
    return 64 + strlen(comment);
}

void minisign_sign(char text[MINISIGN_TEXT], const struct minisign_secret *k, const void *data, size_t n, const char *comment)
{
    struct packed_signature p = { .alg = "ED" };
    unsigned char hash[64], both[64 + 256], global[64];
    char line[128], last[128], note[256];
    snprintf(note, sizeof note, "%s", comment);
    memcpy(p.id, k->id, sizeof p.id);
    hash_data(hash, data, n);
    crypto_sign_detached(p.sig, NULL, hash, sizeof hash, k->key);
    crypto_sign_detached(global, NULL, both, join(both, p.sig, note), k->key);
    sodium_bin2base64(line, sizeof line, (const unsigned char *)&p, sizeof p, sodium_base64_VARIANT_ORIGINAL);
    sodium_bin2base64(last, sizeof last, global, sizeof global, sodium_base64_VARIANT_ORIGINAL);
    snprintf(text, MINISIGN_TEXT, UNTRUSTED "signature of a quarry kernel set\n%s\n" TRUSTED "%s\n%s\n", line, note, last);
}

/* The next line of *text, which moves behind it; -1 at the end. */
static int next_line(const char **text, const char *end, const char **line)
{
    if (*text >= end) return -1;
    const char *nl = memchr(*text, '\n', (size_t)(end - *text));
    int n = (int)((nl ? nl : end) - *text);
    *line = *text;
    *text += n + 1;
    return n && (*line)[n - 1] == '\r' ? n - 1 : n;
}

int minisign_parse(struct minisign_signature *s, const char *text, size_t n, struct q_err *e)
{
    struct packed_signature p;
    const char *end = text + n, *l[4];
    size_t skip = strlen(TRUSTED);
    int len[4];
    memset(s, 0, sizeof *s);
    for (int i = 0; i < 4; i++)
        if ((len[i] = next_line(&text, end, &l[i])) < 0) return q_fail(e, Q_EINPUT, "signature: expected four lines, found %d", i);
    if (!decode(&p, sizeof p, l[1], (size_t)len[1]) || memcmp(p.alg, "ED", 2) || !decode(s->global, sizeof s->global, l[3], (size_t)len[3]))
        return q_fail(e, Q_EINPUT, "signature: expected minisign's form with a hash (ED)");
    if ((size_t)len[2] < skip || memcmp(l[2], TRUSTED, skip) || (size_t)len[2] - skip >= sizeof s->comment || memchr(l[2], 0, (size_t)len[2]))
        return q_fail(e, Q_EINPUT, "signature: expected a trusted comment of at most %zu bytes", sizeof s->comment - 1);
    memcpy(s->comment, l[2] + skip, (size_t)len[2] - skip);
    memcpy(s->id, p.id, sizeof s->id);
    memcpy(s->sig, p.sig, sizeof s->sig);
    return Q_OK;
}

int minisign_verify(const struct minisign_signature *s, const struct minisign_public *k, const void *data, size_t n)
{
    unsigned char hash[64], both[64 + sizeof s->comment];
    hash_data(hash, data, n);
    return !memcmp(s->id, k->id, sizeof s->id) && !crypto_sign_verify_detached(s->sig, hash, sizeof hash, k->key)
           && !crypto_sign_verify_detached(s->global, both, join(both, s->sig, s->comment), k->key);
}
