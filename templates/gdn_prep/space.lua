return {
  shape = { "k_heads", "v_heads", "dim" },
  params = {
    { "isa", lib.isa },
    { "fma", lib.fma },
  },
  require = {
    { "dim is a multiple of 8, at most 256", function(p) return p.dim % 8 == 0 and p.dim >= 8 and p.dim <= 256 end },
    { "value heads are a multiple of key heads", function(p) return p.k_heads >= 1 and p.v_heads >= 1 and p.v_heads % p.k_heads == 0 end },
    lib.card_has_isa,
    lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics) }
  end,
  numerics = lib.numerics_by_fma,
  bytes = function(p, rows) return rows * (16 * p.k_heads * p.dim + 16 * p.v_heads) end,
  ops = function(p, rows) return rows * (6 * p.k_heads * p.dim + 60 * p.v_heads) end,
}
