/* A real engine's snapshots, as a prefix tree copies them: engine.h's bytes of a snapshot are its state, then page after page. */
#include "clock.h"
#include "engine.h"
#include "kv.h"
#include "prefix_tree.h"

static int read_state(const struct q_tree_engine *en, const struct q_snap *s, size_t at, size_t n, void *to, struct q_err *e)
{
    return q_snap_read_piece(s, 0, at, to, n, e);
}

static int read_page(const struct q_tree_engine *en, const struct q_snap *s, int page, void *to, struct q_err *e)
{
    return q_snap_read_piece(s, page * KV_PAGE, en->state_bytes, to, en->page_bytes, e);
}

static int make(const struct q_tree_engine *en, const struct q_snap *base, int shared, int length, struct q_snap **out, struct q_err *e)
{
    return q_snap_new(en->engine, base, shared * KV_PAGE, length, out, e);
}

static int write_state(const struct q_tree_engine *en, struct q_snap *s, size_t at, size_t n, const void *from, struct q_err *e)
{
    return q_snap_write_piece(s, 0, at, from, n, e);
}

static int write_page(const struct q_tree_engine *en, struct q_snap *s, int page, const void *from, struct q_err *e)
{
    return q_snap_write_piece(s, page * KV_PAGE, en->state_bytes, from, en->page_bytes, e);
}

struct q_tree_engine q_tree_engine_of(struct q_engine *en)
{
    size_t state = q_snap_bytes_of(en, 0, 0);
    return (struct q_tree_engine){.engine = en, .page_tokens = KV_PAGE, .state_bytes = state, .page_bytes = q_snap_bytes_of(en, 0, 1) - state,
                                  .length = q_snap_length, .close = q_snap_close, .read_state = read_state, .read_page = read_page, .make = make,
                                  .write_state = write_state, .write_page = write_page,
                                  .seconds = clock_s};
}
