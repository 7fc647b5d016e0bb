#define _GNU_SOURCE
#include "gate_impl.h"
#include "runtime/clock.h"
#include "runtime/store_impl.h"
#include "runtime/xdg.h"
#include <stdlib.h>
#include <string.h>

enum { PLACES = 480 };

/* "to 64: KLD 6e-4, drift 0.12, margin 3.1; to 256: ..." */
static void add_places(char *dst, size_t cap, const struct score *s)
{
    size_t n = 0;
    dst[0] = 0;
    for (int i = 0; i < SCORE_PLACES && n < cap; i++) {
        const struct score_place *p = &s->place[i];
        char until[24] = "beyond";
        if (!p->kept) continue;
        if (i + 1 < SCORE_PLACES) snprintf(until, sizeof until, "to %d", score_until[i]);
        n += (size_t)snprintf(dst + n, cap - n, "%s%s: KLD %.2g, drift %.2g, margin %.2g", n ? "; " : "", until, p->kld, p->drift, p->margin);
    }
}

static void copy_lines(FILE *to, const char *path)
{
    char *text;
    size_t n;
    if (file_read(path, 4 << 20, &text, &n, NULL)) return;
    fwrite(text, 1, n, to);
    free(text);
}

void gate_report_set(struct gate *g, const char *name, const struct verdict *v)
{
    char places[PLACES];
    if (!g->report) return;
    if (v->failed) {
        fprintf(g->report, "%s: %s\n", name, v->why);
        return;
    }
    add_places(places, sizeof places, &v->s);
    fprintf(g->report, "%s: %d positions, mean KLD %.3g over %d of them; by position %s; mean 1 - cosine %.3g; ", name, v->s.rows, v->s.kld,
            v->s.kept, places, v->s.angle);
    fprintf(g->report, "%d first choices differ, %d beyond a margin of %.1f\n", v->s.differ, v->s.exceptions, GATE_MARGIN);
    copy_lines(g->report, g->lines);
}

void gate_tell(const struct gate *g, const struct score *s)
{
    char places[PLACES];
    add_places(places, sizeof places, s);
    progress_line(g->o->progress, "gate: by position in its text, %s", places);
    if (!s->differ) return;
    progress_line(g->o->progress, "gate: %d of %d first choices differ%s", s->differ, s->rows,
                  s->differ > SCORE_WORST ? ", those with the largest margins:" : ":");
    for (int i = 0; i < SCORE_WORST && s->worst[i][0]; i++) progress_line(g->o->progress, "gate:   %s", s->worst[i]);
}

/* Texts that were read, of them long ones, and tokens of continuations. */
struct tally {
    int texts, large, answers;
};

static struct tally count(const struct trace *t)
{
    struct tally c = { 0 };
    for (int u = 0; u < t->n_units; u++)
        for (int i = t->unit[u].text; i < t->unit[u].text + t->unit[u].n && t->unit[u].done; i++) {
            c.texts++;
            c.large += t->unit[u].large;
            c.answers += t->text[i].n - t->text[i].n_prompt;
        }
    return c;
}

static int broken_off(const struct trace *t)
{
    int n = 0;
    for (int u = 0; u < t->n_units; u++) n += t->unit[u].chosen && !t->unit[u].done;
    return n;
}

void gate_summarise(const struct gate *g, const struct score *s, const struct score *base, char *dst, size_t cap)
{
    const struct trace *t = g->t;
    struct tally c = count(t);
    char texts[200], against[480] = "", base_kld[60] = "", base_differ[40] = "";
    if (c.texts == t->n_texts) snprintf(texts, sizeof texts, "all %d texts", c.texts);
    else snprintf(texts, sizeof texts, "%d of %d texts (%d of more than 4096 tokens), %s", c.texts, t->n_texts, c.large,
                  broken_off(t) ? "no more because this machine is slow now" : "as many as this effort reads of a model of this size");
    if (g->against_default) snprintf(against, sizeof against, "; compared with the default params' set, as there is no reference: %s", g->why_not);
    else {
        snprintf(base_kld, sizeof base_kld, ", default params %.3g", base->kld);
        snprintf(base_differ, sizeof base_differ, " (default params %d)", base->exceptions);
    }
    char marks[120];
    if (t->synthetic) snprintf(marks, sizeof marks, "mean 1 - cosine %.3g", s->angle);
    else snprintf(marks, sizeof marks, "%d first choices differ beyond a margin of %.1f%s", s->exceptions, GATE_MARGIN, base_differ);
    snprintf(dst, cap, "gate passed: %d positions, %d of them %s, of %s; mean KLD %.3g%s; %s%s; %.1f s", t->n_rows, c.answers,
             t->synthetic ? "given one by one" : "continued greedily", texts, s->kld, base_kld, marks, against, clock_s() - g->start);
}

void gate_write_report(const struct gate *g, const char *text, size_t n)
{
    char state[Q_PATH], path[Q_PATH], dir[Q_PATH], folder[STORE_FOLDER];
    struct q_err e = { 0 };
    store_folder(folder, g->o->t->card.key);
    int rc = xdg_dir(XDG_STATE, state, sizeof state, &e);
    if (!rc) rc = path_join(dir, &e, state, "gate", "v1", NULL);
    if (!rc) rc = path_join(path, &e, dir, folder, NULL);
    if (!rc && strlen(path) + 5 > sizeof path) rc = q_fail(&e, Q_ELIMIT, "%s: too long", path);
    if (!rc) rc = dir_make(dir, &e);
    if (!rc) rc = file_write(strcat(path, ".txt"), text, n, &e);
    if (rc) progress_line(g->o->progress, "gate: its report is not kept: %s", e.text);
}
