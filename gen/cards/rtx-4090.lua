-- Ada (2022 to 2023): m16n8k32 int8 tensor cores, a large L2: a matrix of a small model may stay in it.
return {
  key = "cuda:sm_89,sms=128,l2=73728,bus=384,smem=99",
  title = "NVIDIA GeForce RTX 4090",
  measured = {},
  published = {
    { "128 SMs, 384-bit, 1008 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "caches and their latencies", "chipsandcheese.com 2022-11-02, Microbenchmarking Nvidia's RTX 4090" },
    { "27B Q4_K_M with q4_0 KV, llama.cpp: prefill 1400 to 2500 tok/s, decode 39.3 at 2K, 33.4 at 128K", "tianchengwu.com 2026-04-05" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 73728 KiB by specification sites",
  },
}
