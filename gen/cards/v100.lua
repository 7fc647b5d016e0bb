-- Volta GV100 (2017), all variants of 16 and 32 GB. Fp16 tensor cores; no int8 ones, no bf16.
return {
  key = "cuda:sm_70,sms=80,l2=6144,bus=4096,smem=96",
  title = "NVIDIA Tesla V100",
  measured = {},
  published = {
    { "80 SMs, 4096-bit HBM2, 900 GB/s, 6 MiB L2, FP32 15.7 TFLOP/s, FP16 tensor 125 TFLOP/s (NVLink; PCIe 14 and 112)",
      "NVIDIA Tesla V100 whitepaper and datasheet" },
    { "96 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "compilers: CUDA 12.9 is the last that makes sm_70; drivers up to branch 580", "NVIDIA CUDA release notes" },
    { "half2 arithmetic: 128 results a clock and SM, fp32 64; tensor cores in the m8n8k4 form, fp16 only: int8 is dp4a's",
      "CUDA C++ Programming Guide, throughput of arithmetic instructions" },
    { "instruction latencies and encodings, dissected", "arXiv:1804.06826" },
    { "27B-class Q4_K_M on one card of 32 GB with llama.cpp: 33.3 tok/s, 48.0 with drafts", "sudoingX/qwen38-mtp table, its owner" },
    { "27B-class Q8_0 on three cards of 16 GB, layer split, with drafts: 46 tok/s", "pico.scorpiox.net journal 2026-05-25, its owner" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "dp4a: 80 SMs x 64 lanes x 8 operations x 1.53 GHz are 63 TOPS, arithmetic; whether fp32 scaling shares its pipe is open",
  },
}
