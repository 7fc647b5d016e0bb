-- Pascal GP102 with 25 of 30 SMs, for mining (2018). Sold with 5 GB; by hearsay 10 GB with another firmware.
return {
  key = "cuda:sm_61,sms=25,l2=2560,bus=320,smem=48",
  title = "NVIDIA P102-100 (mining)",
  measured = {},
  published = {
    { "25 SMs (3200 lanes), 320-bit GDDR5X, 400 to 440 GB/s, PCIe 1.0 x4, FP16 1:64", "llmperf.net, Nvidia P102-100 (a specification site)" },
    { "fp16: 2 results a clock and SM, fp32 128", "CUDA C++ Programming Guide, throughput of arithmetic instructions" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 2560 KiB is GP102's share for 320 of 384 bits, an inference",
    "whether dp4a has its full rate (40 TOPS by that site, arithmetic from its clock)",
  },
}
