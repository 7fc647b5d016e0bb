-- Pascal GP102 (2016): dp4a at full rate, half2 arithmetic at 1/64 of fp32's, so nothing may go through hfma2.
return {
  key = "cuda:sm_61,sms=30,l2=3072,bus=384,smem=48",
  title = "NVIDIA Tesla P40",
  measured = {},
  published = {
    { "30 SMs, 384-bit GDDR5, 346 GB/s, FP32 12 TFLOP/s, INT8 47 TOPS, 24 GB", "NVIDIA Tesla P40 datasheet" },
    { "3 MiB L2, FP16 1:64", "sysrqmts.com/gpus/nvidia/tesla/p40 (a specification site)" },
    { "fp16: 2 results a clock and SM, fp32 128", "CUDA C++ Programming Guide, throughput of arithmetic instructions" },
    { "compilers: CUDA 12.9 is the last that makes sm_61; drivers up to branch 580", "NVIDIA CUDA release notes" },
    { "27B-class UD-Q4_K_XL on two cards with llama.cpp: prefill 354 tok/s, decode 13.2, 23.4 with drafts",
      "sudoingX/qwen38-mtp#34, its owner" },
    { "8B Q5_0 with llama.cpp, prefill in batches of 512: 818 to 831 tok/s", "ggml-org/llama.cpp#7716" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "how near dp4a comes to 47 TOPS when every block of 32 is scaled in fp32",
  },
}
