-- Ampere GA100 with 70 SMs, for mining (2021). All the bandwidth of an A100, and fused multiply-add at 1/32: FADD and FMUL apart, half2
-- and integer units are what it has. Kernels write every fma out (--fmad=false keeps the compiler from more), so fp32 sums are slow here.
return {
  key = "cuda:sm_80,sms=70,l2=8192,bus=4096,smem=163",
  title = "NVIDIA CMP 170HX (mining)",
  measured = {},
  published = {
    { "70 SMs (4480 lanes), 4096-bit HBM2e, 1493 GB/s, 8 GB, PCIe 1.0 x4",
      "pcworld.pl 2021, from the first pictures of a card; 70 SMs also in sudoingX/qwen38-mtp#49, its owner" },
    { "FP32 with fma 0.39 TFLOP/s, without 6.25; FP16 42 TFLOP/s; integer 12.5 TIOP/s; 1500 GB/s",
      "niconiconi.neocities.org/tech-notes/nvidia-cmp-170hx-review, its owner" },
    { "fp16 tensor cores 6.3 TFLOP/s: 256 fixed cycles an instruction, four warps an SM", "zenodo.org/records/18995979" },
    { "llama.cpp built without fma: over 15 times the fp32 rate, up to three times the inference rate of some formats",
      "iluyf.com, Exploration of Cryptocurrency Mining-Specific GPUs" },
    { "fma and dp4a are throttled on 170HX and 90HX", "arabel1a/ml-on-cmp" },
    { "27B-class Q4_K_M, memory unlocked to 64 GB, llama.cpp: 33.0 tok/s, 46.7 with drafts", "sudoingX/qwen38-mtp#49, its owner" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 8192 KiB by specification sites; the unlocked card may report otherwise",
    "dp4a by number",
    "how much a decode step suffers from fp32 sums by fma: they are few beside the bytes, but every kernel has them",
  },
}
