-- Turing (2018 to 2019): int8 and fp16 tensor cores, no cp.async.
return {
  key = "cuda:sm_75,sms=36,l2=4096,bus=256,smem=64",
  title = "NVIDIA GeForce RTX 2070",
  measured = {},
  published = {
    { "36 SMs, 256-bit GDDR6, 448 GB/s", "NVIDIA specifications of the card" },
    { "m8n8k16 int8 and m16n8k8 fp16 tensor cores; 64 KiB of shared memory a block",
      "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "27B-class on RTX 2070 + RTX 5060 Ti, tensor split, llama.cpp: 25.4 tok/s, 41.5 with drafts", "sudoingX/qwen38-mtp table, its owner" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 4096 KiB is the chip's by specification sites",
  },
}
