return {
  shape   = { "n", "k" },
  params  = { { "isa", lib.isa }, { "fma", lib.fma }, { "block", { 64, 128, 256 } } },
  require = {
    { "k is 1 to 64, and no more than n", function(p) return p.k >= 1 and p.k <= 64 and p.k <= p.n end },
    lib.card_has_isa, lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics), block = 64 }
  end,
  numerics = lib.numerics_by_fma,
  bytes   = function(p, rows) return rows * (4 * p.n + 8 * p.k + 4) end,
  ops     = function(p, rows) return rows * p.n * 20 end,
}
