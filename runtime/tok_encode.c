/* The way from text to ids: check UTF-8, drop marks, cut at special tokens, normalise each piece, split it, merge.
 *
 * Natural text repeats its words, so that a call remembers which ids a pre-token got: an entry points back into the text
 * and into the ids already written, and holds neither. The memory of one call dies with it, which keeps the tokenizer
 * itself read-only. */
#include "tok_impl.h"
#include <stdlib.h>
#include <string.h>

struct seen {
    const char *s; /* borrowed: the pre-token's first place */
    size_t at;     /* where its ids start in ids->at */
    uint32_t n, count;
    uint32_t epoch; /* an entry of an earlier epoch points into a freed buffer */
};

struct encoder {
    const struct tokenizer *t;
    struct tok_ids *ids;
    struct tok_bpe bpe;
    struct seen *seen; /* owned; [seen_mask + 1]; NULL: the text is too short for it */
    size_t seen_mask;
    uint32_t epoch;
    const struct tok_marks *marks; /* NULL: none */
    size_t next_mark;              /* index of the first mark at or after the current place */
    unsigned flags;
};

static int reserve_ids(struct tok_ids *ids, size_t more, struct q_err *e)
{
    if (ids->cap - ids->n >= more) return Q_OK;
    size_t cap = ids->n + more + ids->cap / 2 + 64;
    int32_t *p = realloc(ids->at, cap * sizeof *p);
    if (!p) return q_fail(e, Q_EMEM, "out of memory for %zu token ids", cap);
    ids->at = p;
    ids->cap = cap;
    return Q_OK;
}

int tok_ids_add(struct tok_ids *ids, const int32_t *more, size_t n, struct q_err *e)
{
    int rc = reserve_ids(ids, n, e);
    if (rc) return rc;
    memcpy(ids->at + ids->n, more, n * sizeof *more);
    ids->n += n;
    return Q_OK;
}

/* ---- one pre-token ---- */

enum { SEEN_LONGEST = 128 };

static struct seen *seen_slot(const struct encoder *x, const char *s, size_t n)
{
    if (!x->seen || n > SEEN_LONGEST) return NULL;
    return x->seen + (tok_hash(s, n) & x->seen_mask);
}

static int is_seen(const struct encoder *x, const struct seen *m, const char *s, size_t n)
{
    return m && m->epoch == x->epoch && m->n == n && !memcmp(m->s, s, n);
}

static int put_pretoken(struct encoder *x, const char *s, size_t n, struct q_err *e)
{
    struct tok_ids *ids = x->ids;
    int rc = reserve_ids(ids, n, e);
    if (rc) return rc;
    struct seen *m = seen_slot(x, s, n);
    if (is_seen(x, m, s, n)) {
        memcpy(ids->at + ids->n, ids->at + m->at, m->count * sizeof *ids->at);
        ids->n += m->count;
        return Q_OK;
    }
    size_t k = tok_bpe_run(x->t, s, n, &x->bpe, ids->at + ids->n);
    if (!k) return q_fail(e, Q_EMEM, "out of memory to tokenise %zu bytes of text", n);
    if (m) *m = (struct seen){s, ids->n, (uint32_t)n, (uint32_t)k, x->epoch};
    ids->n += k;
    return Q_OK;
}

/* ---- pieces between special tokens ---- */

static int put_split(struct encoder *x, const char *s, size_t n, struct q_err *e)
{
    for (size_t i = 0; i < n;) {
        size_t k = tok_split(x->t, (const unsigned char *)s + i, n - i);
        int rc = put_pretoken(x, s + i, k, e);
        if (rc) return rc;
        i += k;
    }
    return Q_OK;
}

/* The reference normalises each piece apart: a mark right after a special token does not join it. */
static int put_plain(struct encoder *x, const char *s, size_t n, struct q_err *e)
{
    char *own;
    size_t own_n;
    if (!n) return Q_OK;
    int rc = uc_nfc(&x->t->unicode, s, n, &own, &own_n, e);
    if (rc) return rc;
    if (!own) return put_split(x, s, n, e);
    x->epoch++;
    rc = put_split(x, own, own_n, e);
    x->epoch++;
    free(own);
    return rc;
}

/* ---- special tokens ---- */

/* Is there a mark inside [at, at + n), not before its first character? Places asked about never go back. */
static int marked(struct encoder *x, size_t at, size_t n)
{
    if (!x->marks) return 0;
    while (x->next_mark < x->marks->n && x->marks->at[x->next_mark] <= at) x->next_mark++;
    return x->next_mark < x->marks->n && x->marks->at[x->next_mark] < at + n;
}

static int is_allowed(struct encoder *x, int32_t id, size_t at)
{
    if (!tok_is_control(x->t, id)) return 1;
    return (x->flags & TOK_PARSE_CONTROL) && !marked(x, at, x->t->text[id].n);
}

static int put_special(struct encoder *x, int32_t id, struct q_err *e)
{
    int rc = reserve_ids(x->ids, 1, e);
    if (!rc) x->ids->at[x->ids->n++] = id;
    return rc;
}

/* A control token that is not allowed here stays part of the text around it, and is stepped over as a whole: the reference
 * does not look for other special tokens inside it. */
static int put_text(struct encoder *x, const char *s, size_t n, struct q_err *e)
{
    size_t start = 0, i = 0;
    while ((i = tok_special_scan(x->t, s, n, i)) < n) {
        int32_t id = tok_special_at(x->t, s + i, n - i);
        if (id < 0) {
            i++;
            continue;
        }
        size_t len = x->t->text[id].n;
        if (is_allowed(x, id, i)) {
            int rc = put_plain(x, s + start, i - start, e);
            if (!rc) rc = put_special(x, id, e);
            if (rc) return rc;
            start = i + len;
        }
        i += len;
    }
    return put_plain(x, s + start, n - start, e);
}

/* ---- the call ---- */

/* About one slot for 32 bytes of text: enough for its different words, small enough to stay in cache. Without memory for
 * it the call is slower, not wrong. */
static void seen_init(struct encoder *x, size_t text_n)
{
    enum { SHORT = 512, MOST = 32768 };
    if (text_n < SHORT) return;
    size_t slots = 64;
    while (slots < text_n / 32 && slots < MOST) slots *= 2;
    x->seen = calloc(slots, sizeof *x->seen);
    x->seen_mask = slots - 1;
    x->epoch = 1; /* fresh entries are of epoch 0 */
}

static int encode_checked(const struct tokenizer *t, const char *s, size_t n, unsigned flags,
                          const struct tok_marks *marks, struct tok_ids *ids, struct q_err *e)
{
    struct encoder x = {.t = t, .ids = ids, .flags = flags, .marks = marks};
    size_t before = ids->n;
    seen_init(&x, n);
    int rc = put_text(&x, s, n, e);
    free(x.seen);
    tok_bpe_free(&x.bpe);
    if (rc) ids->n = before;
    return rc;
}

static int encode_guarded(const struct tokenizer *t, const char *s, size_t n, unsigned flags, struct tok_ids *ids,
                          struct q_err *e)
{
    struct tok_marks marks = {0};
    char *text = NULL;
    size_t text_n = 0;
    int rc = tok_unguard(s, n, &text, &text_n, &marks, e);
    if (!rc) rc = encode_checked(t, text, text_n, flags, &marks, ids, e);
    free(text);
    free(marks.at);
    return rc;
}

int tok_encode(const struct tokenizer *t, const char *text, size_t n, unsigned flags, struct tok_ids *ids,
               struct q_err *e)
{
    enum { LONGEST = 1 << 30 }; /* positions are 32-bit in tok_bpe.c; NFC may lengthen text threefold */
    if (n > LONGEST) return q_fail(e, Q_ELIMIT, "text of %zu bytes, expected at most %d", n, LONGEST);
    size_t bad = utf8_check(text, n);
    if (bad < n)
        return q_fail(e, Q_EINPUT, "text is not UTF-8: byte 0x%02X at offset %zu of %zu", (unsigned char)text[bad], bad, n);
    return (flags & TOK_GUARDED) ? encode_guarded(t, text, n, flags, ids, e)
                                 : encode_checked(t, text, n, flags, NULL, ids, e);
}
