-- Hopper GH100 with HBM3e (2023): the one card that this program was measured on. tuned/ holds its records.
return {
  key = "cuda:sm_90,sms=132,l2=61440,bus=6016,smem=227",
  title = "NVIDIA H200",
  measured = {
    "the key, as the driver reports it (a bus of 6016 bits, not 6144)",
    "dp4a 133 TOPS, hfma2 130 TFLOP/s, ffma 65 TFLOP/s, int8 tensor cores (m16n8k32) 1273 TOPS, fp16 tensor cores 642 TFLOP/s",
    "read 4.63 to 4.66 TB/s; copies from and to pinned memory 55 GB/s each way; SM clock 1980 MHz under load",
    "with a scale in fp32 for every 32 weights: dp4a 113 TOPS, int8 tensor cores 838 TOPS are the roofs in practice",
    "winners for the 9B shape, effort normal, and their share of the roof: tuned/cuda_sm_90_sms_132_l2_61440_bus_6016_smem_227.jsonl",
  },
  published = {
    { "4.8 TB/s, 6144-bit HBM3e, 141 GB, INT8 tensor 1979 T", "NVIDIA H200 datasheet" },
  },
  unknown = {
    "other shapes than those whose records tuned/ ships",
  },
}
