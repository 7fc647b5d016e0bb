-- Hopper GH100 (2022): programmatic dependent launch. The same SMs as an H200, less memory.
return {
  key = "cuda:sm_90,sms=132,l2=51200,bus=5120,smem=227",
  title = "NVIDIA H100 SXM 80 GB",
  measured = {},
  published = {
    { "132 SMs, 5120-bit HBM3, 3350 GB/s, 50 MiB L2, FP32 67, INT8 tensor 1979 T", "NVIDIA H100 datasheet" },
    { "227 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "nearest relative with records: an H200 of this folder, from which winners are borrowed",
  },
}
