#include "prompt_cut.h"
#include "answer.h"
#include <stdlib.h>
#include <string.h>

/* Ids [begin, end), of which [from, to) are its text; the rest is the template's. */
struct turn {
    int begin, end, from, to;
    int gap, gap_end;              /* of the text, left out; gap_end 0: nothing is */
    int question, fixed, gone;     /* a user's words; whole or not at all; nothing of it stays */
};

struct cutting {
    const struct tokenizer *t;
    struct tok_ids *ids;
    struct turn *turn;             /* owned: [n] */
    int n, total;                  /* turns; tokens that stay */
    int first, last;               /* of the turns that may go: [first, last) */
};

static const char *const names[] = {"none", "head", "middle"};

const char *q_cut_name(enum q_cut how) { return names[how]; }

int q_cut_parse(const char *name)
{
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

int q_cut_goal(int ctx, int max_tokens)
{
    int room = max_tokens > 0 && max_tokens <= ctx / 2 ? max_tokens : ctx / 4;
    return ctx - room > 1 ? ctx - room : 1;
}

/* ---- turns ---- */

static int is_piece(const struct cutting *c, int at, const char *text)
{
    struct tok_str s = at < (int)c->ids->n ? tok_piece(c->t, c->ids->at[at]) : (struct tok_str){0};
    return s.at && s.n == strlen(text) && !memcmp(s.at, text, s.n);
}

/* Behind "<|im_start|>role\n", which is three tokens; a role of more is none that matters here. */
static struct turn make_turn(const struct cutting *c, int begin, int end)
{
    struct turn u = {.begin = begin, .end = end, .from = begin, .to = end};
    if (!is_piece(c, begin, "<|im_start|>")) return u;
    u.from = begin + 3 < end ? begin + 3 : end;
    while (u.to > u.from && !is_piece(c, u.to - 1, "<|im_end|>")) u.to--;
    u.to = u.to > u.from ? u.to - 1 : end;
    u.question = is_piece(c, begin + 1, "user") && !is_piece(c, u.from, "<tool_response>");
    return u;
}

static int find_turns(struct cutting *c)
{
    int n = (int)c->ids->n, begin = 0;
    for (int i = 1; i <= n; i++) c->n += i == n || is_piece(c, i, "<|im_start|>");
    if (!(c->turn = calloc((size_t)c->n, sizeof *c->turn))) return -1;
    c->n = 0;
    for (int i = 1; i <= n; i++)
        if (i == n || is_piece(c, i, "<|im_start|>")) c->turn[c->n++] = make_turn(c, begin, i), begin = i;
    return 0;
}

/* The system message, and the last question with what follows; with `middle` the first question too, and what follows that. */
static void find_middle(struct cutting *c, enum q_cut how)
{
    c->first = c->n > 1 && is_piece(c, 1, "system");
    c->last = c->n - 1;
    while (c->last > c->first && !c->turn[c->last].question) c->last--;
    c->turn[c->n - 1].fixed = c->n > 1;      /* the answer's beginning */
    if (how != Q_CUT_MIDDLE) return;
    do c->first++;
    while (c->first < c->last && !c->turn[c->first].question);
}

/* The turn behind a question and what answers it. */
static int exchange_end(const struct cutting *c, int at)
{
    do at++;
    while (at < c->last && !c->turn[at].question);
    return at;
}

/* In strides of an eighth of the context: while a conversation grows by one, the same turns are left out, so that what was read of it serves
 * again. For a stride's sake alone no exchange goes that is longer than it: what fits of a few long texts is kept. */
static void drop_turns(struct cutting *c, int goal, int ctx)
{
    int excess = c->total - goal, stride = ctx / 8 + 1, least = (excess + stride - 1) / stride * stride, dropped = 0;
    for (int i = c->first, end; i < c->last; i = end) {
        end = exchange_end(c, i);
        int tokens = c->turn[end - 1].end - c->turn[i].begin;
        if (dropped >= least || (dropped >= excess && tokens > stride)) break;
        for (int j = i; j < end; j++) c->turn[j].gone = 1;
        dropped += tokens;
    }
    c->total -= dropped;
}

/* ---- texts ---- */

static int inside_character(const struct cutting *c, int at)
{
    struct tok_str s = tok_piece(c->t, c->ids->at[at]);
    return s.n && ((unsigned char)s.at[0] & 0xC0) == 0x80;
}

/* Takes n tokens out of a turn's text, and those that hold parts of the characters at both ends. */
static void cut_text(struct cutting *c, struct turn *u, int n, enum q_cut how)
{
    u->gap = how == Q_CUT_MIDDLE ? u->from + (u->to - u->from - n) / 2 : u->from;
    u->gap_end = u->gap + n;
    while (u->gap > u->from && inside_character(c, u->gap)) u->gap--;
    while (u->gap_end < u->to && inside_character(c, u->gap_end)) u->gap_end++;
    c->total -= u->gap_end - u->gap;
}

/* The turn with the longest text that was not cut yet, the system message last of all; NULL: there is none. */
static struct turn *longest_text(const struct cutting *c)
{
    struct turn *best = NULL;
    int has_system = c->n > 1 && is_piece(c, 1, "system");
    for (int i = has_system; i < c->n; i++) {
        struct turn *u = c->turn + i;
        if (!u->gone && !u->fixed && !u->gap_end && u->to > u->from && (!best || u->to - u->from > best->to - best->from)) best = u;
    }
    return best || !has_system || c->turn->gap_end || c->turn->to == c->turn->from ? best : c->turn;
}

static void cut_texts(struct cutting *c, int goal, enum q_cut how)
{
    for (struct turn *u; c->total > goal && (u = longest_text(c));) {
        int excess = c->total - goal, length = u->to - u->from;
        cut_text(c, u, excess < length ? excess : length, how);
    }
}

static void keep(struct cutting *c, int from, int to, int *n)
{
    memmove(c->ids->at + *n, c->ids->at + from, (size_t)(to - from) * sizeof *c->ids->at);
    *n += to - from;
}

static void take_out(struct cutting *c)
{
    int n = 0;
    for (struct turn *u = c->turn; u < c->turn + c->n; u++) {
        if (u->gone) continue;
        keep(c, u->begin, u->gap_end ? u->gap : u->end, &n);
        if (u->gap_end) keep(c, u->gap_end, u->end, &n);
    }
    c->ids->n = (size_t)n;
}

int q_cut_prompt(const struct tokenizer *t, struct tok_ids *ids, int ctx, int max_tokens, enum q_cut how, int *left_out, struct q_err *e)
{
    struct cutting c = {.t = t, .ids = ids, .total = (int)ids->n};
    int goal = q_cut_goal(ctx, max_tokens), n = (int)ids->n;
    *left_out = 0;
    if (how == Q_CUT_NEVER || n < ctx) return q_check_prompt(ctx, ids->n, e);
    if (find_turns(&c)) return q_fail(e, Q_EMEM, "no memory for the turns of a prompt of %d tokens", n);
    find_middle(&c, how);
    drop_turns(&c, goal, ctx);
    cut_texts(&c, goal, how);
    int good = c.total <= goal && c.total > 0;   /* a text of one long broken character may have gone whole */
    if (good) take_out(&c);
    free(c.turn);
    *left_out = n - (int)ids->n;
    if (good) return Q_OK;
    return q_fail(e, Q_ELIMIT, "the prompt has %d tokens, of which %d have to stay, and a context of %d has room for %d beside the answer", n,
                  c.total, ctx, goal);
}
