-- Intel Haswell (2013): AVX2, FMA, F16C.
return {
  key = "cpu:intel-6-60,isa=avx2+sse42+scalar,l1=32,l2=256,l3=8192,t=4",
  title = "Intel Haswell, 4 threads",
  measured = {},
  published = {
    { "instruction sets and cache sizes", "Intel manuals" },
  },
  unknown = {
    "no record of it is shipped: a CPU is tuned where it is",
  },
}
