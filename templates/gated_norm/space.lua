return {
  shape    = { "heads", "dim" },
  params   = { { "isa", lib.isa }, { "fma", lib.fma } },
  require  = { lib.card_has_isa, lib.fma_fits_isa },
  default  = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics) }
  end,
  numerics = lib.numerics_by_fma,
  bytes    = function(p, rows) return rows * p.heads * 12 * p.dim + 4 * p.dim end,
  ops      = function(p, rows) return rows * p.heads * 28 * p.dim end,
}
