/* Opening and closing a model: file or preset → config → parts. The steps are in config.c, model_bind.c, model_synth.c. */
#define _GNU_SOURCE
#include "config_read.h"
#include "model_parts.h"
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void model_close(struct q_model *m)
{
    if (!m) return;
    gguf_close(m->file);
    model_free_synthetic(m);
    free(m->layers);
    free(m->notices);
    free(m);
}

static struct q_model *make(const char *path)
{
    struct q_model *m = calloc(1, sizeof *m);
    if (m) snprintf(m->path, sizeof m->path, "%s", path);
    return m;
}

static int make_layers(struct q_model *m, struct q_err *e)
{
    m->layers = calloc((size_t)m->config.n_layers, sizeof *m->layers);
    if (!m->layers) return q_fail(e, Q_EMEM, "%s: out of memory", m->path);
    for (int i = 0; i < m->config.n_layers; i++) m->layers[i].kind = m->config.kind[i];
    return Q_OK;
}

static int finish(struct q_model **out, struct q_model *m, int rc)
{
    if (rc) model_close(m);
    *out = rc ? NULL : m;
    return rc;
}

/* --- from a file --- */

int model_from_gguf(struct q_model **out, struct gguf *g, struct q_err *e)
{
    struct q_model *m = make(gguf_path(g));
    *out = NULL;
    if (!m) {
        gguf_close(g);
        return q_fail(e, Q_EMEM, "out of memory");
    }
    m->file = g;
    struct q_notes notes = { 0 };
    int rc = config_read(&m->config, g, &notes, e);
    if (!rc) rc = make_layers(m, e);
    if (!rc) rc = model_bind(m, &notes, e);
    m->notices = notes.text ? notes.text : calloc(1, 1);
    if (!rc && (notes.failed || !m->notices)) rc = q_fail(e, Q_EMEM, "%s: out of memory", m->path);
    if (!rc) gguf_header_hash(g, m->id);
    return finish(out, m, rc);
}

int model_open(struct q_model **out, const char *path, struct q_err *e)
{
    struct gguf *g;
    *out = NULL;
    if (strlen(path) >= sizeof (*out)->path) return q_fail(e, Q_EINPUT, "the path of the model is too long");
    int rc = gguf_open(&g, path, e);
    return rc ? rc : model_from_gguf(out, g, e);
}

/* --- from a shape --- */

/* The id of made-up weights: of everything they depend on. */
static void hash_shape(struct q_model *m, const char *format)
{
    crypto_hash_sha256_state st;
    crypto_hash_sha256_init(&st);
    crypto_hash_sha256_update(&st, (const unsigned char *)"synthetic 1", 11);
    crypto_hash_sha256_update(&st, (const unsigned char *)format, strlen(format));
    crypto_hash_sha256_update(&st, (const unsigned char *)&m->config, sizeof m->config);
    crypto_hash_sha256_final(&st, m->id);
}

int model_open_config(struct q_model **out, const struct q_config *c, const char *format, enum q_made made, struct q_err *e)
{
    const struct q_format *f = q_format_by_name(format);
    const char *where = c->name[0] ? c->name : "(shape)";
    *out = NULL;
    if (!f) return q_fail(e, Q_EUNSUP, "%s: no weight format is called '%s'; there are f32, f16, bf16, q8_0", where, format);
    int rc = config_check(c, where, e);
    if (rc) return rc;
    struct q_model *m = make(where);
    if (!m) return q_fail(e, Q_EMEM, "%s: out of memory", where);
    memcpy(&m->config, c, sizeof *c);
    rc = make_layers(m, e);
    if (!rc) rc = model_synthesise(m, f, made == Q_MADE_HERE, e);
    if (!rc && !(m->notices = calloc(1, 1))) rc = q_fail(e, Q_EMEM, "%s: out of memory", where);
    if (!rc) hash_shape(m, format);
    return finish(out, m, rc);
}

int model_open_preset(struct q_model **out, const char *preset, const char *format, enum q_made made, struct q_err *e)
{
    struct q_config c;
    *out = NULL;
    int rc = config_from_preset(&c, preset, e);
    return rc ? rc : model_open_config(out, &c, format, made, e);
}

void model_release(struct q_model *m, const struct q_tensor *t)
{
    if (m->file) {
        gguf_drop_pages(m->file, t->data, t->bytes);
        return;
    }
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)t->data, to = from + t->bytes;
    from = (from + page - 1) / page * page;
    to = to / page * page;
    if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}
