return {
  shape = { "k_heads", "v_heads", "dim", { "group", { "tiled", "grouped" } } },
  params = {
    { "isa", lib.isa },
    { "fma", lib.fma },
    { "vecs", { 1, 2, 4, 8 } }, -- vectors of a block of value columns
  },
  require = {
    { "dim is a multiple of 8, at most 256", function(p) return p.dim % 8 == 0 and p.dim >= 8 and p.dim <= 256 end },
    { "value heads are a multiple of key heads", function(p) return p.k_heads >= 1 and p.v_heads >= 1 and p.v_heads % p.k_heads == 0 end },
    { "a block is not wider than dim, or one vector", function(p) return p.vecs == 1 or p.vecs * lib.width(p.isa) <= p.dim end },
    lib.card_has_isa,
    lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    local vecs = 8 -- whole rows of S stream best; narrower where one sequence would leave threads idle
    local function units() return p.v_heads * lib.ceil_div(p.dim, vecs * lib.width(isa)) end
    while vecs > 1 and (vecs * lib.width(isa) > p.dim or units() < card.threads) do vecs = vecs // 2 end
    return { isa = isa, fma = lib.default_fma(isa, numerics), vecs = vecs }
  end,
  numerics = lib.numerics_by_fma,
  -- The state is read and written once a token when rows are of different sequences, once a step when of one.
  bytes = function(p, rows) return rows * p.v_heads * (8 * p.dim * p.dim + 16 * p.dim) end,
  ops = function(p, rows) return rows * p.v_heads * (7 * p.dim * p.dim + 3 * p.dim) end,
}
