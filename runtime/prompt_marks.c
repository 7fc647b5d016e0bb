#include "prompt_marks.h"
#include <stdlib.h>
#include <string.h>

/* Tokens: a shorter message is kept with the next one, not by itself. */
enum { APART = 64 };

static int32_t control(const struct tokenizer *t, const char *name) { return t ? tok_find(t, name, strlen(name)) : -1; }

/* The token's letters, [a-z_-] alone, as they stand; 0: there are others. */
static int letters(const struct tokenizer *t, int32_t id, char *to, int cap)
{
    struct tok_stream stream = {0};
    struct tok_text text = {0};
    struct q_err e;
    int n = 0;
    int rc = tok_stream_push(&stream, t, id, &text, &e);
    if (!rc && text.n && text.n < (size_t)cap && strspn(text.at, "abcdefghijklmnopqrstuvwxyz_-") >= text.n) {
        memcpy(to, text.at, text.n);
        n = (int)text.n;
    }
    free(text.at);
    return n;
}

static void role_at(const struct tokenizer *t, const int32_t *ids, int n, int from, char role[PROMPT_ROLE])
{
    int len = 0;
    for (int i = from; i < n && i < from + 4; i++) {
        int more = letters(t, ids[i], role + len, PROMPT_ROLE - len);
        if (!more) break;
        len += more;
    }
    role[len] = 0;
}

int prompt_message(const struct tokenizer *t, const int32_t *ids, int n, int at, char role[PROMPT_ROLE])
{
    int32_t start = control(t, "<|im_start|>");
    int count = 0, last = -1;
    for (int i = 0; start >= 0 && i < n && i <= at; i++)
        if (ids[i] == start) count++, last = i;
    role[0] = 0;
    if (last >= 0) role_at(t, ids, n, last + 1, role);
    return count;
}

/* ---- marks ---- */

static int put(struct prompt_marks *m, int *cap, int at, int must, struct q_err *e)
{
    if (m->n && m->mark[m->n - 1].at == at) {
        m->mark[m->n - 1].must |= must;
        return Q_OK;
    }
    if (m->n == *cap) {
        int more = *cap ? *cap * 2 : 16;
        struct prompt_mark *p = realloc(m->mark, (size_t)more * sizeof *p);
        if (!p) return q_fail(e, Q_EMEM, "no memory for the marks of a prompt");
        m->mark = p;
        *cap = more;
    }
    m->mark[m->n++] = (struct prompt_mark){at, must};
    return Q_OK;
}

static int last_turn(const int32_t *ids, int n, int32_t end)
{
    for (int i = n; i > 0; i--)
        if (ids[i - 1] == end) return i;
    return n - 1;
}

/* A message that is to be kept behind: the first, the last, one of a user's that is long enough. */
static int keeps(const struct tokenizer *t, const int32_t *ids, int n, int start, int at, int before)
{
    char role[PROMPT_ROLE];
    if (start < 0 || at - before < APART) return 0;
    role_at(t, ids, n, start + 1, role);
    return strcmp(role, "assistant") != 0;
}

static int all(struct prompt_marks *m, const struct tokenizer *t, const int32_t *ids, int n, int every, struct q_err *e)
{
    int32_t begins = control(t, "<|im_start|>"), ends = control(t, "<|im_end|>");
    int last = last_turn(ids, n, ends), cap = 0, start = -1, before = 0, first = 1, rc = Q_OK;
    for (int i = 0; i < last && !rc; i++) {
        if (begins >= 0 && ids[i] == begins) start = i;
        if (every && (i + 1) % every == 0) rc = put(m, &cap, i + 1, 0, e);
        if (rc || ends < 0 || ids[i] != ends || !keeps(t, ids, n, start, i + 1, before)) continue;
        rc = put(m, &cap, i + 1, first, e);
        before = i + 1;
        first = 0;
    }
    return rc || last < 1 ? rc : put(m, &cap, last, 1, e);
}

int prompt_marks(struct prompt_marks *m, const struct tokenizer *t, const int32_t *ids, int n, int every, int most, struct q_err *e)
{
    *m = (struct prompt_marks){0};
    int rc = most > 0 ? all(m, t, ids, n, every, e) : Q_OK, to = 0;
    /* Of each `stride` in between, the last one stays. */
    int stride = most > 2 && m->n > most ? (m->n - 2 + most - 3) / (most - 2) : most > 2 ? 1 : m->n + 1;
    if (m->n <= most) return rc;
    for (int i = 0; i < m->n; i++)
        if (m->mark[i].must || (m->n - 1 - i) % stride == 0) m->mark[to++] = m->mark[i];
    if (most == 1 && to > 1) m->mark[0] = m->mark[to - 1], to = 1;
    m->n = to;
    return rc;
}

void prompt_marks_free(struct prompt_marks *m)
{
    free(m->mark);
    *m = (struct prompt_marks){0};
}
