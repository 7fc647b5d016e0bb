-- Qwen3.5 2B, dense.
return {
  name = "qwen3.5-2b", n_layers = 24, interval = 4,
  n_embd = 2048, n_ff = 6144, n_vocab = 248320,
  n_head = 8, n_head_kv = 2, head_dim = 256,
  n_k_heads = 16, n_v_heads = 16, state_dim = 128,
  tied = true,
}
