/* The unit that g++ compiles for a candidate. */
#include "impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel takes its arguments by value; SIMT_NAME takes their address, so that a caller need not know their type. */
char *simt_unit(const char *name, const char *source, const struct q_phases *launch)
{
    size_t cap = strlen(source) + 2048, n;
    char *unit = malloc(cap);
    if (!unit) abort();
    n = (size_t)snprintf(unit, cap, "#line 1 \"kernel.cu\"\n%s\n#line 1 \"simt_unit\"\n", source);
    for (int i = 0; i < launch->n; i++) {
        char kernel[176];
        snprintf(kernel, sizeof kernel, i ? "%.160s_%d" : "%.160s", name, i + 1);
        n += (size_t)snprintf(unit + n, cap - n, "extern \"C\" void SIMT_%s(const void *args) { simt_call(%s, args); }\n", kernel,
                              kernel);
    }
    return unit;
}

/* -O1 keeps the accesses where the text has them. Symbols stay, so that a report can name shared variables. */
void simt_flags(char *out, size_t cap, int cc)
{
    const char *fma = "";
#if defined __x86_64__
    if (__builtin_cpu_supports("fma")) fma = "-mfma";      /* else libm's, with the same bits */
#endif
    snprintf(out, cap,
             "-x c++ -std=gnu++17 -O1 -g1 -fPIC -shared -ffp-contract=off -fno-math-errno -fno-exceptions -fno-rtti "
             "-fno-threadsafe-statics -fno-strict-aliasing "
             "-fsanitize=thread,alignment,bounds --param tsan-instrument-func-entry-exit=0 -nostdlib -Wall -Werror "
             "-Wno-unknown-pragmas "
             "-Wno-unused-function -Wno-unused-variable -Wno-unused-but-set-variable -Wno-sign-compare -D__CUDA_ARCH__=%d0 %s",
             cc, fma);
}
