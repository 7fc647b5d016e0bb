/* Grammars from anywhere, by every reader: refused or taken, soon and in bounded memory; what is taken has a way on from each of its states,
 * and takes what its masks allow. */
#include "constrain.h"
#include "tok_impl.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const words[] = {
    "\"a", "\":", "\",\"", "{\"", "}}", "]]", "null", "true", "12", "3.5", "\xC4\xA0" "a", "ab", "a\"}", "<tool_call>", "</think>", "<|im_end|>"};
enum { N_WORDS = sizeof words / sizeof *words };

static struct tokenizer *make(void)
{
    static char bytes[256][2];
    static struct tok_str tokens[256 + N_WORDS];
    static int32_t types[256 + N_WORDS];
    struct tokenizer *t = NULL;
    for (int b = 0; b < 256; b++) tokens[b] = (struct tok_str){bytes[b], tok_map_byte((unsigned char)b, bytes[b])}, types[b] = TOK_NORMAL;
    for (int i = 0; i < N_WORDS; i++) tokens[256 + i] = (struct tok_str){words[i], strlen(words[i])}, types[256 + i] = TOK_NORMAL;
    types[256 + N_WORDS - 1] = TOK_CONTROL;
    types[256 + N_WORDS - 2] = types[256 + N_WORDS - 3] = TOK_USER;
    struct tok_source s = {"gpt2", "qwen35", tokens, types, NULL, 256 + N_WORDS, 256 + N_WORDS, 0, 256 + N_WORDS - 1, -1, -1};
    if (tok_open(&t, &s, "fuzz", NULL)) abort();
    return t;
}

static void walk(struct q_constraint *c, const uint8_t *data, size_t n, int ids)
{
    struct q_err e;
    const uint32_t *bits;
    for (size_t i = 0; i < n && i < 64; i++) {
        if (q_constraint_mask(c, &bits, &e)) {
            if (e.code == Q_ELIMIT || e.code == Q_EMEM) return;
            abort();
        }
        int id = data[i] * 256 % ids, k = 0;
        for (; k < ids && !(bits[id / 32] >> id % 32 & 1); k++) id = (id + 1) % ids;
        if (k == ids) abort(); /* nothing may follow */
        int rc = q_constraint_accept(c, id, &e);
        if (rc == Q_ELIMIT || rc == Q_EMEM) return;
        if (rc) abort(); /* the mask had it */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct tokenizer *t;
    struct q_constraint *c = NULL;
    struct q_err e;
    if (!t) t = make();
    if (!n) return 0;
    const char *text = (const char *)data + 1;
    struct q_tool_rules rules = {.required = data[0] >> 4 & 1, .parallel = data[0] >> 5 & 1};
    int rc = 1;
    switch (data[0] % 4) {
    case 0: rc = q_constraint_from_gbnf(&c, t, text, n - 1, &e); break;
    case 1: rc = q_constraint_from_schema(&c, t, text, n - 1, &e); break;
    case 2: rc = q_constraint_from_regex(&c, t, text, n - 1, &e); break;
    case 3: rc = q_constraint_from_tools(&c, t, text, n - 1, &rules, &e); break;
    }
    if (rc) return 0;
    if (data[0] & 64) q_constraint_thinking(c, &e);
    walk(c, data, n, tok_count(t));
    q_constraint_free(c);
    return 0;
}
