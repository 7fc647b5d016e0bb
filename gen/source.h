/* Where the generator's texts come from: the copies in the program, or a source tree. Internal to gen/. */
#ifndef GEN_SOURCE_H
#define GEN_SOURCE_H

#include "runtime/err.h"
#include <stddef.h>

struct gen_source {
    char *dir;             /* owned; NULL: the embedded copies */
    char **ops;            /* owned, sorted, NULL-terminated */
};

struct gen_text {
    const char *text;
    size_t size;
    char *owned;           /* NULL for an embedded text */
};

int source_open(struct gen_source *s, const char *dir, struct q_err *e);
void source_close(struct gen_source *s);
/* name: "templates/rmsnorm/space.lua". Non-zero if there is no such text. */
int source_read(const struct gen_source *s, const char *name, struct gen_text *t);
void source_free(struct gen_text *t);
/* Ops are the folders of templates/ that hold a space.lua. */
const char *const *source_ops(const struct gen_source *s);

#endif
