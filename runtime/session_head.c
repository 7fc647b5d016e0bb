/* The head of a session file, to bytes and back. */
#include "gguf.h"
#include "session_impl.h"
#include <sodium.h>
#include <string.h>

static const char magic[SESSION_MAGIC] = "quarry session\n";

/* Where things lie; the rest is zero. */
enum {
    AT_FORMAT = 16,
    AT_IDS = 20,
    AT_PARTS = 24,
    AT_PAGE = 28,
    AT_STATE = 32,
    AT_PAGE_BYTES = 40,
    AT_BYTES = 48,
    AT_MADE = 56,
    AT_ID = 64,
    AT_PART = AT_ID + SESSION_STATE_ID,
    AT_TEXT = AT_PART + 8 * SESSION_PARTS,
    AT_MODEL = AT_TEXT + 4     /* zero in files of before it */
};
_Static_assert(AT_MODEL + SESSION_MODEL <= SESSION_HEAD, "the head has room for all");

static void put(unsigned char *to, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) to[i] = (unsigned char)(v >> 8 * i);
}

static uint64_t get(const unsigned char *from, int n)
{
    uint64_t v = 0;
    for (int i = n; i--;) v = v << 8 | from[i];
    return v;
}

/* The file may be a stranger's: whole characters, and nothing that would steer a terminal. */
void session_name_model(struct session_head *h, const char *name)
{
    memset(h->model, 0, sizeof h->model);
    gguf_str_copy(h->model, sizeof h->model, (struct gguf_str){ name, strlen(name) });
}

/* It is printed, too. */
static int is_plain(const char *state_id)
{
    while (*state_id >= ' ' && *state_id <= '~') state_id++;
    return !*state_id;
}

static void hash_of(unsigned char hash[SESSION_HASH], const void *data, size_t n) { crypto_generichash(hash, SESSION_HASH, data, n, NULL, 0); }

uint64_t session_part_bytes(const struct session_head *h, int part)
{
    const struct session_part *p = &h->part[part];
    return h->state_bytes + (uint64_t)((p->length + h->page_tokens - 1) / h->page_tokens - p->from / h->page_tokens) * h->page_bytes;
}

uint64_t session_part_at(const struct session_head *h, int part)
{
    uint64_t at = SESSION_HEAD + SESSION_HASH + (uint64_t)h->n_ids * sizeof(int32_t) + SESSION_HASH + (uint64_t)h->n_text + SESSION_HASH;
    for (int i = 0; i < part; i++) at += session_part_bytes(h, i) + SESSION_HASH;
    return at;
}

uint64_t session_file_bytes(const struct session_head *h)
{
    uint64_t n = session_part_at(h, 0);
    for (int i = 0; i < h->n_parts; i++) n += session_part_bytes(h, i) + SESSION_HASH;
    return n;
}

void session_pack(unsigned char *to, const struct session_head *h)
{
    memset(to, 0, SESSION_HEAD);
    memcpy(to, magic, sizeof magic);
    put(to + AT_FORMAT, SESSION_FORMAT, 4);
    put(to + AT_IDS, (uint64_t)h->n_ids, 4);
    put(to + AT_PARTS, (uint64_t)h->n_parts, 4);
    put(to + AT_TEXT, (uint64_t)h->n_text, 4);
    put(to + AT_PAGE, (uint64_t)h->page_tokens, 4);
    put(to + AT_STATE, h->state_bytes, 8);
    put(to + AT_PAGE_BYTES, h->page_bytes, 8);
    put(to + AT_BYTES, h->bytes, 8);
    put(to + AT_MADE, (uint64_t)h->made, 8);
    memcpy(to + AT_ID, h->state_id, strnlen(h->state_id, SESSION_STATE_ID - 1));
    memcpy(to + AT_MODEL, h->model, strnlen(h->model, SESSION_MODEL - 1));
    for (int i = 0; i < h->n_parts; i++) {
        put(to + AT_PART + 8 * i, (uint64_t)h->part[i].from, 4);
        put(to + AT_PART + 8 * i + 4, (uint64_t)h->part[i].length, 4);
    }
    hash_of(to + SESSION_HEAD, to, SESSION_HEAD);
}

/* A part begins at a page that the part before has whole (or somebody else, for the first), and is longer. */
static int parts_are_possible(const struct session_head *h)
{
    for (int i = 0; i < h->n_parts; i++) {
        const struct session_part *p = &h->part[i], *before = i ? p - 1 : NULL;
        if (p->from < 0 || p->from % h->page_tokens || p->length < 1 || p->from > p->length || p->length > h->n_ids) return 0;
        if (before && (p->length <= before->length || p->from > before->length || p->from < before->from)) return 0;
    }
    return 1;
}

/* The bounds keep every sum below 64 bits. */
static int is_possible(const struct session_head *h)
{
    const int most = 1 << 28;
    return h->n_ids >= 1 && h->n_ids <= most && h->n_text >= 0 && h->n_text <= most && h->n_parts >= 1 && h->n_parts <= SESSION_PARTS
           && h->page_tokens >= 1 && h->page_tokens <= 1 << 20 && h->state_bytes < (uint64_t)1 << 44 && h->page_bytes < (uint64_t)1 << 32
           && parts_are_possible(h) && h->bytes == session_file_bytes(h);
}

static void take_numbers(const unsigned char *from, struct session_head *h)
{
    char model[SESSION_MODEL] = "";
    memcpy(model, from + AT_MODEL, SESSION_MODEL - 1);
    session_name_model(h, model);
    h->n_ids = (int)get(from + AT_IDS, 4);
    h->n_parts = (int)get(from + AT_PARTS, 4);
    h->n_text = (int)get(from + AT_TEXT, 4);
    h->page_tokens = (int)get(from + AT_PAGE, 4);
    h->state_bytes = get(from + AT_STATE, 8);
    h->page_bytes = get(from + AT_PAGE_BYTES, 8);
    h->bytes = get(from + AT_BYTES, 8);
    h->made = (int64_t)get(from + AT_MADE, 8);
    memcpy(h->state_id, from + AT_ID, SESSION_STATE_ID - 1);
    for (int i = 0; i < SESSION_PARTS; i++)
        h->part[i] = (struct session_part){(int)get(from + AT_PART + 8 * i, 4), (int)get(from + AT_PART + 8 * i + 4, 4)};
}

int session_has_magic(const unsigned char *from) { return !memcmp(from, magic, sizeof magic); }

int session_unpack(const char *path, const unsigned char *from, struct session_head *h, struct q_err *e)
{
    unsigned char hash[SESSION_HASH];
    memset(h, 0, sizeof *h);
    if (!session_has_magic(from)) return q_fail(e, Q_EINPUT, "%s: not a session file: expected it to begin with 'quarry session'", path);
    unsigned format = (unsigned)get(from + AT_FORMAT, 4);
    if (format != SESSION_FORMAT)
        return q_fail(e, Q_EUNSUP, "%s: a session file of format %u; this version reads format %d", path, format, SESSION_FORMAT);
    hash_of(hash, from, SESSION_HEAD);
    if (memcmp(hash, from + SESSION_HEAD, SESSION_HASH))
        return q_fail(e, Q_EINPUT, "%s: damaged: its first %d bytes are not what was written", path, SESSION_HEAD);
    take_numbers(from, h);
    if (!is_plain(h->state_id)) return q_fail(e, Q_EINPUT, "%s: its head says what cannot be: what it is of is no plain text", path);
    return is_possible(h) ? Q_OK : q_fail(e, Q_EINPUT, "%s: its head says what cannot be: %d tokens, %d checkpoints", path, h->n_ids, h->n_parts);
}
