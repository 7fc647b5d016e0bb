#include "fit.h"
#include "kernel.h"
#include "model_parts.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SMS = 132 };   /* a team's members on the largest card known; on a smaller one some MiB of the scratch stay unused */

/* ---- weights ---- */

static void add_weight(struct q_fit_weights *w, const struct q_part *p, int layer, size_t bytes)
{
    if (layer >= 0) w->layer[layer] += bytes;
    else if (p->in == IN_UNTIED || p->role != ROLE_MATRIX) w->head += bytes;
    else w->embd += bytes;
}

static int count_tensor(void *user, const struct q_part *p, int layer, struct q_tensor *t)
{
    add_weight(user, p, layer, t->bytes);
    return 0;
}

void fit_weights_of_model(struct q_fit_weights *w, const struct q_model *m)
{
    memset(w, 0, sizeof *w);
    q_each_part((struct q_model *)(uintptr_t)m, count_tensor, w);
}

void fit_weights_of_shape(struct q_fit_weights *w, const struct q_config *c, const struct q_format *format)
{
    memset(w, 0, sizeof *w);
    for (int i = 0; i < q_n_model_parts; i++)
        if (q_part_in_model(c, q_model_parts + i)) add_weight(w, q_model_parts + i, -1, q_part_bytes(c, q_model_parts + i, format));
    for (int l = 0; l < c->n_layers; l++)
        for (int i = 0; i < q_n_layer_parts; i++)
            if (q_layer_parts[i].in & 1 << c->kind[l]) add_weight(w, q_layer_parts + i, l, q_part_bytes(c, q_layer_parts + i, format));
}

/* ---- a stage ---- */

struct fitting {
    const struct q_config *c;
    const struct q_fit_weights *w;
    const struct q_fit_options *o;
    int max_rows, n_snaps;
};

static size_t stage_weights(const struct fitting *t, int first, int last)
{
    size_t bytes = first ? 0 : t->w->embd;
    for (int i = first; i < last; i++) bytes += t->w->layer[i];
    if (last < t->c->n_layers) return bytes;
    return bytes + t->w->head + (t->c->tied && first ? t->w->embd : 0);
}

/* Layers [first, last) as a model of their own. Logits, and what draws from them, are with the head alone. */
static void plan_stage(const struct fitting *t, int first, int last, struct q_plan *p)
{
    struct q_config c = *t->c;
    int has_head = last == c.n_layers, n_seqs = t->o->n_seqs;
    c.n_layers = last - first;
    memmove(c.kind, c.kind + first, (size_t)c.n_layers);
    struct q_plan_options po = {.weight_bytes = stage_weights(t, first, last), .ctx = t->o->ctx, .n_seqs = n_seqs, .n_snaps = t->n_snaps,
                                .max_rows = t->max_rows, .max_out = has_head ? n_seqs : 0, .parts = MOST_SMS,
                                .kv_k = t->o->kv_k, .kv_v = t->o->kv_v, .gpu = 1, .sparse = t->o->sparse};
    plan_make(p, &c, &po);
}

/* The rows of a step that quarry-serve takes on card i. */
static int rows_of_card(const struct q_fit_options *o, int i) { return plan_max_rows(1, o->card[i] > FIT_DRIVER ? o->card[i] - FIT_DRIVER : 0); }

static size_t with_driver(const struct q_plan *p) { return p->total > SIZE_MAX - FIT_DRIVER ? SIZE_MAX : p->total + FIT_DRIVER; }

/* The most layers from `first` that card i holds with `spare` bytes left free; `first`: none. More layers take more, but for the head, which
 * is not for a card that may not hold the last. */
static int fill_card(const struct fitting *t, int i, int first, size_t spare, int last_too)
{
    int lo = first, hi = t->c->n_layers - 1;
    struct q_plan p;
    size_t room = t->o->card[i] > spare ? t->o->card[i] - spare : 0;
    plan_stage(t, first, t->c->n_layers, &p);
    if (last_too && with_driver(&p) <= room) return t->c->n_layers;
    while (lo < hi) {
        int mid = lo + (hi - lo + 1) / 2;
        plan_stage(t, first, mid, &p);
        if (with_driver(&p) <= room) lo = mid;
        else hi = mid - 1;
    }
    return lo;
}

/* Fills the cards in order; 1 when all layers found a place. The narrowest card that is used sets the rows of a step: cards of fewer rows than
 * t->max_rows are passed over, and the last layer waits until a card of just so many has some. */
static int place(const struct fitting *t, size_t spare, struct q_fit *f)
{
    int at = 0, set = 0;
    f->n_stages = 0;
    for (int i = 0; i < t->o->n_cards && at < t->c->n_layers; i++) {
        int rows = rows_of_card(t->o, i), end = at;
        if (rows >= t->max_rows) end = fill_card(t, i, at, spare, set || rows == t->max_rows);
        if (end == at) continue;
        f->stage[f->n_stages++] = (struct q_fit_stage){.card = i, .first = at, .last = end};
        set |= rows == t->max_rows;
        at = end;
    }
    return at == t->c->n_layers;
}

/* On the first card that holds it alone; 1 when there is one. */
static int place_alone(struct fitting *t, struct q_fit *f)
{
    struct q_plan p;
    f->n_stages = 1;
    for (int i = 0; i < t->o->n_cards; i++) {
        t->max_rows = rows_of_card(t->o, i);
        plan_stage(t, 0, t->c->n_layers, &p);
        f->stage[0] = (struct q_fit_stage){.card = i, .first = 0, .last = t->c->n_layers};
        if (with_driver(&p) <= t->o->card[i]) return 1;
    }
    return 0;
}

static int most_rows(const struct q_fit_options *o)
{
    int most = 0;
    for (int i = 0; i < o->n_cards; i++)
        if (rows_of_card(o, i) > most) most = rows_of_card(o, i);
    return most;
}

/* Over several cards, in the widest steps that leave room; 1 when that is possible. */
static int place_spread(struct fitting *t, struct q_fit *f)
{
    for (t->max_rows = most_rows(t->o);; t->max_rows = plan_max_rows(1, 0)) {
        if (place(t, 0, f)) return 1;
        if (t->max_rows == plan_max_rows(1, 0)) return 0;
    }
}

static struct fitting fitting(const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o)
{
    int snaps = o->cache ? plan_snaps_of_bytes(c, o->kv_k, o->kv_v, *o->cache) : plan_max_snaps(o->n_seqs);
    return (struct fitting){c, w, o, most_rows(o), snaps};
}

static int fits(const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o)
{
    struct fitting t = fitting(c, w, o);
    struct q_fit f;
    return place_alone(&t, &f) || place_spread(&t, &f);
}

/* Places it so that the most is left free on every card that is used, to a MiB. It fits with nothing left free. */
static void balance(const struct fitting *t, struct q_fit *f)
{
    size_t lo = 0, hi = 0;
    for (int i = 0; i < t->o->n_cards; i++)
        if (t->o->card[i] >> 20 > hi) hi = t->o->card[i] >> 20;
    while (lo < hi) {
        size_t mid = lo + (hi - lo + 1) / 2;
        if (place(t, mid << 20, f)) lo = mid;
        else hi = mid - 1;
    }
    place(t, lo << 20, f);
}

/* With what each further card takes for itself. */
static size_t needed(const struct q_plan *whole, int n_cards)
{
    size_t each = whole->lines[Q_PLAN_SCRATCH].bytes + whole->lines[Q_PLAN_KERNELS].bytes + FIT_DRIVER;
    double bytes = (double)with_driver(whole) + (double)(n_cards - 1) * (double)each;
    return bytes < 0x1p63 ? (size_t)bytes : SIZE_MAX;
}

int fit_place(struct q_fit *f, const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o)
{
    struct fitting t = fitting(c, w, o);
    memset(f, 0, sizeof *f);
    f->fits = place_alone(&t, f);
    if (!f->fits && (f->fits = place_spread(&t, f))) balance(&t, f);
    if (!f->fits) f->n_stages = 0, t.max_rows = most_rows(o);
    plan_stage(&t, 0, c->n_layers, &f->whole);
    f->needed = needed(&f->whole, o->n_cards);
    f->max_rows = t.max_rows;
    f->n_snaps = t.n_snaps;
    for (int i = 0; i < o->n_cards; i++) f->there = f->there + o->card[i] < f->there ? SIZE_MAX : f->there + o->card[i];
    for (int i = 0; i < f->n_stages; i++) {
        struct q_fit_stage *s = f->stage + i;
        plan_stage(&t, s->first, s->last, &s->plan);
        s->total = with_driver(&s->plan);
        s->left = o->card[s->card] - s->total;
    }
    return f->fits;
}

int fit_longest(const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o, int most)
{
    struct q_fit_options tried = *o;
    int lo = 0, hi = most / KV_PAGE;
    tried.ctx = most;
    if (fits(c, w, &tried)) return most;
    while (lo < hi) {
        int mid = lo + (hi - lo + 1) / 2;
        tried.ctx = mid * KV_PAGE;
        if (fits(c, w, &tried)) lo = mid;
        else hi = mid - 1;
    }
    return lo * KV_PAGE;
}

int fit_most_seqs(const struct q_config *c, const struct q_fit_weights *w, const struct q_fit_options *o, int most)
{
    struct q_fit_options tried = *o;
    int lo = 0, hi = most;
    while (lo < hi) {
        tried.n_seqs = lo + (hi - lo + 1) / 2;
        if (fits(c, w, &tried)) lo = tried.n_seqs;
        else hi = tried.n_seqs - 1;
    }
    return lo;
}

/* ---- "3x16GiB,24GB" ---- */

/* One size, "16GiB", and moves *at behind it; 0: it is none. */
static size_t read_size(const char **at)
{
    static const struct { const char *name; double bytes; } units[] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"GB", 1e9}, {"MB", 1e6},
                                                                       {"kB", 1e3}, {"G", 0x1p30}, {"M", 0x1p20}, {"K", 0x1p10}};
    char *end;
    if (**at < '0' || **at > '9') return 0;
    double n = strtod(*at, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i].name);
        if (strncmp(end, units[i].name, length)) continue;
        *at = end + length;
        return n * units[i].bytes >= 1 && n * units[i].bytes < 0x1p62 ? (size_t)(n * units[i].bytes) : 0;
    }
    return 0;
}

int fit_read_bytes(const char *text, size_t *bytes)
{
    char *end;
    const char *at = text;
    if ((*bytes = read_size(&at)) && !*at) return 0;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || v >= SIZE_MAX / 2 || (v && v < 1 << 20)) return -1;
    *bytes = (size_t)v;
    return 0;
}

int fit_read_tokens(const char *text, long *out)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10), unit = *end == 'K' || *end == 'k' ? 1 << 10 : *end == 'M' || *end == 'm' ? 1 << 20 : 1;
    int none = end == text;
    end += unit > 1;
    if (none || *end || errno || n > LONG_MAX / unit || n < LONG_MIN / unit) return -1;
    *out = n * unit;
    return 0;
}

/* "3x" before a size; 1 where it is not there. */
static long read_times(const char **at)
{
    char *end;
    if (**at < '0' || **at > '9') return 1;
    long n = strtol(*at, &end, 10);
    if (*end != 'x') return 1;
    *at = end + 1;
    return n;
}

const char *fit_read_cards(struct q_fit_options *o, const char *text)
{
    o->n_cards = 0;
    for (const char *at = text;; at++) {
        long times = read_times(&at);
        if (times < 1 || times > FIT_CARDS - o->n_cards) return "1 to 64 cards are possible";
        size_t bytes = read_size(&at);
        if (!bytes || (*at && *at != ',')) return "expected sizes as 16GiB, 3x16GiB or 16GiB,12GiB,16GiB (GiB, MiB, GB, MB)";
        while (times--) o->card[o->n_cards++] = bytes;
        if (!*at) return NULL;
    }
}
