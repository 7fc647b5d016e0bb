/* Leaving something out of a prompt that does not fit, where the caller asked for that; else such a prompt is refused.
 *
 * A rendered chat is cut in its own joints, found by the tokens of its turns. Left out are whole turns first, never the system message, nor what is
 * behind the last question: the oldest ones (head), or those behind the first question and its answer (middle). The rest begins with a question
 * again, and with the same one as the conversation grows, for an eighth of the context: what was read of it need not be read again (an exchange
 * longer than that eighth goes only where it has to). What is then still too long loses tokens of its longest texts, at their beginning (head) or in
 * their middle. A text without turns is one text. What the template wrote around texts stays, and no character is cut in two.
 *
 * It knows no engine: ids in, fewer ids out.
 */
#ifndef Q_PROMPT_CUT_H
#define Q_PROMPT_CUT_H

#include "tokenizer.h"

enum q_cut { Q_CUT_NEVER, Q_CUT_HEAD, Q_CUT_MIDDLE };

/* "none", "head", "middle"; -1: another word. */
int q_cut_parse(const char *name);
const char *q_cut_name(enum q_cut how);
/* Tokens that a prompt is cut to: room for the answer stays, max_tokens of it where that is at most half the context, else a quarter. */
int q_cut_goal(int ctx, int max_tokens);
/* Leaves out what is too many for a context of ctx tokens; *left_out: how many tokens, 0 when it fitted. Q_ELIMIT names both numbers: `how` is
 * never, or what has to stay is too long alone. */
int q_cut_prompt(const struct tokenizer *t, struct tok_ids *ids, int ctx, int max_tokens, enum q_cut how, int *left_out, struct q_err *e);

#endif
