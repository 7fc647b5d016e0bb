-- Turing TU106 with all 36 SMs, for mining (2021).
return {
  key = "cuda:sm_75,sms=36,l2=4096,bus=256,smem=64",
  title = "NVIDIA CMP 40HX (mining)",
  measured = {},
  published = {
    { "2304 lanes (36 SMs), 8 GB GDDR6, 256-bit, 448 GB/s", "techpowerup.com/gpu-specs/cmp-40hx.c3781" },
    { "of the CMP cards, 30HX and 40HX are reported to have kept fp16 and fp32", "dartraiden/NVIDIA-patcher#146, hearsay" },
    { "m8n8k16 int8 and m16n8k8 fp16 tensor cores; 64 KiB of shared memory a block",
      "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "whether any unit is throttled",
  },
}
