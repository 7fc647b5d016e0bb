-- Ampere (2020 to 2022): cp.async, m16n8k32 int8 tensor cores.
return {
  key = "cuda:sm_86,sms=68,l2=5120,bus=320,smem=99",
  title = "NVIDIA GeForce RTX 3080 10 GB",
  measured = {},
  published = {
    { "68 SMs, 320-bit, 760 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 5120 KiB by specification sites",
  },
}
