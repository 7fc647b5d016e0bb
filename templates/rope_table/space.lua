-- Doubles in plain C: the compiler's vectors are as good as any, and the same bits come out on every path, so there is no `fma`.
return {
  shape = { "pairs", "s0", "s1", "s2" },
  may_be_zero = { "s0", "s1", "s2" },
  params = { { "isa", lib.isa } },
  require = {
    { "there is a pair to rotate", function(p) return p.pairs >= 1 end },
    lib.card_has_isa,
  },
  default = function(p, card) return { isa = lib.default_isa(p, card) } end,
  bytes = function(p, rows) return rows * (p.pairs * 8 + 12) end,
  ops = function(p, rows) return rows * p.pairs * 30 end,
  cuda = {
    params = { { "threads", { 64, 128, 256 } } },
    require = { { "there is a pair to rotate", function(p) return p.pairs >= 1 end } },
    default = function() return { threads = 64 } end,
    launch = function(p) return { threads = p.threads, grid = { { 1, rows = math.max(1, p.threads // p.pairs) } } } end,
  },
}
