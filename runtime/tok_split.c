/* The qwen35 split, by hand: where the reference runs this expression (qwen2 differs in what joins a letter, see below),
 *
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+ | \p{N} | ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*
 *   | \s*[\r\n]+ | \s+(?!\S) | \s+
 *
 * the first alternative that matches wins, not the longest. Each function below is one alternative and returns the length
 * it takes at s, or 0. No alternative looks further than its own run, and white space is looked at twice at most, so that a
 * whole text is split in linear time without recursion.
 */
#include "tok_impl.h"

struct cursor {
    const uint8_t *prop;
    const unsigned char *s;
    size_t n;
    unsigned word, symbol; /* sets of classes, a bit each */
};

#define SET(c) (1u << (c))

/* The class of the character at s[i..], its length in *len. UC_CLASS, which is in no set, at the end. */
static unsigned class_at(const struct cursor *c, size_t i, unsigned *len)
{
    if (i >= c->n) return *len = 0, UC_CLASS;
    uint32_t cp = c->s[i];
    *len = 1;
    if (cp >= 0x80) *len = utf8_get(c->s + i, &cp);
    return c->prop[cp] & UC_CLASS;
}

static size_t run_of(const struct cursor *c, size_t i, unsigned set)
{
    unsigned len;
    while (SET(class_at(c, i, &len)) & set) i += len;
    return i;
}

static int is_newline(const struct cursor *c, size_t i)
{
    return i < c->n && (c->s[i] == '\n' || c->s[i] == '\r');
}

/* (?i:'s|...): the reference folds case as Unicode does, so that U+017F, the long s, is an s. */
static size_t contraction(const struct cursor *c)
{
    if (c->n < 2 || c->s[0] != '\'') return 0;
    unsigned a = c->s[1] | 0x20u, b = c->n > 2 ? c->s[2] | 0x20u : 0;
    if (c->s[1] >= 0x80) return c->n > 2 && c->s[1] == 0xC5 && c->s[2] == 0xBF ? 3 : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
    return 0;
}

/* [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+ : a run of letters, which may take one character before it that is no letter, digit or
 * newline. A mark may be that character too; it then belongs to the run or (qwen2) stands before it. */
static size_t word(const struct cursor *c)
{
    unsigned len;
    unsigned class = class_at(c, 0, &len);
    size_t plain = run_of(c, 0, c->word);
    if (plain || class == UC_NUMBER || is_newline(c, 0)) return plain;
    size_t end = run_of(c, len, c->word);
    return end > len ? end : 0;
}

static size_t symbols(const struct cursor *c)
{
    size_t start = c->s[0] == ' ', end = run_of(c, start, c->symbol);
    if (end == start) return 0;
    while (is_newline(c, end)) end++;
    return end;
}

/* \s*[\r\n]+ then \s+(?!\S) then \s+ : all up to the last newline of the run; without one, all but the last character,
 * which is left for the word that follows; all of it where it is a single one or ends the text. */
static size_t spaces(const struct cursor *c)
{
    size_t end = 0, last = 0, newline = 0;
    unsigned len;
    while (class_at(c, end, &len) == UC_SPACE) {
        last = end;
        end += len;
        if (is_newline(c, last)) newline = end;
    }
    if (newline) return newline;
    return end == c->n || last == 0 ? end : last;
}

size_t tok_split(const struct tokenizer *t, const unsigned char *s, size_t n)
{
    unsigned marks_join = t->rules == TOK_QWEN35;
    struct cursor c = {t->unicode.prop, s, n, SET(UC_LETTER) | (marks_join ? SET(UC_MARK) : 0),
                       SET(UC_OTHER) | (marks_join ? 0 : SET(UC_MARK))};
    size_t k = contraction(&c);
    if (!k) k = word(&c);
    unsigned len;
    if (!k && class_at(&c, 0, &len) == UC_NUMBER) k = len;
    if (!k) k = symbols(&c);
    return k ? k : spaces(&c);
}
