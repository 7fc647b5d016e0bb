-- Volta GV100 with display outputs (2018). Its key is a V100's, so the two share records.
return {
  key = "cuda:sm_70,sms=80,l2=6144,bus=4096,smem=96",
  title = "NVIDIA Quadro GV100",
  measured = {},
  published = {
    { "80 SMs, 4096-bit HBM2, 870 GB/s, 32 GB", "NVIDIA Quadro GV100 datasheet" },
    { "96 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "compilers: CUDA 12.9 is the last that makes sm_70; drivers up to branch 580", "NVIDIA CUDA release notes" },
    { "half2 arithmetic: 128 results a clock and SM, fp32 64; tensor cores in the m8n8k4 form, fp16 only: int8 is dp4a's",
      "CUDA C++ Programming Guide, throughput of arithmetic instructions" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
  },
}
