-- Ampere (2020 to 2022): cp.async, m16n8k32 int8 tensor cores.
return {
  key = "cuda:sm_86,sms=82,l2=6144,bus=384,smem=99",
  title = "NVIDIA GeForce RTX 3090",
  measured = {},
  published = {
    { "82 SMs, 384-bit, 936 GB/s", "NVIDIA specifications of the card" },
    { "99 KiB of shared memory a block", "CUDA C++ Programming Guide, technical specifications per compute capability" },
    { "512 KiB of L2 for each 32-bit memory controller of GA102", "NVIDIA Ampere GA102 whitepaper" },
    { "9B Q5_K_M, koboldcpp: prefill 2992 to 3173 tok/s, decode 52 to 67; 27B Q4_K_M, llama.cpp: 41, 63 with drafts",
      "LostRuins/koboldcpp#2014; sudoingX/qwen38-mtp#21" },
  },
  unknown = {
    "the key as a driver reports it: it is put together from published data",
    "rates of this program's kernels, and which instruction path wins for which op",
    "L2: 6144 KiB by specification sites",
  },
}
