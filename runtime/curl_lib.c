#define _GNU_SOURCE /* RTLD_NODELETE */
#include "curl_lib.h"
#include <dlfcn.h>
#include <string.h>

/* Debian's two builds of it, and the ABI that all of libcurl 7.16 to 8 has. */
static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};

int curl_lib_open(struct curl_lib *l, struct q_err *e)
{
    memset(l, 0, sizeof *l);
    for (size_t i = 0; i < sizeof names / sizeof *names && !l->library; i++) l->library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (!l->library) return q_fail(e, Q_EMISS, "servers are talked to by libcurl, and %s is not here (apt install libcurl4)", names[0]);
    int missing = 0;
#define FIND(name) missing |= !(*(void **)&l->name = dlsym(l->library, #name));
    CURL_FUNCTIONS(FIND)
#undef FIND
    if (!missing && !l->curl_global_init(CURL_GLOBAL_DEFAULT)) return Q_OK;
    curl_lib_close(l);
    return q_fail(e, Q_EMISS, "%s does not start or lacks functions that libcurl 7.16 has", names[0]);
}

/* The library stays mapped, as it was started (RTLD_NODELETE): what it began is one a process, and curl_global_cleanup is not safe beside threads. */
void curl_lib_close(struct curl_lib *l)
{
    if (l->library) dlclose(l->library);
    l->library = NULL;
}
