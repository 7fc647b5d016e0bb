-- Ampere GA100 (2020). The cards of 40 and 80 GB have one key: only their memory clocks differ.
return {
  key = "cuda:sm_80,sms=108,l2=40960,bus=5120,smem=163",
  title = "NVIDIA A100",
  measured = {},
  published = {
    { "108 SMs, 5120-bit, 41943040 bytes of L2, as a driver reports them (40 GB, NVLink)",
      "PC2 Paderborn wiki, NVIDIA A100 40GB with NVLINK: deviceQuery" },
    { "1555 GB/s (40 GB), 1935 (80 GB PCIe), 2039 (80 GB NVLink); FP32 19.5, FP16 78, INT8 tensor 624 T", "NVIDIA A100 datasheet" },
    { "163 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
  },
  unknown = {
    "rates of this program's kernels, and which instruction path wins for which op",
    "the key of the 80 GB cards as a driver reports it",
    "dp4a beside int8 tensor cores",
  },
}
