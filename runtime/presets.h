/* The model shapes known by name: the texts of gen/models/, put into the program when it is built (runtime/embed.lua). */
#ifndef Q_PRESETS_H
#define Q_PRESETS_H

#include "config.h"
#include <stddef.h>

struct q_preset {
    const char *name;        /* "qwen3.5-9b" */
    const char *text;        /* its file */
    const size_t *size;
};
extern const struct q_preset q_presets[];
extern const int q_n_presets;

#endif
