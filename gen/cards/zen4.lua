-- AMD Zen 4 (2022): AVX-512 with VNNI.
return {
  key = "cpu:amd-25-97,isa=avx512vnni+avx2+sse42+scalar,l1=32,l2=1024,l3=32768,t=8",
  title = "AMD Zen 4, 8 threads",
  measured = {},
  published = {
    { "instruction sets and cache sizes", "AMD manuals" },
  },
  unknown = {
    "no record of it is shipped: a CPU is tuned where it is",
  },
}
