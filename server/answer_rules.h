/* What an answer may say: fields that constrain it, and tools it may call.
 *
 *   response_format (text, json_object, json_schema), json_schema, grammar (GBNF), guided_json, guided_regex, guided_choice, guided_grammar,
 *     structured_outputs: one of them at most
 *   tools, tool_choice (none, auto, required, or a function by name), parallel_tool_calls
 *
 * Both become a constraint (runtime/constrain.h) that the engine draws under, from behind the think block on. With tools a call that is begun
 * is one of the listed tools in the right form; "none" forbids to begin one. Beside a JSON format an answer is of that format or calls alone.
 * A tool whose schema has what the constraint cannot express is held to its name only, unless it is `strict`: then it is refused, as
 * every other schema is.
 */
#ifndef S_ANSWER_RULES_H
#define S_ANSWER_RULES_H

#include "ask.h"
#include "runtime/span.h"

/* Both set a->job.constraint, read_tools also a->tools. Faults are in f's error.
 * Returns the JSON schema that the answer is to be of, malloc'd; NULL: it is another form, or none. */
char *read_format(struct fields *f, struct ask *a, struct server *sv);
/* The list for the template, malloc'd, as the caller wrote it in `body`, f's text; NULL: no tools. schema: what read_format returned. */
char *read_tools(struct fields *f, struct ask *a, struct server *sv, struct span body, const char *schema);

#endif
