-- Blackwell (2025): kernels use the forms of sm_80 (mma.sync), as on any card from there on.
return {
  key = "cuda:sm_120,sms=84,l2=65536,bus=256,smem=99",
  title = "NVIDIA GeForce RTX 5080",
  measured = {},
  published = {
    { "84 SMs, 256-bit, 960 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 65536 KiB by specification sites",
  },
}
