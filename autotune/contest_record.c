#include "contest_impl.h"
#include "runtime/ceilings.h"
#include "runtime/shape.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void fill_times(struct record *r, const struct contest *t, const struct racer *racer)
{
    r->n_times = t->sizes.n;
    for (int i = 0; i < t->sizes.n; i++)
        r->time[i] = (struct record_time){ t->sizes.time[i].rows, t->sizes.time[i].past, racer->n[i], race_median(racer->us[i], racer->n[i]),
                                           race_mad(racer->us[i], racer->n[i]) };
}

/* Operations a second of the units that the winner uses: of a card by its instruction path, of a CPU by what it multiplies. */
static double op_rate(struct record *r, const struct contest *t, const char *path)
{
    const struct q_roofs *roofs = &t->env->roofs;
    struct q_shape s;
    if (t->env->t->card.kind == Q_CARD_CUDA) {
        snprintf(r->ceiling, sizeof r->ceiling, "%s", ceiling_of_path(path));
        r->path_rate = ceiling_rate(roofs, path);
        r->read_rate = roofs->read;
        return r->path_rate;
    }
    return !shape_parse(&s, t->p->shape, NULL) && shape_is(&s, "act", "q8") ? roofs->int8 : roofs->fp32;
}

static void fill_roof(struct record *r, const struct contest *t, const char *path)
{
    if (!strcmp(t->p->op, "ceiling")) return;      /* it is one */
    const struct contest_env *env = t->env;
    const struct measure_size *z = &t->sizes.time[0];
    double bytes, ops, rate = op_rate(r, t, path);
    if (gen_cost(env->g, t->p->op, t->p->shape, z->rows, z->past, &bytes, &ops, NULL) || !(r->time[0].median_us > 0)) return;
    double by_bytes = env->roofs.read > 0 ? bytes / env->roofs.read * 1e6 : 0, by_ops = rate > 0 ? ops / rate * 1e6 : 0;
    if (!(by_bytes > 0) && !(by_ops > 0)) return;
    strcpy(r->bound, by_bytes > by_ops ? "bytes" : "ops");
    r->roof_doubtful = env->roofs.doubtful > 0;
    r->roof_pct = 100 * fmax(by_bytes, by_ops) / r->time[0].median_us;
}

void contest_record(struct record *r, const struct contest *t, int i)
{
    const struct candidate *c = &t->c[i];
    target_record(r, t->env->g, &t->key, t->p, &c->k);
    strcpy(r->origin, "tuned");
    r->objects[0] = c->task.object;
    r->n_objects = 1;
    snprintf(r->effort, sizeof r->effort, "%s", t->env->effort->name);
    if (t->env->driver) snprintf(r->driver, sizeof r->driver, "%s", t->env->driver);
    const struct record_clocks *clocks = t->env->m->clocks ? t->env->m->clocks(t->env->m->arg) : NULL;
    if (clocks) r->clocks = *clocks;
    fill_times(r, t, &t->r[i]);
    snprintf(r->base_params, sizeof r->base_params, "%s", t->c[0].k.params);
    r->base_us = race_median(t->r[0].us[0], t->r[0].n[0]);
    fill_roof(r, t, c->k.isa);
}

void contest_note_ties(struct contest *t, int best)
{
    struct outcome *o = t->out;
    for (int i = 0; i < t->n && o->n_ties < CONTEST_TIES; i++) {
        const struct racer *r = &t->r[i];
        if (i == best || !t->c[i].usable || r->bad || r->out || !r->kernel.symbol || r->score > t->r[best].score * (1 + RACE_TIE / 2)) continue;
        strcpy(o->ties[o->n_ties++], t->c[i].k.params);
    }
}

void contest_tell_space(const struct contest *t)
{
    cJSON *reasons = cJSON_CreateArray();
    for (int i = 0; i < t->space.n_reasons; i++) {
        cJSON *one = cJSON_CreateArray();
        cJSON_AddItemToArray(one, cJSON_CreateString(t->space.reason[i].text));
        cJSON_AddItemToArray(one, cJSON_CreateNumber(t->space.reason[i].n));
        cJSON_AddItemToArray(reasons, one);
    }
    journal_problem(t->env->journal, &t->key, t->space.total, t->space.n, reasons);
}
