#include "cubin.h"
#include "runtime/files.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUBIN_BYTES = 64 << 20, MACHINE_CUDA = 190 };

/* A file whose parts are looked at only after their bounds were. */
struct image {
    const char *data;
    size_t n;
    Elf64_Ehdr head;
};

static int inside(const struct image *m, Elf64_Off at, Elf64_Xword n) { return at <= m->n && n <= m->n - at; }

static int section(const struct image *m, unsigned i, Elf64_Shdr *s)
{
    size_t at = m->head.e_shoff + (size_t)i * sizeof *s;
    if (i >= m->head.e_shnum || m->head.e_shentsize != sizeof *s || !inside(m, m->head.e_shoff, (Elf64_Xword)m->head.e_shnum * sizeof *s)) return 0;
    memcpy(s, m->data + at, sizeof *s);
    return s->sh_type == SHT_NOBITS || inside(m, s->sh_offset, s->sh_size);
}

/* Whether the symbol table `s`, whose names lie in `names`, defines the function. */
static int defines(const struct image *m, const Elf64_Shdr *s, const Elf64_Shdr *names, const char *name)
{
    size_t len = strlen(name);
    for (Elf64_Xword at = 0; at + sizeof(Elf64_Sym) <= s->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym sym;
        memcpy(&sym, m->data + s->sh_offset + at, sizeof sym);
        int fits = sym.st_name < names->sh_size && len < names->sh_size - sym.st_name;
        if (fits && ELF64_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx != SHN_UNDEF
            && !memcmp(m->data + names->sh_offset + sym.st_name, name, len + 1))
            return 1;
    }
    return 0;
}

static int has_function(const struct image *m, const char *name)
{
    Elf64_Shdr s, names;
    for (unsigned i = 0; i < m->head.e_shnum; i++)
        if (section(m, i, &s) && s.sh_type == SHT_SYMTAB && section(m, s.sh_link, &names) && names.sh_type == SHT_STRTAB
            && defines(m, &s, &names, name))
            return 1;
    return 0;
}

static int check(struct image *m, const char *name, int phases, struct q_err *e)
{
    char symbol[200];
    if (m->n >= sizeof m->head) memcpy(&m->head, m->data, sizeof m->head);
    if (memcmp(m->head.e_ident, ELFMAG, SELFMAG) || m->head.e_ident[EI_CLASS] != ELFCLASS64 || m->head.e_machine != MACHINE_CUDA)
        return q_fail(e, Q_EINTERNAL, "the object is no cubin");
    for (int i = 1; i <= phases; i++) {
        snprintf(symbol, sizeof symbol, i > 1 ? "%s_%d" : "%s", name, i);
        if (!has_function(m, symbol)) return q_fail(e, Q_EINTERNAL, "the object lacks the kernel %s", symbol);
    }
    return Q_OK;
}

int cubin_check(const char *path, const char *name, int phases, struct q_err *e)
{
    struct image m = { 0 };
    char *data;
    int rc = file_read(path, CUBIN_BYTES, &data, &m.n, e);
    if (rc) return rc;
    m.data = data;
    rc = phases < 1 ? q_fail(e, Q_EINTERNAL, "%s: its space gives no launch", name) : check(&m, name, phases, e);
    free(data);
    return rc;
}

/* The most of all numbers that stand between `before` and `after`. */
static int most(const char *log, const char *before, const char *after)
{
    int best = 0;
    for (const char *p = log; (p = strstr(p, before));) {
        char *end;
        p += strlen(before);
        long v = strtol(p, &end, 10);
        if (end > p && !strncmp(end, after, strlen(after)) && v > best && v < 1 << 20) best = (int)v;
    }
    return best;
}

void cubin_log(const char *log, int *regs, int *spill)
{
    int loads = most(log, "spill stores, ", " bytes spill loads"), stores = most(log, "stack frame, ", " bytes spill stores");
    *regs = most(log, "Used ", " registers");
    *spill = loads > stores ? loads : stores;
}
