#include "chat_form.h"
#include <sodium.h>
#include <stdio.h>
#include <string.h>

void chat_form_init(struct chat_form *f, const char *model, const char *fingerprint, int usage)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char *p = f->id + snprintf(f->id, sizeof f->id, "chatcmpl-");
    for (int i = 0; i < 24; i++) *p++ = digits[randombytes_uniform(36)];
    *p = 0;
    f->created = time(NULL);
    f->model = model;
    f->fingerprint = fingerprint;
    f->usage = usage;
}

static void put_head(const struct chat_form *f, const char *object, struct text *out)
{
    text_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", f->id, object, (long long)f->created);
    text_json_z(out, f->model);
    text_put(out, ",\"system_fingerprint\":");
    text_json_z(out, f->fingerprint);
}

static const char *finish_name(enum q_finish f) { return f == Q_FINISH_LENGTH ? "length" : "stop"; }

static void put_usage(const struct q_answer *a, struct text *out)
{
    text_printf(out, "{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d}}",
                a->n_prompt, a->n_generated, a->n_prompt + a->n_generated, a->n_cached);
}

static void begin_chunk(const struct chat_form *f, struct text *out)
{
    text_put(out, "data: ");
    put_head(f, "chat.completion.chunk", out);
    text_put(out, ",\"choices\":[");
}

/* `finish` NULL: none yet. */
static void end_chunk(const struct chat_form *f, const char *finish, struct text *out)
{
    text_put(out, ",\"logprobs\":null,\"finish_reason\":");
    text_json_z(out, finish);
    text_put(out, f->usage ? "}],\"usage\":null}\n\n" : "}]}\n\n");
}

void chat_form_role(const struct chat_form *f, struct text *out)
{
    begin_chunk(f, out);
    text_put(out, "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}");
    end_chunk(f, NULL, out);
}

void chat_form_delta(const struct chat_form *f, enum q_part part, const struct text *piece, struct text *out)
{
    begin_chunk(f, out);
    text_put(out, "{\"index\":0,\"delta\":{");
    text_put(out, part == Q_PART_THINKING ? "\"reasoning_content\":" : "\"content\":");
    text_json(out, piece->at ? piece->at : "", piece->n);
    text_put(out, "}");
    end_chunk(f, NULL, out);
}

void chat_form_end(const struct chat_form *f, const struct q_answer *a, struct text *out)
{
    begin_chunk(f, out);
    text_put(out, "{\"index\":0,\"delta\":{}");
    end_chunk(f, finish_name(a->finish), out);
    if (f->usage) {
        begin_chunk(f, out);
        text_put(out, "],\"usage\":");
        put_usage(a, out);
        text_put(out, "}\n\n");
    }
    text_put(out, "data: [DONE]\n\n");
}

void chat_form_whole(const struct chat_form *f, const struct q_answer *a, const struct text *content, const struct text *thinking,
                     struct text *out)
{
    put_head(f, "chat.completion", out);
    text_put(out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    text_json(out, content->at ? content->at : "", content->n);
    if (thinking->n) {
        text_put(out, ",\"reasoning_content\":");
        text_json(out, thinking->at, thinking->n);
    }
    text_printf(out, "},\"logprobs\":null,\"finish_reason\":\"%s\"}],\"usage\":", finish_name(a->finish));
    put_usage(a, out);
    text_put(out, "}");
}
