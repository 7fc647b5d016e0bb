#include "constrain_text.h"

/* Plain characters as sequences of byte ranges: the rows of UTF-8's table of well-formed sequences, ASCII with its gaps. */
static const struct sequence {
    int n;
    unsigned char lo[4], hi[4];
} sequences[] = {
    {1, {0x20}, {0x21}}, {1, {0x23}, {0x3B}}, {1, {0x3D}, {0x5B}}, {1, {0x5D}, {0x7E}},
    {2, {0xC2, 0x80}, {0xDF, 0xBF}},
    {3, {0xE0, 0xA0, 0x80}, {0xE0, 0xBF, 0xBF}}, {3, {0xE1, 0x80, 0x80}, {0xEC, 0xBF, 0xBF}},
    {3, {0xED, 0x80, 0x80}, {0xED, 0x9F, 0xBF}}, {3, {0xEE, 0x80, 0x80}, {0xEF, 0xBF, 0xBF}},
    {4, {0xF0, 0x90, 0x80, 0x80}, {0xF0, 0xBF, 0xBF, 0xBF}}, {4, {0xF1, 0x80, 0x80, 0x80}, {0xF3, 0xBF, 0xBF, 0xBF}},
    {4, {0xF4, 0x80, 0x80, 0x80}, {0xF4, 0x8F, 0xBF, 0xBF}}};
enum { N_SEQUENCES = sizeof sequences / sizeof *sequences, FIRST_LONG = 4 };

static int fits(const struct sequence *q, const unsigned char *s, size_t n)
{
    if ((size_t)q->n > n) return 0;
    for (int i = 0; i < q->n; i++)
        if (s[i] < q->lo[i] || s[i] > q->hi[i]) return 0;
    return 1;
}

int text_characters(const char *s, size_t n)
{
    int count = 0;
    for (size_t at = 0; at < n; count++) {
        int k = 0;
        while (k < N_SEQUENCES && !fits(sequences + k, (const unsigned char *)s + at, n - at)) k++;
        if (k == N_SEQUENCES) return 0;
        at += (size_t)sequences[k].n;
    }
    return count;
}

static const struct expr_range characters[] = {{0x20, 0x21}, {0x23, 0x3B}, {0x3D, 0x5B}, {0x5D, 0x7E}, {0x80, 0xD7FF}, {0xE000, 0x10FFFF}};
enum { N_CHARACTERS = sizeof characters / sizeof *characters };

int text_has_plain(const struct expr_range *range, int n)
{
    int all = 1, some = 0;
    for (int k = 0; k < N_CHARACTERS; k++) {
        uint32_t lo = characters[k].lo, hi = characters[k].hi, held = 0;
        for (int i = 0; i < n; i++) {
            uint32_t from = range[i].lo > lo ? range[i].lo : lo, to = range[i].hi < hi ? range[i].hi : hi;
            if (from <= to) held += to - from + 1;
        }
        all &= held == hi - lo + 1;
        some |= held > 0;
    }
    return all ? 1 : some ? -1 : 0;
}

int text_may_begin(unsigned char lo, unsigned char hi)
{
    for (int k = 0; k < N_SEQUENCES; k++)
        if (lo <= sequences[k].hi[0] && hi >= sequences[k].lo[0]) return 1;
    return 0;
}

struct ways {
    struct pda *s;
    int to;    /* 1 + where all ways so far led, 0: there was none yet, -1: to different states */
    int reach;
};

/* A way has come to `state`; 0 when it is over, at its end or by a refusal. */
static int arrive(struct ways *w, int state, int at_end)
{
    const struct state *x = w->s->state + state;
    if (state && x->reach > w->reach) w->reach = x->reach;
    if (state && !at_end && !x->may_end) return 1;
    int differs = w->s->rc || (state && x->may_end) || (w->to && w->to != state + 1);
    w->to = differs ? -1 : state + 1;
    return 0;
}

/* All ways that a sequence may take from its byte i on. Bytes of a class are next to each other. */
static void follow(struct ways *w, int state, const struct sequence *q, int i)
{
    const unsigned char *class_of = w->s->p->class_of;
    for (int c = class_of[q->lo[i]]; c <= class_of[q->hi[i]] && w->to >= 0; c++) {
        int to = pda_step(w->s, state, c);
        if (arrive(w, to, i + 1 == q->n)) follow(w, to, q, i + 1);
    }
}

/* ASCII: classes that lead elsewhere than all longer characters do; how many. */
static int count_odd(struct ways *w, int state)
{
    const unsigned char *class_of = w->s->p->class_of;
    int odd = 0, last = -1;
    for (int k = 0; k < FIRST_LONG; k++)
        for (int c = class_of[*sequences[k].lo]; c <= class_of[*sequences[k].hi] && odd <= TEXT_MOST_ODD; last = c++) {
            if (c == last) continue;
            int to = pda_step(w->s, state, c);
            odd += to + 1 != w->to;
            if (to + 1 == w->to && w->s->state[to].reach > w->reach) w->reach = w->s->state[to].reach;
        }
    return odd;
}

/* Where the automaton says it of all that is read at the state's only place: 1, and the state is filled. Inside a character a text is as far
 * from its end as behind it, so the reach is that of the state behind. */
static int learn_place(struct pda *s, int state)
{
    int n, to = 0;
    const int *frame = pda_frames(s, state, &n);
    if (n != 1 || pda_spot_calls(s, frame[0])) return 0;
    int spot = pda_spot_plain(s, frame[0]), stack = frame[1];
    if (spot < 0) return 0;
    s->scratch->n_pair = 0;
    if (spot) pda_add_pair(s, spot, stack);
    if (spot) to = pda_settle(s, 0);
    if (s->rc) return 1;
    struct state *x = s->state + state;
    int here = spot ? s->stack[stack].depth + s->spot[spot].height : 0;
    x->plain_reach = to && s->state[to].reach > here ? s->state[to].reach : here;
    x->plain = to && s->state[to].may_end ? -1 : to + 1;
    return 1;
}

/* Fills what a state has about plain characters. Most are beyond ASCII, so they say what is usual. */
static void learn(struct pda *s, int state)
{
    if (learn_place(s, state)) return;
    struct ways w = {.s = s};
    for (int k = FIRST_LONG; k < N_SEQUENCES && w.to >= 0; k++) follow(&w, state, sequences + k, 0);
    int odd = w.to >= 0 ? count_odd(&w, state) : 0;
    if (s->rc) return;
    struct state *x = s->state + state;
    x->plain = odd > TEXT_MOST_ODD ? -1 : w.to;
    x->odd = (char)odd;
    x->plain_reach = w.reach;
}

int text_room(struct pda *s, int first, int most, int *reach)
{
    int n = 0, state = first;
    for (; n < most; n++) {
        if (!s->state[state].plain) learn(s, state);
        const struct state *x = s->state + state;
        if (s->rc || x->plain < 0 || (x->odd && n)) return -1;
        if (x->plain == 1) break;
        if (x->plain_reach > *reach) *reach = x->plain_reach;
        if (x->plain == state + 1 && !x->odd) return most;
        state = x->plain - 1;
    }
    return n;
}

int text_is_odd(struct pda *s, int state, unsigned char byte)
{
    int k = 0;
    while (k < FIRST_LONG && (byte < *sequences[k].lo || byte > *sequences[k].hi)) k++;
    return k < FIRST_LONG && pda_step(s, state, s->p->class_of[byte]) + 1 != s->state[state].plain;
}
