-- Qwen3.5 4B, dense.
return {
  name = "qwen3.5-4b", n_layers = 32, interval = 4,
  n_embd = 2560, n_ff = 9216, n_vocab = 248320,
  n_head = 16, n_head_kv = 4, head_dim = 256,
  n_k_heads = 16, n_v_heads = 32, state_dim = 128,
  tied = true,
}
