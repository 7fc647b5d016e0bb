#define _GNU_SOURCE
#include "card.h"
#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Instruction paths, strongest first: the order in a key. `below` is what a short form brings along. */
static const struct path {
    const char *name;
    unsigned bit, below;
} paths[] = {
    { "avx512vnni", Q_ISA_AVX512VNNI, Q_ISA_AVX2 | Q_ISA_SSE42 | Q_ISA_SCALAR },
    { "avxvnni", Q_ISA_AVXVNNI, Q_ISA_AVX2 | Q_ISA_SSE42 | Q_ISA_SCALAR },
    { "avx2", Q_ISA_AVX2, Q_ISA_SSE42 | Q_ISA_SCALAR },
    { "sse42", Q_ISA_SSE42, Q_ISA_SCALAR },
    { "scalar", Q_ISA_SCALAR, 0 },
};
enum { N_PATHS = sizeof paths / sizeof *paths };

/* Of a card that does not say; gen/card.lua takes the same for a short form. */
enum { GENERIC_L1 = 32, GENERIC_L2 = 512, GENERIC_L3 = 8192, GENERIC_THREADS = 1 };

static void write_key(struct q_card *c)
{
    char isa[64] = "";
    for (int i = 0; i < N_PATHS; i++)
        if (c->isa & paths[i].bit) snprintf(isa + strlen(isa), sizeof isa - strlen(isa), "%s%s", *isa ? "+" : "", paths[i].name);
    snprintf(c->key, sizeof c->key, "cpu:%s-%d-%d,isa=%s,l1=%d,l2=%d,l3=%d,t=%d", c->vendor, c->family, c->model, isa, c->l1_kib,
             c->l2_kib, c->l3_kib, c->threads);
}

/* --- this machine ------------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
struct regs {
    unsigned a, b, c, d;
};

/* All zero when the CPU has no such leaf. */
static struct regs cpuid(unsigned leaf, unsigned sub)
{
    struct regs r = { 0, 0, 0, 0 };
    if (leaf <= __get_cpuid_max(leaf & 0x80000000u, NULL)) __cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
    return r;
}

static int bit(unsigned word, int n) { return word >> n & 1; }

static void detect_name(struct q_card *c)
{
    struct regs r = cpuid(0, 0);
    char vendor[13] = "";
    memcpy(vendor, &r.b, 4);
    memcpy(vendor + 4, &r.d, 4);
    memcpy(vendor + 8, &r.c, 4);
    strcpy(c->vendor, !strcmp(vendor, "AuthenticAMD") ? "amd" : !strcmp(vendor, "GenuineIntel") ? "intel" : "other");
    unsigned sig = cpuid(1, 0).a, family = sig >> 8 & 15, model = sig >> 4 & 15;
    if (family == 15 || family == 6) model |= sig >> 12 & 0xF0;
    if (family == 15) family += sig >> 20 & 255;
    c->family = (int)family;
    c->model = (int)model;
}

/* Which register sets the system saves: bits of XCR0. */
static unsigned saved_registers(void)
{
    if (!bit(cpuid(1, 0).c, 27)) return 0;
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return lo;
}

/* A path counts when the CPU has all that the compiler may use for it (-march=x86-64-v2, -v3, -v4 and the VNNI form) and the
 * system saves its registers. */
static unsigned detect_isa(void)
{
    struct regs f1 = cpuid(1, 0), f7 = cpuid(7, 0), f71 = cpuid(7, 1), ext = cpuid(0x80000001u, 0);
    unsigned saved = saved_registers(), isa = Q_ISA_SCALAR;
    int ymm = (saved & 6) == 6, zmm = (saved & 0xE6) == 0xE6;
    if (!(bit(f1.c, 0) && bit(f1.c, 9) && bit(f1.c, 13) && bit(f1.c, 19) && bit(f1.c, 20) && bit(f1.c, 23))) return isa;
    isa |= Q_ISA_SSE42;
    int v3 = bit(f1.c, 28) && bit(f1.c, 12) && bit(f1.c, 22) && bit(f1.c, 29)      /* avx fma movbe f16c */
             && bit(f7.b, 3) && bit(f7.b, 5) && bit(f7.b, 8) && bit(ext.c, 5);     /* bmi1 avx2 bmi2 lzcnt */
    if (!v3 || !ymm) return isa;
    isa |= Q_ISA_AVX2;
    if (bit(f71.a, 4)) isa |= Q_ISA_AVXVNNI;
    int v4 = bit(f7.b, 16) && bit(f7.b, 17) && bit(f7.b, 28) && bit(f7.b, 30) && bit(f7.b, 31);   /* f dq cd bw vl */
    if (v4 && bit(f7.c, 11) && zmm) isa |= Q_ISA_AVX512VNNI;
    return isa;
}

/* Leaf 4 (Intel) and 0x8000001D (AMD) list caches in one form. */
static void detect_listed_caches(struct q_card *c, unsigned leaf)
{
    for (unsigned i = 0; i < 16; i++) {
        struct regs r = cpuid(leaf, i);
        unsigned type = r.a & 31, level = r.a >> 5 & 7;
        if (!type) return;
        if (type == 2) continue;   /* instructions */
        unsigned long long ways = (r.b >> 22) + 1, parts = (r.b >> 12 & 1023) + 1, line = (r.b & 4095) + 1, sets = (unsigned long long)r.c + 1;
        unsigned long long kib = ways * parts * line * sets / 1024;
        if (kib > 1 << 24) continue;
        if (level == 1) c->l1_kib = (int)kib;
        if (level == 2) c->l2_kib = (int)kib;
        if (level == 3) c->l3_kib = (int)kib;
    }
}

static void detect_caches(struct q_card *c)
{
    int amd_list = bit(cpuid(0x80000001u, 0).c, 22);
    detect_listed_caches(c, amd_list ? 0x8000001Du : 4);
    if (!c->l1_kib) c->l1_kib = (int)(cpuid(0x80000005u, 0).c >> 24);   /* AMD before the list */
    if (!c->l2_kib) c->l2_kib = (int)(cpuid(0x80000006u, 0).c >> 16);
}
#else
static void detect_name(struct q_card *c) { strcpy(c->vendor, "other"); }
static unsigned detect_isa(void) { return Q_ISA_SCALAR; }
static void detect_caches(struct q_card *c) { c->l1_kib = c->l2_kib = c->l3_kib = 0; }
#endif

int card_allowed_cpus(void)
{
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

int card_detect_cpu(struct q_card *c, int threads, struct q_err *e)
{
    if (threads > 4096) return q_fail(e, Q_EINPUT, "threads: expected at most 4096, found %d", threads);
    memset(c, 0, sizeof *c);
    detect_name(c);
    c->isa = detect_isa();
    detect_caches(c);
    if (!c->l1_kib) c->l1_kib = GENERIC_L1;
    if (!c->l2_kib) c->l2_kib = GENERIC_L2;
    c->threads = threads > 0 ? threads : card_allowed_cpus();   /* no third level is common: l3=0 */
    write_key(c);
    return Q_OK;
}

/* --- keys -------------------------------------------------------------------------------------------------------------- */

static const struct path *find_path(const char *s, size_t n)
{
    for (int i = 0; i < N_PATHS; i++)
        if (strlen(paths[i].name) == n && !memcmp(paths[i].name, s, n)) return &paths[i];
    return NULL;
}

/* "WORD" then a number in [0, max]; moves *p behind it. Returns -1 if it is not there. */
static int take_number(const char **p, const char *word, int max)
{
    size_t n = strlen(word);
    if (strncmp(*p, word, n) || !isdigit((unsigned char)(*p)[n])) return -1;
    char *end;
    long v = strtol(*p + n, &end, 10);
    *p = end;
    return v > max ? -1 : (int)v;
}

/* "avx2+sse42+scalar" up to the comma. 0 if a path is unknown. */
static unsigned take_isa(const char **p)
{
    unsigned isa = 0;
    for (;;) {
        size_t n = strcspn(*p, "+,");
        const struct path *path = find_path(*p, n);
        if (!path) return 0;
        isa |= path->bit;
        *p += n;
        if (**p != '+') return isa;
        ++*p;
    }
}

static int take_vendor(struct q_card *c, const char **p)
{
    size_t n = strspn(*p, "abcdefghijklmnopqrstuvwxyz");
    if (n == 0 || n >= sizeof c->vendor) return -1;
    memcpy(c->vendor, *p, n);
    c->vendor[n] = 0;
    *p += n;
    return 0;
}

/* The part after "cpu:" of a full key. */
static int parse_full(struct q_card *c, const char *p)
{
    if (take_vendor(c, &p)) return -1;
    if ((c->family = take_number(&p, "-", 65535)) < 0 || (c->model = take_number(&p, "-", 65535)) < 0) return -1;
    if (strncmp(p, ",isa=", 5)) return -1;
    p += 5;
    if (!((c->isa = take_isa(&p)) & Q_ISA_SCALAR)) return -1;
    if ((c->l1_kib = take_number(&p, ",l1=", 1 << 24)) < 0 || (c->l2_kib = take_number(&p, ",l2=", 1 << 24)) < 0) return -1;
    if ((c->l3_kib = take_number(&p, ",l3=", 1 << 24)) < 0 || (c->threads = take_number(&p, ",t=", 4096)) < 1) return -1;
    return *p ? -1 : 0;
}

/* "avx2" and what may follow it: ",l1=32", ",l2=256", ",l3=2048", ",t=2", in this order, each or none. */
static int parse_short(struct q_card *c, const struct path *path, const char *rest)
{
    struct { const char *word; int *v, max, missing; } fields[] = {
        { ",l1=", &c->l1_kib, 1 << 24, GENERIC_L1 }, { ",l2=", &c->l2_kib, 1 << 24, GENERIC_L2 },
        { ",l3=", &c->l3_kib, 1 << 24, GENERIC_L3 }, { ",t=", &c->threads, 4096, GENERIC_THREADS },
    };
    strcpy(c->vendor, "other");
    c->isa = path->bit | path->below;
    for (int i = 0; i < 4; i++) {
        int given = !strncmp(rest, fields[i].word, strlen(fields[i].word));
        *fields[i].v = given ? take_number(&rest, fields[i].word, fields[i].max) : fields[i].missing;
        if (*fields[i].v < 0) return -1;
    }
    return *rest || c->threads < 1 ? -1 : 0;
}

/* --- CUDA -------------------------------------------------------------------------------------------------------------- */

int card_cuda_smem(int cc)
{
    static const struct { int cc, kib; } table[] = { { 70, 96 }, { 72, 96 },   { 75, 64 },   { 80, 163 },  { 86, 99 },   { 87, 163 },
                                                     { 89, 99 }, { 90, 227 }, { 100, 227 }, { 103, 227 }, { 110, 227 }, { 120, 99 }, { 121, 99 } };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].cc == cc) return table[i].kib;
    return 48;
}

/* Families up to Hopper's are complete: a number that is not here is a slip. From sm_100 on any number may come. */
static const int made[] = { 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90 };
enum { N_MADE = sizeof made / sizeof *made, OPEN_FROM = 100 };

int card_cuda_exists(int cc)
{
    for (int i = 0; i < N_MADE; i++)
        if (made[i] == cc) return 1;
    return cc >= OPEN_FROM;
}

static int refuse_unmade(const char *key, int cc, struct q_err *e)
{
    char names[N_MADE * 8] = "";
    for (int i = 0, n = 0; i < N_MADE; i++) n += snprintf(names + n, sizeof names - (size_t)n, " sm_%d", made[i]);
    return q_fail(e, Q_EINPUT, "card '%.200s': there is no card with sm_%d; expected one of%s, or sm_%d and later", key, cc, names, OPEN_FROM);
}

/* What a key may say of a card, and what is taken where nothing is said: 1..1024 multiprocessors, 1..1048576 KiB of L2, a bus of 1..16384
 * bits, 16..1024 KiB of shared memory a block (smem is in KiB: 65536 is a slip). gen/card.lua has the same bounds and generic values. */
struct field {
    const char *word, *unit;
    int *v, min, max, missing;
};
enum { CUDA_FIELDS = 4 };

static void cuda_fields(struct q_card *c, struct field f[CUDA_FIELDS])
{
    const struct field all[CUDA_FIELDS] = {
        { ",sms=", "", &c->sms, 1, 1024, 40 },
        { ",l2=", " KiB", &c->l2, 1, 1 << 20, 4096 },
        { ",bus=", " bits", &c->bus, 1, 1 << 14, 256 },
        { ",smem=", " KiB", &c->smem, 16, 1024, card_cuda_smem(c->cc) },
    };
    memcpy(f, all, sizeof all);
}

void card_cuda_key(struct q_card *c)
{
    struct field f[CUDA_FIELDS];
    cuda_fields(c, f);
    for (int i = 0; i < CUDA_FIELDS; i++)
        if (*f[i].v < f[i].min || *f[i].v > f[i].max) *f[i].v = f[i].missing;
    c->kind = Q_CARD_CUDA;
    snprintf(c->key, sizeof c->key, "cuda:sm_%d,sms=%d,l2=%d,bus=%d,smem=%d%s", c->cc, c->sms, c->l2, c->bus, c->smem,
             c->without_dp4a ? ",without=mma+dp4a" : c->without_mma ? ",without=mma" : "");
}

int card_take_without(struct q_card *c, const char *text)
{
    c->without_dp4a = !strcmp(text, ",without=mma+dp4a");
    c->without_mma = c->without_dp4a || !strcmp(text, ",without=mma");
    return *text && !c->without_mma ? -1 : 0;
}

/* "sm_70" and what may follow it, in this order, each or none. */
static int parse_cuda(struct q_card *c, const char *key, const char *p, struct q_err *e)
{
    static const char form[] = "cuda:sm_CC (60 or more) or cuda:sm_CC,sms=N,l2=KIB,bus=BITS,smem=KIB[,without=mma[+dp4a]]";
    struct field f[CUDA_FIELDS];
    if ((c->cc = take_number(&p, "sm_", 999)) < CARD_OLDEST_CC) return q_fail(e, Q_EINPUT, "card '%.200s': expected %s", key, form);
    if (!card_cuda_exists(c->cc)) return refuse_unmade(key, c->cc, e);
    cuda_fields(c, f);
    for (int i = 0; i < CUDA_FIELDS; i++) {
        size_t n = strlen(f[i].word);
        *f[i].v = f[i].missing;
        if (strncmp(p, f[i].word, n) || !isdigit((unsigned char)p[n])) continue;
        const char *digits = p + n;
        *f[i].v = take_number(&p, f[i].word, f[i].max);
        if (*f[i].v < f[i].min)
            return q_fail(e, Q_EINPUT, "card '%.200s': expected %s%d..%d%s, found %.*s", key, f[i].word + 1, f[i].min, f[i].max, f[i].unit,
                          (int)strspn(digits, "0123456789"), digits);
    }
    return card_take_without(c, p) ? q_fail(e, Q_EINPUT, "card '%.200s': expected %s", key, form) : Q_OK;
}

int card_parse(struct q_card *c, const char *key, struct q_err *e)
{
    memset(c, 0, sizeof *c);
    if (!strncmp(key, "cuda:", 5)) {
        int bad = parse_cuda(c, key, key + 5, e);
        if (!bad) card_cuda_key(c);
        return bad;
    }
    if (strncmp(key, "cpu:", 4)) return q_fail(e, Q_EINPUT, "card '%.200s': expected 'cpu:...' or 'cuda:...'", key);
    size_t n = strcspn(key + 4, ",");
    const struct path *path = find_path(key + 4, n);
    if (path ? parse_short(c, path, key + 4 + n) : parse_full(c, key + 4))
        return q_fail(e, Q_EINPUT, "card '%.200s': expected cpu:PATH (scalar sse42 avx2 avxvnni avx512vnni) or "
                      "cpu:VENDOR-FAMILY-MODEL,isa=PATH+..+scalar,l1=KIB,l2=KIB,l3=KIB,t=THREADS", key);
    write_key(c);
    return Q_OK;
}

/* Whether `field` (n bytes, "l2=4096") is one of the key's. */
static int has_field(const char *key, const char *field, size_t n)
{
    for (const char *p = strchr(key, ','); p; p = strchr(p + 1, ','))
        if (strcspn(p + 1, ",") == n && !memcmp(p + 1, field, n)) return 1;
    return 0;
}

int card_filled_in(const struct q_card *c, const char *key, char *dst, size_t cap)
{
    size_t len = 0;
    int found = 0;
    *dst = 0;
    for (const char *p = strchr(c->key, ','); p; p = strchr(p + 1, ',')) {
        size_t n = strcspn(p + 1, ",");
        if (has_field(key, p + 1, n) || len + n + 2 > cap) continue;
        len += (size_t)snprintf(dst + len, cap - len, "%s%.*s", found++ ? "," : "", (int)n, p + 1);
    }
    return found;
}
