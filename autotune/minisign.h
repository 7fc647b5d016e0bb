/* Signatures as minisign makes and checks them (Ed25519 over BLAKE2b-512, "ED"), so that a kernel set can be checked without quarry:
 * `minisign -Vm MANIFEST.json -p KEY.pub`. libsodium does the cryptography; this is the form of the texts around it.
 *
 * Secret keys are files without a password (as `minisign -G -W` makes them), mode 0600. Not here: passwords, signatures of the older form
 * without a hash ("Ed"). Which keys are believed is trusted.h's. */
#ifndef Q_MINISIGN_H
#define Q_MINISIGN_H

#include "runtime/err.h"
#include <stddef.h>

enum { MINISIGN_LINE = 57, MINISIGN_ID = 17, MINISIGN_TEXT = 1024 };

struct minisign_public {
    unsigned char id[8], key[32];
};

struct minisign_secret {
    unsigned char id[8], key[64];
};

/* The id as minisign prints it: 16 hex digits. */
void minisign_id(char dst[MINISIGN_ID], const unsigned char id[8]);
/* "RW...", 56 characters. */
void minisign_public_print(char dst[MINISIGN_LINE], const struct minisign_public *k);
/* text: that line, or a file's whole text, whose first line is then a comment. */
int minisign_public_parse(struct minisign_public *k, const char *text, struct q_err *e);
/* Whether text, the same, holds a secret key instead. */
int minisign_is_secret(const char *text);

/* A fresh pair; the secret half goes to a new file (Q_EIO where there is one). */
int minisign_new(const char *path, struct minisign_public *k, struct q_err *e);
int minisign_secret_read(struct minisign_secret *k, const char *path, struct q_err *e);

/* The text of a signature file over data[0..n), with a trusted comment of one line. */
void minisign_sign(char text[MINISIGN_TEXT], const struct minisign_secret *k, const void *data, size_t n, const char *comment);

/* A signature that was read: text is any bytes, not ended by a NUL. */
struct minisign_signature {
    unsigned char id[8], sig[64], global[64];
    char comment[256];
};
int minisign_parse(struct minisign_signature *s, const char *text, size_t n, struct q_err *e);
/* 1 when it is the key's, over these bytes and its comment. */
int minisign_verify(const struct minisign_signature *s, const struct minisign_public *k, const void *data, size_t n);

#endif
