-- Turing (2018 to 2019): int8 and fp16 tensor cores, no cp.async.
return {
  key = "cuda:sm_75,sms=68,l2=5632,bus=352,smem=64",
  title = "NVIDIA GeForce RTX 2080 Ti",
  measured = {},
  published = {
    { "68 SMs, 352-bit GDDR6, 616 GB/s", "NVIDIA specifications of the card" },
    { "m8n8k16 int8 and m16n8k8 fp16 tensor cores; 64 KiB of shared memory a block",
      "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "27B 4-bit on two cards of 22 GB with NVLink, tensor parallel, with drafts, a vLLM fork: prefill 1748 tok/s, decode 101",
      "weicj/vLLM-2080Ti-Definitive README, its owner" },
    { "gemma-4-E2B Q8_0, llama.cpp: decode 122.8 tok/s", "ggml-org/llama.cpp#24616, matvienko-vlad, owner" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 5632 KiB is the chip's by specification sites",
  },
}
