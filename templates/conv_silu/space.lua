local function block(p) return p.vecs * lib.width(p.isa) end

return {
  shape = { "channels", "taps" },
  params = {
    { "isa", lib.isa },
    { "fma", lib.fma },
    { "vecs", { 1, 2, 4 } }, -- vectors of channels that walk down the rows together
  },
  require = {
    { "a filter has 2 to 8 taps", function(p) return p.taps >= 2 and p.taps <= 8 end },
    { "there are channels", function(p) return p.channels >= 1 end },
    { "a block is not wider than the channels, or one vector", function(p) return p.vecs == 1 or block(p) <= p.channels end },
    { "past rows and weights of a block fit 48 registers", function(p) return p.vecs == 1 or p.vecs * (2 * p.taps - 1) <= 48 end },
    lib.card_has_isa,
    lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    local vecs = isa == "avx512vnni" and 4 or 1
    while vecs > 1 and (vecs * lib.width(isa) > p.channels or vecs * (2 * p.taps - 1) > 48) do vecs = vecs // 2 end
    return { isa = isa, fma = lib.default_fma(isa, numerics), vecs = vecs }
  end,
  numerics = lib.numerics_by_fma,
  bytes = function(p, rows) return 8 * rows * p.channels + 4 * p.channels * (3 * p.taps - 2) end,
  ops = function(p, rows) return rows * p.channels * (2 * p.taps + 20) end,
  cuda = {
    params = {
      { "threads", { 32, 64, 128, 256 } },
      { "rows", { 8, 16, 32 } }, -- of a tile
    },
    require = {
      { "a filter has 2 to 8 taps", function(p) return p.taps >= 2 and p.taps <= 8 end },
    },
    default = function(p, card) -- smaller blocks where one row would leave multiprocessors idle
      local threads = 256
      while threads > 32 and lib.ceil_div(p.channels, threads) < card.sms do threads = threads // 2 end
      return { threads = threads, rows = 8 }
    end,
    launch = function(p) return { threads = p.threads, grid = { { lib.ceil_div(p.channels, p.threads) }, { 1, rows = p.rows } } } end,
  },
}
