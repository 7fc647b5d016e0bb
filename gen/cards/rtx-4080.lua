-- Ada (2022 to 2023): m16n8k32 int8 tensor cores, a large L2: a matrix of a small model may stay in it.
return {
  key = "cuda:sm_89,sms=76,l2=65536,bus=256,smem=99",
  title = "NVIDIA GeForce RTX 4080",
  measured = {},
  published = {
    { "76 SMs, 256-bit, 717 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 65536 KiB by specification sites",
  },
}
