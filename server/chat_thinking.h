/* How much a model is to think: every spelling of the switch and of the budget, and the template's options that come of it.
 *
 *   the switch, from weak to strong: the server's default, /think or /no_think in the last user's text, reasoning_effort or reasoning.effort,
 *     reasoning.enabled, thinking.type, enable_thinking, chat_template_kwargs.enable_thinking
 *   the budget, in tokens of a think block: thinking_budget, thinking_budget_tokens, reasoning_budget, reasoning.max_tokens,
 *     thinking.budget_tokens; -1: none. One that is used up closes the block.
 */
#ifndef S_CHAT_THINKING_H
#define S_CHAT_THINKING_H

#include "request.h"

/* The template's options as JSON, malloc'd, and the budget. in_text: what the text says, -1: nothing. NULL with f's error. */
char *read_thinking(struct fields *f, const char *server_default, int in_text, int *budget);

#endif
