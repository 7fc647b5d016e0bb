/* What the driver's results mean, and what to do about them. */
#include "cuda_api.h"

/* Names are kept here for those codes that an old driver may not know. */
static const struct code {
    cu_result code;
    const char *name;
    enum q_code error;
    const char *advice;
} codes[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", Q_EINTERNAL, ""},
    {CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", Q_ELIMIT,
     "the card's memory is full; a smaller -c, or end what else uses the card (nvidia-smi lists it)"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", Q_EIO, "the driver is shutting down, or this process was forked from one that used it"},
    {34, "CUDA_ERROR_STUB_LIBRARY", Q_EIO,
     "the libcuda.so.1 found is the toolkit's stub; take its folder out of LD_LIBRARY_PATH"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", Q_EUNSUP, "install a newer driver"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", Q_EIO,
     "another process has the card to itself (compute mode exclusive); end it, or nvidia-smi -c 0"},
    {CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", Q_EMISS,
     "the driver shows no card; look at nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, whether the card was passed in"},
    {101, "CUDA_ERROR_INVALID_DEVICE", Q_EINPUT, "there is no card of that number; `quarry doctor` lists them"},
    {200, "CUDA_ERROR_INVALID_IMAGE", Q_EUNSUP,
     "the kernel's object is newer than the driver, or damaged"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", Q_EUNSUP,
     "the kernel's object was built for another compute capability"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", Q_EIO,
     "the card's memory has an error that ECC could not mend; reset the card or restart, and look at nvidia-smi -q -d ECC"},
    {218, "CUDA_ERROR_INVALID_PTX", Q_EUNSUP, "the driver's compiler refuses the PTX"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", Q_EMISS, "the driver's PTX compiler is not installed (libnvidia-ptxjitcompiler)"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", Q_EUNSUP, "the PTX is newer than the driver; a newer driver, or an older NVRTC"},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", Q_EIO,
     "parts of the driver are of different versions; install it again, or restart after an update"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", Q_EIO,
     "the system refused the driver: are the files /dev/nvidia* there, and may this user open them?"},
    {500, "CUDA_ERROR_NOT_FOUND", Q_EMISS, ""},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", Q_EINTERNAL, "a kernel touched memory that is not its own"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", Q_EUNSUP, "a kernel asks for more registers or shared memory than the card has"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", Q_EIO,
     "a kernel ran past the display's time limit; use a card without a screen, or smaller steps"},
    {710, "CUDA_ERROR_ASSERT", Q_EINTERNAL, "a kernel's assertion failed"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", Q_EINTERNAL, "a kernel broke its stack"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", Q_EINTERNAL, "a kernel met an instruction that the card does not have"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", Q_EINTERNAL, "a kernel used an address that is not aligned"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", Q_EINTERNAL, "a kernel used an address of another memory"},
    {718, "CUDA_ERROR_INVALID_PC", Q_EINTERNAL, "a kernel jumped out of its code"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", Q_EINTERNAL, "a kernel faulted, or the card fell off the bus (dmesg: Xid)"},
    {800, "CUDA_ERROR_NOT_PERMITTED", Q_EIO, ""},
    {801, "CUDA_ERROR_NOT_SUPPORTED", Q_EUNSUP, ""},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", Q_EIO,
     "the NVSwitch fabric is not up; is nvidia-fabricmanager running, of the driver's version?"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", Q_EIO,
     "the driver's library and its kernel module differ; restart after a driver update"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", Q_EUNSUP,
     "a CUDA compatibility package is in use that this card may not use; take it out of LD_LIBRARY_PATH"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", Q_EIO, "the MPS server does not answer; restart nvidia-cuda-mps-control"},
    {999, "CUDA_ERROR_UNKNOWN", Q_EIO,
     "often the driver's modules are not loaded whole (modprobe nvidia_uvm), or the card fell off the bus (dmesg: Xid)"},
};

static const struct code *find_code(cu_result result)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == result) return &codes[i];
    return NULL;
}

/* Never NULL. */
static const char *code_name(const struct cuda_api *cu, cu_result result)
{
    const char *name = NULL;
    const struct code *c = find_code(result);
    if (c) return c->name;
    if (!cu->cuGetErrorName || cu->cuGetErrorName(result, &name) || !name) return "an unknown error";
    return name;
}

int cuda_check(const struct cuda_api *cu, cu_result result, const char *call, struct q_err *e)
{
    if (result == CU_OK) return Q_OK;
    const struct code *c = find_code(result);
    const char *advice = c ? c->advice : "";
    return q_fail(e, c ? (int)c->error : Q_EIO, "%s: %s (%u)%s%s", call, code_name(cu, result), result, *advice ? ": " : "", advice);
}

int cuda_is_sticky(cu_result result)
{
    return result == 214 || (result >= 700 && result != 701 && result < 720);
}
