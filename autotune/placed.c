/* A case in a card's memory: see bed.h. */
#include "bed.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };

static size_t room(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* Words that are addresses of the case's buffers become those of the same places on the card. */
static void move_addresses(unsigned char *data, size_t bytes, const struct ref_case *c, void *base)
{
    for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
        uintptr_t word, to = (uintptr_t)base;
        memcpy(&word, data + at, sizeof word);
        for (int i = 0; i < ref_case_blocks(c); i++) {
            struct ref_block b = ref_case_block(c, i);
            if (word >= (uintptr_t)b.begin && word < (uintptr_t)b.begin + b.bytes) {
                word = to + (word - (uintptr_t)b.begin);
                memcpy(data + at, &word, sizeof word);
                break;
            }
            to += room(b.bytes);
        }
    }
}

static int write_block(struct q_device *d, void *to, const struct ref_block *b, const struct ref_case *c, void *base, struct q_err *e)
{
    if (!b->pointers) return d->ops->write(d, to, b->begin, b->bytes, e);
    unsigned char *copy = malloc(b->bytes);
    if (!copy) return q_fail(e, Q_EMEM, "no memory for a case's tables");
    memcpy(copy, b->begin, b->bytes);
    move_addresses(copy + b->canary, b->data_end - b->canary, c, base);
    int rc = d->ops->write(d, to, copy, b->bytes, e);
    free(copy);
    return rc;
}

/* The canary in front and what is behind the data, either way. */
static int move_canaries(int (*move)(struct q_device *d, void *dst, const void *src, size_t bytes, struct q_err *e), struct q_device *d, void *dst,
                         const void *src, const struct ref_block *b, struct q_err *e)
{
    int rc = move(d, dst, src, b->canary, e);
    return rc ? rc : move(d, (char *)dst + b->data_end, (const char *)src + b->data_end, b->bytes - b->data_end, e);
}

int placed_write(const struct placed *p, struct q_device *d, const struct ref_case *c, int fixed_too, struct q_err *e)
{
    char *to = p->base;
    int rc = Q_OK;
    for (int i = 0; i < ref_case_blocks(c) && !rc; i++) {
        struct ref_block b = ref_case_block(c, i);
        if (!b.fixed || fixed_too) rc = write_block(d, to, &b, c, p->base, e);
        else rc = move_canaries(d->ops->write, d, to, b.begin, &b, e);
        to += room(b.bytes);
    }
    return rc;
}

int placed_read(const struct placed *p, struct q_device *d, const struct ref_case *c, struct q_err *e)
{
    char *from = p->base;
    int rc = Q_OK;
    for (int i = 0; i < ref_case_blocks(c) && !rc; i++) {
        struct ref_block b = ref_case_block(c, i);
        rc = b.fixed ? move_canaries(d->ops->read, d, b.begin, from, &b, e) : d->ops->read(d, b.begin, from, b.bytes, e);
        from += room(b.bytes);
    }
    return rc;
}

int placed_open(struct placed *p, struct q_device *d, const struct trial_case *t, const struct op_ref *ref, const struct ref_size *size,
                struct q_err *e)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < ref_case_blocks(t->c); i++) p->bytes += room(ref_case_block(t->c, i).bytes);
    p->extent = (struct q_extent){ size->rows, size->seqs < size->rows ? size->seqs : size->rows, size->past + size->rows };
    p->arg_bytes = ref->args_bytes;
    if (!(p->base = d->ops->alloc(d, p->bytes ? p->bytes : ALIGN, e))) return e && e->code ? e->code : Q_EMEM;
    memcpy(p->args, t->args, ref->args_bytes);
    move_addresses(p->args, ref->args_bytes, t->c, p->base);
    int rc = placed_write(p, d, t->c, 1, e);
    if (rc) placed_close(p, d);
    return rc;
}

void placed_close(struct placed *p, struct q_device *d)
{
    if (p->base) d->ops->release(d, p->base);
    memset(p, 0, sizeof *p);
}
