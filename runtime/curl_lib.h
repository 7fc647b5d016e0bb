/* libcurl, opened when somebody talks to a server and not before, so that a rig that only runs models needs none. Its header gives the
 * types; nothing is declared again here. */
#ifndef Q_CURL_LIB_H
#define Q_CURL_LIB_H

#include "err.h"
#define CURL_DISABLE_TYPECHECK   /* its checks are macros in the functions' names */
#include <curl/curl.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo

#define CURL_FUNCTIONS(F)                                                                                                          \
    F(curl_global_init) F(curl_easy_init) F(curl_easy_setopt) F(curl_easy_getinfo) F(curl_easy_perform) F(curl_easy_reset)          \
    F(curl_easy_cleanup) F(curl_easy_strerror) F(curl_slist_append) F(curl_slist_free_all)

struct curl_lib {
    void *library;                 /* owned */
#define CURL_MEMBER(name) __typeof__(&name) name;
    CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
};

/* Q_EMISS: it is not installed, with what to do. */
int curl_lib_open(struct curl_lib *l, struct q_err *e);
void curl_lib_close(struct curl_lib *l);

#endif
