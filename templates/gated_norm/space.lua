local whole_blocks = { "out as int8 needs whole blocks of 32 in a head", function(p) return p.out == "f32" or p.dim % 32 == 0 end }

return {
  shape    = { "heads", "dim", { "out", { "f32", "q8", "both" } } },
  params   = { { "isa", lib.isa }, { "fma", lib.fma } },
  require  = { whole_blocks, lib.card_has_isa, lib.fma_fits_isa },
  default  = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics) }
  end,
  numerics = lib.numerics_by_fma,
  bytes    = function(p, rows)
    local n = p.heads * p.dim
    return rows * (8 * n + (p.out ~= "q8" and 4 * n or 0) + (p.out ~= "f32" and n + n // 4 or 0)) + 4 * p.dim
  end,
  ops      = function(p, rows) return rows * p.heads * 28 * p.dim end,
  cuda     = {
    params  = { { "threads", { 32, 64, 128, 256 } } },
    require = { whole_blocks },
    default = function() return { threads = 128 } end,
    launch  = function(p)
      return { threads = p.threads, grid = { { 1, rows = 1 }, { lib.ceil_div(p.heads, p.threads // 32) } } }
    end,
  },
}
