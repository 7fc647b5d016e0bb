/* Effort `none`: every problem of a target answered without measuring. What the store already answers stays; a tuned record whose
 * object is gone has it built again; the rest gets the default params of its space. Layouts come first. */
#ifndef Q_DEFAULTS_H
#define Q_DEFAULTS_H

#include "build.h"
#include "target.h"

struct defaults_result {
    int kernels, cached, built, failed;
};

/* Also what a tune begins with, and its gate before every engine that it opens: so the engines find all and need no child, which would
 * not know the compiler. build: the store, compiler (its program "" until one is needed: it is then found, as `given` or searched for), jobs,
 * deadline. say gets one line for each kernel that could not be built. The error tells the first. */
int defaults_make(const struct target *t, struct gen *g, const struct build_opts *build, struct compiler *compiler,
                  const struct compiler_given *given, void (*say)(void *arg, const char *line), void *say_arg,
                  struct defaults_result *result, struct q_err *e);

#endif
