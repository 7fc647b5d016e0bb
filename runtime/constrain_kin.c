/* Which states of a product of two automata may stand for each other, and for how many bytes: proved edge by edge, never taken from what the sides
 * know of their turns. A turn with more turns behind it is not simply like a later one: what the other side still needs may not fit into what is
 * left, so that a text goes on from the one and is dead from the other.
 *
 * nfa_build_and guesses kin: states whose sides differ in turns alone, the first met of them for all (links, in levels: each holds more to be kin).
 * With kin(q) that first one at some level, q is faithful if height and accept are kin(q)'s, and its edges are too, up to the kin of where they
 * lead. Heights are known by now, so a state from which no way leads to an end (NFA_NEVER) is faithful to none from which one does.
 * Call two sets of states equal if they hold the same kin. Let S and T be equal, and all in them and in what they reach by nothing be faithful:
 *   - what they reach by nothing is equal, as each state's free edges lead to the kin that its kin's do, and so does a byte, for the same reason;
 *   - so is what is alive in them, and whether they accept, and their heights: nobody can tell from outside which of them is read from.
 * So as long as only faithful states are met, texts from q and from kin(q) are taken and refused, end and nest alike. far[q] is the least number of
 * bytes on a way from q to a state that is not faithful; no text of fewer than far[q] bytes meets one, and texts of up to
 * min(far[q], far[kin(q)]) - 1 bytes do not tell q and kin(q) apart: that is nfa_state.left. The rest of the grammar is its own kin, hence faithful;
 * a call counts as no bytes, which can only make far smaller.
 * Costs some 20 ns an edge and level, and nothing where there is no product. */
#include "constrain_nfa.h"
#include <limits.h>
#include <stdlib.h>

struct kin {
    struct nfa *a;
    const char *accept;
    int *level; /* [n_state], and the rest; all owned: of the state's link, 0 none */
    int *of;    /* kin at this level */
    int *far, *queue, *later;
    int *into_at, *into; /* states that lead to q by nothing or a call, and, negative and less 1, by a byte: into[into_at[q] .. into_at[q + 1]) */
    int n, n_later;
};

static int open_kin(struct kin *k, struct nfa *a, const char *accept)
{
    size_t n = (size_t)a->n_state + 2;
    *k = (struct kin){.a = a, .accept = accept};
    k->level = calloc(6 * n + (size_t)a->n_edge, sizeof *k->level);
    if (!k->level) return 0;
    k->of = k->level + n;
    k->far = k->of + n;
    k->queue = k->far + n;
    k->later = k->queue + n;
    k->into_at = k->later + n;
    k->into = k->into_at + n;
    return 1;
}

static void sort_into(struct kin *k)
{
    const struct nfa *a = k->a;
    int *at = k->into_at;
    for (int i = 0; i < a->n_edge; i++) at[a->edge[i].to + 2]++;
    for (int q = 2; q <= a->n_state; q++) at[q] += at[q - 1];
    for (int q = 0; q < a->n_state; q++)
        for (int i = a->state[q].edge; i >= 0; i = a->edge[i].next) k->into[at[a->edge[i].to + 1]++] = a->edge[i].kind == NFA_BYTES ? -q - 1 : q;
}

static void find_kin(struct kin *k, int level)
{
    for (int q = 0; q < k->a->n_state; q++) {
        int r = q;
        while (k->level[r] && k->level[r] <= level) r = k->a->state[r].like;
        k->of[q] = r;
    }
}

static int is_same(const struct nfa_edge *x, const struct nfa_edge *y)
{
    return x->kind == y->kind && x->lo == y->lo && x->hi == y->hi && x->rule == y->rule;
}

static int is_faithful(const struct kin *k, int q, int r)
{
    const struct nfa_state *x = k->a->state + q, *y = k->a->state + r;
    const struct nfa_edge *e = k->a->edge;
    int i = x->edge, j = y->edge;
    if (x->height != y->height || k->accept[q] != k->accept[r]) return 0;
    for (; i >= 0 && j >= 0; i = e[i].next, j = e[j].next)
        if (!is_same(e + i, e + j) || k->of[e[i].to] != k->of[e[j].to]) return 0;
    return i == j;
}

static void reach(struct kin *k, int q, int far, int now)
{
    if (far >= k->far[q]) return;
    k->far[q] = far;
    if (far == now) k->queue[k->n++] = q;
    else k->later[k->n_later++] = q;
}

/* Bytes from each state to the next that is not faithful, INT_MAX: there is none on any way. */
static void find_far(struct kin *k)
{
    k->n = 0;
    for (int q = 0; q < k->a->n_state; q++) k->far[q] = INT_MAX;
    for (int q = 0; q < k->a->n_state; q++)
        if (k->of[q] != q && !is_faithful(k, q, k->of[q])) reach(k, q, 0, 0);
    for (int now = 0; k->n; now++) {
        k->n_later = 0;
        for (int i = 0; i < k->n; i++) {
            int q = k->queue[i];
            for (int j = k->into_at[q]; k->far[q] == now && j < k->into_at[q + 1]; j++)
                reach(k, k->into[j] < 0 ? -k->into[j] - 1 : k->into[j], now + (k->into[j] < 0), now);
        }
        int *swap = k->queue;
        k->queue = k->later;
        k->later = swap;
        k->n = k->n_later;
    }
}

static void prove_level(struct kin *k, int level)
{
    find_kin(k, level);
    find_far(k);
    for (int q = 0; q < k->a->n_state; q++) {
        int there = k->far[k->of[q]];
        if (k->level[q] == level) k->a->state[q].left = (k->far[q] < there ? k->far[q] : there) - 1;
    }
}

int nfa_prove_kin(struct nfa *a, const char *accept, struct q_err *e)
{
    struct kin k;
    int most = 0;
    for (int q = 0; q < a->n_state; q++)
        if (a->state[q].left < -most) most = -a->state[q].left;
    if (!most) return Q_OK;
    if (!open_kin(&k, a, accept)) return q_fail(e, Q_EMEM, "no memory for a grammar's automaton");
    sort_into(&k);
    for (int q = 0; q < a->n_state; q++)
        if (a->state[q].left < 0) k.level[q] = -a->state[q].left;
    for (int level = 1; level <= most; level++) prove_level(&k, level);
    free(k.level);
    return Q_OK;
}
