-- CUDA: how many lanes can share a column, whose part of k they hold in whole fours.
local function most_lanes(p, most)
  while most > 1 and p.dim % (4 * most) ~= 0 do most = most // 2 end
  return most
end
local function shared_fits(dim, cols, lanes) return 4 * (dim * cols + 6 * (dim + 4 * lanes)) <= 48 * 1024 end

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
  cuda = {
    params = {
      { "threads", { 32, 64, 128 } },
      { "vec", { 1, 2, 4 } },                  -- columns of a thread
      { "lanes", { 1, 2, 4, 8 } },             -- that share a column; 1: one chain a column
      { "hold", { "registers", "shared" } },   -- where S lives
    },
    require = {
      { "dim is a multiple of 8, at most 256", function(p) return p.dim % 8 == 0 and p.dim >= 8 and p.dim <= 256 end },
      { "value heads are a multiple of key heads", function(p) return p.k_heads >= 1 and p.v_heads >= 1 and p.v_heads % p.k_heads == 0 end },
      { "a lane's part of k is whole fours", function(p) return p.dim % (4 * p.lanes) == 0 end },
      { "a block is not wider than dim, or one warp of single columns",
        function(p) return p.threads == 32 and p.vec == 1 or p.threads // p.lanes * p.vec <= p.dim end },
      { "S fits 128 registers a thread", function(p) return p.hold == "shared" or p.dim // p.lanes * p.vec <= 128 end },
      { "S and three rows of q and k fit the static shared memory",
        function(p) return p.hold == "registers" or shared_fits(p.dim, p.threads // p.lanes * p.vec, p.lanes) end },
    },
    default = function(p, card, numerics)
      local fast = numerics == "pinned" or numerics == "free"
      local lanes = p.lanes or (fast and most_lanes(p, 8) or 1)
      local vec = p.vec or (lanes > 1 and 2 or 1)
      local hold = p.hold or (p.dim // lanes * vec <= 128 and "registers" or "shared")
      local function fits(threads)
        local cols = threads // lanes * vec
        return cols <= p.dim and 4 * p.v_heads * lib.ceil_div(p.dim, cols) >= 3 * card.sms and (hold == "registers" or shared_fits(p.dim, cols, lanes))
      end
      local threads = 128 -- as many as share q and k of a head without leaving a multiprocessor idle
      while threads > 32 and not fits(threads) do threads = threads // 2 end
      if not p.vec and threads // lanes * vec > p.dim then vec = 1 end
      return { threads = threads, vec = vec, lanes = lanes, hold = hold }
    end,
    numerics = function(p) return p.lanes == 1 and "canonical" or "lanes" .. p.lanes end,
    launch = function(p)
      return { threads = p.threads, grid = { { p.v_heads * lib.ceil_div(p.dim, p.threads // p.lanes * p.vec) }, { 1, seqs = 1 } } }
    end,
  },
}
