/* Weights made up for a shape: what a tensor holds depends on its name and the element's index alone, so two runs, two
 * machines and two formats compare. A value is a hashed byte times a block's scale, which is what Q8_0 stores; other
 * formats hold the same numbers rounded. Scales keep activations near 1: matrices have variance 1/k, norms are near 1.
 */
#define _GNU_SOURCE
#include "model_parts.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 32, ALIGN = 64, MAX_THREADS = 8 };

/* FNV-1a of the name, then one splitmix64 step a counter. */
static uint64_t seed_of(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001B3u;
    return h;
}

static inline uint64_t mix(uint64_t seed, uint64_t counter)
{
    uint64_t z = seed + (counter + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline double unit(uint64_t x) { return (double)(x >> 11) * 0x1p-53; }

/* 32 elements as a scale and bytes; -128 does not occur, as in quantised files. */
static inline void make_block(uint64_t seed, uint64_t block, float std, uint16_t *d, int8_t q[BLOCK])
{
    static const float byte_std = 73.6f;   /* of a uniform -127 .. 127 */
    uint64_t bits[4];
    for (unsigned i = 0; i < 4; i++) bits[i] = mix(seed, block * 5 + i);
    memcpy(q, bits, BLOCK);
    for (int i = 0; i < BLOCK; i++) q[i] = (int8_t)(q[i] == -128 ? 127 : q[i]);
    *d = q_float_to_half(std / byte_std * (0.75f + 0.5f * (float)unit(mix(seed, block * 5 + 4))));
}

static void fill_q8_0(unsigned char *dst, uint64_t seed, int64_t blocks, float std)
{
    for (int64_t b = 0; b < blocks; b++, dst += 2 + BLOCK) {
        uint16_t d;
        int8_t q[BLOCK];
        make_block(seed, (uint64_t)b, std, &d, q);
        memcpy(dst, &d, 2);
        memcpy(dst + 2, q, BLOCK);
    }
}

/* Any format with blocks of one element, through fp32. */
static void fill_plain(unsigned char *dst, const struct q_format *f, uint64_t seed, int64_t n, float std)
{
    for (int64_t i = 0; i < n; i += BLOCK, dst += BLOCK * f->bytes) {
        uint16_t d;
        int8_t q[BLOCK];
        float x[BLOCK];
        make_block(seed, (uint64_t)(i / BLOCK), std, &d, q);
        float scale = q_half_to_float(d);
        for (int k = 0; k < BLOCK; k++) x[k] = (float)q[k] * scale;
        f->quantise(dst, x, n - i < BLOCK ? n - i : BLOCK);
    }
}

static void fill_matrix(const struct q_tensor *t, const struct q_recipe *r)
{
    if (t->format->type == Q_TYPE_Q8_0)
        fill_q8_0((unsigned char *)(uintptr_t)t->data, r->seed, t->n * t->k / BLOCK, r->std);
    else
        fill_plain((unsigned char *)(uintptr_t)t->data, t->format, r->seed, t->n * t->k, r->std);
}

static void fill_vector(const struct q_tensor *t, const struct q_recipe *r)
{
    float *v = (float *)(uintptr_t)t->data;
    for (int64_t i = 0; i < t->n * t->k; i++) v[i] = (float)(r->from + (r->to - r->from) * unit(mix(r->seed, (uint64_t)i)));
}

/* Norms 0.9 .. 1.1; conv taps of deviation 0.5; a = -(1 .. 16), dt = -7 .. -2: decays between 0.2 and 0.999 a token. */
void model_synth_recipe(const struct q_tensor *t, struct q_recipe *r)
{
    static const struct { double from, to; } range[] = {
        [ROLE_NORM] = { 0.9, 1.1 }, [ROLE_CONV] = { -0.866, 0.866 }, [ROLE_DT] = { -7, -2 }, [ROLE_A] = { -16, -1 },
    };
    enum q_role role = q_role_of(t);
    *r = (struct q_recipe){ .vector = role != ROLE_MATRIX, .seed = seed_of(t->name) };
    if (r->vector) {
        r->from = range[role].from;
        r->to = range[role].to;
    } else {
        r->std = 1.0f / sqrtf((float)t->k);
    }
}

/* --- laying out --- */

struct synth {
    struct q_model *m;
    const struct q_format *format;
    size_t size;
    int laid_out;            /* 0 while sizes are counted */
    unsigned char *memory;   /* NULL then, and where weights are not made here */
    const struct q_tensor **jobs;    /* owned */
    int n_jobs;
    atomic_int next;
};

/* model->synthetic */
struct memory {
    void *p;
    size_t size;
};

static int lay_out(void *user, const struct q_part *p, int layer, struct q_tensor *t)
{
    struct synth *s = user;
    const struct q_config *c = &s->m->config;
    q_part_name(t->name, layer, p->name);
    t->format = q_part_format(c, p, s->format);
    t->n = q_dim_of(c, p->n);
    t->k = q_dim_of(c, p->k);
    t->bytes = (size_t)(t->n * q_row_bytes(t->format, t->k));
    if (s->laid_out) s->m->weight_bytes += t->bytes;
    if (s->memory) {
        t->data = s->memory + s->size;
        s->jobs[s->n_jobs] = t;
    }
    s->n_jobs++;
    s->size += (t->bytes + ALIGN - 1) / ALIGN * ALIGN;
    return 0;
}

static void *fill_some(void *user)
{
    struct synth *s = user;
    for (int i; (i = atomic_fetch_add(&s->next, 1)) < s->n_jobs;) {
        struct q_recipe r;
        model_synth_recipe(s->jobs[i], &r);
        if (r.vector) fill_vector(s->jobs[i], &r);
        else fill_matrix(s->jobs[i], &r);
    }
    return NULL;
}

/* Helpers that cannot be started are done without: this thread alone is enough. */
static void fill_all(struct synth *s)
{
    pthread_t thread[MAX_THREADS];
    int n = 0;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    while (n + 1 < cpus && n < MAX_THREADS && !pthread_create(thread + n, NULL, fill_some, s)) n++;
    fill_some(s);
    while (n) pthread_join(thread[--n], NULL);
}

static int take_memory(struct synth *s, struct q_err *e)
{
    struct memory *mem = calloc(1, sizeof *mem);
    s->jobs = calloc((size_t)s->n_jobs, sizeof *s->jobs);
    void *p = MAP_FAILED;
    if (mem && s->jobs) p = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        free(mem);
        return q_fail(e, Q_EMEM, "%s: out of memory for %.1f GB of synthetic weights", s->m->path, (double)s->size / 1e9);
    }
    madvise(p, s->size, MADV_HUGEPAGE);
    *mem = (struct memory){ p, s->size };
    s->m->synthetic = mem;
    s->memory = p;
    return Q_OK;
}

int model_synthesise(struct q_model *m, const struct q_format *format, int fill, struct q_err *e)
{
    struct synth s = { .m = m, .format = format };
    q_each_part(m, lay_out, &s);
    int rc = fill ? take_memory(&s, e) : Q_OK;
    if (!rc) {
        s.size = 0;
        s.n_jobs = 0;
        s.laid_out = 1;
        q_each_part(m, lay_out, &s);
        if (fill) fill_all(&s);
        if (m->config.tied) m->head = m->embd;
    }
    free((void *)s.jobs);
    return rc;
}

void model_free_synthetic(struct q_model *m)
{
    struct memory *mem = m->synthetic;
    if (mem) munmap(mem->p, mem->size);
    free(mem);
    m->synthetic = NULL;
}
