/* Any bytes as a model file: parsed, read as a shape, bound as a model, shown. Nothing may crash, hang or read outside
 * the input; what opens must keep the promises that the headers make. */
#include "gguf.h"
#include "model_parts.h"
#include "show.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *nowhere;

static void require(int ok)
{
    if (!ok) abort();
}

/* Reads every byte that an accessor promises to be there. */
static unsigned touch(const void *p, size_t n)
{
    const unsigned char *b = p;
    unsigned sum = 0;
    for (size_t i = 0; i < n; i += n > 4096 ? 97 : 1) sum += b[i];
    return n ? sum + b[n - 1] : sum;
}

static unsigned read_keys(const struct gguf *g)
{
    unsigned sum = 0;
    for (int i = 0; i < gguf_n_keys(g); i++) {
        const struct gguf_kv *kv = gguf_key(g, i);
        char name[256];
        sum += touch(kv->key.s, kv->key.n) + touch(kv->data, kv->bytes);
        if (kv->key.n < sizeof name && !memchr(kv->key.s, 0, kv->key.n)) {
            memcpy(name, kv->key.s, kv->key.n);
            name[kv->key.n] = 0;
            require(gguf_find(g, name) == kv);
        }
        struct gguf_strings index;
        if (kv->elem == GGUF_STRING && !gguf_strings_open(&index, kv, NULL)) {
            const unsigned char *at = kv->data;
            for (uint64_t k = 0; k < kv->count; k++) {
                struct gguf_str a = gguf_next_str(&at), b = gguf_strings_get(&index, k);
                require(a.s == b.s && a.n == b.n);
                sum += touch(a.s, a.n);
            }
            require(at == kv->data + kv->bytes);
            gguf_strings_close(&index);
        } else if (gguf_is_int(kv->elem) && kv->count)
            sum += (unsigned)gguf_array_int(kv, kv->count - 1);
    }
    return sum;
}

static unsigned read_tensors(const struct gguf *g)
{
    unsigned sum = 0;
    for (int i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor(g, i);
        char name[64] = "";
        memcpy(name, t->name.s, t->name.n);
        require(gguf_tensor_find(g, name) == t);
        sum += touch(t->data, t->bytes);
    }
    return sum;
}

static void use_model(struct q_model *m)
{
    struct q_err e;
    require(!config_check(&m->config, "fuzz", &e));
    model_check(m, &e);
    struct show_facts f;
    show_from_model(&f, m);
    show_text(&f, nowhere);
    show_json(&f, nowhere);
    show_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!nowhere && !(nowhere = fopen("/dev/null", "w"))) return 0;
    struct gguf *g;
    struct q_model *m;
    struct q_err e = { 0 };
    static volatile unsigned sink;
    if (gguf_open_memory(&g, data, size, "fuzz", &e)) {
        require(e.code != Q_OK && e.text[0] && !strchr(e.text, '\n'));
        return 0;
    }
    sink += read_keys(g) + read_tensors(g);
    if (!model_from_gguf(&m, g, &e)) {
        use_model(m);
        model_close(m);
    } else
        require(e.code != Q_OK && e.text[0]);
    return 0;
}
