#include "archive_lib.h"
#include <dlfcn.h>
#include <string.h>

/* The one ABI that all of libarchive 3 has. */
#define LIBRARY "libarchive.so.13"

int archive_lib_open(struct archive_lib *l, struct q_err *e)
{
    memset(l, 0, sizeof *l);
    l->library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (!l->library)
        return q_fail(e, Q_EMISS, "kernel sets are read and written by libarchive, and " LIBRARY " is not here (apt install libarchive13)");
    int missing = 0;
#define FIND(name) missing |= !(*(void **)&l->name = dlsym(l->library, #name));
    ARCHIVE_FUNCTIONS(FIND)
#undef FIND
    if (!missing) return Q_OK;
    archive_lib_close(l);
    return q_fail(e, Q_EMISS, LIBRARY " lacks what kernel sets need: expected libarchive 3.3 or newer");
}

void archive_lib_close(struct archive_lib *l)
{
    if (l->library) dlclose(l->library);
    l->library = NULL;
}
