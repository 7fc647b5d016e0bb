-- Blackwell (2025): kernels use the forms of sm_80 (mma.sync), as on any card from there on.
return {
  key = "cuda:sm_120,sms=170,l2=98304,bus=512,smem=99",
  title = "NVIDIA GeForce RTX 5090",
  measured = {},
  published = {
    { "170 SMs, 512-bit, 1792 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "170 SMs, 512 bits, 96 MiB of L2", "Linux Format, May 2025" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 98304 KiB by specification sites",
  },
}
