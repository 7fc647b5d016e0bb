/* A step for a trial, with everything that a real one can have: sequences of uneven lengths, scattered pages, segments that
 * start from nothing, in place or in another slot, and copies. */
#include "templates/ref.h"
#include <string.h>

static i32 *ints(struct ref_case *c, const char *name, size_t n) { return ref_buf(c, name, REF_IN, REF_I32, n, 0); }

static void shuffle(i32 *p, int n, unsigned long long *seed)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(ref_next(seed) % (unsigned)(i + 1));
        i32 t = p[i];
        p[i] = p[j];
        p[j] = t;
    }
}

/* Rows of each sequence (at least one) and KV tokens before the step: `past` for the first, down to half of it for others. */
static void lengths(const struct ref_size *size, int seqs, i32 *first, i32 *rows, i32 *past, unsigned long long *seed)
{
    int left = size->rows;
    for (int q = 0; q < seqs; q++) {
        int others = seqs - q - 1, most = left - others;
        rows[q] = others ? 1 + (i32)(ref_next(seed) % (unsigned)most) : left;
        first[q] = size->rows - left;
        past[q] = q ? size->past - (i32)(ref_next(seed) % (unsigned)(size->past / 2 + 1)) : size->past;
        left -= rows[q];
    }
}

/* n_embd 0: no row is an image's. */
static void fill_rows(struct ref_case *c, struct step *s, const i32 *past, int n_embd, int vocab, unsigned long long *seed)
{
    i32 *token = ints(c, "token", (size_t)s->n_rows), *pos = ints(c, "pos", 3 * (size_t)s->n_rows);
    i32 *seq = ints(c, "seq", (size_t)s->n_rows), *kv = ints(c, "kv", (size_t)s->n_rows);
    for (int q = 0; q < s->n_seqs; q++)
        for (int i = 0; i < s->seq_rows[q]; i++) {
            int r = s->seq_row[q] + i, image = n_embd && ref_next(seed) % 4 == 0;
            token[r] = image ? -1 : (i32)(ref_next(seed) % (unsigned)vocab);
            seq[r] = q;
            kv[r] = past[q] + i;
            for (int j = 0; j < 3; j++) pos[3 * r + j] = kv[r] + 100 * q + (q % 2 ? (i32)(ref_next(seed) % 9) : 0);
        }
    s->token = token;
    s->pos = pos;
    s->seq = seq;
    s->kv = kv;
    if (!n_embd) return;
    f32 *embd = ref_buf(c, "embd", REF_IN, REF_F32, (size_t)s->n_rows * (size_t)n_embd, 0);
    ref_fill_f32(embd, (size_t)s->n_rows * (size_t)n_embd, seed, 1);
    s->embd = embd;
}

/* Page tables over scattered ids, some of which nobody owns; entries without a page are -1. */
static int fill_pages(struct ref_case *c, struct step *s, const i32 *past, unsigned long long *seed)
{
    int need = 0, most = 0;
    for (int q = 0; q < s->n_seqs; q++) {
        int n = (past[q] + s->seq_rows[q] + KV_PAGE - 1) / KV_PAGE;
        need += n;
        most = n > most ? n : most;
    }
    int total = need + 2, next = 0;
    i32 *ids = ref_buf(c, "page ids", REF_WORK, REF_I32, (size_t)total, 0);
    i32 *table = ints(c, "pages", (size_t)s->n_seqs * (size_t)(most + 1));
    for (int i = 0; i < total; i++) ids[i] = i;
    shuffle(ids, total, seed);
    s->page_stride = most + 1;
    s->pages = table;
    memset(table, 0xFF, (size_t)s->n_seqs * (size_t)s->page_stride * sizeof *table);
    for (int q = 0; q < s->n_seqs; q++)
        for (int j = 0; j * KV_PAGE < past[q] + s->seq_rows[q]; j++) table[q * s->page_stride + j] = ids[next++];
    return total;
}

/* Four slots a sequence: where it comes from, where it goes, a stop between two segments, a copy. Even sequences work in place,
 * every third one starts from nothing, odd ones with two rows or more have two segments. */
static int fill_segments(struct ref_case *c, struct step *s, int plain, unsigned long long *seed)
{
    int slots = 4 * s->n_seqs + 1, n = 0;
    i32 *ids = ref_buf(c, "slot ids", REF_WORK, REF_I32, (size_t)slots, 0), *at = ints(c, "seq_segment", (size_t)s->n_seqs + 1);
    for (int q = 0; q < s->n_seqs; q++) n += 1 + (q % 2 && s->seq_rows[q] > 1);
    struct segment *g = (struct segment *)ints(c, "segments", 5 * (size_t)n);
    s->n_segments = n;
    s->segments = g;
    s->seq_segment = at;
    for (int i = 0; i < slots; i++) ids[i] = i;
    shuffle(ids, slots, seed);
    n = 0;
    for (int q = 0; q < s->n_seqs; q++) {
        const i32 *slot = ids + 4 * q;
        i32 row = s->seq_row[q], rows = s->seq_rows[q], first = q % 2 && rows > 1 ? 1 + (i32)(ref_next(seed) % (unsigned)(rows - 1)) : rows;
        at[q] = n;
        g[n++] = (struct segment){row, first, q % 3 == 2 ? -1 : slot[0], q % 2 ? slot[1] : slot[0], q % 4 < 2 && !plain ? slot[3] : -1};
        if (first < rows) g[n++] = (struct segment){row + first, rows - first, slot[1], q % 4 == 3 ? slot[2] : slot[1], -1};
    }
    at[s->n_seqs] = n;
    return slots;
}

/* The last row of each sequence, and some others. */
static void fill_out(struct ref_case *c, struct step *s, unsigned long long *seed)
{
    i32 *out = ints(c, "out", (size_t)s->n_rows);
    s->n_out = 0;
    for (int r = 0; r < s->n_rows; r++) {
        int last = r + 1 == s->n_rows || s->seq[r + 1] != s->seq[r];
        out[r] = -1;
        if (last || ref_next(seed) % 4 == 0) out[s->n_out++] = r;
    }
    s->out = out;
}

struct step *ref_step(struct ref_case *c, const struct ref_size *size, int n_embd, int vocab, int *slots, int *pages,
                      unsigned long long *seed)
{
    struct step *s = ref_buf(c, "step", REF_IN, REF_POINTERS, sizeof *s, 0);
    int seqs = size->seqs < size->rows ? size->seqs : size->rows;
    memset(s, 0, sizeof *s);
    i32 *first = ints(c, "seq_row", (size_t)seqs), *rows = ints(c, "seq_rows", (size_t)seqs);
    i32 *past = ref_buf(c, "past", REF_WORK, REF_I32, (size_t)seqs, 0);
    lengths(size, seqs, first, rows, past, seed);
    s->n_rows = size->rows;
    s->n_seqs = seqs;
    s->seq_row = first;
    s->seq_rows = rows;
    fill_rows(c, s, past, size->plain ? 0 : n_embd, vocab, seed);
    *pages = fill_pages(c, s, past, seed);
    *slots = fill_segments(c, s, size->plain, seed);
    fill_out(c, s, seed);
    return s;
}
