-- Qwen3.6 27B, dense. Three value heads a key head and six query heads a KV head: neither is a power of two.
return {
  name = "qwen3.6-27b", n_layers = 64, interval = 4,
  n_embd = 5120, n_ff = 17408, n_vocab = 248320,
  n_head = 24, n_head_kv = 4, head_dim = 256,
  n_k_heads = 16, n_v_heads = 48, state_dim = 128,
  tied = false,
}
