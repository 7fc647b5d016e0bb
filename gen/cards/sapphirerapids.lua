-- Intel Sapphire Rapids (2023): AVX-512 with VNNI, and the VEX form.
return {
  key = "cpu:intel-6-143,isa=avx512vnni+avxvnni+avx2+sse42+scalar,l1=48,l2=2048,l3=61440,t=16",
  title = "Intel Sapphire Rapids, 16 threads",
  measured = {},
  published = {
    { "instruction sets and cache sizes", "Intel manuals" },
  },
  unknown = {
    "no record of it is shipped: a CPU is tuned where it is",
  },
}
