-- No fused multiply-add is involved, so every path gives the same bits.
return {
  shape   = { "n" },
  params  = { { "isa", lib.isa } },
  require = { { "n is a multiple of 32", function(p) return p.n % 32 == 0 end }, lib.card_has_isa },
  default = function(p, card) return { isa = lib.default_isa(p, card) } end,
  bytes   = function(p, rows) return rows * (4 * p.n + p.n + p.n // 4) end,
  ops     = function(p, rows) return rows * 4 * p.n end,
  cuda    = {
    params  = { { "threads", { 64, 128, 256, 512 } } },
    require = { { "n is a multiple of 32", function(p) return p.n % 32 == 0 end } },
    default = function() return { threads = 128 } end,
    launch  = function(p) return { threads = p.threads, grid = { { lib.ceil_div(p.n // 4, p.threads), rows = 1 } } } end,
  },
}
