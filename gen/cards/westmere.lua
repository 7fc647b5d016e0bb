-- Intel Westmere (2010): SSE4.2, no AVX.
return {
  key = "cpu:intel-6-44,isa=sse42+scalar,l1=32,l2=256,l3=12288,t=4",
  title = "Intel Westmere, 4 threads",
  measured = {},
  published = {
    { "instruction sets and cache sizes", "Intel manuals" },
  },
  unknown = {
    "no record of it is shipped: a CPU is tuned where it is",
  },
}
