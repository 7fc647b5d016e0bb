#include "engine_impl.h"
#include "kv_format.h"
#include "model.h"
#include "roof.h"
#include "trace.h"
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void engine_say(const struct q_engine *en, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    if (!en->o.say) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    en->o.say(en->o.say_arg, line);
}

static int check_format(const char *f, const char *what, int head_dim, struct q_err *e)
{
    if (!kv_format_known(f)) return q_fail(e, Q_EINPUT, "KV format of %s: expected %s, found '%s'", what, kv_format_names, f);
    if (kv_format_piece_bytes(f, head_dim)) return Q_OK;
    return q_fail(e, Q_EUNSUP, "KV format of %s: %s needs heads of a multiple of 32 values, and this model's have %d", what, f, head_dim);
}

/* What the caller left open, where it does not go with the number of sequences. */
static int fill_defaults(struct q_engine *en, struct q_err *e)
{
    struct q_engine_opts *o = &en->o;
    const struct q_config *c = &en->model->config;
    en->seqs_given = o->max_seqs >= 0;
    en->snaps_given = o->max_snaps >= 0 && !o->snap_bytes;
    en->out_given = o->max_out > 0;
    en->ctx_given = o->ctx > 0;
    if (!o->max_seqs) o->max_seqs = 1;
    if (o->max_seqs < 0) o->max_seqs = en->device->host_memory ? 4 : 8;
    if (!o->max_rows) o->max_rows = plan_max_rows(!en->device->host_memory, en->device->ops->available(en->device));
    int want = o->ctx_hint > 4096 ? o->ctx_hint : 4096;
    int rc = rope_choose(&en->model->config, &o->rope, o->ctx, en->model->path, e);
    if (rc) return rc;
    if (!o->ctx) o->ctx = rope_limit(c) < want ? rope_limit(c) : want;
    const char *kv = o->numerics == Q_REFERENCE ? "f32" : "f16";
    if (!o->kv_k || o->numerics == Q_REFERENCE) o->kv_k = kv;
    if (!o->kv_v || o->numerics == Q_REFERENCE) o->kv_v = kv;
    engine_count_slots(en);
    return Q_OK;
}

static int check_options(struct q_engine *en, struct q_err *e)
{
    const struct q_engine_opts *o = &en->o;
    const struct q_config *c = &en->model->config;
    if (o->snap_bytes && *o->snap_bytes && !o->max_snaps)
        return q_fail(e, Q_EINPUT, "%.1f MiB hold no checkpoint of a prompt: one takes %.1f MiB (0: none)", (double)*o->snap_bytes / 1048576,
                      (double)plan_snap_bytes(c, o->kv_k, o->kv_v) / 1048576);
    if (o->max_seqs < 1 || o->max_snaps < 0 || o->max_rows < 1 || o->max_out < 1 || o->ctx < 1)
        return q_fail(e, Q_EINPUT, "an engine needs at least one sequence, row, output and token of context");
    int rc = rope_check(c, o->ctx, en->model->path, e);
    if (!rc) rc = engine_check_sparse(en, e);
    if (!rc) rc = check_format(o->kv_k, "K", c->head_dim, e);
    return rc ? rc : check_format(o->kv_v, "V", c->head_dim, e);
}

static int open_model(struct q_engine *en, struct q_err *e)
{
    const struct q_engine_opts *o = &en->o;
    const char *type = o->preset_type ? o->preset_type : "q8_0";
    enum q_made made = en->device->host_memory ? Q_MADE_HERE : Q_MADE_LATER;
    int rc = o->config ? model_open_config(&en->model, o->config, type, made, e)
             : o->preset ? model_open_preset(&en->model, o->preset, type, made, e)
             : o->model ? model_open(&en->model, o->model, e)
                        : q_fail(e, Q_EINPUT, "no model is named: expected a GGUF file or a preset");
    if (!rc && en->model->file) rc = tok_open_gguf(&en->tokenizer, en->model->file, e);
    if (!rc && en->model->notices[0]) engine_say(en, "%s", en->model->notices);
    return rc;
}

/* What positions are turned by, where it is not the model's own way: a stored state is of no use to another. */
static void rope_text(const struct q_config *c, char *text, size_t size)
{
    const struct q_yarn *y = &c->yarn;
    *text = 0;
    if (y->factor > 1)
        snprintf(text, size, " rope=yarn,%.9g,%d,%.9g,%.9g,%.9g", (double)y->factor, y->original, (double)y->beta_fast, (double)y->beta_slow,
                 (double)rope_attention(c));
}

static void make_state_id(struct q_engine *en)
{
    char model[2 * sizeof en->model->id + 1], rope[100], sparse[40] = "";
    const char *numerics = en->o.numerics == Q_PINNED ? en->numerics_id : q_numerics_name(en->o.numerics);
    rope_text(&en->model->config, rope, sizeof rope);
    sodium_bin2hex(model, sizeof model, en->model->id, sizeof en->model->id);
    if (en->o.sparse.mass > 0) snprintf(sparse, sizeof sparse, " sparse=%.9g,%d", en->o.sparse.mass, en->o.sparse.from);
    snprintf(en->state_id, sizeof en->state_id, "model=%s kv=%s+%s numerics=%s%s%s", model, en->o.kv_k, en->o.kv_v, numerics, rope, sparse);
}

static int open_kernels(struct q_engine *en, struct q_err *e)
{
    const struct q_engine_opts *o = &en->o;
    struct kset_opts k = {.device = en->device, .numerics = o->numerics, .kv_k = o->kv_k, .kv_v = o->kv_v, .sparse = o->sparse.mass > 0,
                          .tunes = o->tunes, .model_arg = o->model, .preset_arg = o->preset, .preset_format = o->preset_type,
                          .program_dir = o->program_dir, .say = o->say, .say_arg = o->say_arg};
    int tuned, borrowed, defaults, rc = kset_open(&en->kernels, en->model, &k, e);
    if (rc) return rc;
    kset_count(en->kernels, &tuned, &borrowed, &defaults);
    snprintf(en->numerics_id, sizeof en->numerics_id, "%s-%s", q_numerics_name(o->numerics), kset_id(en->kernels));
    make_state_id(en);
    engine_say(en, "kernels: %d tuned, %d borrowed, %d default; numerics %s; %s", tuned, borrowed, defaults, en->numerics_id, en->device->card.key);
    return Q_OK;
}

/* Somebody who asked for another format is told. */
static void tell_kv(const struct q_engine *en, const struct q_engine_opts *asked)
{
    const char *other = asked->kv_k && strcmp(asked->kv_k, en->o.kv_k)   ? asked->kv_k
                        : asked->kv_v && strcmp(asked->kv_v, en->o.kv_v) ? asked->kv_v
                                                                         : NULL;
    if (other) engine_say(en, "KV: f32, not %s: --numerics reference keeps K and V as they are", other);
}

static void tell_rope(const struct q_engine *en)
{
    const struct q_config *c = &en->model->config;
    if (c->yarn.factor > 1)
        engine_say(en, "rope: YaRN, %d tokens times %g, attention factor %.4f; short texts may suffer", c->yarn.original, (double)c->yarn.factor,
                   (double)rope_attention(c));
    else if (en->o.rope.scaling == Q_ROPE_YARN)
        engine_say(en, "rope: a context of %d needs no YaRN: the model was trained for %d", en->o.ctx, c->n_ctx_train);
}

static void tell_device(const struct q_engine *en)
{
    if (!en->device->host_memory) engine_say(en, "device: %s", en->device->about);
    if (!en->device->host_memory) return;
    int cpus = card_allowed_cpus();
    if (en->o.threads > cpus)
        engine_say(en, "%d threads on %d processor%s that this program may use: they take turns", en->o.threads, cpus, cpus == 1 ? "" : "s");
}

/* Weights are from KERNELS_END to WEIGHTS_END of the way; the rest is short where no kernel has to be built. */
#define KERNELS_END 0.1
#define WEIGHTS_END 0.95

static void progress(const struct q_engine *en, const char *stage, double fraction)
{
    if (en->o.progress) en->o.progress(en->o.progress_arg, stage, fraction);
}

static void weights_progress(void *arg, double fraction) { progress(arg, "weights", KERNELS_END + (WEIGHTS_END - KERNELS_END) * fraction); }

static int open_weights(struct q_engine *en, struct q_err *e)
{
    struct q_weights_opts o = {.model = en->model, .kernels = en->kernels, .numerics = en->o.numerics, .say = en->o.say, .say_arg = en->o.say_arg,
                               .progress = weights_progress, .progress_arg = en};
    return weights_open(&en->weights, en->device, &o, e);
}

/* Everything but weights and kernels. */
static int open_memory(struct q_engine *en, struct q_err *e)
{
    const struct q_engine_opts *o = &en->o;
    const struct q_config *c = &en->model->config;
    struct q_plan_options po = engine_plan_options(en);
    struct q_scratch_size ss = plan_scratch(&po);
    struct q_step_size ts = plan_step(c, &po);
    int rc = kv_open(&en->kv, en->device, c, (int)en->plan.n_pages, o->kv_k, o->kv_v, e);
    if (!rc) rc = states_open(&en->states, en->device, c, (int)en->plan.n_slots, e);
    if (!rc) rc = scratch_open(&en->scratch, en->device, c, &ss, e);
    if (!rc) rc = step_table_open(&en->table, en->device, &ts, e);
    en->memory = (struct q_memory){&en->kv, &en->states, o->ctx, o->max_snaps};
    return rc;
}

static int open_results(struct q_engine *en, struct q_err *e)
{
    size_t n = (size_t)en->o.max_out;
    en->logits = malloc(n * (size_t)en->model->config.n_vocab * sizeof(float));
    en->logprob = malloc(n * sizeof(float));
    en->lse = malloc(n * sizeof(float));
    en->id = malloc(n * sizeof(int));
    en->top_id = malloc(n * Q_TOP * sizeof(int));
    en->top_value = malloc(n * Q_TOP * sizeof(float));
    en->hidden = malloc((size_t)en->model->config.n_embd * sizeof(float));
    en->sampled = malloc((size_t)((char *)en->scratch.logprob - (char *)en->scratch.id) + n * sizeof(float));
    if (en->sampled && en->hidden && en->logits && en->logprob && en->lse && en->id && en->top_id && en->top_value) return Q_OK;
    return q_fail(e, Q_EMEM, "no memory for the logits of %d rows", en->o.max_out);
}

static int open_forward(struct q_engine *en, struct q_err *e)
{
    struct q_parts p = {.model = en->model, .kernels = en->kernels, .weights = &en->weights, .kv = &en->kv, .states = &en->states,
                        .scratch = &en->scratch, .step = en->table.step, .out = step_table_out(&en->table),
                        .numerics = en->o.numerics, .kv_k = en->o.kv_k, .kv_v = en->o.kv_v, .sparse = en->o.sparse};
    return forward_open(&en->forward, &p, 0, en->model->config.n_layers, e);
}

int q_engine_open(struct q_engine **out, const struct q_engine_opts *o, struct q_err *e)
{
    struct q_engine *en = calloc(1, sizeof *en);
    if (!en) return q_fail(e, Q_EMEM, "no memory for an engine");
    en->o = *o;
    progress(en, "model", 0);
    int rc = device_open(&en->device, o->device, o->threads, e);
    if (!rc) en->device->careful = o->debug_launch;
    if (!rc) rc = open_model(en, e);
    if (!rc && o->count && !o->ctx && en->tokenizer) rc = o->count(o->count_arg, en->tokenizer, &en->o.ctx_hint, e);
    if (!rc) rc = fill_defaults(en, e);
    if (!rc) rc = check_options(en, e);
    if (!rc && o->formats) rc = o->formats(o->formats_arg, en->o.kv_k, en->o.kv_v, e);
    if (!rc) tell_device(en), tell_kv(en, o), tell_rope(en);
    if (!rc) engine_tell_sparse(en);
    if (!rc) rc = engine_check_plan(en, e);
    if (!rc) progress(en, "kernels", 0.01);
    if (!rc) rc = open_kernels(en, e);
    if (!rc) progress(en, "weights", KERNELS_END);
    if (!rc) rc = open_weights(en, e);
    if (!rc) progress(en, "memory", WEIGHTS_END);
    if (!rc) rc = open_memory(en, e);
    if (!rc) rc = open_results(en, e);
    if (!rc) rc = open_forward(en, e);
    if (rc) {
        q_engine_close(en);
        return rc;
    }
    *out = en;
    return Q_OK;
}

static void free_results(struct q_engine *en)
{
    free(en->logits);
    free(en->logprob);
    free(en->lse);
    free(en->hidden);
    free(en->sampled);
    free(en->id);
    free(en->top_id);
    free(en->top_value);
}

void q_engine_close(struct q_engine *en)
{
    if (!en) return;
    trace_close(en->trace);
    forward_close(&en->forward);
    step_table_close(&en->table);
    scratch_close(&en->scratch);
    states_close(&en->states);
    kv_close(&en->kv);
    if (en->weights.device) weights_close(&en->weights);
    if (en->kernels) kset_close(en->kernels);
    if (en->device) en->device->ops->close(en->device);
    tok_close(en->tokenizer);
    if (en->model) model_close(en->model);
    free_results(en);
    free(en);
}

const struct q_model *q_engine_model(const struct q_engine *en) { return en->model; }
struct tokenizer *q_engine_tokenizer(const struct q_engine *en) { return en->tokenizer; }
int q_engine_ctx(const struct q_engine *en) { return en->o.ctx; }
int q_engine_max_rows(const struct q_engine *en) { return en->o.max_rows; }
int q_engine_max_seqs(const struct q_engine *en) { return en->o.max_seqs; }
int q_engine_max_snaps(const struct q_engine *en) { return en->o.max_snaps; }
int q_engine_pages(const struct q_engine *en) { return en->kv.n_pages; }
int q_engine_threads(const struct q_engine *en) { return en->device->parts; }
const struct q_plan *q_engine_plan(const struct q_engine *en) { return &en->plan; }
void q_engine_memory(const struct q_engine *en, size_t *planned, size_t *taken)
{
    size_t now = en->device->ops->available(en->device);
    *planned = en->plan.total;
    *taken = en->device->host_memory || now > en->free_before ? 0 : en->free_before - now;
}

int q_engine_roofs(struct q_engine *en, struct q_roofs *r, struct q_err *e) { return roof_measure(en->device, en->kernels, r, e); }
const char *q_engine_about(const struct q_engine *en) { return en->device->about; }
const struct q_card *q_engine_card(const struct q_engine *en) { return &en->device->card; }

int q_engine_trace(struct q_engine *en, int on, struct q_err *e)
{
    trace_close(en->trace);
    en->trace = on ? trace_open() : NULL;
    return on && !en->trace ? q_fail(e, Q_EMEM, "no memory for a trace") : Q_OK;
}

const struct q_trace_line *q_engine_trace_lines(struct q_engine *en, int *n)
{
    *n = 0;
    return en->trace ? trace_lines(en->trace, n) : NULL;
}
const char *q_engine_numerics_id(const struct q_engine *en) { return en->numerics_id; }
int q_seq_open(struct q_engine *en, struct q_seq **s, struct q_err *e) { return seq_open(&en->memory, s, e); }
void q_engine_kv_formats(const struct q_engine *en, const char **k, const char **v)
{
    *k = en->o.kv_k;
    *v = en->o.kv_v;
}

const char *q_engine_state_id(const struct q_engine *en) { return en->state_id; }
size_t q_snap_bytes_of(const struct q_engine *en, int from, int length) { return snap_bytes(&en->memory, from, length); }

int q_snap_new(struct q_engine *en, const struct q_snap *base, int from, int length, struct q_snap **out, struct q_err *e)
{
    return snap_new(&en->memory, base, from, length, out, e);
}
