return {
  shape = { "kv_heads", "head_dim", { "fk", { "f16", "f32", "q8", "r4", "r3" } }, { "fv", { "f16", "f32", "q8", "r4", "r3" } } },
  params = { { "isa", lib.isa } },
  require = { lib.kv_whole_runs, lib.card_has_isa },
  default = function(p, card) return { isa = lib.default_isa(p, card) } end,
  bytes = function(p, rows)
    return rows * p.kv_heads * (8 * p.head_dim + lib.kv_token_bytes(p.fk, p.head_dim) + lib.kv_token_bytes(p.fv, p.head_dim))
  end,
  ops = function(p, rows) return rows * p.kv_heads * p.head_dim * 2 end,
  -- A thread takes 4, 2 or 1 values, as they divide the head; in formats with scales a warp takes a run.
  cuda = {
    params = { { "threads", { 64, 128, 256 } } },
    require = { lib.kv_whole_runs },
    default = function() return { threads = 128 } end,
    launch = function(p)
      local values = p.head_dim % 4 == 0 and 4 or p.head_dim % 2 == 0 and 2 or 1
      local run = lib.kv_run(p.head_dim)
      local blocks = lib.kv_plain(p.fk) and lib.kv_plain(p.fv) and 1 or lib.ceil_div(p.kv_heads * p.head_dim, p.threads // 32 * run)
      return { threads = p.threads, grid = { { math.max(blocks, lib.ceil_div(p.kv_heads * p.head_dim, values * p.threads)) }, { 1, rows = 1 }, { 2 } } }
    end,
  },
}
