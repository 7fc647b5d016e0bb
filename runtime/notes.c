/* Notices as one growing text. */
#include "notes.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void q_note(struct q_notes *n, const char *fmt, ...)
{
    if (!n) return;
    char line[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    size_t used = n->text ? strlen(n->text) : 0, more = strlen(line);
    char *p = realloc(n->text, used + more + 2);
    if (!p) {
        n->failed = 1;
        return;
    }
    if (used) p[used++] = '\n';
    memcpy(p + used, line, more + 1);
    n->text = p;
}
