-- Volta GV100 with three of four memory stacks (2017).
return {
  key = "cuda:sm_70,sms=80,l2=4608,bus=3072,smem=96",
  title = "NVIDIA Titan V",
  measured = {},
  published = {
    { "80 SMs, 3072-bit HBM2, 653 GB/s, 4.5 MiB L2, 12 GB", "NVIDIA Titan V specifications" },
    { "96 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "compilers: CUDA 12.9 is the last that makes sm_70; drivers up to branch 580", "NVIDIA CUDA release notes" },
    { "half2 arithmetic: 128 results a clock and SM, fp32 64; tensor cores in the m8n8k4 form, fp16 only: int8 is dp4a's",
      "CUDA C++ Programming Guide, throughput of arithmetic instructions" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "everything else: records of a V100 are borrowed, which has the same SMs and more bandwidth",
  },
}
