/* An answer's text, as it streams, split into what the model thought and what it says.
 *
 * The template writes "<think>\n" thinking "\n</think>\n\n" content. The tags are found in the text, however many tokens they came
 * in, and the newlines around the block are not part of either side. There is one block, at the very start: a <think> further on
 * is content. A block that never ends is thinking to the end of the answer. Tool calls are content.
 *
 * What may still turn out to be a tag, or newlines before one, waits; so the parts, joined, do not depend on how the text was cut.
 */
#ifndef Q_REPLY_H
#define Q_REPLY_H

#include "tokenizer.h"

enum q_reply_at {
    Q_REPLY_START,          /* only newlines so far; <think> may follow */
    Q_REPLY_THINKING_START, /* in the block, only newlines so far */
    Q_REPLY_THINKING,
    Q_REPLY_CONTENT_START,  /* behind the block, only newlines so far */
    Q_REPLY_CONTENT
};

struct q_reply {
    enum q_reply_at at;
    size_t newlines; /* waiting: they are dropped if a tag follows */
    int held;        /* bytes of the tag looked for that have been seen; they come after the newlines */
};

/* Never goes back: once content has text, thinking gets no more. Zero-initialise; the caller frees both texts. */
struct q_reply_text {
    struct tok_text thinking, content;
};

/* thinking: the prompt ended inside a think block. */
void q_reply_start(struct q_reply *r, int thinking);
/* Appends to *out. Whole characters in, whole characters out. Errors: Q_EMEM. */
int q_reply_push(struct q_reply *r, const char *s, size_t n, struct q_reply_text *out, struct q_err *e);
/* The answer is over: what waits is text. */
int q_reply_end(struct q_reply *r, struct q_reply_text *out, struct q_err *e);

/* Whether a prompt ends inside a think block that its last turn opened: what q_answer_opts.thinking is to be. */
int q_reply_opens_thinking(const struct tokenizer *t, const int32_t *ids, size_t n);

#endif
