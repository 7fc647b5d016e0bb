local function block(p) return p.vecs * lib.width(p.isa) end
local function step(p) return p.chunk == 1 end
local function registers(p) return p.isa == "avx512vnni" and 32 or 16 end

return {
  args = "gdn_step",
  ref = "gdn_step",
  shape = { "k_heads", "v_heads", "dim", { "group", { "tiled", "grouped" } } },
  params = {
    { "isa", lib.isa },
    { "fma", lib.fma },
    { "chunk", { 1, 16, 32, 64 } }, -- rows of a chunk; 1: the token recurrence, gdn_step's text and bits
    { "rows", { 1, 4, 8 } },        -- of a register tile
    { "vecs", { 1, 2, 4 } },        -- vectors of a register tile, and so of a block of value columns
  },
  require = {
    { "dim is a multiple of 8, at most 256", function(p) return p.dim % 8 == 0 and p.dim >= 8 and p.dim <= 256 end },
    { "value heads are a multiple of key heads", function(p) return p.k_heads >= 1 and p.v_heads >= 1 and p.v_heads % p.k_heads == 0 end },
    { "rows is 1 for chunk 1 and more for a larger one", function(p) return step(p) == (p.rows == 1) end },
    { "a block is not wider than dim, or one vector", function(p) return p.vecs == 1 or block(p) <= p.dim end },
    { "a tile of sums fits the registers beside its operands",
      function(p) return step(p) or lib.width(p.isa) == 1 or p.rows * p.vecs + p.vecs + 1 <= registers(p) end },
    lib.card_has_isa,
    lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    local chunk = p.chunk or (numerics == "strict" and 1 or 32)
    local vecs = (chunk == 1 or isa == "avx512vnni") and 4 or 2
    while vecs > 1 and vecs * lib.width(isa) > p.dim do vecs = vecs // 2 end
    return { isa = isa, fma = lib.default_fma(isa, numerics), chunk = chunk, rows = chunk == 1 and 1 or 4, vecs = vecs }
  end,
  numerics = function(p)
    if p.chunk == 1 then return lib.numerics_by_fma(p) end
    return "chunk" .. p.chunk .. (p.fma == "none" and "_nofma" or "")
  end,
  bytes = function(p, rows) return p.v_heads * (8 * p.dim * p.dim + rows * 16 * p.dim) end,
  ops = function(p, rows) return rows * p.v_heads * 7 * p.dim * p.dim end, -- of the recurrence, so that candidates compare
}
