-- A part takes a tile of rows: `tile` query rows (rows x heads of one KV head) at most. Keys are turned into fp32 [dimension][token], a page
-- at a time, so that lanes are tokens; `rows` x `vecs` vectors of scores, and then of outputs, stay in registers.
-- `chunk` is how many tokens share one max; `dot` is how a score is summed: by the tree of the canonical class, or in one go.
local function registers(p) return lib.width(p.isa) == 16 and 32 or 16 end
local function group(p) return p.heads // p.kv_heads end
local function query_rows(p) return math.max(1, p.tile // group(p)) * group(p) end

return {
  shape = { "heads", "kv_heads", "head_dim", { "fk", { "f16", "f32" } }, { "fv", { "f16", "f32" } } },
  params = { { "isa", lib.isa }, { "fma", lib.fma }, { "rows", { 1, 2, 4, 6, 8 } }, { "vecs", { 1, 2, 4 } },
             { "tile", { 16, 32, 48, 64 } }, { "chunk", { 64, 128, 256 } }, { "dot", { "tree", "plain" } } },
  require = {
    { "heads are a multiple of kv_heads, at most 16 to one", function(p)
      return p.heads % p.kv_heads == 0 and group(p) <= 16 end },
    { "the tile of accumulators stays in registers", function(p) return (p.rows + 1) * p.vecs + 1 <= registers(p) end },
    { "the tile, in whole groups of rows, fits attn_work (64 query rows)", function(p)
      return lib.round_up(query_rows(p), p.rows) <= 64 end },
    { "the canonical tree goes with the canonical chunk of 256, plain sums with any", function(p)
      return p.dot == "plain" or p.chunk == 256 end },
    lib.card_has_isa, lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    local width = lib.width(isa)
    local canonical = numerics == "strict" or p.dot == "tree"
    return { isa = isa, fma = lib.default_fma(isa, numerics), rows = width == 16 and 8 or width == 8 and 6 or 4,
             vecs = 2, tile = width == 16 and 64 or 48, chunk = canonical and 256 or 128, dot = canonical and "tree" or "plain" }
  end,
  numerics = function(p)
    if p.fma == "none" then return "nofma" end
    return p.dot == "tree" and p.chunk == 256 and "canonical" or "online"
  end,
  -- Each row tile reads the sequence's K and V once; the first reading comes from memory, the others from a cache.
  bytes = function(p, rows, past)
    local value = (p.fk == "f16" and 2 or 4) + (p.fv == "f16" and 2 or 4)
    return (past + rows) * p.kv_heads * p.head_dim * value + rows * p.heads * p.head_dim * 12
  end,
  ops = function(p, rows, past) return (rows * past + rows * (rows + 1) // 2) * p.heads * p.head_dim * 4 end,
}
