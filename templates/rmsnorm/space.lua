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
    -- sum: strided is the canonical tree; tree lets every thread sum its own.
    params   = { { "threads", { 64, 128, 256, 512, 1024 } }, { "sum", { "strided", "tree" } } },
    require  = { { "out as int8 needs whole blocks of 32", function(p) return p.out == "f32" or p.n % 32 == 0 end },
                 { "every warp has values of the row", function(p) return p.threads == 64 or p.threads * (p.n % 4 == 0 and 4 or 1) < p.n + 128 end } },
    default  = function(p, _, numerics)
      local loads, threads = p.n % 4 == 0 and p.n // 4 or p.n, 64
      while threads < 512 and threads * 2 <= loads do threads = threads * 2 end
      return { threads = threads, sum = numerics == "strict" and "strided" or "tree" }
    end,
    numerics = function(p) return p.sum == "strided" and "canonical" or "tree" end,
    launch   = function(p) return { threads = p.threads, grid = { { 1, rows = 1 } } } end,
  },
}
