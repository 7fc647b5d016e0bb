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
  cuda    = {
    params  = { { "parts", { 32, 64, 128, 256 } }, { "held", { 4, 8, 16 } } },
    require = {
      { "k is 1 to 64, and no more than n", function(p) return p.k >= 1 and p.k <= 64 and p.k <= p.n end },
      { "a part is some logits", function(p) return p.parts == 32 or p.n >= p.parts * 32 end },
    },
    default = function(p)
      local parts = 32
      while parts < 256 and p.n >= parts * 512 do parts = parts * 2 end
      return { parts = parts, held = 16 }
    end,
    launch  = function(p)
      local each = { threads = 128, grid = { { p.parts // 4 }, { 1, rows = 1 } } }
      return { each, each, { threads = 256, grid = { { 1, rows = 1 } } } }
    end,
  },
}
