return {
  shape = { "n" },
  params = {
    { "isa", lib.isa },
    { "fma", lib.fma },
  },
  require = {
    { "there are ids, fewer than 2^30", function(p) return p.n >= 1 and p.n < 1 << 30 end },
    lib.card_has_isa,
    lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics) }
  end,
  numerics = lib.numerics_by_fma,
  bytes = function(p, rows) return rows * p.n * 16 end,
  ops = function(p, rows) return rows * p.n * 40 end,
}
