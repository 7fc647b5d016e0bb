-- Any x86-64: the plain path and small caches.
return {
  key = "cpu:scalar,l1=32,l2=256,l3=2048,t=1",
}
