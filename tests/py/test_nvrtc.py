"""An NVRTC that does not say where its other half lies, as pip's wheel of 13.0: a library of the same manners stands in for it."""
import subprocess

from programs import BUILD, environment

LIBRARY = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
static const char *log_text = "";
unsigned nvrtcVersion(int *major, int *minor) { return *major = 99, *minor = 7, 0; }
unsigned nvrtcGetNumSupportedArchs(int *n) { return *n = 1, 0; }
unsigned nvrtcGetSupportedArchs(int *archs) { return *archs = 90, 0; }
unsigned nvrtcCreateProgram(void **p, const char *text, const char *name, int n, const char *const *h, const char *const *names) { return *p = malloc(1), 0; }
unsigned nvrtcDestroyProgram(void **p) { return free(*p), 0; }
unsigned nvrtcCompileProgram(void *p, int n, const char *const *options)
{
    if (dlopen("libnvrtc-builtins.so.99.7", RTLD_NOW)) return 0;
    log_text = "error: failed to open libnvrtc-builtins.so.99.7.";
    return 6;
}
unsigned nvrtcGetProgramLogSize(void *p, size_t *n) { return *n = strlen(log_text) + 1, 0; }
unsigned nvrtcGetProgramLog(void *p, char *log) { return strcpy(log, log_text), 0; }
unsigned nvrtcGetCUBINSize(void *p, size_t *n) { return *n = 5, 0; }
unsigned nvrtcGetCUBIN(void *p, char *cubin) { return memcpy(cubin, "cubin", 5), 0; }
unsigned nvrtcGetPTXSize(void *p, size_t *n) { return *n = 3, 0; }
unsigned nvrtcGetPTX(void *p, char *ptx) { return memcpy(ptx, "ptx", 3), 0; }
const char *nvrtcGetErrorString(unsigned result) { return "NVRTC_ERROR_COMPILATION"; }
"""


def shared(folder, name, text):
    source = folder / "source.c"
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{name}", "-o", folder / name, source], check=True)
    return folder / name


def compile_with(library, folder):
    (folder / "k.cu").write_text("")
    command = [BUILD / "quarry-tune", "--compile", library, folder / "k.cu", folder / "k.cubin", "--gpu-architecture=sm_90"]
    return subprocess.run(command, env=environment(HOME=str(folder)), capture_output=True, text=True, timeout=60)


def test_the_half_beside_it_is_found(tmp_path):
    library = shared(tmp_path, "libnvrtc.so.99", LIBRARY)
    alone = compile_with(library, tmp_path)
    assert alone.returncode == 1 and "failed to open libnvrtc-builtins.so.99.7" in alone.stdout
    shared(tmp_path, "libnvrtc-builtins.so.99.7", "int builtins;")
    whole = compile_with(library, tmp_path)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    assert (tmp_path / "k.cubin").read_bytes() == b"cubin"
