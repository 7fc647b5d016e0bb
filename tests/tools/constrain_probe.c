/* Constraints for Python: commands on stdin, one a line, one line of answer each. Texts are hexadecimal, so that they are any bytes.
 *
 *   vocabulary N [SEED]   a made vocabulary of N ids in place of the file's
 *   tokens FILE           a vocabulary of a file, a token in hexadecimal a line, all bytes among them
 *   schema|gbnf|regex|tools HEX   builds: "ok", or "refused CODE LINE"
 *   takes HEX             whether the text, byte by byte, is one of the grammar: "yes", "no"
 *   walk SEED SOFT MOST   draws allowed tokens, from SOFT on those that seem to close: "done HEX", or "cut HEX" after MOST
 *   check SEED MOST       the same walk; at each token the mask is compared with what accept takes, id by id: "same TOKENS", or "differs ID HEX"
 *   cost SEED MOST        the same walk, in time of this thread: "TOKENS NS_A_MASK WORST_NS NS_AN_ACCEPT"
 */
#include "constrain.h"
#include "gguf.h"
#include "tok_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct probe {
    struct gguf *file;
    struct tokenizer *tokenizer;
    struct q_constraint *constraint;
    int byte_id[256];
    uint64_t random;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static unsigned next(struct probe *p, unsigned below)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(p->random >> 33) % below;
}

static void take_tokenizer(struct probe *p, struct tokenizer *t)
{
    q_constraint_free(p->constraint);
    p->constraint = NULL;
    tok_close(p->tokenizer);
    p->tokenizer = t;
    for (int id = 0; id < tok_count(t); id++) {
        struct tok_str s = tok_piece(t, id);
        if (s.n == 1 && tok_type(t, id) == TOK_NORMAL) p->byte_id[(unsigned char)*s.at] = id;
    }
}

/* ---- a made vocabulary: bytes, words with and without a space before, punctuation, digits, characters of other scripts ---- */

/* Most in three bytes; some where not every second byte may come. Now and then cut off. */
static size_t make_character(struct probe *p, char *to)
{
    static const unsigned char first[][2] = {{0xE0, 0xA4}, {0xED, 0x90}, {0xF0, 0x9F}, {0xC3, 0}};
    unsigned kind = next(p, 10), more = kind == 2 ? 2 : kind == 3 ? 0 : 1;
    size_t n = tok_map_byte(kind < 4 ? first[kind][0] : (unsigned char)(0xE4 + next(p, 6)), to);
    n += tok_map_byte(kind < 3 ? first[kind][1] : (unsigned char)(0x80 + next(p, 64)), to + n);
    for (; more && next(p, 20); more--) n += tok_map_byte((unsigned char)(0x80 + next(p, 64)), to + n);
    return n;
}

static size_t make_word(struct probe *p, char *to)
{
    static const char *const punctuation[] = {"\"", ",", ":", "{", "}", "[", "]", "\\", "/", ".", ";", "(", ")", "<", ">", "=", "'", "-", "_",
                                              "\\n", "\\u00e9", "\\\"", "\\u00"};
    size_t n = 0, letters = 1 + next(p, 5) + next(p, 6);
    unsigned kind = next(p, 10);
    if (next(p, 400) == 0) return (size_t)sprintf(to, "%.*s", (int)(33 + letters), "--------------------------------------------------------");
    if (kind < 4) n += tok_map_byte(' ', to);
    if (kind == 8)
        for (unsigned k = 0; k < letters && n < 30; k++) n += (size_t)sprintf(to + n, "%s", punctuation[next(p, 23)]);
    else if (kind == 9)
        for (unsigned k = 0; k < 1 + letters / 4; k++) n += make_character(p, to + n);
    else
        for (unsigned k = 0; k < letters; k++) to[n++] = (char)((kind == 7 && !k ? 'A' : 'a') + next(p, 26));
    return n;
}

static int open_vocabulary(struct probe *p, const struct tok_str *tokens, int n)
{
    int32_t *types = malloc(sizeof *types * (size_t)n);
    struct tokenizer *t = NULL;
    struct q_err e;
    for (int id = 0; id < n; id++) types[id] = id == n - 1 ? TOK_CONTROL : TOK_NORMAL;
    struct tok_source s = {"gpt2", "qwen35", tokens, types, NULL, (size_t)n, (size_t)n, 0, n - 1, -1, -1};
    int rc = tok_open(&t, &s, "made", &e);
    if (rc) printf("refused %d %s\n", rc, e.text);
    else take_tokenizer(p, t), puts("ok");
    free(types);
    return rc;
}

static void read_vocabulary(struct probe *p, const char *path)
{
    FILE *f = fopen(path, "r");
    char line[2048], *text = malloc(64 << 20), *at = text;
    struct tok_str *tokens = malloc(sizeof *tokens * 400000);
    int n = 0;
    while (f && fgets(line, sizeof line, f)) {
        size_t k = 0;
        for (unsigned i = 0, v; sscanf(line + i, "%2x", &v) == 1; i += 2) k += tok_map_byte((unsigned char)v, at + k);
        tokens[n++] = (struct tok_str){at, k};
        at += k;
    }
    tokens[n++] = (struct tok_str){"<|im_end|>", 10};
    if (f) fclose(f);
    open_vocabulary(p, tokens, n);
    free(text);
    free(tokens);
}

static void make_vocabulary(struct probe *p, int n)
{
    char *text = malloc((size_t)n * 64), *at = text;
    struct tok_str *tokens = malloc(sizeof *tokens * (size_t)n);
    char *seen = calloc(1 << 24, 1);
    for (int id = 0; id < n; at += tokens[id++].n) {
        size_t k = id < 256 ? tok_map_byte((unsigned char)id, at) : make_word(p, at);
        uint64_t h = tok_hash(at, k) & ((1 << 24) - 1);
        if (id == n - 1) k = (size_t)sprintf(at, "<|im_end|>");
        else if (seen[h]) k += (size_t)sprintf(at + k, "#%x", id);
        seen[h] = 1;
        tokens[id] = (struct tok_str){at, k};
    }
    open_vocabulary(p, tokens, n);
    free(text);
    free(tokens);
    free(seen);
}

/* ---- commands ---- */

static size_t unhex(char *s)
{
    size_t n = 0;
    for (unsigned v; s[2 * n] && s[2 * n + 1] && sscanf(s + 2 * n, "%2x", &v) == 1; n++) s[n] = (char)v;
    s[n] = 0;
    return n;
}

static void build(struct probe *p, const char *kind, char *text)
{
    struct q_err e;
    size_t n = unhex(text);
    q_constraint_free(p->constraint);
    p->constraint = NULL;
    int rc = *kind == 's'   ? q_constraint_from_schema(&p->constraint, p->tokenizer, text, n, &e)
             : *kind == 'g' ? q_constraint_from_gbnf(&p->constraint, p->tokenizer, text, n, &e)
             : *kind == 'r' ? q_constraint_from_regex(&p->constraint, p->tokenizer, text, n, &e)
                            : q_constraint_from_tools(&p->constraint, p->tokenizer, text, n, &(struct q_tool_rules){.required = 1, .parallel = 1}, &e);
    if (rc) printf("refused %d %s\n", rc, e.text);
    else puts("ok");
}

static void takes(struct probe *p, char *text)
{
    struct q_constraint *c;
    struct q_err e;
    size_t n = unhex(text), i = 0;
    if (q_constraint_clone(&c, p->constraint, &e)) return;
    while (i < n && !q_constraint_accept(c, p->byte_id[(unsigned char)text[i]], &e)) i++;
    if (i == n && q_constraint_may_end(c)) puts("yes");
    else printf("no %zu\n", i);
    q_constraint_free(c);
}

/* How much a token looks like one that closes what is open; in free text only a quote or a tag does. */
static int closing(const struct tokenizer *t, int id, int in_text)
{
    struct tok_str s = tok_piece(t, id);
    if (tok_is_end(t, id)) return 5;
    if (s.n == 1 && *s.at == '"') return in_text ? 4 : 2;
    if (s.n && strchr("]}", *s.at)) return in_text ? 0 : 3;
    return s.n && strchr("<\nab", *s.at) ? 2 : s.n && strchr(":,nt/fu>p", *s.at) ? 1 : 0;
}

static int has(const uint32_t *bits, int id) { return bits[id / 32] >> id % 32 & 1; }

static int draw(struct probe *p, const uint32_t *bits, int close)
{
    int n = tok_count(p->tokenizer), start = (int)next(p, (unsigned)n), best = -1;
    int in_text = has(bits, p->byte_id['q']) && has(bits, p->byte_id['z']) && has(bits, p->byte_id['#']);
    for (int k = 0; k < n; k++) {
        int id = (start + k) % n;
        if (!has(bits, id)) continue;
        if (!close) return id;
        if (best < 0 || closing(p->tokenizer, id, in_text) > closing(p->tokenizer, best, in_text)) best = id;
    }
    return best;
}

struct cost {
    int n;
    double mask, worst, accept;
};

/* 1: the text ended, 0: it was cut, -1: an error was printed. */
static int walk(struct probe *p, int soft, int most, struct tok_text *text, struct cost *cost)
{
    struct q_constraint *c;
    struct q_err e = {0};
    const uint32_t *bits;
    int rc = q_constraint_clone(&c, p->constraint, &e), over = 0;
    for (; !rc && !over && cost->n < most; cost->n++) {
        double t0 = now();
        rc = q_constraint_mask(c, &bits, &e);
        double t1 = now();
        int id = rc ? -1 : draw(p, bits, cost->n >= soft && next(p, 8));
        double t2 = now();
        if (!rc) rc = id < 0 ? q_fail(&e, Q_EINTERNAL, "an empty mask") : q_constraint_accept(c, id, &e);
        cost->accept += now() - t2;
        cost->mask += t1 - t0;
        if (t1 - t0 > cost->worst) cost->worst = t1 - t0;
        over = !rc && tok_is_end(p->tokenizer, id);
        if (!rc && !over) rc = tok_decode(p->tokenizer, &(int32_t){id}, 1, text, &e);
    }
    q_constraint_free(c);
    if (rc) printf("failed %d %s\n", rc, e.text);
    return rc ? -1 : over;
}

/* The first id of which the mask says something else than accept does; -1. */
static int differing(const struct probe *p, const struct q_constraint *c, const uint32_t *bits)
{
    struct q_constraint *try;
    struct q_err e;
    for (int id = 0; id < tok_count(p->tokenizer); id++) {
        if (q_constraint_clone(&try, c, &e)) return id;
        int ok = !q_constraint_accept(try, id, &e);
        q_constraint_free(try);
        if (ok != has(bits, id)) return id;
    }
    return -1;
}

static void check(struct probe *p, int most)
{
    struct q_constraint *c;
    struct q_err e = {0};
    const uint32_t *bits;
    int rc = q_constraint_clone(&c, p->constraint, &e), n = 0, bad = -1, over = 0;
    for (; !rc && !over && bad < 0 && n < most; n++) {
        rc = q_constraint_mask(c, &bits, &e);
        if (!rc) bad = differing(p, c, bits);
        int id = rc ? -1 : draw(p, bits, n >= most / 2 && next(p, 8));
        if (!rc && bad < 0) rc = id < 0 ? q_fail(&e, Q_EINTERNAL, "an empty mask") : q_constraint_accept(c, id, &e);
        over = !rc && id >= 0 && tok_is_end(p->tokenizer, id);
    }
    q_constraint_free(c);
    if (rc) printf("failed %d %s\n", rc, e.text);
    else if (bad < 0) printf("same %d\n", n);
    else {
        struct tok_str s = tok_piece(p->tokenizer, bad);
        printf("differs %d ", bad);
        for (size_t i = 0; i < s.n; i++) printf("%02x", (unsigned char)s.at[i]);
        puts("");
    }
}

static void command(struct probe *p, char *line)
{
    struct tok_text text = {0};
    struct cost cost = {0};
    char *word = strtok(line, " \n"), *a = strtok(NULL, " \n"), *b = strtok(NULL, " \n"), *c = strtok(NULL, " \n");
    char none[1] = "";
    if (!word) return;
    if (!strcmp(word, "vocabulary")) {
        p->random = b ? (uint64_t)atoll(b) : 1;
        make_vocabulary(p, atoi(a));
    } else if (!strcmp(word, "tokens")) {
        read_vocabulary(p, a);
    } else if (!strcmp(word, "takes")) {
        takes(p, a ? a : none);
    } else if (!strcmp(word, "check")) {
        p->random = (uint64_t)atoll(a) * 0x9E3779B97F4A7C15u + 1;
        check(p, atoi(b));
    } else if (!strcmp(word, "walk") || !strcmp(word, "cost")) {
        int timed = *word == 'c';
        p->random = (uint64_t)atoll(a) * 0x9E3779B97F4A7C15u + 1;
        int over = walk(p, timed ? 1 << 30 : atoi(b), atoi(timed ? b : c), &text, &cost);
        if (over >= 0 && timed) printf("%d %.0f %.0f %.0f\n", cost.n, cost.mask / cost.n, cost.worst, cost.accept / cost.n);
        if (over >= 0 && !timed) {
            printf(over ? "done " : "cut ");
            for (size_t i = 0; i < text.n; i++) printf("%02x", (unsigned char)text.at[i]);
            puts("");
        }
    } else {
        double t0 = now();
        build(p, word, a ? a : none);
        if (getenv("PROBE_TIMES")) fprintf(stderr, "%s: %.2f ms\n", word, (now() - t0) / 1e6);
    }
    free(text.at);
}

int main(int argc, char **argv)
{
    struct probe p = {0};
    struct tokenizer *t;
    struct q_err e;
    char *line = NULL;
    size_t cap = 0;
    if (argc != 2 || gguf_open(&p.file, argv[1], &e) || tok_open_gguf(&t, p.file, &e)) return fputs("usage: constrain_probe MODEL.gguf\n", stderr), 2;
    take_tokenizer(&p, t);
    while (getline(&line, &cap, stdin) > 0) {
        command(&p, line);
        fflush(stdout);
    }
    free(line);
    q_constraint_free(p.constraint);
    tok_close(p.tokenizer);
    gguf_close(p.file);
    return 0;
}
