-- A part takes a tile of rows: `tile` query rows (rows x heads of one KV head) at most. Keys are turned into fp32 [dimension][token], a page
-- at a time, so that lanes are tokens; `rows` x `vecs` vectors of scores, and then of outputs, stay in registers.
-- `chunk` is how many tokens share one max; `dot` is how a score is summed: by the tree of the canonical class, or in one go.
local function registers(p) return lib.width(p.isa) == 16 and 32 or 16 end
local function group(p) return p.heads // p.kv_heads end
local function query_rows(p) return math.max(1, p.tile // group(p)) * group(p) end

-- CUDA. A block takes whole groups of heads for some rows of a sequence: at most `tile` query rows, more only if one group has more.
-- `tree`: the canonical order, any shape. `ffma`: a thread a few tokens, then a few dimensions. `mma`: a warp 16 query rows, K and V as halves
-- in shared memory, in `stages` places each; q and the weights are as many halves as `terms` says. `split`: ways to cut the tokens, in steps of
-- few rows.
-- `wgmma`: as mma, in instructions of four warps that read shared memory themselves (Hopper's alone).
local function has_tiles(p) return p.path == "mma" or p.path == "wgmma" end
local function cuda_rows(p) return has_tiles(p) and p.tile or query_rows(p) end
local function threads(p) return 32 * p.warps end
local function halves(p) return p.fk == "f16" and p.fv == "f16" end
local function pitch(p) return p.head_dim % 64 == 0 and p.head_dim or p.head_dim + 8 end
local function codes_bytes(p, format) return lib.kv_plain(format) and 0 or lib.kv_token_bytes(format, p.head_dim) end
-- Dynamic: queries, keys and values; where copies run beside the threads, codes of the runs that come. Static: what a tile is, scales.
local function mma_bytes(p, card)
  local codes = card.has.cp_async and codes_bytes(p, p.fk) + codes_bytes(p, p.fv) or 0
  return 2 * pitch(p) * (p.terms * p.tile + 2 * p.stages * p.chunk) + 2 * p.chunk * codes + (p.path == "wgmma" and 1024 or 0)
end
local function mma_static(p)
  return 128 + 4 * p.tile + (lib.kv_plain(p.fk) and 0 or 8 * p.chunk) + (lib.kv_plain(p.fv) and 0 or 16 * p.chunk)
end
local function ffma_bytes(p)
  local rows = query_rows(p)
  return 160 + 4 * rows * (p.head_dim + 1) + math.max(80 * p.chunk, 4 * rows * (p.chunk + 4))
end
local function tree_bytes(p)
  local turned = lib.kv_rotated(p.fk) or lib.kv_rotated(p.fv)
  return query_rows(p) * (4 * 260 + (turned and 4 * p.head_dim or 0) + 24) + 16
end
local function is(p, path) return p.path == path end

-- Formats that mma takes, for K or V. Where a token has several scales they are in relation to the largest, rounded to a half; a rotated head is
-- one run.
local function mma_reads(p, format)
  if lib.kv_rotated(format) then return lib.is_pow2(p.head_dim) and p.head_dim >= 32 end
  return format == "f16" or format == "q8" and p.terms == 1
end
-- Whether a token has scales that are in relation to the largest.
local function has_parts(p, format) return not lib.kv_plain(format) and not (lib.kv_rotated(format) and lib.is_pow2(p.head_dim) and p.head_dim <= 256) end
local function mma_reads_both(p) return mma_reads(p, p.fk) and mma_reads(p, p.fv) and (halves(p) or p.stages == 2) end

local function mma_fits(p, card)
  return mma_reads_both(p) and p.head_dim % 16 == 0 and p.head_dim <= 256 and group(p) <= p.tile and p.tile == 16 * p.warps and p.chunk <= 64
    and mma_bytes(p, card) + mma_static(p) <= card.smem * 1024 and card.has.mma_f16 == true
end

local function wgmma_fits(p, card)
  return card.has.wgmma == true and p.terms == 1 and p.stages == 2 and (p.head_dim == 128 or p.head_dim == 256) and mma_fits(p, card)
end

local function ffma_reads(format) return format ~= "f32" end

local function ffma_fits(p)
  local values = p.head_dim // threads(p)
  return ffma_reads(p.fk) and ffma_reads(p.fv) and p.head_dim % threads(p) == 0 and (values == 1 or values == 2 or values == 4) and p.chunk >= 128
    and p.chunk % threads(p) == 0 and p.chunk // threads(p) <= 4 and ffma_bytes(p) <= 48 * 1024
end

local function mma(tile, chunk, terms, stages, path)
  return { path = path or "mma", tile = tile, warps = tile // 16, chunk = chunk, terms = terms, stages = stages, split = 1 }
end
local function plain_path(path, tile, warps, chunk)
  return { path = path, tile = tile, warps = warps, chunk = chunk, terms = 2, stages = 1, split = 1 }
end

-- The first that is legal; for `tree` one always is.
local cuda_order = {
  mma(128, 64, 1, 2, "wgmma"), mma(128, 64, 1, 2), mma(128, 32, 1, 2), mma(64, 32, 1, 2), mma(64, 32, 1, 1), mma(64, 16, 1, 2),
  mma(64, 16, 1, 1), mma(32, 16, 1, 2),
  plain_path("ffma", 16, 4, 256), plain_path("ffma", 16, 2, 128), plain_path("ffma", 8, 4, 256), plain_path("ffma", 8, 2, 128),
  plain_path("tree", 16, 8, 256), plain_path("tree", 8, 8, 256),
}

-- A row's queries, gates and results.
local function row_bytes(p)
  local n = p.heads * p.head_dim
  return 8 * n + (p.out ~= "q8" and 4 * n or 0) + (p.out ~= "f32" and n + n // 4 or 0)
end

local whole_blocks = { "out as int8 needs whole blocks of 32 in a head", function(p) return p.out == "f32" or p.head_dim % 32 == 0 end }

local cuda = {
  params = { { "path", { "mma", "wgmma", "ffma", "tree" } }, { "tile", { 8, 16, 32, 64, 96, 128 } }, { "warps", { 2, 4, 6, 8 } },
             { "chunk", { 16, 32, 64, 128, 256 } }, { "terms", { 1, 2 } }, { "stages", { 1, 2 } }, { "split", { 1, 2, 4, 8 } } },
  require = {
    { "heads are a multiple of kv_heads, at most 16 to one", function(p) return p.heads % p.kv_heads == 0 and group(p) <= 16 end },
    { "the head is at most 1024 wide", function(p) return p.head_dim <= 1024 end },
    whole_blocks, lib.kv_whole_runs,
    { "mma needs fp16 matrix instructions for 16 rows (sm_75)", function(p, card) return not is(p, "mma") or card.has.mma_f16 == true end },
    lib.card_has("wgmma is an instruction of sm_90 alone", function(p) return is(p, "wgmma") and "wgmma" end),
    { "wgmma has whole warpgroups, runs of 64 tokens in two stages, one term and a head of 128 or 256", function(p)
      return not is(p, "wgmma")
        or p.warps % 4 == 0 and p.chunk == 64 and p.stages == 2 and p.terms == 1 and (p.head_dim == 128 or p.head_dim == 256) end },
    { "mma alone has one term, two stages and a split", function(p)
      return has_tiles(p) or p.terms == 2 and p.stages == 1 and p.split == 1 and p.tile ~= 96 and p.warps ~= 6 end },
    { "ffma reads no K and V of f32", function(p) return not is(p, "ffma") or ffma_reads(p.fk) and ffma_reads(p.fv) end },
    { "scores and rotated queries of tree fit 48 KiB", function(p) return not is(p, "tree") or tree_bytes(p) <= 48 * 1024 end },
    { "mma reads K and V of f16, rotated ones of whole heads, q8 with one term; what has codes has two stages", function(p)
      return not has_tiles(p) or mma_reads_both(p) end },
    { "mma has 16 query rows a warp, runs of at most 64 tokens and whole steps of 16 in a head of at most 256", function(p)
      return not has_tiles(p) or p.tile == 16 * p.warps and p.chunk <= 64 and p.head_dim % 16 == 0 and p.head_dim <= 256 end },
    { "queries, keys and values of mma fit the block's shared memory", function(p, card)
      return not has_tiles(p) or mma_bytes(p, card) + mma_static(p) <= card.smem * 1024 end },
    { "tiles of 32, runs of 16 and one stage for one term are for shared memory below 100 KiB", function(p, card)
      return not has_tiles(p) or card.smem < 100 or p.head_dim % 64 > 0 or p.tile > 32 and p.chunk > 16 and p.stages + p.terms > 2 end },
    { "ffma has 1, 2 or 4 dimensions and tokens a thread and fits 48 KiB", function(p)
      return not is(p, "ffma") or p.tile <= 16 and ffma_fits(p) end },
    { "tree has chunks of 256 and at most 16 query rows", function(p) return not is(p, "tree") or p.chunk == 256 and p.tile <= 16 end },
  },
  default = function(p, card, numerics)
    for _, c in ipairs(cuda_order) do
      local q = { path = c.path, tile = c.tile, warps = c.warps, chunk = c.chunk, terms = p.terms or c.terms, stages = p.stages or c.stages,
                  head_dim = p.head_dim,
                  heads = p.heads, kv_heads = p.kv_heads, fk = p.fk, fv = p.fv }
      local asked = (not p.path or p.path == c.path) and (numerics ~= "strict" or c.path == "tree")
      if asked and (c.path == "tree" and tree_bytes(q) <= 48 * 1024 or c.path == "mma" and mma_fits(q, card)
        or c.path == "wgmma" and wgmma_fits(q, card) or c.path == "ffma" and ffma_fits(q)) then return c end
    end
    return cuda_order[#cuda_order]
  end,
  numerics = function(p)
    if is(p, "tree") then return "canonical" end
    if is(p, "ffma") then return has_parts(p, p.fk) and "half_ffma" or "ffma" end
    return p.terms == 1 and "half_mma" or "mma_f16x2"
  end,
  launch = function(p, card)
    local rows = cuda_rows(p)
    local first = { threads = threads(p), smem = has_tiles(p) and mma_bytes(p, card) or 0, query_rows = rows,
                    grid = { { p.kv_heads * p.split }, { 1, rows = rows // group(p) }, { 1, seqs = 1 } } }
    if p.split == 1 then return { first } end
    return { first, { threads = 128, grid = { { lib.ceil_div(p.heads, 4) }, { 1, rows = 1 } } } }
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
    whole_blocks, lib.kv_whole_runs,
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
    return (past + rows) * p.kv_heads * (lib.kv_token_bytes(p.fk, p.head_dim) + lib.kv_token_bytes(p.fv, p.head_dim)) + rows * row_bytes(p)
  end,
  ops = function(p, rows, past) return (rows * past + rows * (rows + 1) // 2) * p.heads * p.head_dim * 4 end,
  cuda = cuda,
}
