-- Pascal GP100 (2016). No dp4a: int8 products go through half2 arithmetic (hfma2) or fp32.
return {
  key = "cuda:sm_60,sms=56,l2=4096,bus=4096,smem=48",
  title = "NVIDIA Tesla P100 16 GB",
  measured = {},
  published = {
    { "56 SMs, 4096-bit HBM2, 4 MiB L2, FP32 10.6 TFLOP/s and FP16 21.2 TFLOP/s (NVLink; PCIe card 9.3 and 18.7), 732 GB/s",
      "NVIDIA Tesla P100 whitepaper and datasheet" },
    { "half2 arithmetic at twice the rate of fp32: 128 results a clock and SM against 64",
      "CUDA C++ Programming Guide, throughput of arithmetic instructions" },
    { "dp4a begins with compute capability 6.1: this card has none", "NVIDIA PTX ISA, dp4a" },
    { "compilers: CUDA 12.9 is the last that makes sm_60; drivers up to branch 580", "NVIDIA CUDA release notes" },
    { "27B-class Q4_K_M on RTX 3060 + P100 with llama.cpp, tensor split: 19.3 tok/s, 31.0 with drafts", "sudoingX/qwen38-mtp#78, its owner" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "how much of 732 GB/s a matvec reads",
    "the 12 GB card (3072-bit bus, 549 GB/s by its datasheet) has another key",
  },
}
