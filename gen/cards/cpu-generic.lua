-- Any x86-64: the plain path and small caches.
return {
  key = "cpu:other-0-0,isa=scalar,l1=32,l2=256,l3=2048,t=1",
  title = "any x86-64",
  measured = {},
  published = {},
  unknown = {
    "no record of it is shipped: a CPU is tuned where it is",
  },
}
