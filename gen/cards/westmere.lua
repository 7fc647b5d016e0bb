-- Intel Westmere (2010): SSE4.2, no AVX.
return {
  key = "cpu:intel-6-44,isa=sse42+scalar,l1=32,l2=256,l3=12288,t=4",
}
