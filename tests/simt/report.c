/* Wording a failure: which kernel, block and thread, which line of its text, which shared variable. */
#define _GNU_SOURCE
#include "impl.h"
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void report_block(char *out, size_t cap, const char *before, const u32 block[3])
{
    if (m.grid[1] == 1 && m.grid[2] == 1) snprintf(out, cap, "%s%u", before, block[0]);
    else snprintf(out, cap, "%s(%u, %u, %u)", before, block[0], block[1], block[2]);
}

static void fail(const char *where, const char *text)
{
    char block[60];
    if (m.failed) return;
    m.failed = 1;
    report_block(block, sizeof block, "block ", m.block);
    q_fail(&m.error, Q_EINTERNAL, "%s%s, %s%s%s", m.phase == m.call->launch->phase ? "" : "a later phase, ", block, text, where[0] ? "; at " : "", where);
}

void host_fail(const char *format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail("", text);
}

_Noreturn void thread_fail(const void *pc, const char *format, ...)
{
    char text[700], where[200] = "";
    va_list args;
    int n = snprintf(text, sizeof text, "thread %d: ", m.now->id);
    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    if (pc) report_where(where, sizeof where, pc);
    fail(where, text);
    for (;;) thread_yield();
}

/* --- lines ------------------------------------------------------------------------------------------------------------------- */

static void quote_line(char *out, size_t cap, int line)
{
    const char *p = m.call->source;
    for (int i = 1; p && i < line; i++) p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
    if (!p) {
        snprintf(out, cap, "line %d", line);
        return;
    }
    p += strspn(p, " ");
    snprintf(out, cap, "line %d '%.*s'", line, (int)(strcspn(p, "\n") < 100 ? strcspn(p, "\n") : 100), p);
}

/* addr2line names the chain of inlined calls, innermost first: the first line of the kernel's own text is the one. */
void report_where(char *out, size_t cap, const void *pc)
{
    char command[4400], line[600];
    Dl_info info;
    int number = 0;
    snprintf(out, cap, "an unknown line");
    if (!pc || !dladdr(pc, &info)) return;
    snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%tx 2>/dev/null", m.call->object, (const char *)pc - 1 - (const char *)info.dli_fbase);
    FILE *f = popen(command, "r");
    if (!f) return;
    while (fgets(line, sizeof line, f))
        if (!number && strstr(line, "kernel.cu:")) number = atoi(strstr(line, "kernel.cu:") + 10);
    pclose(f);
    if (number) quote_line(out, cap, number);
}

/* --- shared variables ---------------------------------------------------------------------------------------------------------- */

/* A local static's symbol is _ZZ..E4name: what follows the last E and its digits, up to a discriminator. */
static void variable_name(char *out, size_t cap, const char *symbol)
{
    const char *at = symbol, *e = strrchr(symbol, 'E');
    if (!strncmp(symbol, "_ZZ", 3) && e) {
        long n = strtol(e + 1, (char **)&at, 10);
        snprintf(out, cap, "%.*s", (int)n, at);
    } else snprintf(out, cap, "%s", symbol);
}

static int name_in(char *out, size_t cap, const char *elf, size_t address)
{
    const ElfW(Ehdr) *h = (const void *)elf;
    const ElfW(Shdr) *section = (const void *)(elf + h->e_shoff);
    for (int i = 0; i < h->e_shnum; i++) {
        if (section[i].sh_type != SHT_SYMTAB) continue;
        const ElfW(Sym) *s = (const void *)(elf + section[i].sh_offset);
        const char *names = elf + section[section[i].sh_link].sh_offset;
        for (size_t j = 0; j < section[i].sh_size / sizeof *s; j++) {
            if ((s[j].st_info & 15) != STT_OBJECT || address < s[j].st_value || address >= s[j].st_value + s[j].st_size) continue;
            char name[80];
            variable_name(name, sizeof name, names + s[j].st_name);
            snprintf(out, cap, "shared %s, byte %zu of %zu", name, address - s[j].st_value, (size_t)s[j].st_size);
            return 1;
        }
    }
    return 0;
}

void report_shared(char *out, size_t cap, const void *p)
{
    Dl_info info;
    struct stat st;
    const unsigned char *at = p;
    if (m.dynamic_bytes && at >= m.dynamic && at < m.dynamic + m.dynamic_bytes) {
        snprintf(out, cap, "dynamic shared memory, byte %td of %zu", at - m.dynamic, m.dynamic_bytes);
        return;
    }
    snprintf(out, cap, "shared memory, byte %td of %zu", at - m.shared, m.shared_bytes);
    int fd = open(m.call->object, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) || !dladdr(p, &info)) return;
    void *elf = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (elf == MAP_FAILED) return;
    name_in(out, cap, elf, (size_t)(at - (const unsigned char *)info.dli_fbase));
    munmap(elf, (size_t)st.st_size);
}
