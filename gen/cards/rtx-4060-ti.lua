-- Ada (2022 to 2023): m16n8k32 int8 tensor cores, a large L2: a matrix of a small model may stay in it.
return {
  key = "cuda:sm_89,sms=34,l2=32768,bus=128,smem=99",
  title = "NVIDIA GeForce RTX 4060 Ti",
  measured = {},
  published = {
    { "34 SMs, 128-bit, 288 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 32768 KiB by specification sites",
  },
}
