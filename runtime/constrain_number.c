#include "constrain_number.h"
#include "constrain_bytes.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A bound that is not negative: its whole part, and the digits behind its point without zeros at their end. */
struct decimal {
    long long whole;
    char part[32];
    int open; /* it is out itself */
};

static int text(struct grammar *g, const char *s) { return expr_text(g, s, strlen(s)); }

static int digit(struct grammar *g, int lo, int hi)
{
    return expr_class(g, X_CLASS, &(struct expr_range){(uint32_t)('0' + lo), (uint32_t)('0' + hi)}, 1);
}

static int some_digits(struct grammar *g, int min, int max) { return expr_repeat(g, digit(g, 0, 9), min, max); }

static int any_part(struct grammar *g) { return expr_repeat(g, EXPR_SEQ(g, text(g, "."), some_digits(g, 1, NUMBER_DIGITS)), 0, 1); }

/* ---- whole numbers ---- */

struct gather {
    struct grammar *g;
    struct expr_kids kids;
};

static void put_product(void *arg, const int *a, const int *b, int n)
{
    struct gather *to = arg;
    struct expr_kids seq = {0};
    for (int i = 0, same = 1; i < n; i += same, same = 1) {
        while (i + same < n && a[i + same] == a[i] && b[i + same] == b[i]) same++;
        expr_kids_add(to->g, &seq, expr_repeat(to->g, digit(to->g, a[i], b[i]), same, same));
    }
    expr_kids_add(to->g, &to->kids, expr_kids_join(to->g, X_SEQ, &seq));
}

static int count_digits(long long v)
{
    int n = 1;
    for (; v > 9; v /= 10) n++;
    return n;
}

static void put_same_length(struct gather *to, long long lo, long long hi, int n)
{
    static const int top[NUMBER_DIGITS] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    int a[NUMBER_DIGITS], b[NUMBER_DIGITS];
    for (int i = n; i-- > 0; lo /= 10, hi /= 10) a[i] = (int)(lo % 10), b[i] = (int)(hi % 10);
    digits_span(a, b, top, n, put_product, to);
}

/* Whole numbers from lo >= 0 to hi; hi < 0: without an end. */
static int whole(struct grammar *g, long long lo, long long hi)
{
    struct gather to = {.g = g};
    long long last = 9;
    for (int n = 1; n <= 18 && (hi < 0 || lo <= hi); n++, last = last * 10 + 9) {
        if (count_digits(lo) != n) continue;
        put_same_length(&to, lo, hi >= 0 && hi < last ? hi : last, n);
        lo = last + 1;
        if (hi < 0) break;
    }
    if (hi < 0) {
        int n = count_digits(lo) - 1;
        expr_kids_add(g, &to.kids, EXPR_SEQ(g, digit(g, 1, 9), some_digits(g, n, NUMBER_DIGITS - 1)));
    }
    return expr_kids_join(g, X_ALT, &to.kids);
}

/* ---- behind the point ---- */

static int zeros_then_more(struct grammar *g)
{
    return EXPR_SEQ(g, expr_repeat(g, digit(g, 0, 0), 0, NUMBER_DIGITS - 1), digit(g, 1, 9), some_digits(g, 0, NUMBER_DIGITS - 1));
}

/* The part is at least b's. From its last digit to its first. */
static int part_from(struct grammar *g, const struct decimal *b)
{
    if (!b->part[0] && !b->open) return any_part(g);
    int x = b->open ? zeros_then_more(g) : some_digits(g, 0, NUMBER_DIGITS - 1);
    for (int i = (int)strlen(b->part); i-- > 0;) {
        int d = b->part[i] - '0', same = EXPR_SEQ(g, digit(g, d, d), x);
        x = d == 9 ? same : EXPR_ALT(g, EXPR_SEQ(g, digit(g, d + 1, 9), some_digits(g, 0, NUMBER_DIGITS - 1)), same);
    }
    return EXPR_SEQ(g, text(g, "."), x);
}

/* The part is at most b's. A text that ends within b's digits is below it. */
static int part_to(struct grammar *g, const struct decimal *b)
{
    int zeros = expr_repeat(g, digit(g, 0, 0), 1, NUMBER_DIGITS);
    if (!b->part[0]) return b->open ? expr_nothing(g) : expr_repeat(g, EXPR_SEQ(g, text(g, "."), zeros), 0, 1);
    int x = b->open ? expr_nothing(g) : expr_repeat(g, digit(g, 0, 0), 0, NUMBER_DIGITS - 1);
    for (int n = (int)strlen(b->part), i = n; i-- > 0;) {
        int d = b->part[i] - '0', rest = i == n - 1 ? x : EXPR_ALT(g, expr_empty(g), x), same = EXPR_SEQ(g, digit(g, d, d), rest);
        x = d == 0 ? same : EXPR_ALT(g, EXPR_SEQ(g, digit(g, 0, d - 1), some_digits(g, 0, NUMBER_DIGITS - 1)), same);
    }
    return expr_repeat(g, EXPR_SEQ(g, text(g, "."), x), 0, 1);
}

/* ---- bounds ---- */

static int below(const struct decimal *a, const struct decimal *b)
{
    int c = strcmp(a->part, b->part);
    if (a->whole != b->whole) return a->whole < b->whole;
    return c < 0 || (c == 0 && !a->open && !b->open);
}

/* Numbers that are not negative from a to b; b NULL: without an end. */
static int magnitude(struct grammar *g, const struct decimal *a, const struct decimal *b)
{
    if (b && !below(a, b)) return expr_nothing(g);
    int first = whole(g, a->whole, a->whole);
    if (b && a->whole == b->whole) return EXPR_SEQ(g, first, expr_join(g, X_AND, (int[]){part_from(g, a), part_to(g, b)}, 2));
    int low = EXPR_SEQ(g, first, part_from(g, a));
    if (!b) return EXPR_ALT(g, low, EXPR_SEQ(g, whole(g, a->whole + 1, -1), any_part(g)));
    int between = a->whole + 1 < b->whole ? EXPR_SEQ(g, whole(g, a->whole + 1, b->whole - 1), any_part(g)) : expr_nothing(g);
    return EXPR_ALT(g, low, between, EXPR_SEQ(g, whole(g, b->whole, b->whole), part_to(g, b)));
}

/* The digits of |v| that a reader of the schema wrote: the fewest that give v. */
static struct decimal decimal_of(double v, int open)
{
    struct decimal d = {.whole = (long long)fabs(v), .open = open};
    char s[400];
    for (int n = 0; n <= 30; n++) {
        snprintf(s, sizeof s, "%.*f", n, fabs(v));
        if (strtod(s, NULL) == fabs(v) || n == 30) break;
    }
    char *point = strchr(s, '.');
    snprintf(d.part, sizeof d.part, "%s", point ? point + 1 : "");
    for (size_t n = strlen(d.part); n && d.part[n - 1] == '0'; n--) d.part[n - 1] = 0;
    return d;
}

int expr_number(struct grammar *g, const struct number_bounds *b)
{
    struct decimal min = decimal_of(b->has_min ? b->min : 0, b->above_min), max = decimal_of(b->has_max ? b->max : 0, b->below_max);
    struct decimal zero = {0}, above_zero = {.open = 1};
    struct expr_kids kids = {0};
    if (!b->has_max || b->max >= 0)
        expr_kids_add(g, &kids, magnitude(g, b->has_min && b->min >= 0 ? &min : &zero, b->has_max ? &max : NULL));
    if (!b->has_min || b->min < 0) {
        int x = magnitude(g, b->has_max && b->max < 0 ? &max : &above_zero, b->has_min ? &min : NULL);
        expr_kids_add(g, &kids, EXPR_SEQ(g, text(g, "-"), x));
    }
    return expr_kids_join(g, X_ALT, &kids);
}

int expr_integer(struct grammar *g, const struct number_bounds *b)
{
    long long min = 0, max = 0;
    struct expr_kids kids = {0};
    if (b->has_min) min = (long long)(b->above_min ? floor(b->min) + 1 : ceil(b->min));
    if (b->has_max) max = (long long)(b->below_max ? ceil(b->max) - 1 : floor(b->max));
    if (!b->has_max || max >= 0) expr_kids_add(g, &kids, whole(g, b->has_min && min > 0 ? min : 0, b->has_max ? max : -1));
    if (!b->has_min || min < 0) {
        long long from = b->has_max && max < 0 ? -max : 1;
        int x = b->has_min && -min < from ? expr_nothing(g) : whole(g, from, b->has_min ? -min : -1);
        expr_kids_add(g, &kids, EXPR_SEQ(g, text(g, "-"), x));
    }
    return expr_kids_join(g, X_ALT, &kids);
}
