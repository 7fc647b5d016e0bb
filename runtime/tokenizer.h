/* Text to token ids and back: byte-level BPE as Qwen3.5 uses it, with the reference tokenizer's ids on any valid UTF-8.
 *
 * One way through: text is cut at special tokens; each piece between is brought to NFC, split into pre-tokens by the
 * qwen35 rules, and each pre-token's bytes are merged by rank. The bytes of all ids, joined, are NFC(text).
 *
 * A tokenizer is read-only once open: any number of threads may use one at once. Every call takes time linear in its text
 * (n log n where one pre-token is very long), a few KB of stack, and memory of at most some 40 bytes a byte of text.
 * It does not render chats, does not choose ids, and adds no begin or end token by itself.
 */
#ifndef Q_TOKENIZER_H
#define Q_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>
#include "err.h"

struct tokenizer;
struct gguf;

enum tok_type { TOK_NORMAL = 1, TOK_UNKNOWN, TOK_CONTROL, TOK_USER, TOK_UNUSED, TOK_BYTE };

struct tok_str {
    const char *at;
    size_t n;
};

/* A vocabulary as a model file states it. Borrowed: tok_open copies what it keeps. */
struct tok_source {
    const char *model, *pre;      /* "gpt2"; "qwen35" or "qwen2". Zero-terminated; NULL: not stated, refused */
    const struct tok_str *tokens; /* [n_tokens], in the byte-mapped form for normal tokens, literal for special ones */
    const int32_t *types;         /* [n_tokens], enum tok_type; NULL: all normal */
    const struct tok_str *merges; /* [n_merges], "left right", lowest rank first */
    size_t n_tokens, n_types, n_merges;
    int64_t eos, pad, bos; /* ids; -1: not stated */
};

/* Opens a tokenizer. `where` names the file in errors. Errors: Q_EUNSUP (model, pre), Q_EINPUT (anything that contradicts
 * itself: lengths, types, merges of unknown pieces, ids out of range, a text twice, a byte without a token), Q_EMEM. */
int tok_open(struct tokenizer **out, const struct tok_source *src, const char *where, struct q_err *e);

/* The same from the tokenizer.ggml.* keys of an open model file (tok_gguf.c). Errors also: Q_EINPUT for a key that is
 * missing or has another type. Integer arrays of any width are widened for token_type. */
int tok_open_gguf(struct tokenizer **out, const struct gguf *g, struct q_err *e);
void tok_close(struct tokenizer *t); /* NULL is fine */

/* ---- vocabulary ---- */
int32_t tok_count(const struct tokenizer *t);
int tok_type(const struct tokenizer *t, int32_t id);                    /* enum tok_type; 0 for an id out of range */
int32_t tok_find(const struct tokenizer *t, const char *text, size_t n); /* by the text in the file; -1: none */
int32_t tok_eos(const struct tokenizer *t);                             /* -1: the file states none */
int32_t tok_bos(const struct tokenizer *t);
/* Generation ends at the eos id and at <|im_end|>, <|endoftext|>, <|fim_pad|>, <|repo_name|>, <|file_sep|>. */
int tok_is_end(const struct tokenizer *t, int32_t id);
/* The bytes of a token: any part of a character, or the literal text of a special token. {NULL, 0} for an id out of range. */
struct tok_str tok_piece(const struct tokenizer *t, int32_t id);

/* Something that another part makes from this vocabulary, at the first call and whichever thread that is on, and that lives as long as the
 * tokenizer: *at. There is one such part. Errors: make's. */
int tok_attach(const struct tokenizer *t, int (*make)(void **at, const struct tokenizer *t, struct q_err *e), void (*drop)(void *at), void **at,
               struct q_err *e);

/* ---- text to ids ---- */

/* Growable array of ids. Zero-initialise; tok_encode and tok_ids_add append; free(ids.at). After Q_EMEM it is as before. */
struct tok_ids {
    int32_t *at; /* owned */
    size_t n, cap;
};

int tok_ids_add(struct tok_ids *ids, const int32_t *more, size_t n, struct q_err *e);

/* User-defined tokens (type 4: <think>, <tool_call>) in the text always become their id. */
enum tok_flags {
    TOK_PARSE_CONTROL = 1, /* control and unknown tokens in the text become their ids, except where guarded */
    TOK_GUARDED = 2        /* the text holds strings made by tok_guard: drop their marks */
};

/* Appends the ids of text[0..n) to *ids. On an error *ids is as before. Errors: Q_EINPUT (not UTF-8: the line names the
 * offset of the first wrong byte), Q_EMEM. */
int tok_encode(const struct tokenizer *t, const char *text, size_t n, unsigned flags, struct tok_ids *ids,
               struct q_err *e);

/* Makes a string from outside harmless before a template is rendered around it: no part of it will be read as a control
 * token, alone or joined with what the template or the next string puts after it; the ids are those of plain text.
 *
 * The mark is the noncharacter U+FDD0 (3 bytes, not white space, never text). It is put after the first character of each
 * control token's text, and of each start of one that ends the string. A U+FDD0 of the string's own is doubled. tok_encode
 * with TOK_GUARDED reads the pairs back as one U+FDD0 and drops single marks: a control token with a mark inside its text is
 * text. User-defined tokens are matched after the marks are dropped, as the reference matches them.
 * So guard every string once, and encode the rendered whole with TOK_PARSE_CONTROL | TOK_GUARDED. A literal U+FDD0 in the
 * template itself must be doubled too.
 *
 * Where nothing has to be marked *out is NULL and *out_n is n: use the string as it is. Else *out is new: free it.
 * Errors: Q_EMEM. The text need not be valid UTF-8 (tok_encode will say so). */
int tok_guard(const struct tokenizer *t, const char *text, size_t n, char **out, size_t *out_n, struct q_err *e);

/* ---- ids to text ---- */

/* Growable array of bytes. Zero-initialise; calls append; free(text.at). Not zero-terminated. */
struct tok_text {
    char *at; /* owned */
    size_t n, cap;
};

/* Appends the exact bytes of ids[0..n). Errors: Q_EINPUT (an id out of range), Q_EMEM; then *out is as before. */
int tok_decode(const struct tokenizer *t, const int32_t *ids, size_t n, struct tok_text *out, struct q_err *e);

/* Decodes as ids arrive and hands out whole characters only: what may become a character waits in `hold`. Bytes that no
 * longer can come out as U+FFFD, one for each longest broken start, as soon as that is known; tok_stream_flush, at the end
 * of an answer, does the same with what waits. So the chunks, joined, are the lossy UTF-8 reading of the exact bytes.
 * Zero-initialise. Which ids are text (control tokens usually not) is the caller's choice. */
struct tok_stream {
    unsigned char hold[4];
    unsigned n;
};
int tok_stream_push(struct tok_stream *s, const struct tokenizer *t, int32_t id, struct tok_text *out, struct q_err *e);
int tok_stream_flush(struct tok_stream *s, struct tok_text *out, struct q_err *e);

#endif
