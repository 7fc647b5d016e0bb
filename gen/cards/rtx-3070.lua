-- Ampere (2020 to 2022): cp.async, m16n8k32 int8 tensor cores.
return {
  key = "cuda:sm_86,sms=46,l2=4096,bus=256,smem=99",
  title = "NVIDIA GeForce RTX 3070",
  measured = {},
  published = {
    { "46 SMs, 256-bit, 448 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 4096 KiB by specification sites",
  },
}
