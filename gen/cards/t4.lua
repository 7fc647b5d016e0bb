-- Turing TU104 at 70 W (2018): under load its clock falls far below 1590 MHz, so a quick kernel may time worse when hot.
return {
  key = "cuda:sm_75,sms=40,l2=4096,bus=256,smem=64",
  title = "NVIDIA T4",
  measured = {},
  published = {
    { "40 SMs, 256-bit, 4194304 bytes of L2, up to 1590 MHz, as a driver reports them",
      "chiemon.github.io 2024-12-25, deviceQuery of its owner" },
    { "320 GB/s, FP32 8.1 TFLOP/s, FP16 tensor 65 TFLOP/s, INT8 tensor 130 TOPS, 70 W", "NVIDIA T4 datasheet" },
    { "m8n8k16 int8 and m16n8k8 fp16 tensor cores; 64 KiB of shared memory a block",
      "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "caches, latencies, throughputs, and how clocks fall at the power limit", "arXiv:1903.07486" },
  },
  unknown = {
    "rates of this program's kernels, and which instruction path wins for which op",
    "rates of a 9B or 27B model: none was found published",
    "how steady times are at 70 W",
  },
}
