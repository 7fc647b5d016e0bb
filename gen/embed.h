/* The generator's own files as text, printed at build by embed.lua: gen/ scripts and cards, templates/, runtime/kernel.h. */
#ifndef GEN_EMBED_H
#define GEN_EMBED_H

#include <stddef.h>

struct gen_file {
    const char *name;      /* "templates/rmsnorm/space.lua" */
    size_t size;
    const char *text;
};
extern const struct gen_file gen_files[];   /* sorted by name */
extern const int gen_n_files;

#endif
