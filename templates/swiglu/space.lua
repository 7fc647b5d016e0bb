return {
  shape    = { "n", { "out", { "f32", "q8", "both" } } },
  params   = { { "isa", lib.isa }, { "fma", lib.fma } },
  require  = { { "out as int8 needs whole blocks of 32", function(p) return p.out == "f32" or p.n % 32 == 0 end },
               lib.card_has_isa, lib.fma_fits_isa },
  default  = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics) }
  end,
  numerics = lib.numerics_by_fma,
  bytes    = function(p, rows)
    return rows * (8 * p.n + (p.out ~= "q8" and 4 * p.n or 0) + (p.out ~= "f32" and p.n + p.n // 4 or 0))
  end,
  ops      = function(p, rows) return rows * 25 * p.n end,
  cuda     = {
    params  = { { "threads", { 64, 128, 256, 512 } }, { "each", { 1, 2, 4 } } },
    require = { { "out as int8 needs whole blocks of 32", function(p) return p.out == "f32" or p.n % 32 == 0 end },
                { "every thread has a value", function(p)
                  return p.threads * p.each == 64 or (p.threads * p.each - 1) * (p.n % 4 == 0 and 4 or 1) < p.n
                end } },
    default = function(p) return { threads = p.n >= 512 and 128 or 64, each = 1 } end,
    launch  = function(p)
      local loads = p.n % 4 == 0 and p.n // 4 or p.n
      return { threads = p.threads, grid = { { lib.ceil_div(loads, p.threads * p.each) }, { 1, rows = 1 } } }
    end,
  },
}
