return {
  shape = { "heads", "kv_heads", "head_dim", "pairs" },
  params = { { "isa", lib.isa }, { "fma", lib.fma } },
  require = {
    { "the rotated pairs lie inside the head", function(p) return p.pairs >= 1 and 2 * p.pairs <= p.head_dim end },
    lib.card_has_isa, lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics) }
  end,
  numerics = lib.numerics_by_fma,
  bytes = function(p, rows) return rows * ((p.heads + p.kv_heads) * p.head_dim * 8 + p.pairs * 8) end,
  ops = function(p, rows) return rows * (p.heads + p.kv_heads) * (p.head_dim * 4 + p.pairs * 6) end,
  cuda = {
    params = { { "warps", { 1, 2, 4, 8 } } },
    require = {
      { "the rotated pairs lie inside the head", function(p) return p.pairs >= 1 and 2 * p.pairs <= p.head_dim end },
      { "a block's heads fit the static shared memory", function(p) return p.warps * p.head_dim <= 12288 end },
    },
    default = function(p) return { warps = p.head_dim <= 3072 and 4 or 1 } end,
    launch = function(p)
      return { threads = 32 * p.warps, grid = { { lib.ceil_div(p.heads + p.kv_heads, p.warps) }, { 1, rows = 1 } } }
    end,
  },
}
