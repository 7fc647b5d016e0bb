-- Pascal GP104 with 15 of 20 SMs, for mining (2017). Sold with 4 GB; by hearsay 8 GB with another firmware.
return {
  key = "cuda:sm_61,sms=15,l2=2048,bus=256,smem=48",
  title = "NVIDIA P104-100 (mining)",
  measured = {},
  published = {
    { "15 SMs (1920 lanes), 256-bit GDDR5X, 320 GB/s, 2 MiB L2, FP32 6.7 TFLOP/s",
      "sysrqmts.com, P104-100 against P106-100 (a specification site)" },
    { "fp16: 2 results a clock and SM, fp32 128", "CUDA C++ Programming Guide, throughput of arithmetic instructions" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "whether dp4a has its full rate: nobody was found to report it throttled, and nobody to have measured it",
    "the link: PCIe 1.0 x4 by hearsay",
  },
}
