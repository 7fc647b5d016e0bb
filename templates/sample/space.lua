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
  cuda = {
    -- last: threads of the block that draws.
    params = { { "parts", { 32, 64, 128, 256 } }, { "threads", { 128, 256, 512 } }, { "last", { 256, 512, 1024 } } },
    require = {
      { "there are ids, fewer than 2^30", function(p) return p.n >= 1 and p.n < 1 << 30 end },
      { "a part is some runs of ids", function(p) return p.parts == 32 or p.n >= p.parts * 256 end },
    },
    default = function(p)
      local parts = 32
      while parts < 128 and p.n >= parts * 1024 do parts = parts * 2 end
      return { parts = parts, threads = 256, last = 512 }
    end,
    launch = function(p)
      local each = { threads = p.threads, grid = { { p.parts }, { 1, rows = 1 } } }
      return { each, each, { threads = p.last, grid = { { 1, rows = 1 } } } }
    end,
  },
}
