/* The shared variables of the object, by its table of symbols. */
#define _GNU_SOURCE
#include "impl.h"
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct symbol {
    const char *name;
    size_t address, bytes;     /* address: as loaded */
};

/* Calls visit for every shared variable until it returns non-zero. */
static void each_shared(int (*visit)(void *arg, const struct symbol *s), void *arg)
{
    struct stat st;
    int fd = open(m.call->object, O_RDONLY | O_CLOEXEC), stop = 0;
    void *map = fd >= 0 && !fstat(fd, &st) ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (map == MAP_FAILED) return;
    const char *elf = map;
    const ElfW(Ehdr) *h = map;
    const ElfW(Shdr) *section = (const void *)(elf + h->e_shoff);
    for (int i = 0; i < h->e_shnum; i++) {
        const ElfW(Sym) *s = (const void *)(elf + section[i].sh_offset);
        if (section[i].sh_type != SHT_SYMTAB) continue;
        const char *names = elf + section[section[i].sh_link].sh_offset;
        for (size_t j = 0; !stop && j < section[i].sh_size / sizeof *s; j++) {
            struct symbol one = {names + s[j].st_name, (size_t)memory_object_base() + s[j].st_value, s[j].st_size};
            int shared = one.address >= (size_t)m.shared && one.address < (size_t)m.shared + m.shared_bytes;
            if (shared && (s[j].st_info & 15) == STT_OBJECT) stop = visit(arg, &one);
        }
    }
    munmap(map, (size_t)st.st_size);
}

/* --- names ------------------------------------------------------------------------------------------------------- */

/* A local static's symbol is _ZZ..E4name: what follows the last E and its digits, up to a discriminator. */
static void variable_name(char *out, size_t cap, const char *symbol)
{
    const char *e = strrchr(symbol, 'E');
    char *at;
    if (strncmp(symbol, "_ZZ", 3) || !e) {
        snprintf(out, cap, "%s", symbol);
        return;
    }
    long n = strtol(e + 1, &at, 10);
    snprintf(out, cap, "%.*s", (int)n, at);
}

struct place {
    const unsigned char *p;
    char *out;
    size_t cap;
};

static int name_place(void *arg, const struct symbol *s)
{
    struct place *l = arg;
    char name[80];
    size_t at = (size_t)l->p - s->address;
    if ((size_t)l->p < s->address || at >= s->bytes) return 0;
    variable_name(name, sizeof name, s->name);
    snprintf(l->out, l->cap, "shared %s, byte %zu of %zu", name, at, s->bytes);
    return 1;
}

void report_shared(char *out, size_t cap, const void *p)
{
    const unsigned char *at = p;
    struct place l = {p, out, cap};
    if (m.dynamic_bytes && at >= m.dynamic && at < m.dynamic + m.dynamic_bytes) {
        snprintf(out, cap, "dynamic shared memory, byte %td of %zu", at - m.dynamic, m.dynamic_bytes);
        return;
    }
    snprintf(out, cap, "shared memory, byte %td of %zu", at - m.shared, m.shared_bytes);
    each_shared(name_place, &l);
}

/* --- sizes ------------------------------------------------------------------------------------------------------- */

/* _ZZ19the_kernel_of_anotherE..: whether the function is another kernel. Helpers are static: _ZZL.. */
static int is_of_other_kernel(const char *symbol)
{
    char *at, name[176];
    long n = strncmp(symbol, "_ZZ", 3) ? 0 : strtol(symbol + 3, &at, 10);
    if (n < 1 || n >= (long)sizeof name) return 0;
    snprintf(name, sizeof name, "%.*s", (int)n, at);
    return strcmp(name, m.kernel) && dlsym(m.object, name);
}

static int add_size(void *arg, const struct symbol *s)
{
    if (!is_of_other_kernel(s->name)) *(size_t *)arg += (s->bytes + 15) / 16 * 16;
    return 0;
}

size_t shared_bytes_of_kernel(void)
{
    size_t sum = 0;
    each_shared(add_size, &sum);
    return sum;
}
