-- Turing TU102 with 56 SMs, for mining (2021). Other units are slow than on a CMP 100-210: dp4a and fused multiply-add.
-- A kernel set that goes by dp4a is wrong here; the ceilings of dp4a, hfma2, ffma and mma that a tune measures first tell.
return {
  key = "cuda:sm_75,sms=56,l2=5120,bus=320,smem=64",
  title = "NVIDIA CMP 50HX (mining)",
  measured = {},
  published = {
    { "3584 lanes (56 SMs), 10 GB GDDR6 at 14 Gbit/s, 5 MiB L2", "cputronic.com/en/gpu/nvidia-cmp-50hx (a specification site)" },
    { "llama.cpp, gemma-4-E2B Q4_K_M, decode: 72.9 tok/s; without dp4a 107.6; without dp4a and fma 139.0; RTX 2080 Ti 140.3. Q8_0: " ..
      "99.6, 106.1, 110.3, 122.8",
      "ggml-org/llama.cpp#24616, matvienko-vlad, owner" },
    { "27B Q8_0 with drafts on four cards: 15 tok/s, without dp4a 24.5", "ggml-org/llama.cpp#24616, alfrentgen, owner" },
    { "dp4a replaced by two dp2a, which is not throttled", "ggml-org/llama.cpp#24616" },
    { "m8n8k16 int8 and m16n8k8 fp16 tensor cores; 64 KiB of shared memory a block",
      "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "by how much dp4a, ffma and the tensor cores are throttled",
    "half2 arithmetic on this card",
    "bus: 320 bits for 10 GB is an inference",
    "whether hfma2 reaches the card's bandwidth; dp2a is no path of this program",
  },
}
