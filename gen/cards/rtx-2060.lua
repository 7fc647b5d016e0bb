-- Turing (2018 to 2019): int8 and fp16 tensor cores, no cp.async.
return {
  key = "cuda:sm_75,sms=30,l2=3072,bus=192,smem=64",
  title = "NVIDIA GeForce RTX 2060 6 GB",
  measured = {},
  published = {
    { "30 SMs, 192-bit GDDR6, 336 GB/s", "NVIDIA specifications of the card" },
    { "m8n8k16 int8 and m16n8k8 fp16 tensor cores; 64 KiB of shared memory a block",
      "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "27B Q4_K_M on RTX 2060 + MI50, row split, with drafts: 22 to 24 tok/s", "ggml-org/llama.cpp#22673, its owner" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 3072 KiB is the chip's by specification sites",
  },
}
