-- A part takes a tile of rows: `tile` query rows (rows x heads of one KV head) at most. Keys are turned into fp32 [dimension][token], a page
-- at a time, so that lanes are tokens; `rows` x `vecs` vectors of scores, and then of outputs, stay in registers.
-- `chunk` is how many tokens share one max; `dot` is how a score is summed: by the tree of the canonical class, or in one go.
local function registers(p) return lib.width(p.isa) == 16 and 32 or 16 end
local function group(p) return p.heads // p.kv_heads end
local function query_rows(p) return math.max(1, p.tile // group(p)) * group(p) end

-- CUDA. A block takes whole groups of heads for some rows of a sequence: at most `tile` query rows, more only if one group has more.
-- `tree`: the canonical order, any shape. `ffma`: a thread a few tokens, then a few dimensions. `mma`: a warp 16 query rows.
local function cuda_rows(p) return p.path == "mma" and p.tile or query_rows(p) end
local function threads(p) return 32 * p.warps end
local function halves(p) return p.fk == "f16" and p.fv == "f16" end
local function mma_bytes(p) return 2 * (2 * p.tile + 2 * p.chunk) * (p.head_dim + 8) end -- and 128 that are not dynamic
local function ffma_bytes(p)
  local rows = query_rows(p)
  return 4 * rows * (p.head_dim + 1) + math.max(80 * p.chunk, 4 * rows * (p.chunk + 4))
end
local function is(p, path) return p.path == path end

local function mma_fits(p, card)
  return halves(p) and p.head_dim % 16 == 0 and p.head_dim <= 256 and group(p) <= p.tile and p.tile == 16 * p.warps and p.chunk <= 64
    and mma_bytes(p) + 128 <= card.smem * 1024 and card.has.mma_f16 == true
end

local function ffma_fits(p)
  local values = p.head_dim // threads(p)
  return halves(p) and p.head_dim % threads(p) == 0 and (values == 1 or values == 2 or values == 4) and p.chunk >= 128
    and p.chunk % threads(p) == 0 and p.chunk // threads(p) <= 4 and ffma_bytes(p) <= 48 * 1024
end

-- The first that is legal; for `tree` one always is.
local cuda_order = {
  { path = "mma", tile = 64, warps = 4, chunk = 32 }, { path = "mma", tile = 64, warps = 4, chunk = 16 },
  { path = "mma", tile = 32, warps = 2, chunk = 32 }, { path = "mma", tile = 32, warps = 2, chunk = 16 },
  { path = "ffma", tile = 16, warps = 4, chunk = 256 }, { path = "ffma", tile = 16, warps = 2, chunk = 128 },
  { path = "ffma", tile = 8, warps = 4, chunk = 256 }, { path = "ffma", tile = 8, warps = 2, chunk = 128 },
  { path = "tree", tile = 16, warps = 8, chunk = 256 },
}

-- A row's queries, gates and results.
local function row_bytes(p)
  local n = p.heads * p.head_dim
  return 8 * n + (p.out ~= "q8" and 4 * n or 0) + (p.out ~= "f32" and n + n // 4 or 0)
end

-- Bytes that a token of a KV head takes in a format, codes and scales (kv_append/args.h).
local function token_bytes(p, format)
  local n, run = p.head_dim, math.min(p.head_dim & -p.head_dim, 256)
  local of = { f16 = 2 * n, f32 = 4 * n, q8 = n + n // 16, r4 = n // 2 + 2 * (n // run), r3 = 3 * n // 8 + 2 * (n // run) }
  return of[format]
end
local function is_plain(format) return format == "f16" or format == "f32" end
local whole_runs = { "formats with scales need heads of whole runs of 32", function(p)
  return p.head_dim % 32 == 0 or is_plain(p.fk) and is_plain(p.fv) end }

local plain = { "reads K and V of f16 and f32", function(p) return is_plain(p.fk) and is_plain(p.fv) end }

local whole_blocks = { "out as int8 needs whole blocks of 32 in a head", function(p) return p.out == "f32" or p.head_dim % 32 == 0 end }

local cuda = {
  params = { { "path", { "mma", "ffma", "tree" } }, { "tile", { 8, 16, 32, 64, 128 } }, { "warps", { 2, 4, 8 } },
             { "chunk", { 16, 32, 64, 128, 256 } } },
  require = {
    { "heads are a multiple of kv_heads, at most 16 to one", function(p) return p.heads % p.kv_heads == 0 and group(p) <= 16 end },
    { "the head is at most 1024 wide", function(p) return p.head_dim <= 1024 end },
    whole_blocks, whole_runs, plain,
    { "mma needs fp16 matrix instructions for 16 rows (sm_75)", function(p, card) return not is(p, "mma") or card.has.mma_f16 == true end },
    { "mma and ffma read K and V of f16", function(p) return is(p, "tree") or halves(p) end },
    { "mma has 16 query rows a warp, runs of at most 64 tokens and whole steps of 16 in a head of at most 256", function(p)
      return not is(p, "mma") or p.tile == 16 * p.warps and p.chunk <= 64 and p.head_dim % 16 == 0 and p.head_dim <= 256 end },
    { "queries, keys and values of mma fit the block's shared memory", function(p, card)
      return not is(p, "mma") or mma_bytes(p) + 128 <= card.smem * 1024 end },
    { "ffma has 1, 2 or 4 dimensions and tokens a thread and fits 48 KiB", function(p)
      return not is(p, "ffma") or p.tile <= 16 and ffma_fits(p) end },
    { "tree has chunks of 256 and at most 16 query rows", function(p) return not is(p, "tree") or p.chunk == 256 and p.tile <= 16 end },
  },
  default = function(p, card, numerics)
    for _, c in ipairs(cuda_order) do
      local q = { path = c.path, tile = c.tile, warps = c.warps, chunk = c.chunk, head_dim = p.head_dim, heads = p.heads,
                  kv_heads = p.kv_heads, fk = p.fk, fv = p.fv }
      local asked = (not p.path or p.path == c.path) and (numerics ~= "strict" or c.path == "tree")
      if asked and (c.path == "tree" or c.path == "mma" and mma_fits(q, card) or c.path == "ffma" and ffma_fits(q)) then return c end
    end
    return cuda_order[#cuda_order]
  end,
  numerics = function(p) return is(p, "tree") and "canonical" or is(p, "mma") and "mma_f16x2" or "ffma" end,
  launch = function(p)
    local rows = cuda_rows(p)
    return { threads = threads(p), smem = is(p, "mma") and mma_bytes(p) or 0, query_rows = rows,
             grid = { { p.kv_heads }, { 1, rows = rows // group(p) }, { 1, seqs = 1 } } }
  end,
}

return {
  shape = { "heads", "kv_heads", "head_dim", { "fk", { "f16", "f32", "q8", "r4", "r3" } }, { "fv", { "f16", "f32", "q8", "r4", "r3" } },
            { "out", { "f32", "q8", "both" } } },
  params = { { "isa", lib.isa }, { "fma", lib.fma }, { "rows", { 1, 2, 4, 6, 8 } }, { "vecs", { 1, 2, 4 } },
             { "tile", { 16, 32, 48, 64 } }, { "chunk", { 64, 128, 256 } }, { "dot", { "tree", "plain" } } },
  require = {
    { "heads are a multiple of kv_heads, at most 16 to one", function(p)
      return p.heads % p.kv_heads == 0 and group(p) <= 16 end },
    whole_blocks, whole_runs,
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
    return (past + rows) * p.kv_heads * (token_bytes(p, p.fk) + token_bytes(p, p.fv)) + rows * row_bytes(p)
  end,
  ops = function(p, rows, past) return (rows * past + rows * (rows + 1) // 2) * p.heads * p.head_dim * 4 end,
  cuda = cuda,
}
