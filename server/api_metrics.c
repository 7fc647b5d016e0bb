/* GET /metrics: what Prometheus graphs. Rates are of all time that was spent on them; rate() over the counters gives those of late. */
#include "api.h"
#include "exposition.h"
#include "runtime/cli.h"
#include <stdio.h>

static void put_build(struct server *sv, struct text *t)
{
    struct text labels = {0};
    int ready = worker_state(sv->worker) == WORKER_READY;
    expo_label(&labels, "version", QUARRY_VERSION);
    expo_label(&labels, "model", sv->alias);
    if (ready) expo_label(&labels, "numerics", q_engine_numerics_id(worker_engine(sv->worker)));
    expo_head(t, "info", "gauge", "What is served, by what.");
    expo_value(t, "info", "", &labels, 1);
    text_free(&labels);
    expo_one(t, "ready", "gauge", "1 when requests are answered, 0 while the model loads or the server ends.", ready);
    expo_one(t, "load_progress", "gauge", "How much of the model is loaded, 0 to 1.", ready ? 1 : load_percent(&sv->load) / 100.0);
    expo_one(t, "start_time_seconds", "gauge", "When the server was started, in seconds since 1970.", (double)sv->created);
}

static void put_labelled(struct text *t, struct text *labels, const char *name, const char *label, const char *value, unsigned long long n)
{
    expo_label(labels, label, value);
    expo_value(t, name, "", labels, (double)n);
}

static void put_answers(const struct queue_counts *c, struct text *t)
{
    struct text labels = {0};
    const char *name = "answers_total";
    expo_head(t, name, "counter", "Answers by outcome: stop (the model or a stop string ended it), length (a limit of tokens), failed, cancelled.");
    put_labelled(t, &labels, name, "outcome", "stop", c->stopped);
    put_labelled(t, &labels, name, "outcome", "length", c->limited);
    put_labelled(t, &labels, name, "outcome", "failed", c->failed);
    put_labelled(t, &labels, name, "outcome", "cancelled", c->cancelled);
    text_free(&labels);
}

static double rate(unsigned long long n, double seconds) { return seconds > 0 ? (double)n / seconds : 0; }

static void put_tokens(const struct queue_counts *c, struct text *t)
{
    expo_one(t, "prompt_tokens_total", "counter", "Tokens of prompts, those taken from the cache included.", (double)c->prompt);
    expo_one(t, "prompt_cached_tokens_total", "counter", "Tokens of prompts that were taken from the cache.", (double)c->cached);
    expo_one(t, "prompt_seconds_total", "counter", "Seconds spent on reading prompts.", c->prompt_s);
    expo_one(t, "prompt_tokens_per_second", "gauge",
             "Tokens of prompts read in a second, without cached ones.", rate(c->prompt - c->cached, c->prompt_s));
    expo_one(t, "generated_tokens_total", "counter", "Tokens of answers.", (double)c->generated);
    expo_one(t, "generated_seconds_total", "counter", "Seconds spent on generating, summed over answers.", c->generate_s);
    expo_one(t, "generated_tokens_per_second", "gauge", "Tokens that one answer gets in a second.", rate(c->generated, c->generate_s));
}

static void put_cache(const struct queue_counts *c, struct text *t)
{
    struct text labels = {0};
    const char *name = "prompt_cache_total";
    expo_head(t, name, "counter",
              "Prompts by their beginning: hit (slot: an answer's own sequence; device, host, disk: a checkpoint there), or miss: empty "
              "(nothing kept), different (what is kept begins otherwise), evicted (it was kept, and gone for others), no_place (it goes another "
              "way, and its state was not kept there), busy (the same, in use).");
    for (int r = Q_REUSE_SLOT; r < Q_REUSE_KINDS; r++) {
        expo_label(&labels, "result", r <= Q_REUSE_DISK ? "hit" : "miss");
        put_labelled(t, &labels, name, "reason", q_reuse_name(r), c->reuse[r]);
    }
    text_free(&labels);
    expo_one(t, "prompt_shared_tokens_total", "counter",
             "Tokens of prompts that something kept had in common with them, taken from there or not.", (double)c->shared);
}

static const enum q_tier tiers[] = {Q_TIER_DEVICE, Q_TIER_HOST, Q_TIER_DISK};

/* One family, a sample a tier; `at`: where in the tier's counts. A budget that is none is not told. */
static void put_tiers(const struct q_tree_counts *c, struct text *t, const char *name, const char *type, const char *help,
                      double (*value)(const struct q_tree_tier_counts *))
{
    struct text labels = {0};
    expo_head(t, name, type, help);
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++) {
        double v = value(&c->tier[tiers[i]]);
        if (v < 0) continue;
        expo_label(&labels, "tier", q_tier_name(tiers[i]));
        expo_value(t, name, "", &labels, v);
    }
    text_free(&labels);
}

static double tier_n(const struct q_tree_tier_counts *c) { return c->n; }
static double tier_bytes(const struct q_tree_tier_counts *c) { return (double)c->bytes; }
static double tier_budget(const struct q_tree_tier_counts *c) { return c->budget == SIZE_MAX ? -1 : (double)c->budget; }
static double tier_got(const struct q_tree_tier_counts *c) { return (double)c->got; }
static double tier_put(const struct q_tree_tier_counts *c) { return (double)c->put; }
static double tier_given(const struct q_tree_tier_counts *c) { return (double)c->given; }

static void put_checkpoints(const struct q_tree_counts *c, struct text *t)
{
    put_tiers(c, t, "checkpoints", "gauge", "Places of prompts whose state is kept, by tier; one may lie on several.", tier_n);
    put_tiers(c, t, "checkpoint_bytes", "gauge", "Bytes of them.", tier_bytes);
    put_tiers(c, t, "checkpoint_budget_bytes", "gauge", "Bytes that they may take; none for a tier that its slots and KV pages bound.", tier_budget);
    put_tiers(c, t, "checkpoints_used_total", "counter", "Times that a prompt went on from one.", tier_got);
    put_tiers(c, t, "checkpoints_put_total", "counter", "Checkpoints that came to the tier.", tier_put);
    put_tiers(c, t, "checkpoints_gone_total", "counter", "Checkpoints that left the tier.", tier_given);
    expo_one(t, "checkpoints_lost_total", "counter", "Checkpoints that left the last tier they were on.", (double)c->lost);
    expo_one(t, "checkpoint_move_seconds_total", "counter", "Seconds that the engine's thread spent on moving them.", c->move_s);
}

static void put_times(const struct queue_counts *c, struct text *t)
{
    expo_head(t, "wait_seconds", "histogram", "Seconds that answers waited for the engine.");
    expo_hist_put(t, "wait_seconds", &c->wait, "");
    expo_head(t, "first_token_seconds", "histogram", "Seconds from a request to its answer's first token: waiting, and reading the prompt.");
    expo_hist_put(t, "first_token_seconds", &c->first, "");
}

static void put_queue(struct server *sv, const struct queue_counts *c, struct text *t)
{
    expo_one(t, "requests_running", "gauge", "Requests whose answers are being generated.", c->running);
    expo_one(t, "requests_waiting", "gauge", "Requests that wait for the engine.", c->waiting);
    expo_one(t, "requests_waiting_limit", "gauge", "Requests that may wait; more are told 429.", sv->o.queue);
}

static void put_engine(const struct sched_counts *c, struct text *t)
{
    expo_one(t, "slots", "gauge", "Answers that may be generated at once.", c->slots);
    expo_one(t, "slots_reading", "gauge", "Answers whose prompts are being read.", c->reading);
    expo_one(t, "kv_pages", "gauge", "Pages of KV memory.", c->pages);
    expo_one(t, "kv_pages_promised", "gauge", "Pages that are promised to running answers; others remember earlier prompts.", c->promised);
    expo_one(t, "preempted_total", "counter",
             "Times that an answer left its slot because pages ran out, and was read again later.", (double)c->preempted);
    expo_one(t, "steps_total", "counter", "Steps of the engine.", (double)c->steps);
    expo_one(t, "busy_seconds_total", "counter", "Seconds spent in steps.", c->busy_s);
    expo_one(t, "rows_read_total", "counter", "Tokens of prompts that steps have read, as they were read.", (double)c->read);
    expo_one(t, "rows_generated_total", "counter", "Tokens of answers that steps have drawn, as they were drawn.", (double)c->generated);
}

void api_metrics(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    struct queue_counts c = queue_counts(sv->queue);
    struct text t = {0};
    put_build(sv, &t);
    put_queue(sv, &c, &t);
    put_answers(&c, &t);
    put_tokens(&c, &t);
    put_cache(&c, &t);
    put_times(&c, &t);
    if (worker_state(sv->worker) == WORKER_READY) {
        struct sched_counts s = worker_counts(sv->worker);
        put_engine(&s, &t);
        put_checkpoints(&s.tree, &t);
    }
    http_put_metrics(sv->http, &t);
    http_reply_text(rq, 200, EXPOSITION_TYPE, &t);
}
