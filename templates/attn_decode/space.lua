-- Lanes run along the head. `rows` query rows share each load of a key or value, `vecs` vectors of the output stay in registers over
-- `block` tokens, `ahead` pages are fetched early. On paths without hardware conversion from f16 a key is converted once for all its query rows.
local function registers(p) return lib.width(p.isa) == 16 and 32 or 16 end

-- CUDA. `tree`: the canonical order, any shape. `split`: `lanes` lanes a token with whole 16-byte vectors, `unroll` of them in flight twice.
-- `staged`: f16 and codes in any pair, as fp32; a warp takes tiles of 32 tokens through its own shared memory.
-- `dp4a`: codes alone, as bytes, with queries and weights as whole numbers of two bytes; a warp takes tiles of 32 tokens.
-- `mma`: a warp takes `unroll` fragments of 16 tokens at a time through `stages` of shared memory. Heads of a KV head that would need too
-- many registers are shared out over several blocks.
local function group_of(p) return p.heads // p.kv_heads end
local function is(p, path) return p.path == path end

-- Heads of a block: the most that divide the group and take at most 64 values of o a lane; of mma, 8.
local function share(p)
  local most = group_of(p)
  local function fits()
    return is(p, "mma") and most <= 8 or (is(p, "dp4a") or is(p, "staged")) and most <= 4 or is(p, "split") and most * p.head_dim <= 64 * p.lanes
  end
  while most > 1 and (group_of(p) % most > 0 or not fits()) do most = most - 1 end
  return most
end

local function vectors_fit(p, lanes) return p.fk == "f16" and p.fv == "f16" and p.head_dim % (8 * lanes) == 0 end
local function static_bytes(p)
  return 4 * p.warps * (share(p) * (p.head_dim + 2) + 32 * lib.round_up(share(p), 4)) + 4 * share(p) * p.head_dim
end

-- A row's queries, gates and results.
local function row_bytes(p)
  local n = p.heads * p.head_dim
  return 8 * n + (p.out ~= "q8" and 4 * n or 0) + (p.out ~= "f32" and n + n // 4 or 0)
end

local whole_blocks = { "out as int8 needs whole blocks of 32 in a head", function(p) return p.out == "f32" or p.head_dim % 32 == 0 end }

-- mma: what the head and its formats allow; dynamic shared memory as mma.cu.in lays it out.
local function mma_takes(p)
  local function ok(f) return f == "f16" or f ~= "f32" and p.head_dim % 128 == 0 end
  return p.head_dim % 32 == 0 and p.head_dim <= 256 and ok(p.fk) and ok(p.fv)
end
local function pitch(p, f)
  local n = p.head_dim
  return f == "f16" and 2 * n + 16 or f == "q8" and n + 32 or f == "r4" and n // 2 + 32 or n // 32 * 12
end
local function tile_bytes(p, f)
  local scales = f == "q8" and p.head_dim // 32 or lib.kv_rotated(f) and 1 or 0
  return 16 * p.unroll * (pitch(p, f) + 2 * scales)
end
local function mma_bytes(p)
  local heads = share(p)
  return p.head_dim * (heads > 4 and 32 or 16) + p.warps * math.max(p.stages * (tile_bytes(p, p.fk) + tile_bytes(p, p.fv)), 4 * heads * p.head_dim)
end
local function mma_fits(p, card) return card.has.mma_f16 == true and mma_takes(p) and mma_bytes(p) + 1024 <= card.smem * 1024 end

-- dp4a and staged: what they take, and their dynamic shared memory.
local function dp4a_takes(p)
  return not lib.kv_plain(p.fk) and not lib.kv_plain(p.fv) and lib.is_pow2(p.head_dim) and p.head_dim >= 32 and p.head_dim <= 256
end
local function staged_takes(p)
  return p.fk ~= "f32" and p.fv ~= "f32" and lib.is_pow2(p.head_dim) and p.head_dim >= 32 and p.head_dim <= 256
end
local function dp4a_bytes(p)
  local function row(f) return f == "q8" and p.head_dim + 16 or p.head_dim == 256 and 144 or math.max(16, p.head_dim // 2) end
  local weights = 272 * (p.fv == "q8" and p.head_dim // 32 or 1)
  return 2 * p.head_dim * share(p) + p.warps * (32 * math.max(row(p.fk), row(p.fv)) + weights + 1024 * share(p))
end

local function staged_bytes(p)
  local n, heads = p.head_dim, share(p)
  local function row(f) return f == "f16" and 2 * n + 64 or f == "q8" and n + 16 or n == 256 and 144 or math.max(16, n // 2) end
  local weights = (p.fv == "q8" and n // 32 or 1) * (128 * lib.round_up(heads, 4) + 16)
  return 4 * n * heads + p.warps * (math.max(32 * math.max(row(p.fk), row(p.fv)), 1024 * heads) + weights)
end

-- The second phase: dimensions of a block, whole heads where they are rotated back, and its threads.
local function merging(p)
  if is(p, "tree") then
    local n = lib.kv_rotated(p.fv) and p.head_dim or 64
    return n, n
  end
  if lib.kv_rotated(p.fv) then return p.head_dim, p.head_dim >= 128 and 512 or 256 end
  return math.min(64, p.head_dim), 256
end

-- The least span: `chunk`; where that is 0, what the warps of a block take at a time, and a row is cut in 64 spans up to 64K tokens, 128 or 256
-- beyond: as many blocks as a card likes at any length.
local function granule(p)
  return p.chunk > 0 and p.chunk or math.max(64, p.warps * (is(p, "mma") and 16 * p.unroll or 32))
end

-- Dynamic shared memory of the first phase; tree's are rotated queries.
local function phase_bytes(p)
  return is(p, "mma") and mma_bytes(p) or is(p, "dp4a") and dp4a_bytes(p) or is(p, "staged") and staged_bytes(p)
    or is(p, "tree") and lib.kv_rotated(p.fk) and 4 * group_of(p) * p.head_dim or 0
end

-- Rings of mma, in the order of preference, with three blocks a multiprocessor where they fit. Cards without copies beside the threads gain nothing
-- by a second stage.
local rings = { { warps = 4, unroll = 2, stages = 2 }, { warps = 4, unroll = 1, stages = 3 }, { warps = 4, unroll = 1, stages = 2 },
                { warps = 2, unroll = 1, stages = 3 }, { warps = 2, unroll = 1, stages = 2 } }
local plain_rings = { { warps = 4, unroll = 2, stages = 1 }, { warps = 4, unroll = 1, stages = 1 }, { warps = 2, unroll = 1, stages = 1 } }

local function mma_default(p, card)
  if not mma_takes(p) or not card.has.mma_f16 then return nil end
  for _, blocks in ipairs { 3, 2, 1 } do
    for _, r in ipairs(card.has.cp_async and rings or plain_rings) do
      local q = { path = "mma", warps = r.warps, unroll = r.unroll, stages = r.stages }
      for _, name in ipairs { "heads", "kv_heads", "head_dim", "fk", "fv" } do q[name] = p[name] end
      if mma_fits(q, card) and (mma_bytes(q) + 1024) * blocks <= card.smem * 1024 then
        return { path = "mma", warps = r.warps, chunk = 0, lanes = 32, unroll = r.unroll, stages = r.stages }
      end
    end
  end
end

local cuda = {
  params = { { "path", { "mma", "dp4a", "split", "staged", "tree" } }, { "warps", { 2, 4, 8 } },
             { "chunk", { 0, 64, 128, 256, 512, 1024, 2048, 32768 } },
             { "lanes", { 8, 16, 32 } }, { "unroll", { 1, 2, 4, 8 } }, { "stages", { 1, 2, 3, 4 } } },
  require = {
    { "heads are a multiple of kv_heads, at most 16 to one", function(p) return p.heads % p.kv_heads == 0 and group_of(p) <= 16 end },
    { "the head is at most 1024 wide", function(p) return p.head_dim <= 1024 end },
    whole_blocks, lib.kv_whole_runs,
    { "tree has one form: chunks of 256, a warp a token, four at a time", function(p)
      return not is(p, "tree") or p.chunk == 256 and p.lanes == 32 and p.unroll == 4 end },
    { "stages of shared memory are mma's", function(p) return is(p, "mma") or p.stages == 1 end },
    { "split reads K and V of f16 in vectors of 8 that the lanes of a token divide", function(p)
      return not is(p, "split") or vectors_fit(p, p.lanes) and p.unroll > 1 end },
    { "every warp has whole runs of 32 tokens", function(p) return is(p, "mma") or is(p, "tree") or p.chunk % (32 * p.warps) == 0 end },
    lib.card_has("dp4a needs sm_61", function(p) return is(p, "dp4a") and "dp4a" end),
    { "dp4a reads codes, of heads that are powers of two from 32 to 256, with 32 lanes and no unrolling", function(p)
      return not is(p, "dp4a") or dp4a_takes(p) and p.lanes == 32 and p.unroll == 1 end },
    { "queries and tiles of dp4a fit the block's shared memory", function(p, card)
      return not is(p, "dp4a") or dp4a_bytes(p) + 1024 <= card.smem * 1024 end },
    { "what is in flight stays in registers", function(p) return not is(p, "split") or p.unroll * p.head_dim <= 64 * p.lanes end },
    { "the warps' results fit the static shared memory", function(p) return not is(p, "split") or static_bytes(p) <= 48 * 1024 end },
    { "staged reads f16 and codes, of heads that are powers of two from 32 to 256, with 32 lanes and no unrolling", function(p)
      return not is(p, "staged") or staged_takes(p) and p.lanes == 32 and p.unroll == 1 end },
    { "queries and tiles of staged fit the block's shared memory", function(p, card)
      return not is(p, "staged") or staged_bytes(p) + 1024 <= card.smem * 1024 end },
    { "mma needs fp16 matrix instructions for 16 rows (sm_75)", function(p, card) return not is(p, "mma") or card.has.mma_f16 == true end },
    { "mma takes heads of whole runs of 32, of 128 where codes are read, up to 256, and no f32", function(p)
      return not is(p, "mma") or mma_takes(p) end },
    { "mma has a fragment or two at a time, on whole warps", function(p) return not is(p, "mma") or p.unroll <= 2 and p.lanes == 32 end },
    { "mma has a stage, or two and more where copies run beside the threads", function(p, card)
      return not is(p, "mma") or (p.stages > 1) == (card.has.cp_async == true) end },
    { "staged and dp4a are for what mma does not take, dp4a for cards without copies beside the threads too", function(p, card)
      if not is(p, "staged") and not is(p, "dp4a") then return true end
      return not (mma_takes(p) and card.has.mma_f16) or is(p, "dp4a") and not card.has.cp_async end },
    { "a chunk has a tile for every warp", function(p) return not is(p, "mma") or granule(p) >= 16 * p.unroll * p.warps end },
    { "queries and stages of mma fit the block's shared memory", function(p, card)
      return not is(p, "mma") or mma_bytes(p) + 1024 <= card.smem * 1024 end },
  },
  default = function(p, card, numerics)
    local mma = numerics ~= "strict" and (not p.path or p.path == "mma") and mma_default(p, card)
    local liked = card.has.cp_async or p.path or p.fk ~= "f16" or p.fv ~= "f16"   -- else split is better, where it takes the head
    if mma and liked then return mma end
    if numerics ~= "strict" and (not p.path or p.path == "dp4a") and dp4a_takes(p) and card.has.dp4a then
      return { path = "dp4a", warps = (p.fk == "q8" or p.fv == "q8") and 2 or 4, chunk = 0, lanes = 32, unroll = 1, stages = 1 }
    end
    for _, lanes in ipairs { 32, 16, 8 } do
      if numerics ~= "strict" and (not p.path or p.path == "split") and vectors_fit(p, lanes) then
        return { path = "split", warps = 4, chunk = 0, lanes = lanes, unroll = 4, stages = 1 }
      end
    end
    if mma then return mma end
    if numerics ~= "strict" and (not p.path or p.path == "staged") and staged_takes(p) then
      local codes = not (p.fk == "f16" or p.fv == "f16")
      return { path = "staged", warps = codes and p.fk ~= "q8" and p.fv ~= "q8" and 4 or 2, chunk = 0, lanes = 32, unroll = 1, stages = 1 }
    end
    return { path = "tree", warps = 8, chunk = 256, lanes = 32, unroll = 4, stages = 1 }
  end,
  numerics = function(p) return is(p, "tree") and "canonical" or is(p, "mma") and "mma_f16x2" or is(p, "dp4a") and "half_dp4a" or "split" end,
  launch = function(p)
    local blocks = is(p, "tree") and p.kv_heads or p.heads // share(p)
    local slice, threads = merging(p)
    return { { threads = 32 * p.warps, smem = phase_bytes(p), granule = granule(p),
               grid = { { blocks }, { 1, rows = 1 }, p.chunk > 0 and { 1, ctx = p.chunk } or { 64, ctx = 65536 } } },
             { threads = threads, slice = slice, grid = { { p.heads * lib.ceil_div(p.head_dim, slice) }, { 1, rows = 1 } } } }
  end,
}

return {
  shape = { "heads", "kv_heads", "head_dim", { "fk", { "f16", "f32", "q8", "r4", "r3" } }, { "fv", { "f16", "f32", "q8", "r4", "r3" } },
            { "out", { "f32", "q8", "both" } } },
  args = "attn_prefill", ref = "attn_prefill",
  params = { { "isa", lib.isa }, { "fma", lib.fma }, { "rows", { 1, 2, 4 } }, { "vecs", { 1, 2, 4 } }, { "block", { 8, 16, 64 } },
             { "ahead", { 0, 1 } } },
  require = {
    { "heads are a multiple of kv_heads, at most 16 to one", function(p)
      return p.heads % p.kv_heads == 0 and p.heads // p.kv_heads <= 16 end },
    { "the head is at most 1024 wide", function(p) return p.head_dim <= 1024 end },
    whole_blocks, lib.kv_whole_runs,
    { "no more rows share a load than heads share a key, or rows are wasted in decode", function(p)
      return p.rows == 1 or p.rows < 2 * (p.heads // p.kv_heads) end },
    { "the partial sums of a score stay in registers", function(p)
      return lib.width(p.isa) < 8 or p.rows * (32 // lib.width(p.isa)) <= registers(p) // 2 end },
    { "the output tile stays in registers", function(p) return (p.rows + 1) * p.vecs + 1 <= registers(p) end },
    lib.card_has_isa, lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa, group = lib.default_isa(p, card), p.heads // p.kv_heads
    local most = lib.width(isa) == 16 and 4 or 2
    local rows = group >= 3 and most or group >= 2 and 2 or 1
    return { isa = isa, fma = lib.default_fma(isa, numerics), rows = rows, vecs = 4, block = 64, ahead = 1 }
  end,
  numerics = lib.numerics_by_fma,
  bytes = function(p, rows, past)
    return (past + rows) * p.kv_heads * (lib.kv_token_bytes(p.fk, p.head_dim) + lib.kv_token_bytes(p.fv, p.head_dim)) + rows * row_bytes(p)
  end,
  ops = function(p, rows, past) return rows * (past + 1) * p.heads * p.head_dim * 4 end,
  cuda = cuda,
}
