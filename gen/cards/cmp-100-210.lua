-- Volta GV100 with 68 SMs, for mining. Its tensor cores answer after 512 cycles instead of 8, fused: dp4a and hfma2 are what it has.
-- The key does not say so. The tuner measures it, and borrows no tensor core winner for a card whose units were not measured.
return {
  key = "cuda:sm_70,sms=68,l2=6144,bus=4096,smem=96",
  title = "NVIDIA CMP 100-210 (mining)",
  measured = {},
  published = {
    { "68 SMs at 1380 MHz, 16 GB HBM2, 759 GB/s read; fp16 tensor cores 5.7 to 6.4 TFLOP/s, latency 8 -> 512 cycles",
      "Haru-neo/qengine#2, its owner" },
    { "not throttled: FP32 9.9 TFLOP/s, half2 19.7 to 24.5 TFLOP/s, dp4a at full speed (about 17 T of his own kernel); FP64 0.38",
      "Haru-neo/qengine README and #2, its owner" },
    { "link PCIe 1.0 x1 (250 MB/s nominal), no P2P, no NVLink; CUPTI is blocked, only events measure time",
      "Haru-neo/qengine README, its owner" },
    { "70B Q4_K_M over four cards: about 5 minutes to load with mmap off", "ggml-org/llama.cpp#5402, its owner" },
    { "9B Q8_0 on one card, another engine: prefill 683 tok/s at 1.2K, decode 70.4 tok/s short, 27.6 at 18K; llama.cpp 316 and 46.6",
      "Haru-neo/qengine README, its owner" },
    { "compilers: CUDA 12.9 is the last that makes sm_70; drivers up to branch 580", "NVIDIA CUDA release notes" },
    { "half2 arithmetic: 128 results a clock and SM, fp32 64; tensor cores in the m8n8k4 form, fp16 only: int8 is dp4a's",
      "CUDA C++ Programming Guide, throughput of arithmetic instructions" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "SM count and L2: a specification site lists 80 SMs, the owner's driver 68; 6144 KiB and 4096 bits are the whole GV100's",
    "dp4a: 68 SMs x 64 lanes x 8 operations x 1.38 GHz are 48 TOPS, arithmetic",
    "all of this: an H200 taken without its tensor cores (a key that ends in ,without=mma) is the stand-in here",
  },
}
