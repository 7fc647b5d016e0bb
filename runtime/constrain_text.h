/* Plain text: characters that grammars for texts hardly ever tell apart, and states that do not.
 *
 * A plain character is one of printable ASCII but " and \ and < (which close strings, escape, and begin tags), or one beyond ASCII in whole,
 * shortest UTF-8. Inside a JSON string, a line or a parameter's text all of them lead to the same state, so what a token of plain characters
 * does depends on their count alone. Classes of characters say whether that is so where the automata are built (nfa_state.plain); where they do not
 * (a tag that text runs up to, rules that are called), each state is tried with every class of bytes. It is never guessed; where it is not so (a
 * pattern, a key's name, a text that may end between its characters), tokens are walked byte by byte.
 */
#ifndef Q_CONSTRAIN_TEXT_H
#define Q_CONSTRAIN_TEXT_H

#include "constrain_pda.h"

/* How many characters the bytes are; 0: some are not plain, or there are none. */
int text_characters(const char *s, size_t n);
/* Of the ranges of characters: 1: all plain characters are in them, 0: none, -1: some. They are in order and do not touch (expr_class). */
int text_has_plain(const struct expr_range *range, int n);
/* Whether a plain character may begin with a byte of lo to hi. */
int text_may_begin(unsigned char lo, unsigned char hi);
enum { TEXT_MOST_ODD = 4 };

/* How many plain characters, whichever they are, may follow `state`: up to `most`; -1: it depends on which, or the text may end among them.
 * Of the first one up to TEXT_MOST_ODD classes of ASCII may be odd (s->state[state].odd: how many; a tag's next letter): they lead elsewhere, and
 * nothing is said about them. *reach grows to the largest of the states on the ways. */
int text_room(struct pda *s, int state, int most, int *reach);
/* Whether a first byte is odd at a state for which text_room gave an answer. */
int text_is_odd(struct pda *s, int state, unsigned char byte);

#endif
