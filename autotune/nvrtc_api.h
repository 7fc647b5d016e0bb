/* NVRTC as this program calls it: own prototypes, since it is opened at run time and no toolkit is needed to build. Where the toolkit's
 * nvrtc.h is installed, tests/unit/test_nvrtc.c compiles both together. */
#ifndef Q_NVRTC_API_H
#define Q_NVRTC_API_H

#include <stddef.h>

struct _nvrtcProgram;
enum { NVRTC_OK = 0, NVRTC_UNKNOWN_OPTION = 5, NVRTC_DOES_NOT_COMPILE = 6 };

/* NAME(result, arguments): an enum of the library is an unsigned int. */
#define NVRTC_FUNCTIONS(F)                                                                                                        \
    F(nvrtcVersion, unsigned, (int *major, int *minor))                                                                           \
    F(nvrtcGetNumSupportedArchs, unsigned, (int *n))                                                                              \
    F(nvrtcGetSupportedArchs, unsigned, (int *archs))                                                                             \
    F(nvrtcCreateProgram, unsigned, (struct _nvrtcProgram **p, const char *text, const char *name, int n_headers,                 \
                                     const char *const *headers, const char *const *names))                                       \
    F(nvrtcDestroyProgram, unsigned, (struct _nvrtcProgram **p))                                                                  \
    F(nvrtcCompileProgram, unsigned, (struct _nvrtcProgram *p, int n_options, const char *const *options))                        \
    F(nvrtcGetProgramLogSize, unsigned, (struct _nvrtcProgram *p, size_t *n))                                                     \
    F(nvrtcGetProgramLog, unsigned, (struct _nvrtcProgram *p, char *log))                                                         \
    F(nvrtcGetCUBINSize, unsigned, (struct _nvrtcProgram *p, size_t *n))                                                          \
    F(nvrtcGetCUBIN, unsigned, (struct _nvrtcProgram *p, char *cubin))                                                            \
    F(nvrtcGetPTXSize, unsigned, (struct _nvrtcProgram *p, size_t *n))                                                            \
    F(nvrtcGetPTX, unsigned, (struct _nvrtcProgram *p, char *ptx))                                                                \
    F(nvrtcGetErrorString, const char *, (unsigned result))

#endif
