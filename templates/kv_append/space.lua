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
}
