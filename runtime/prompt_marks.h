/* Where a prompt's state is kept as it is read, so that a later prompt may go on from there.
 *
 * Behind the <|im_end|> of the system message, of each user's and of the last message: what follows may be written in another way the
 * next time (a template drops earlier thinking, a question is edited), what precedes is the same. And every so many tokens, for prompts that
 * leave one another inside a long message. A prompt without turns may come back whole, and its last token is read anew.
 */
#ifndef Q_PROMPT_MARKS_H
#define Q_PROMPT_MARKS_H

#include "tokenizer.h"

struct prompt_mark {
    int at;         /* tokens before it, 0 < at <= n */
    int must;       /* the first and the last turn's: kept whatever has to go for it */
};
struct prompt_marks {
    struct prompt_mark *mark;   /* owned: ascending */
    int n;
};
/* every: tokens, 0: not; most: marks; of more those in between are thinned. Q_EMEM. t: NULL: ids are all there is. */
int prompt_marks(struct prompt_marks *m, const struct tokenizer *t, const int32_t *ids, int n, int every, int most, struct q_err *e);
void prompt_marks_free(struct prompt_marks *m);

/* The message that token `at` of a prompt is in: its number from 1 (0: before the first), its role ("system"; "" where it has none). */
enum { PROMPT_ROLE = 24 };
int prompt_message(const struct tokenizer *t, const int32_t *ids, int n, int at, char role[PROMPT_ROLE]);

#endif
