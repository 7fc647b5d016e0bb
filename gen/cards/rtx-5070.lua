-- Blackwell (2025): kernels use the forms of sm_80 (mma.sync), as on any card from there on.
return {
  key = "cuda:sm_120,sms=48,l2=49152,bus=192,smem=99",
  title = "NVIDIA GeForce RTX 5070",
  measured = {},
  published = {
    { "48 SMs, 192-bit, 672 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 49152 KiB by specification sites",
  },
}
