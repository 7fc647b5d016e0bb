-- Ada (2022 to 2023): m16n8k32 int8 tensor cores, a large L2: a matrix of a small model may stay in it.
return {
  key = "cuda:sm_89,sms=46,l2=36864,bus=192,smem=99",
  title = "NVIDIA GeForce RTX 4070",
  measured = {},
  published = {
    { "46 SMs, 192-bit, 504 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 36864 KiB by specification sites",
  },
}
