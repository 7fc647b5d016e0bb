-- Ampere (2020 to 2022): cp.async, m16n8k32 int8 tensor cores.
return {
  key = "cuda:sm_86,sms=28,l2=3072,bus=192,smem=99",
  title = "NVIDIA GeForce RTX 3060 12 GB",
  measured = {},
  published = {
    { "28 SMs, 192-bit, 360 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "L2 3 MiB", "cholla.mmto.org/nvidia/my3060.html and sysrqmts.com" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 3072 KiB by specification sites",
  },
}
