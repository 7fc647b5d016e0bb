#include "exposition.h"
#include <string.h>

void expo_head(struct text *t, const char *name, const char *type, const char *help)
{
    text_printf(t, "# HELP quarry_%s %s\n# TYPE quarry_%s %s\n", name, help, name, type);
}

void expo_label(struct text *labels, const char *name, const char *value)
{
    text_printf(labels, "%s%s=\"", labels->n ? "," : "", name);
    for (; *value; value++) {
        if (*value == '\n') text_put(labels, "\\n");
        else {
            if (*value == '"' || *value == '\\') text_put(labels, "\\");
            text_add(labels, value, 1);
        }
    }
    text_put(labels, "\"");
}

void expo_value(struct text *t, const char *name, const char *suffix, struct text *labels, double value)
{
    text_printf(t, "quarry_%s%s", name, suffix);
    if (labels && labels->n) {
        text_put(t, "{");
        text_add(t, labels->at, labels->n);
        text_put(t, "}");
    }
    text_printf(t, " %.15g\n", value);
    if (!labels) return;
    t->bad |= labels->bad;
    labels->n = 0;
}

void expo_one(struct text *t, const char *name, const char *type, const char *help, double value)
{
    expo_head(t, name, type, help);
    expo_value(t, name, "", NULL, value);
}
