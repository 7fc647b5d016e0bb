#include "xdg.h"
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *variable, *below_home;
} places[] = {
    [XDG_DATA] = { "XDG_DATA_HOME", ".local/share" },
    [XDG_CACHE] = { "XDG_CACHE_HOME", ".cache" },
    [XDG_STATE] = { "XDG_STATE_HOME", ".local/state" },
};

const char *xdg_variable(enum xdg_place place) { return places[place].variable; }

int xdg_dir(enum xdg_place place, char *dst, size_t cap, struct q_err *e)
{
    const char *dir = getenv(places[place].variable), *home = getenv("HOME");
    int n;
    /* The specification: a relative path is to be ignored. */
    if (dir && *dir == '/') n = snprintf(dst, cap, "%s/quarry", dir);
    else if (home && *home == '/') n = snprintf(dst, cap, "%s/%s/quarry", home, places[place].below_home);
    else return q_fail(e, Q_EMISS, "neither %s nor HOME holds an absolute path: set %s", places[place].variable, places[place].variable);
    if (n < 0 || (size_t)n >= cap) return q_fail(e, Q_ELIMIT, "%s: the path is longer than %zu bytes", places[place].variable, cap);
    return Q_OK;
}
