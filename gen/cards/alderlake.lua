-- Intel Alder Lake (2021): AVX2 with VNNI in VEX form, no AVX-512.
return {
  key = "cpu:intel-6-151,isa=avxvnni+avx2+sse42+scalar,l1=48,l2=1280,l3=30720,t=8",
  title = "Intel Alder Lake, 8 threads",
  measured = {},
  published = {
    { "instruction sets and cache sizes", "Intel manuals" },
  },
  unknown = {
    "no record of it is shipped: a CPU is tuned where it is",
  },
}
