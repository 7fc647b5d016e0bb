#define _GNU_SOURCE
#include "nvrtc.h"
#include "nvrtc_api.h"
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- one library ------------------------------------------------------------------------------------------------------- */

typedef unsigned (*get_int)(int *);
typedef unsigned (*get_version)(int *, int *);

static void ask_archs(void *lib, struct nvrtc *v)
{
    get_int count, list;
    int n = 0;
    *(void **)&count = dlsym(lib, "nvrtcGetNumSupportedArchs");
    *(void **)&list = dlsym(lib, "nvrtcGetSupportedArchs");
    if (!count || !list || count(&n) || n < 1 || n > NVRTC_ARCHS || list(v->archs)) return;
    v->n_archs = n;
}

/* Opens, asks and closes it again: compiling is a child's work. */
static int ask(const char *name, struct nvrtc *v, struct q_err *e)
{
    get_version version;
    struct link_map *map;
    void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    memset(v, 0, sizeof *v);
    if (!lib) return q_fail(e, Q_EMISS, "%.600s", dlerror());
    *(void **)&version = dlsym(lib, "nvrtcVersion");
    int good = version && !version(&v->major, &v->minor) && !dlinfo(lib, RTLD_DI_LINKMAP, &map) && realpath(map->l_name, v->path);
    if (good) ask_archs(lib, v);
    dlclose(lib);
    return good ? Q_OK : q_fail(e, Q_EMISS, "%.600s: it is no NVRTC", name);
}

/* --- all of them ------------------------------------------------------------------------------------------------------- */

static int known(const struct nvrtc_list *l, const char *path)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->v[i].path, path)) return 1;
    return 0;
}

static int add(struct nvrtc_list *l, const char *name, struct q_err *e)
{
    char real[Q_PATH];
    if (l->n == NVRTC_MOST || (realpath(name, real) && known(l, real))) return Q_OK;
    struct nvrtc *v = &l->v[l->n];
    int rc = ask(name, v, e);
    if (!rc && !known(l, v->path)) l->n++;
    return rc;
}

static void add_pattern(struct nvrtc_list *l, const char *folder, const char *below)
{
    char pattern[Q_PATH + 200];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s%s/libnvrtc.so*", folder, below);
    if (!glob(pattern, 0, NULL, &g))
        for (size_t i = 0; i < g.gl_pathc; i++) add(l, g.gl_pathv[i], NULL);
    globfree(&g);
}

/* pip's wheels: nvidia/cuda_nvrtc up to CUDA 12, nvidia/cu13 and so on from there. */
static void add_python(struct nvrtc_list *l, const char *folder, const char *packages)
{
    char below[100];
    static const char *const wheels[] = { "nvidia/cuda_nvrtc/lib", "nvidia/cu[0-9]*/lib" };
    for (size_t i = 0; i < sizeof wheels / sizeof *wheels; i++) {
        snprintf(below, sizeof below, "/%s/%s", packages, wheels[i]);
        add_pattern(l, folder, below);
    }
}

static void add_system(struct nvrtc_list *l)
{
    static const char *const sonames[] = { "libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so" };
    static const char *const toolkits[] = { "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*-linux/lib", "/usr/local/cuda*/lib", "/opt/cuda*/lib64",
                                            "/usr/lib/cuda*/lib64" };
    for (size_t i = 0; i < sizeof sonames / sizeof *sonames; i++) add(l, sonames[i], NULL);
    for (size_t i = 0; i < sizeof toolkits / sizeof *toolkits; i++) add_pattern(l, toolkits[i], "");
    add_python(l, "/usr/lib", "python3*/*-packages");
    add_python(l, "/usr/local/lib", "python3*/*-packages");
}

/* A folder may be a toolkit's, a wheel's or a virtual environment's. */
static void add_folder(struct nvrtc_list *l, const char *folder)
{
    static const char *const below[] = { "", "/lib64", "/lib", "/targets/*-linux/lib" };
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) add_pattern(l, folder, below[i]);
    add_python(l, folder, "lib/python3*/site-packages");
    add_python(l, folder, ".");
}

static void add_given(struct nvrtc_list *l, const char *given)
{
    struct stat st;
    struct q_err why = { 0 };
    snprintf(l->given, sizeof l->given, "%s", given);
    if (!stat(given, &st) && S_ISDIR(st.st_mode)) {
        add_folder(l, given);
        if (!l->n) q_fail(&why, Q_EMISS, "the folder holds no libnvrtc.so");
    } else add(l, given, &why);
    snprintf(l->refused, sizeof l->refused, "%.299s", why.text);
}

int nvrtc_search(struct nvrtc_list *l, const struct nvrtc_places *places, struct q_err *e)
{
    char local[Q_PATH];
    memset(l, 0, sizeof *l);
    if (!(l->v = calloc(NVRTC_MOST, sizeof *l->v))) return q_fail(e, Q_EMEM, "no memory for a list of compilers");
    if (places->given) {
        add_given(l, places->given);
        return Q_OK;
    }
    add_system(l);
    for (int i = 0; i < NVRTC_PREFIXES; i++)
        if (places->prefix[i]) add_folder(l, places->prefix[i]);
    if (places->home && !path_join(local, NULL, places->home, ".local/lib", NULL)) add_python(l, local, "python3*/site-packages");
    return Q_OK;
}

void nvrtc_list_free(struct nvrtc_list *l)
{
    free(l->v);
    memset(l, 0, sizeof *l);
}

int nvrtc_driver(void)
{
    get_int version;
    int v = 0;
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!lib) return 0;
    *(void **)&version = dlsym(lib, "cuDriverGetVersion");
    if (!version || version(&v)) v = 0;
    dlclose(lib);
    return v;
}
