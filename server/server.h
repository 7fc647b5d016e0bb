/* What the handlers of requests share. Everything in it may be used by any connection's thread. */
#ifndef S_SERVER_H
#define S_SERVER_H

#include "keys.h"
#include "load.h"
#include "options.h"
#include "queue.h"
#include "request.h"
#include "worker.h"
#include <time.h>

struct server {
    struct options o;
    char alias[256];             /* the model's name in the API */
    time_t created;
    struct keys *keys;           /* owned; NULL: no key is asked for */
    char *jinja;                 /* owned, or NULL */
    struct queue *queue;         /* owned */
    struct worker *worker;       /* owned */
    struct once *told;           /* owned */
    struct http *http;           /* owned */
    struct load load;
    atomic_int ending;           /* a signal came: what runs may end, nothing new begins */
    const char *notify;          /* service.h, or NULL */
    int wake[2];                 /* owned pipe: a byte tells main to look */
};

#endif
