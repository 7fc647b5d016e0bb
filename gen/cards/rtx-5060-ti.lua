-- Blackwell (2025): kernels use the forms of sm_80 (mma.sync), as on any card from there on.
return {
  key = "cuda:sm_120,sms=36,l2=32768,bus=128,smem=99",
  title = "NVIDIA GeForce RTX 5060 Ti",
  measured = {},
  published = {
    { "36 SMs, 128-bit, 448 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "a laptop's RTX 5060 reports sm_120, 26 SMs, 128 bits and 33554432 bytes of L2", "wingedge777.com, A Deep Dive into DeviceQuery" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 32768 KiB by specification sites",
  },
}
