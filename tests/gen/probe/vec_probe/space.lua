return {
  shape    = { { "part", { "exp", "sexp", "sigmoid", "silu", "from_f16", "to_f16", "from_bf16", "dot32", "sumsq32", "dot32w", "hmax",
                           "minmax", "round", "sum" } } },
  params   = { { "isa", lib.isa }, { "fma", lib.fma } },
  require  = { lib.card_has_isa, lib.fma_fits_isa },
  default  = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics) }
  end,
  -- vsum folds a vector, so its tree is the path's own.
  numerics = function(p) return p.part == "sum" and "width" .. lib.width(p.isa) or lib.numerics_by_fma(p) end,
  bytes    = function(_, rows) return rows * 14 end,
  ops      = function(_, rows) return rows end,
}
