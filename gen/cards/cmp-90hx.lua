-- Ampere GA102 with 50 SMs, for mining (2021). Fused multiply-add and dp4a are throttled.
return {
  key = "cuda:sm_86,sms=50,l2=5120,bus=320,smem=99",
  title = "NVIDIA CMP 90HX (mining)",
  measured = {},
  published = {
    { "6400 lanes (50 SMs), 10 GB GDDR6X at 19 Gbit/s, 320-bit", "skywindintl.com, a seller's page" },
    { "fma and dp4a are throttled on 170HX and 90HX", "arabel1a/ml-on-cmp" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "by how much",
    "L2: 5120 KiB is GA102's share for 320 of 384 bits, an inference",
  },
}
