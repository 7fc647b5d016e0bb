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
    local out = (p.out ~= "q8" and 4 * p.n or 0) + (p.out ~= "f32" and p.n + p.n // 4 or 0)
    return rows * (4 * p.n + out) + 4 * p.n
  end,
  ops      = function(p, rows) return rows * 4 * p.n end,
  cuda     = {
    params  = { { "threads", { 128, 256, 512, 1024 } } },
    require = { { "out as int8 needs whole blocks of 32", function(p) return p.out == "f32" or p.n % 32 == 0 end },
                { "a row fits the static shared memory", function(p) return p.n <= 12000 end } },
    default = function() return { threads = 256 } end,
    launch  = function(p) return { threads = p.threads, grid = { { 1, rows = 1 } } } end,
  },
}
