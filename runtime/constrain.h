/* Constrained output: what an answer may say, as a grammar that masks the next token.
 *
 * A constraint is built from GBNF text, a JSON schema, a regular expression, a list of choices, "any JSON object" or a list of tools, and is
 * bound to one tokenizer. It reads tokens one at a time and tells which ids may follow. Whatever is drawn under its masks is, when it ends,
 * a text of the grammar, in whole UTF-8 characters; and there is always a way to an end. Control tokens are never allowed, end tokens only
 * where the text may end. All bytes of a token count: a token may begin in a key and end in a value.
 *
 *   text -> expressions (constrain_gbnf, _regex, _schema*, _tools) -> byte automata, one a rule (constrain_nfa, _and, _bytes, _heights, _kin)
 *        -> deterministic states with stacks, made as they are met (constrain_pda, _spots, _settle)
 *        -> masks by walking the vocabulary's tree (constrain_tree, _alike, _text, _mask); programs are shared and kept (constrain_program)
 *
 * Cost: a mask whose parts are known takes some 3 to 8 us for 248 320 ids, and for usual grammars they are known: the builder finds them, in
 * 5 to 90 ms on its caller's thread. What is met first later costs up to some 0.1 ms, once; with a dozen strings with limits, words with limits
 * that repeat, or a pattern and a limit, a mask takes 10 to 130 us on the mean of an answer and 0.3 to 0.8 ms at worst, and one place of a grammar
 * where nearly every token may end a part (a word of any characters) some 4 ms, once. Grammars that call themselves where they may as well go on
 * (many readings of one text) cost tenths of a second a mask, or are refused while they run. Grammars stay with the tokenizer (the last 16 of up
 * to 24 MB, 128 MB together), so that a schema that comes again costs nothing; the first constraint of a process makes the vocabulary's tree, in
 * some 150 ms.
 * Bounded: text 256 KiB, nesting 64, automata 200 000 states, depth of the answer's nesting 128 rules, states 12 MB, work for a mask. Beyond:
 * Q_ELIMIT, with a line that says what was too large.
 *
 * JSON schema (2020-12 and what OpenAI's and pydantic's writers give). Taken:
 *   true, false, type (one or several), enum, const, anyOf, oneOf (as anyOf), allOf (of what can be merged), $ref to "#..." with recursion,
 *   properties, required, additionalProperties; items, prefixItems, minItems, maxItems; minLength, maxLength, pattern,
 *   format date, time, date-time, uuid; minimum, maximum, exclusiveMinimum, exclusiveMaximum; nullable.
 *   Notes are passed over: title, description, default, examples, deprecated, readOnly, writeOnly, $schema, $id, $comment, $defs, definitions.
 * Anything else is refused by name (Q_EUNSUP), so that no part of a schema is silently dropped. Where the schema leaves room, we choose:
 *   keys come in the order of `properties`, those that are not required may be left out; other keys, only if additionalProperties is given and
 *   not false, come behind them (a key twice among those is not noticed); arrays with prefixItems and no items end there; a schema without a
 *   type is of the type its keywords are about. Numbers have at most 20 digits before and behind the point, and no exponent where there are bounds.
 * JSON text is compact or has one space or up to two line ends and 20 spaces or tabs between tokens: free enough for a model's habit, and
 * it cannot loop on white space. Strings hold no NUL, no half surrogates; ASCII is not written as \u where it needs no escape.
 *
 * Regular expressions: ECMA syntax without look-around, back references, word boundaries, flags and \p. A `pattern` is searched, as JSON
 * schema says (^ and $ anchor it, at its ends only); a regex constraint is the whole answer.
 * GBNF: as llama.cpp reads it, but for tokens by id and left recursion, which is refused. The rule `root` is the answer.
 * Tools: the form of Qwen's templates,
 *   <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n...</function>\n</tool_call>
 * a string is as it is, up to the closing tag; every other type is JSON by its schema. Up to 6 parameters come in any order, more in the schema's.
 *
 * Threads: builders may run on any number of threads; a constraint is used by one at a time, its clones by others.
 * It does not: draw tokens, look at logits, or know about sequences.
 */
#ifndef Q_CONSTRAIN_H
#define Q_CONSTRAIN_H

#include "tokenizer.h"

struct q_constraint;

/* Builders. *c is new: q_constraint_free. Errors: Q_EINPUT (malformed text, with the place), Q_EUNSUP (the feature by name), Q_ELIMIT, Q_EMEM. */
int q_constraint_from_gbnf(struct q_constraint **c, const struct tokenizer *t, const char *text, size_t n, struct q_err *e);
int q_constraint_from_schema(struct q_constraint **c, const struct tokenizer *t, const char *json, size_t n, struct q_err *e);
int q_constraint_from_regex(struct q_constraint **c, const struct tokenizer *t, const char *pattern, size_t n, struct q_err *e);
/* One of the n texts, as they are (no quotes). */
int q_constraint_from_choice(struct q_constraint **c, const struct tokenizer *t, const char *const *choice, int n, struct q_err *e);

struct q_tool_rules {
    const char *only;   /* the one function that may be called; NULL: any of them */
    int none;           /* 1: text alone; once it says anything it may come to <tool_call>, which ends it. Nothing else here is looked at */
    int required;       /* 1: the answer is calls alone, at least one; 0: text, then calls if the model begins one */
    int parallel;       /* 1: several calls */
    const char *otherwise;   /* with required 0: the JSON schema of an answer that is no call; NULL: any text, and calls behind it */
};
/* tools: the request's array, [{"type": "function", "function": {"name", "parameters"}}], as JSON text. */
int q_constraint_from_tools(struct q_constraint **c, const struct tokenizer *t, const char *tools, size_t n, const struct q_tool_rules *r,
                            struct q_err *e);

/* At the same place in the same text; from then on they go their own ways. */
int q_constraint_clone(struct q_constraint **copy, const struct q_constraint *c, struct q_err *e);
void q_constraint_free(struct q_constraint *c); /* NULL is fine */

/* Before the first token: the prompt ended inside a think block. Thought is free, up to </think> and the line ends behind it; an end token
 * cannot cut it short. So thinking tokens, forced ones too, go through mask and accept as all others do. Errors: Q_ELIMIT, Q_EMEM. */
int q_constraint_thinking(struct q_constraint *c, struct q_err *e);

/* Which ids may follow: bit id % 32 of word id / 32, set: allowed; as many bits as the tokenizer has ids, zeros to the word's end. *bits is the
 * constraint's own and valid until its next accept or its end. Asking again costs nothing, so it may be asked early, while the
 * device works on something else. Errors: Q_ELIMIT (more work than a mask may take), Q_EMEM. */
int q_constraint_mask(struct q_constraint *c, const uint32_t **bits, struct q_err *e);
/* The answer goes on with `id`. Q_EINPUT where its mask does not have it: then nothing has changed. */
int q_constraint_accept(struct q_constraint *c, int32_t id, struct q_err *e);
/* Whether the text read so far is a whole one. */
int q_constraint_may_end(const struct q_constraint *c);

#endif
