-- Qwen3.5 9B, dense. The first of the family with a head of its own (not tied to the embedding).
return {
  name = "qwen3.5-9b", n_layers = 32, interval = 4,
  n_embd = 4096, n_ff = 12288, n_vocab = 248320,
  n_head = 16, n_head_kv = 4, head_dim = 256,
  n_k_heads = 16, n_v_heads = 32, state_dim = 128,
  tied = false,
}
