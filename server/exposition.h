/* Prometheus's text format 0.0.4: a name is told once (help and type), then its samples. */
#ifndef S_EXPOSITION_H
#define S_EXPOSITION_H

#include "json_text.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* type: "counter", "gauge", "histogram". Names get the prefix quarry_. */
void expo_head(struct text *t, const char *name, const char *type, const char *help);
/* One more label of the samples that follow, escaped; expo_value ends the list. */
void expo_label(struct text *labels, const char *name, const char *value);
/* A sample; labels may be NULL, and are emptied. suffix: "" or what a histogram's samples end with. */
void expo_value(struct text *t, const char *name, const char *suffix, struct text *labels, double value);
/* Seconds, counted by how long: from a token of a small model to a long answer. Zero-initialise. */
enum { EXPO_BOUNDS = 14 };
struct expo_hist {
    unsigned long long n[EXPO_BOUNDS + 1];   /* values up to each bound and above the one before it; the last: above all */
    double sum;
};
void expo_hist_add(struct expo_hist *h, double value);
/* Its samples, after expo_head. labels: as expo_label writes them, or "". */
void expo_hist_put(struct text *t, const char *name, const struct expo_hist *h, const char *labels);

/* Head and one sample. */
void expo_one(struct text *t, const char *name, const char *type, const char *help, double value);

#endif
