/* Masks: which tokens a state of a grammar lets follow.
 *
 * What can follow at one spot of a rule, whoever called the rule, is found once, by walking the vocabulary's tree from there: the tokens that
 * stay inside the rule, and the nodes of the tree where the rule may have ended. Where any text may stand, tokens of plain characters are not walked
 * but taken by their lengths (constrain_text.h): a string's limit costs a comparison, not a walk through most of the vocabulary.
 * Where a rule tells few kinds of bytes apart, tokens of the same kinds are walked as one (constrain_alike.h).
 * A state's mask is the union over its spots of the former, and of what follows, below the latter, for the state in which the rules below go on.
 * So the wide part (a string's text: nearly all tokens) is shared by all strings of a grammar, and what depends on the stack is a few short walks.
 * The last masks that took long are kept by their states.
 */
#ifndef Q_CONSTRAIN_MASK_H
#define Q_CONSTRAIN_MASK_H

#include "constrain_pda.h"
#include "constrain_tree.h"

/* Work that one mask may take, that a builder may do ahead, and from which on the mask of a state is kept as a whole. */
enum { MASK_MOST_WORK = 20 << 20, MASK_AHEAD_WORK = 6 << 20, WHOLE_WORK = 2 << 10 };

/* Fills bits[n_words] for a state; end tokens are allowed where the text may end. Errors: Q_ELIMIT, Q_EMEM. */
int mask_fill(struct pda *s, const struct trees *trees, int state, uint32_t *bits, struct q_err *e);
/* Finds what follows at the spots of all rules, in the order of the rules but the root's first, until the work is done. Errors as above. */
int mask_ahead(struct pda *s, const struct trees *trees, struct q_err *e);

#endif
