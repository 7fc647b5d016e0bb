#include "exposition.h"
#include <stdio.h>
#include <string.h>

static const double bound_s[EXPO_BOUNDS] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};

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

void expo_hist_add(struct expo_hist *h, double value)
{
    int b = 0;
    while (b < EXPO_BOUNDS && value > bound_s[b]) b++;
    h->n[b]++;
    h->sum += value;
}

void expo_hist_put(struct text *t, const char *name, const struct expo_hist *h, const char *labels)
{
    unsigned long long n = 0;
    const char *comma = *labels ? "," : "", *open = *labels ? "{" : "", *close = *labels ? "}" : "";
    for (int b = 0; b < EXPO_BOUNDS; b++)
        text_printf(t, "quarry_%s_bucket{%s%sle=\"%g\"} %llu\n", name, labels, comma, bound_s[b], n += h->n[b]);
    n += h->n[EXPO_BOUNDS];
    text_printf(t, "quarry_%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma, n);
    text_printf(t, "quarry_%s_sum%s%s%s %.15g\nquarry_%s_count%s%s%s %llu\n", name, open, labels, close, h->sum, name, open, labels, close, n);
}
