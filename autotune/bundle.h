/* A bundle: records of one card, and what was made of them, in one file that travels: NAME.tar.zst.
 *
 *   MANIFEST.json              first: format, the program that made it, card, models, every other member's size and SHA-256
 *   MANIFEST.json.minisig      when signed: minisign's form, over the manifest, and through its hashes over all
 *   objects/NAME.so|.cubin     optional: what the records' kernels were compiled to; NAME is the hash in the record
 *   records/OP/FILE.json       as in a store
 *   src/KERNEL.c|.cu           generated text, for people: nothing reads it back
 *
 * Members are sorted, of mode 0644, owner 0 and time 0, so the same records give the same bytes. A reader takes nothing on trust: every
 * member must be a plain file that the manifest lists in this order, named by the grammar above, of that size and hash; numbers and sizes are bounded
 * before memory is taken. Members are held in memory and are never written under the names that they came with. What a record says is
 * another question: judge.h. */
#ifndef Q_BUNDLE_H
#define Q_BUNDLE_H

#include "minisign.h"
#include "runtime/err.h"
#include <stddef.h>

enum {
    BUNDLE_FORMAT = 1,
    BUNDLE_MEMBERS = 8192,
    BUNDLE_MODELS = 16,
    BUNDLE_FILE = 256 << 20,       /* bytes of the file, and of all its members */
    BUNDLE_MANIFEST = 4 << 20,
    BUNDLE_OBJECT = 32 << 20,
    BUNDLE_TEXT = 2 << 20,         /* a generated text */
    BUNDLE_PATH = 200,
};

struct bundle_member {
    char path[BUNDLE_PATH];
    char sha[65];
    char *data;                    /* owned, a NUL behind it; NULL for texts of src/ that were read: they are hashed and dropped */
    size_t n;
};

struct bundle {
    char creator[40];              /* "quarry 0.1.0" */
    char card[192];
    char model[BUNDLE_MODELS][64]; /* "qwen3.5-9b q8_0": what it was made for, for information; none: all of a card */
    int n_models;
    struct bundle_member *m;       /* owned, sorted by path */
    int n;
    /* of a bundle that was read */
    char *manifest;                /* owned */
    size_t manifest_n;
    struct minisign_signature signature;
    int has_signature;
};

void bundle_free(struct bundle *b);
/* Adds a member. data is copied. Q_EINPUT for a path that no bundle has, or that is there (with other bytes). */
int bundle_add(struct bundle *b, const char *path, const void *data, size_t n, struct q_err *e);
/* NULL: none of that name. */
const struct bundle_member *bundle_find(const struct bundle *b, const char *path);

/* --- bundle_write.c --- */

/* The file's bytes, owned by the caller. key NULL: not signed. Sorts the members. */
int bundle_pack(struct bundle *b, const struct minisign_secret *key, char **data, size_t *n, struct q_err *e);

/* --- bundle_read.c --- */

/* where (a path) begins the error's line. On an error the bundle is empty. */
int bundle_unpack(struct bundle *b, const void *data, size_t n, const char *where, struct q_err *e);
int bundle_read(struct bundle *b, const char *path, struct q_err *e);

/* --- bundle_manifest.c --- */

enum bundle_kind { BUNDLE_NONE, BUNDLE_RECORD, BUNDLE_SOURCE, BUNDLE_BINARY };
/* What a member of that name holds; BUNDLE_NONE for a name that no bundle has. most: the most bytes of it. */
enum bundle_kind bundle_kind_of(const char *path, size_t *most);
/* Owned by the caller; NULL when memory is short. */
char *bundle_print_manifest(const struct bundle *b);
/* Fills creator, card, models, and members without data. */
int bundle_parse_manifest(struct bundle *b, const char *text, size_t n, const char *where, struct q_err *e);

#endif
