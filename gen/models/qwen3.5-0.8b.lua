-- Qwen3.5 0.8B, dense. Fields are those of `struct q_config` (runtime/config.h); what it leaves out has the family's value (presets.c).
return {
  name = "qwen3.5-0.8b", n_layers = 24, interval = 4,
  n_embd = 1024, n_ff = 3584, n_vocab = 248320,
  n_head = 8, n_head_kv = 2, head_dim = 256,
  n_k_heads = 16, n_v_heads = 16, state_dim = 128,
  tied = true,
}
