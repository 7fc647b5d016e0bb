/* Where files live, by the XDG base directory specification. The one place that reads environment variables.
 *
 * data: winners, worth keeping. cache: what can be built again. state: journals and logs. Nothing is created here. */
#ifndef Q_XDG_H
#define Q_XDG_H

#include "err.h"
#include <stddef.h>

enum xdg_place { XDG_DATA, XDG_CACHE, XDG_STATE };

/* "$XDG_CACHE_HOME/quarry", or "$HOME/.cache/quarry". Q_EMISS names the variables when neither holds an absolute path. */
int xdg_dir(enum xdg_place place, char *dst, size_t cap, struct q_err *e);
/* The variable to set so that the place moves: "XDG_CACHE_HOME". */
const char *xdg_variable(enum xdg_place place);

#endif
