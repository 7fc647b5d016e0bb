/* GET /props: what clients of llama.cpp's server ask for: the defaults of a request, the template, what the model takes. */
#include "api.h"
#include "runtime/gguf.h"
#include "runtime/model.h"
#include "runtime/plan.h"
#include <string.h>

static void put_defaults(struct server *sv, struct text *t)
{
    struct q_sampling_params p = worker_sampling(sv->worker);
    text_printf(t, "\"default_generation_settings\":{\"n_ctx\":%d,\"params\":{", q_engine_ctx(worker_engine(sv->worker)));
    text_printf(t, "\"temperature\":%.6g,\"top_p\":%.6g,\"top_k\":%d,\"min_p\":%.6g", (double)p.temp, (double)p.top_p, p.top_k, (double)p.min_p);
    text_printf(t, ",\"repeat_penalty\":%.6g,\"frequency_penalty\":%.6g,\"presence_penalty\":%.6g",
                (double)p.repeat, (double)p.frequency, (double)p.presence);
    text_printf(t, ",\"repeat_last_n\":%d,\"seed\":-1,\"max_tokens\":-1,\"n_predict\":-1,\"stream\":false}}", p.last_n);
}

static void put_template(struct server *sv, struct text *t)
{
    struct gguf_str file = {0};
    struct q_err e;
    const struct gguf *g = q_engine_model(worker_engine(sv->worker))->file;
    text_put(t, ",\"chat_template\":");
    if (sv->jinja) text_json_z(t, sv->jinja);
    else if (g && !gguf_get_str(g, "tokenizer.chat_template", &file, &e)) text_json(t, file.s, file.n);
    else text_put(t, "null");
    text_printf(t, ",\"chat_template_kwargs\":%s", sv->o.kwargs ? sv->o.kwargs : "{}");
}

static void put_token(const struct tokenizer *tk, const char *name, int32_t id, struct text *t)
{
    struct tok_str s = tok_piece(tk, id);
    text_printf(t, ",\"%s\":", name);
    text_json(t, s.at ? s.at : "", s.n);
}

/* The file's name, not its folder: that is nobody's business. */
static void put_model(struct server *sv, struct text *t)
{
    const char *path = sv->o.cli.engine.model, *slash = strrchr(path, '/');
    text_put(t, ",\"model_alias\":");
    text_json_z(t, sv->alias);
    text_put(t, ",\"model_path\":");
    text_json_z(t, slash ? slash + 1 : path);
    text_put(t, ",\"device\":");
    text_json_z(t, q_engine_about(worker_engine(sv->worker)));
    text_put(t, ",\"numerics\":");
    text_json_z(t, q_engine_numerics_id(worker_engine(sv->worker)));
    text_put(t, ",\"build_info\":\"quarry " QUARRY_VERSION "\"");
}

/* Bytes, by the parts of the plan; taken: null where the device does not tell. */
static void put_memory(struct server *sv, struct text *t)
{
    static const char *const name[Q_PLAN_ITEMS] = {"weights", "kv_pages", "states", "checkpoints", "scratch", "kernels"};
    const struct q_plan *p = q_engine_plan(worker_engine(sv->worker));
    size_t planned, taken;
    worker_memory(sv->worker, &planned, &taken);
    text_put(t, ",\"memory\":{");
    for (int i = 0; i < Q_PLAN_ITEMS; i++) text_printf(t, "\"%s\":%zu,", name[i], p->lines[i].bytes);
    text_printf(t, "\"planned\":%zu,\"taken\":", planned);
    if (taken) text_printf(t, "%zu}", taken);
    else text_put(t, "null}");
}

void api_props(struct http_request *rq)
{
    struct server *sv = http_server(rq);
    const struct tokenizer *tk = q_engine_tokenizer(worker_engine(sv->worker));
    struct text t = {0};
    text_put(&t, "{");
    put_defaults(sv, &t);
    put_model(sv, &t);
    put_memory(sv, &t);
    put_token(tk, "bos_token", tok_bos(tk), &t);
    put_token(tk, "eos_token", tok_eos(tk), &t);
    put_template(sv, &t);
    text_printf(&t, ",\"total_slots\":%d,\"modalities\":{\"vision\":false,\"audio\":false}}", worker_counts(sv->worker).slots);
    http_reply_json(rq, 200, &t);
}
