/* The command line of quarry-serve. */
#ifndef S_OPTIONS_H
#define S_OPTIONS_H

#include "cors.h"
#include "runtime/cli.h"
#include "runtime/prompt_cut.h"

enum { OPTIONS_KEYS = 64 };

struct options {
    struct q_cli cli;
    const char *host;            /* 127.0.0.1 */
    int port;                    /* 8080; 0: any free one */
    size_t cache_device, cache_host, cache_disk;   /* bytes of checkpoints */
    int cache_device_given, cache_host_given;
    const char *cache_dir;       /* NULL: the user's cache directory */
    int cache_every;             /* tokens of a long prompt between checkpoints */
    int queue;                   /* requests that may wait */
    int parallel;                /* that run at once; 0: as the device says */
    int drain_s;                 /* how long SIGTERM lets requests go on */
    const char *alias;           /* NULL: the file's name */
    const char *key_file, *template_file;   /* or NULL */
    const char *key[OPTIONS_KEYS];
    int n_keys;
    struct cors cors;
    int max_body_mib;
    int header_s, body_s;        /* how long a client may take to send a request's head, and its body */
    int quiet_s;                 /* a stream's silence after which it gets a comment */
    int log_json, log_text;
    enum q_cut cut;              /* what becomes of a prompt that does not fit, where its request does not say */
    const char *slot_dir;        /* where files of slots are, or NULL */
    const char *kwargs;          /* JSON object of template options, or NULL */
};

/* -1: go on; else the exit status (help, version, a mistake that was told). */
int options_read(struct options *o, int argc, char **argv);

#endif
