-- Intel Sapphire Rapids (2023): AVX-512 with VNNI, and the VEX form.
return {
  key = "cpu:intel-6-143,isa=avx512vnni+avxvnni+avx2+sse42+scalar,l1=48,l2=2048,l3=61440,t=16",
}
