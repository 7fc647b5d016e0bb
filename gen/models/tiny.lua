-- The test model's shape (tests/models/tiny.gguf): the family's head sizes and layer rhythm, everything else small.
return {
  name = "tiny", n_layers = 8, interval = 4,
  n_embd = 256, n_ff = 768, n_vocab = 4096, n_ctx_train = 32768,
  n_head = 4, n_head_kv = 2, head_dim = 256,
  n_k_heads = 2, n_v_heads = 6, state_dim = 128,
  tied = true,
}
