/* One answer as it grows: what its next token is drawn by, and what becomes of a token that was drawn.
 *
 * It belongs to no sequence: whoever runs steps (answer.c one sequence, scheduler.c many) asks it what the row that draws shall want, hands it
 * the step's result, and feeds q_turn.id while the turn is not over. So run, chat and server say the same.
 *
 * Text goes id -> whole characters (tok_stream) -> thinking or content (reply) -> without what may be a stop string (stop_strings)
 * -> the caller. A stop string is looked for in thinking and in content, not across the two. A think block that has reached its budget
 * is closed as the template closes it: the closing tokens take the places of the next drawn ones.
 */
#ifndef Q_TURN_H
#define Q_TURN_H

#include "answer.h"
#include "reply.h"
#include "stop_strings.h"

struct q_turn {
    const struct q_answer_opts *o;       /* borrowed */
    struct q_answer *out;                /* borrowed; what is known so far */
    const struct tokenizer *tokenizer;   /* borrowed; NULL: ids are all there is */
    int ctx;
    int id;                              /* taken last: to be fed next */
    int over;                            /* out->finish is decided */

    int left;                            /* the caller wants no more text */
    struct q_history *history;           /* owned */
    struct q_sampling sampling;
    int32_t *bias_id;                    /* owned, NULL: the caller's are used as they are */
    float *bias;                         /* owned */
    struct tok_ids forced;               /* owned: what the next tokens are, whatever is drawn */
    size_t n_forced;                     /* of them taken */

    struct tok_stream stream;
    struct q_reply reply;
    struct q_stops stops;
    enum q_part part;                    /* that `stops` reads */
    struct tok_text piece, shown;        /* owned, used again for each token */
    struct q_reply_text split;
};

/* n_prompt: tokens; ctx: most tokens of prompt and answer but its last. o, out and tokenizer stay with the caller. */
int q_turn_open(struct q_turn *t, const struct tokenizer *tokenizer, int ctx, int n_prompt, const struct q_answer_opts *o, struct q_answer *out,
                struct q_err *e);
void q_turn_close(struct q_turn *t);
/* Makes `row` the one that the next token is drawn from; valid until q_turn_take. Errors: a constraint's (constrain.h). */
int q_turn_draw(struct q_turn *t, struct q_row *row, struct q_err *e);
/* Takes what entry i of a result drew. Errors: Q_EINTERNAL (no usable logits), Q_EMEM. */
int q_turn_take(struct q_turn *t, const struct q_result *r, int i, struct q_err *e);
/* Ends it from outside; the first reason counts. */
void q_turn_finish(struct q_turn *t, enum q_finish how);
/* The text that still waits. Once, after it is over. */
int q_turn_end(struct q_turn *t, struct q_err *e);

#endif
