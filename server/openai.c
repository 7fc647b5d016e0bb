#include "openai.h"
#include "sse.h"
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

void openai_id(const char *prefix, char *out, size_t size)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    size_t n = (size_t)snprintf(out, size, "%s", prefix);
    for (int i = 0; i < 24 && n + 1 < size; i++) out[n++] = digits[randombytes_uniform(36)];
    out[n] = 0;
}

void openai_head_init(struct openai_head *h, const char *prefix, struct server *sv, const struct ask *ask)
{
    const struct q_engine *en = worker_engine(sv->worker);
    openai_id(prefix, h->id, sizeof h->id);
    h->created = time(NULL);
    h->model = sv->alias;
    h->fingerprint = q_engine_numerics_id(en);
    h->tokenizer = q_engine_tokenizer(en);
    h->usage = ask->usage;
}

/* ---- objects and chunks ---- */

void openai_put_head(const struct openai_head *h, const char *object, struct text *out)
{
    text_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", h->id, object, (long long)h->created);
    text_json_z(out, h->model);
    text_put(out, ",\"system_fingerprint\":");
    text_json_z(out, h->fingerprint);
}

void openai_begin_chunk(const struct openai_head *h, const char *object, struct text *out)
{
    text_put(out, "data: ");
    openai_put_head(h, object, out);
    text_put(out, ",\"choices\":[");
}

void openai_end_chunk(const struct openai_head *h, struct text *out) { text_put(out, h->usage ? "],\"usage\":null}\n\n" : "]}\n\n"); }

void openai_put_done(const struct openai_head *h, const char *object, const struct usage *u, struct text *out)
{
    if (h->usage) {
        openai_begin_chunk(h, object, out);
        text_put(out, "],");
        openai_put_counts(u, out);
        text_put(out, "}\n\n");
    }
    text_put(out, "data: [DONE]\n\n");
}

void openai_fault(void *f, const struct api_error *x, struct text *out) { sse_error(x, out); }

/* ---- counts ---- */

static double rate(int n, double s) { return n > 0 && s > 0 ? n / s : 0; }

/* As llama-server counts: predicted_ms begins with the first token, which comes with the prompt's last step, and predicted_per_second is all tokens
 * of the answer by that time; 0 where there is but that token. The log's rate leaves it out. */
static void put_timings(const struct usage *u, struct text *out)
{
    int read = u->n_prompt - u->n_cached;
    text_printf(out, "{\"cache_n\":%d,\"prompt_n\":%d,\"prompt_ms\":%.3f,\"prompt_per_second\":%.3f,", u->n_cached, read, u->prefill_s * 1e3,
                rate(read, u->prefill_s));
    text_printf(out, "\"predicted_n\":%d,\"predicted_ms\":%.3f,\"predicted_per_second\":%.3f}", u->n_generated, u->decode_s * 1e3,
                u->n_timed > 0 ? rate(u->n_generated, u->decode_s) : 0);
}

void openai_put_counts(const struct usage *u, struct text *out)
{
    text_printf(out, "\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,", u->n_prompt, u->n_generated,
                u->n_prompt + u->n_generated);
    text_printf(out, "\"prompt_tokens_details\":{\"cached_tokens\":%d", u->n_cached);
    if (u->n_cut) text_printf(out, ",\"truncated_tokens\":%d", u->n_cut);
    text_printf(out, "},\"completion_tokens_details\":{\"reasoning_tokens\":%d}},\"timings\":", u->n_thinking);
    put_timings(u, out);
}

void openai_put_finish(enum finish finish, struct text *out)
{
    static const char *const name[] = {"\"stop\"", "\"length\"", "\"tool_calls\""};
    text_put(out, name[finish]);
}

/* ---- tokens ---- */

void openai_put_logprob(float logprob, struct text *out)
{
    text_printf(out, "%.7g", logprob > -9999 ? (double)logprob : -9999.0);
}

void openai_token(const struct openai_head *h, int id, struct tok_text *to)
{
    const int32_t one = id;
    struct q_err e;
    tok_decode(h->tokenizer, &one, 1, to, &e);
}

/* Whole characters of it; what is none comes out as U+FFFD. */
static void put_lossy(const struct openai_head *h, int id, struct text *out)
{
    struct tok_stream s = {0};
    struct tok_text t = {0};
    struct q_err e;
    if (tok_stream_push(&s, h->tokenizer, id, &t, &e) || tok_stream_flush(&s, &t, &e)) out->bad = 1;
    text_json(out, t.n ? t.at : "", t.n);
    free(t.at);
}

static void put_token(const struct openai_head *h, int id, float logprob, struct text *out)
{
    struct tok_text bytes = {0};
    openai_token(h, id, &bytes);
    text_put(out, "{\"token\":");
    put_lossy(h, id, out);
    text_put(out, ",\"logprob\":");
    openai_put_logprob(logprob, out);
    text_put(out, ",\"bytes\":[");
    for (size_t i = 0; i < bytes.n; i++) text_printf(out, i ? ",%u" : "%u", (unsigned char)bytes.at[i]);
    text_put(out, "]");
    free(bytes.at);
}

void openai_put_chat_logprobs(const struct openai_head *h, const struct q_token *t, int n, struct text *out)
{
    if (!n) {
        text_put(out, "null");
        return;
    }
    text_put(out, "{\"content\":[");
    for (int i = 0; i < n; i++) {
        if (i) text_put(out, ",");
        put_token(h, t[i].id, t[i].logprob, out);
        text_put(out, ",\"top_logprobs\":[");
        for (int k = 0; k < t[i].n_top; k++) {
            if (k) text_put(out, ",");
            put_token(h, t[i].top_id[k], t[i].top_logprob[k], out);
            text_put(out, "}");
        }
        text_put(out, "]}");
    }
    text_put(out, "],\"refusal\":null}");
}
