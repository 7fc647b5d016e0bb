#include "turn.h"
#include "text.h"
#include <math.h>

static const char CLOSE_THINKING[] = "\n</think>\n\n";

/* ---- opening ---- */

static int add_bias(struct q_turn *t, int32_t id, float value, int *n, int *cap, struct q_err *e)
{
    if (*n == *cap) {
        int more = *cap ? *cap * 2 : 16;
        int32_t *ids = realloc(t->bias_id, (size_t)more * sizeof *ids);
        if (ids) t->bias_id = ids;
        float *values = realloc(t->bias, (size_t)more * sizeof *values);
        if (values) t->bias = values;
        if (!ids || !values) return q_fail(e, Q_EMEM, "no memory for %d logit biases", more);
        *cap = more;
    }
    t->bias_id[*n] = id;
    t->bias[(*n)++] = value;
    return Q_OK;
}

/* The caller's biases, and one against every end token. */
static int forbid_ends(struct q_turn *t, struct q_err *e)
{
    const float never = -1e30f;
    const struct q_answer_opts *o = t->o;
    int n = 0, cap = 0, rc = Q_OK;
    for (int i = 0; i < o->n_bias && !rc; i++) rc = add_bias(t, o->bias_id[i], o->bias[i], &n, &cap, e);
    for (int32_t id = 0; id < tok_count(t->tokenizer) && !rc; id++)
        if (tok_is_end(t->tokenizer, id)) rc = add_bias(t, id, never, &n, &cap, e);
    t->sampling.bias_id = t->bias_id;
    t->sampling.bias = t->bias;
    t->sampling.n_bias = n;
    return rc;
}

static int has_penalties(const struct q_sampling_params *p)
{
    return p->repeat < 1 || p->repeat > 1 || p->frequency < 0 || p->frequency > 0 || p->presence < 0 || p->presence > 0;
}

int q_turn_open(struct q_turn *t, const struct tokenizer *tokenizer, int ctx, int n_prompt, const struct q_answer_opts *o, struct q_answer *out,
                struct q_err *e)
{
    *t = (struct q_turn){.o = o, .out = out, .tokenizer = tokenizer, .ctx = ctx, .id = -1,
                         .sampling = {.p = o->sampling, .bias_id = o->bias_id, .bias = o->bias, .n_bias = o->n_bias}};
    *out = (struct q_answer){.n_prompt = n_prompt, .stopped_by = -1, .other = -1};
    int rc = q_stops_open(&t->stops, o->stop, o->n_stop, e);
    /* What no penalty looks at is not counted, nor sent with each step. */
    if (!rc) rc = q_history_open(&t->history, has_penalties(&o->sampling) ? o->sampling.last_n : 0, e);
    if (!rc && o->ignore_eos && tokenizer) rc = forbid_ends(t, e);
    if (!rc && o->constraint && o->thinking) rc = q_constraint_thinking(o->constraint, e);
    q_reply_start(&t->reply, o->thinking);
    t->part = o->thinking && !o->raw ? Q_PART_THINKING : Q_PART_CONTENT;
    if (rc) q_turn_close(t);
    return rc;
}

void q_turn_close(struct q_turn *t)
{
    q_history_close(t->history);
    q_stops_close(&t->stops);
    free(t->bias_id);
    free(t->bias);
    free(t->forced.at);
    free(t->piece.at);
    free(t->shown.at);
    free(t->split.thinking.at);
    free(t->split.content.at);
    *t = (struct q_turn){0};
}

void q_turn_finish(struct q_turn *t, enum q_finish how)
{
    if (t->over) return;
    t->out->finish = how;
    t->over = 1;
}

/* ---- text ---- */

static int thinking(const struct q_turn *t)
{
    return !t->o->raw && (t->reply.at == Q_REPLY_THINKING_START || t->reply.at == Q_REPLY_THINKING);
}

/* Hands over what is in `shown`. */
static void emit(struct q_turn *t)
{
    if (t->shown.n && !t->left && t->o->text && t->o->text(t->o->arg, t->part, t->shown.at, t->shown.n)) {
        t->left = 1;
        q_turn_finish(t, Q_FINISH_CANCELLED);
    }
    t->shown.n = 0;
}

static int flush_stops(struct q_turn *t, struct q_err *e)
{
    int rc = q_stops_flush(&t->stops, &t->shown, e);
    if (!rc) emit(t);
    return rc;
}

static int show_part(struct q_turn *t, enum q_part part, struct tok_text *text, struct q_err *e)
{
    int rc = Q_OK;
    if (!text->n || t->stops.met) return Q_OK;
    if (part != t->part) rc = flush_stops(t, e);
    t->part = part;
    if (!rc) rc = q_stops_push(&t->stops, text->at, text->n, &t->shown, e);
    text->n = 0;
    if (rc) return rc;
    if (t->stops.met) {
        t->out->stopped_by = t->stops.which;
        q_turn_finish(t, Q_FINISH_STOP);
    }
    emit(t);
    return Q_OK;
}

static int show(struct q_turn *t, struct q_err *e)
{
    int rc = show_part(t, Q_PART_THINKING, &t->split.thinking, e);
    return rc ? rc : show_part(t, Q_PART_CONTENT, &t->split.content, e);
}

/* What is in `piece` goes to its part. */
static int split(struct q_turn *t, struct q_err *e)
{
    int rc = t->o->raw ? q_text_add(&t->split.content, t->piece.at, t->piece.n, e)
                       : q_reply_push(&t->reply, t->piece.at, t->piece.n, &t->split, e);
    t->piece.n = 0;
    return rc;
}

int q_turn_end(struct q_turn *t, struct q_err *e)
{
    if (!t->tokenizer || t->left || t->stops.met) return Q_OK;
    int rc = tok_stream_flush(&t->stream, &t->piece, e);
    if (!rc) rc = split(t, e);
    if (!rc && !t->o->raw) rc = q_reply_end(&t->reply, &t->split, e);
    if (!rc) rc = show(t, e);
    return rc ? rc : flush_stops(t, e);
}

/* ---- tokens ---- */

int q_turn_draw(struct q_turn *t, struct q_row *row, struct q_err *e)
{
    q_history_fill(t->history, &t->sampling);
    t->sampling.position = t->out->n_prompt + t->out->n_generated;
    row->want = Q_WANT_ID | (t->o->n_top > Q_TOP ? Q_WANT_LOGITS : t->o->n_top > 0 ? Q_WANT_TOP : 0);
    row->sampling = &t->sampling;
    return t->o->constraint ? q_constraint_mask(t->o->constraint, &t->sampling.mask, e) : Q_OK;
}

/* Among the `most` largest so far, largest first, the earlier id first among equals. */
static void put_top(struct q_token *to, int most, int id, float x)
{
    int at = to->n_top < most ? to->n_top++ : most;
    for (; at > 0 && x > to->top_logprob[at - 1]; at--) {
        if (at == most) continue;
        to->top_logprob[at] = to->top_logprob[at - 1];
        to->top_id[at] = to->top_id[at - 1];
    }
    if (at == most) return;
    to->top_logprob[at] = x;
    to->top_id[at] = id;
}

static void top_of_logits(const float *logits, int vocab, int n, struct q_token *to)
{
    for (int id = 0; id < vocab; id++) put_top(to, n, id, logits[id]);
    double max = to->top_logprob[0], sum = 0;
    for (int id = 0; id < vocab; id++) sum += exp((double)logits[id] - max);
    for (int i = 0; i < to->n_top; i++) to->top_logprob[i] = (float)((double)to->top_logprob[i] - max - log(sum));
}

static void read_top(const struct q_turn *t, const struct q_result *r, int i, struct q_token *to)
{
    int n = t->o->n_top;
    if (n > Q_TOP) {
        top_of_logits(r->logits + (size_t)i * (size_t)r->n_vocab, r->n_vocab, n, to);
        return;
    }
    for (; to->n_top < n; to->n_top++) {
        to->top_id[to->n_top] = r->top_id[i * Q_TOP + to->n_top];
        to->top_logprob[to->n_top] = r->top_value[i * Q_TOP + to->n_top] - r->lse[i];
    }
}

/* Behind the drawn token's logprob is a sum that was rounded elsewhere: one token has one number, however many are told. */
static void agree_on_drawn(struct q_token *tk)
{
    for (int k = 0; k < tk->n_top; k++)
        if (tk->top_id[k] == tk->id) tk->top_logprob[k] = tk->logprob;
}

/* A token that was not drawn has the logprob that the most likely ones tell, or OpenAI's "very unlikely". */
static void force(struct q_turn *t, struct q_token *tk)
{
    if (t->n_forced == t->forced.n) return;
    int id = t->forced.at[t->n_forced++];
    if (id == tk->id) return;
    tk->id = id;
    tk->logprob = -9999;
    for (int k = 0; k < tk->n_top; k++)
        if (tk->top_id[k] == id) tk->logprob = tk->top_logprob[k];
}

/* The budget is used up: the tokens that close the block come next, but not inside a character (at most three more tokens). */
static int check_budget(struct q_turn *t, struct q_err *e)
{
    int over = t->out->n_thinking - t->o->think_budget;
    if (!t->o->thinking_limited || !t->tokenizer || !thinking(t) || over < 0 || t->forced.n || (t->stream.n && over < 3)) return Q_OK;
    return tok_encode(t->tokenizer, CLOSE_THINKING, sizeof CLOSE_THINKING - 1, 0, &t->forced, e);
}

static int end_token(const struct q_turn *t, int id) { return t->tokenizer && tok_is_end(t->tokenizer, id); }

/* The token's text and part. Control tokens have no text. */
static int read_token(struct q_turn *t, struct q_token *tk, struct q_err *e)
{
    int was = thinking(t), rc = Q_OK;
    if (t->tokenizer && tok_type(t->tokenizer, tk->id) != TOK_CONTROL && !end_token(t, tk->id)) {
        rc = tok_stream_push(&t->stream, t->tokenizer, tk->id, &t->piece, e);
        if (!rc) rc = split(t, e);
    }
    t->out->n_thinking += was || thinking(t);
    int silent = was || thinking(t) || (!t->o->raw && t->reply.at == Q_REPLY_CONTENT_START);
    tk->part = silent && !t->split.content.n ? Q_PART_THINKING : Q_PART_CONTENT;
    return rc;
}

int q_turn_take(struct q_turn *t, const struct q_result *r, int i, struct q_err *e)
{
    struct q_token tk = {.id = r->id[i], .logprob = r->logprob[i]};
    struct q_answer *out = t->out;
    if (tk.id < 0) return q_fail(e, Q_EINTERNAL, "the model gave no usable logits after token %d", out->n_prompt + out->n_generated);
    if (t->o->n_top) read_top(t, r, i, &tk);
    agree_on_drawn(&tk);
    int rc = check_budget(t, e);
    if (!rc) force(t, &tk);
    if (!rc && t->o->constraint) rc = q_constraint_accept(t->o->constraint, tk.id, e);
    if (!rc) rc = q_history_push(t->history, tk.id, e);
    if (!rc) rc = read_token(t, &tk, e);
    if (rc) return rc;
    t->id = tk.id;
    out->n_generated++;
    if (t->o->token && t->o->token(t->o->arg, &tk)) q_turn_finish(t, Q_FINISH_CANCELLED);
    else if (end_token(t, tk.id)) q_turn_finish(t, Q_FINISH_STOP);
    else rc = show(t, e);
    if ((t->o->max_tokens >= 0 && out->n_generated >= t->o->max_tokens) || out->n_prompt + out->n_generated > t->ctx)
        q_turn_finish(t, Q_FINISH_LENGTH);
    return rc;
}
