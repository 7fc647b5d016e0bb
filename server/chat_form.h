/* Chat completions as OpenAI writes them: the whole object, and the chunks of a stream. */
#ifndef S_CHAT_FORM_H
#define S_CHAT_FORM_H

#include "job.h"
#include "json_text.h"
#include <time.h>

/* What all chunks of an answer share. */
struct chat_form {
    char id[40];                 /* chatcmpl-... */
    time_t created;
    const char *model, *fingerprint;   /* borrowed */
    int usage;                   /* chunks carry "usage": null, and a last one the counts */
};

void chat_form_init(struct chat_form *f, const char *model, const char *fingerprint, int usage);
void chat_form_role(const struct chat_form *f, struct text *out);
void chat_form_delta(const struct chat_form *f, enum q_part part, const struct text *piece, struct text *out);
/* The finish reason, the counts if asked for, [DONE]. */
void chat_form_end(const struct chat_form *f, const struct q_answer *a, struct text *out);
void chat_form_whole(const struct chat_form *f, const struct q_answer *a, const struct text *content, const struct text *thinking,
                     struct text *out);

#endif
