/* `quarry show --fit`: a placement with what else would fit, made once, printed as text or as JSON. */
#ifndef Q_SHOW_FIT_H
#define Q_SHOW_FIT_H

#include "fit.h"
#include <cjson/cJSON.h>
#include <stdio.h>

enum { SHOW_FIT_FORMATS = 5 };

struct show_fit {
    struct q_fit_options o;
    struct q_fit fit;
    int trained;                   /* tokens */
    struct show_fit_format {
        const char *k, *v;
        size_t kv_bytes;           /* of all sequences at full length */
        int fits, longest;         /* for the asked number of sequences; tokens, at most the trained length or what was asked for */
    } format[SHOW_FIT_FORMATS];    /* those that heads of this size can have; the asked pair last where it is of two formats */
    int n_formats;
    char advice[400];              /* what to change, or what to do next: one line */
};

void show_fit_make(struct show_fit *s, const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o);
void show_fit_text(const struct show_fit *s, FILE *out);
void show_fit_json(const struct show_fit *s, cJSON *root);

#endif
