return {
  shape = { "kv_heads", "head_dim", { "fk", { "f16", "f32" } }, { "fv", { "f16", "f32" } } },
  params = { { "isa", lib.isa } },
  require = { lib.card_has_isa },
  default = function(p, card) return { isa = lib.default_isa(p, card) } end,
  bytes = function(p, rows)
    local size = (p.fk == "f16" and 2 or 4) + (p.fv == "f16" and 2 or 4)
    return rows * p.kv_heads * p.head_dim * (8 + size)
  end,
  ops = function(p, rows) return rows * p.kv_heads * p.head_dim * 2 end,
  -- A thread takes 4, 2 or 1 values, as they divide the head.
  cuda = {
    params = { { "threads", { 64, 128, 256 } } },
    default = function() return { threads = 128 } end,
    launch = function(p)
      local values = p.head_dim % 4 == 0 and 4 or p.head_dim % 2 == 0 and 2 or 1
      return { threads = p.threads, grid = { { lib.ceil_div(p.kv_heads * p.head_dim, values * p.threads) }, { 1, rows = 1 }, { 2 } } }
    end,
  },
}
