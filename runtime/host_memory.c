#include "host_memory.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static size_t of_system(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f) return SIZE_MAX;
    while (fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
        ;
    fclose(f);
    return kib ? (size_t)kib * 1024 : SIZE_MAX;
}

/* "max", or a number of bytes. */
static size_t group_number(const char *path)
{
    unsigned long long n = 0;
    FILE *f = fopen(path, "r");
    if (!f) return SIZE_MAX;
    int got = fscanf(f, "%llu", &n);
    fclose(f);
    return got == 1 ? (size_t)n : SIZE_MAX;
}

/* Inside a container its own group is the root of what it sees. */
static size_t of_group(void)
{
    size_t most = group_number("/sys/fs/cgroup/memory.max"), used = group_number("/sys/fs/cgroup/memory.current");
    if (most == SIZE_MAX || used == SIZE_MAX) return SIZE_MAX;
    return most > used ? most - used : 0;
}

size_t host_memory_available(void)
{
    size_t system = of_system(), group = of_group();
    return system < group ? system : group;
}
