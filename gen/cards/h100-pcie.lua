-- Hopper GH100 with 114 SMs at 350 W (2022).
return {
  key = "cuda:sm_90,sms=114,l2=51200,bus=5120,smem=227",
  title = "NVIDIA H100 PCIe 80 GB",
  measured = {},
  published = {
    { "114 SMs, 5120-bit HBM2e, 2000 GB/s, 50 MiB L2", "NVIDIA H100 datasheet" },
    { "227 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "nearest relative with records: an H200 of this folder, from which winners are borrowed",
  },
}
