/* What an answer may do: tools, tool_choice. Faults are in f's error. */
#ifndef S_ANSWER_RULES_H
#define S_ANSWER_RULES_H

#include "ask.h"
#include "span.h"

/* The list for the template, malloc'd, as the caller wrote it in `body`, f's text; NULL: no tools. */
char *read_tools(struct fields *f, struct ask *a, struct server *sv, struct span body);

#endif
