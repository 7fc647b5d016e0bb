-- Tile of tm units of w (a unit is a row, in r16 and r16u a group of 16) by tn rows of x.
-- chain: how an output's sum is cut. chunk: canonical; whole: one chain over all of k; lanes: a chain a lane (q8 in file layout).
local function unit(p) return p.layout == "rows" and 1 or 16 end
local BYTES = { f32 = 4, f16 = 2, bf16 = 2 }

-- Registers for sums and accumulators that a tile wants, in vectors.
local function registers(p)
  local w = lib.width(p.isa)
  if p.act == "f32" then return p.tm * p.tn * math.min(32 // w, 8) end
  return p.layout == "rows" and p.tm * p.tn * 2 or p.tm * p.tn * 2 * math.min(16 // w, 4)
end

-- Default tiles, the best of a few timed at n=3584, k=1024, 512 rows on a Zen 4. Taller tiles read x, which lies in L2, less often.
local R16 = { sse42 = { 1, 2 }, avx2 = { 1, 4 }, avxvnni = { 1, 4 }, avx512vnni = { 3, 4 } }
local FLOAT = { sse42 = { 2, 1 }, avx2 = { 3, 1 }, avxvnni = { 3, 1 }, avx512vnni = { 4, 3 } }

local function tile(p, isa)
  if isa == "scalar" then return { 1, 1 } end
  if p.act == "f32" then return FLOAT[isa] end
  return p.layout == "rows" and { 2, 4 } or R16[isa]
end

-- CUDA. tile: XxW_xxw, a block's rows of x by rows of w, then those that a thread (paths dp4a, hfma2, ffma) or a warp owns.
-- step: k of a stage of shared memory; stages: how many; load: through registers, a quarter a 32-block, or by cp.async; unroll: 32-blocks.
-- chain: chunk is canonical, whole is one chain over k; split: k cut over that many blocks, their sums added by a second kernel.
local TILES = {
  dp4a    = { "128x128_8x8", "64x128_8x8", "64x128_4x16", "128x256_8x16", "64x64_8x4", "32x64_4x8" },
  hfma2   = { "128x128_8x8", "64x128_8x8", "64x64_8x4", "32x64_4x8" },
  ffma    = { "128x128_8x8", "64x128_8x8", "64x64_8x4", "32x64_4x8" },
  mma_i8  = { "128x128_64x64", "64x128_64x32", "128x128_64x32", "128x256_64x64", "64x64_32x32", "32x64_32x32" },
  mma_f16 = { "128x128_64x32", "64x128_64x32", "64x64_32x32", "32x64_32x32" },
  float   = { "16x32_8x8", "32x16_8x8", "16x16_8x8", "16x16_4x8" },
}
local ALL_TILES = {}
for _, path in ipairs { "dp4a", "hfma2", "ffma", "mma_i8", "mma_f16", "float" } do
  for _, t in ipairs(TILES[path]) do
    if not table.concat(ALL_TILES, " "):find(t, 1, true) then ALL_TILES[#ALL_TILES + 1] = t end
  end
end

local function has(list, v)
  for _, x in ipairs(list) do
    if x == v then return true end
  end
  return false
end

local function is_mma(p) return p.path:find("^mma") ~= nil end
local function is_half(p) return p.path == "hfma2" end
local function tiles_of(p) return TILES[p.act == "f32" and "float" or p.path] end
-- Sums that a thread keeps beside those of the running chunk.
local function keeps_totals(p) return p.chain == "chunk" and p.k > 1024 and p.split == 1 end

-- Registers that a thread wants, by what compilers took: its sums, what it holds of a 32-block, and addresses; parts on their way.
local function thread_registers(p, g)
  local sums = g.sums_x * g.sums_w
  local all = sums * (keeps_totals(p) and 2 or 1) + (p.load == "registers" and 35 or 0)
  if p.act == "f32" then return sums + 64 end
  if p.n % g.w > 0 then all = all + 24 end -- rows past the end are held back one by one
  if p.path == "dp4a" then return all + 8 * g.own_x + 75 end
  if is_half(p) then return all + sums + 4 * g.own_x + 40 end
  if p.path == "mma_i8" then return all + g.own_x // 4 + g.own_w // 4 + 60 end
  return all + sums + 60
end

-- What the template needs to know: a block's geometry, the places in a stage, how many blocks a multiprocessor shall hold.
local function plan(p, card)
  local g = { step = p.step, row = p.step * (is_half(p) and 2 or 1) }    -- row: bytes of a row of a tile
  g.x, g.w, g.own_x, g.own_w = p.tile:match("^(%d+)x(%d+)_(%d+)x(%d+)$")
  for _, name in ipairs { "x", "w", "own_x", "own_w" } do g[name] = math.tointeger(tonumber(g[name])) end
  local owners = g.x // g.own_x * (g.w // g.own_w)
  g.threads = (is_mma(p) or p.act == "f32") and owners * 32 or owners
  g.sums_x, g.sums_w = g.own_x, g.own_w
  if is_mma(p) then g.sums_x, g.sums_w = g.own_x // 8, g.own_w // 4 end
  g.at_w = g.x * g.row
  g.at_dx = g.at_w + g.w * g.row
  g.at_dw = g.at_dx + p.step // 32 * g.x * 4
  g.stage = g.at_dw + p.step // 32 * g.w * (p.path == "dp4a" and 8 or 4)
  g.smem = p.act == "f32" and 0 or p.stages * g.stage + 4 * g.x
  g.registers = thread_registers(p, g)
  local cap = g.registers > 168 and 256 or g.registers > 128 and 168 or 128
  g.blocks = math.max(1, math.min(65536 // (g.threads * cap), card.smem * 1024 // math.max(1, g.smem)))
  return g
end

local FEATURE = { dp4a = "dp4a", hfma2 = "half", mma_i8 = "mma_i8", mma_f16 = "mma_f16_884" }

local function float_default(p) return { path = "ffma", tile = "16x32_8x8", step = 128, stages = 2, load = "registers",
                                         unroll = p.unroll or 2, chain = "chunk", split = 1 } end

-- Volta starts with dp4a, as the matrix instructions of its mining cards are fused off. Where there is no dp4a (sm_60) half2 arithmetic
-- is twice as fast as ffma, which is exact; what it loses (half_error in ref.c) is a tenth of what int8 activations lost before.
local function best_path(card, strict)
  if card.has.dp4a then return card.has.mma_i8 and "mma_i8" or "dp4a" end
  return card.has.half and not strict and "hfma2" or "ffma"
end

-- As prototypes of these loops were timed on an H200; narrow matrices take narrow tiles, and k in parts where few tiles would be all.
local function default_tile(p, path, totals, async)
  local small = p.n <= 64 or (totals and not async)
  if path:find("^mma") then return small and "64x64_32x32" or "64x128_64x32" end
  return small and "64x64_8x4" or (path == "dp4a" and not totals) and "128x128_8x8" or "64x128_8x8"
end

local function cuda_default(p, card, numerics)
  if p.act == "f32" then return float_default(p) end
  local strict = numerics == "strict"
  local path = p.path or best_path(card, strict)
  local half = path == "hfma2"
  local narrow = p.layout == "planes" and p.n <= 256 and p.k >= 4096
  local split = p.split or (narrow and (not strict or p.k == 4096) and 4) or 1
  local chain = p.chain or (p.k > 1024 and (split > 1 or half or not strict) and "whole") or "chunk"
  local totals = chain == "chunk" and p.k > 1024
  local async = card.has.cp_async and p.layout == "planes" and (path == "mma_i8" or (totals and path ~= "ffma"))
  local load = p.load or (async and "cp_async" or "registers")
  local step = p.step or half and 32 or (card.smem < (path == "mma_i8" and 64 or 80) and 64 or 128)
  return { path = path, tile = default_tile(p, path, totals, load == "cp_async"), step = step, stages = 2, load = load,
           unroll = (half or path:find("^mma")) and 1 or step // 32, chain = chain, split = split }
end

local cuda = {
  params = { { "path", { "dp4a", "hfma2", "ffma", "mma_i8", "mma_f16" } }, { "tile", ALL_TILES }, { "step", { 128, 64, 32 } },
             { "stages", { 2, 3 } }, { "load", { "registers", "cp_async" } }, { "unroll", { 4, 2, 1 } }, { "chain", { "chunk", "whole" } },
             { "split", { 1, 2, 4 } } },
  require = {
    { "several outputs are of int8 activations", function(p) return p.epi ~= "parts" or p.act == "q8" end },
    { "int8 activations meet q8_0 weights", function(p) return p.act == "f32" or p.type == "q8_0" end },
    { "k of q8_0 is whole blocks of 32", function(p) return p.type ~= "q8_0" or p.k % 32 == 0 end },
    { "weights lie in planes or as in the file", function(p) return p.layout == "rows" or (p.layout == "planes" and p.type == "q8_0") end },
    { "fp32 activations read weights as in the file", function(p) return p.act == "q8" or p.layout == "rows" end },
    { "fp32 activations are multiplied by fp32 fma, without stages or parts of k", function(p)
      return p.act == "q8" or (p.path == "ffma" and p.step == 128 and p.stages == 2 and p.load == "registers" and p.chain == "chunk"
                               and p.split == 1) end },
    lib.card_has("the card has the instructions of the path", function(p) return FEATURE[p.path] end),
    lib.card_has("cp_async needs sm_80", function(p) return p.load == "cp_async" and "cp_async" end),
    { "the tile is one of the path", function(p) return has(tiles_of(p), p.tile) end },
    { "cp_async reads planes", function(p) return p.load == "registers" or p.layout == "planes" end },
    { "bytes become halves in registers", function(p) return p.load == "registers" or not is_half(p) end },
    { "sums of halves are not canonical: one chain", function(p) return not is_half(p) or p.chain == "whole" or p.k <= 1024 end },
    { "loads through registers have two stages", function(p) return p.load == "cp_async" or p.stages == 2 end },
    { "no more than the 32-blocks of a step are unrolled", function(p) return p.unroll <= p.step // 32 end },
    { "matrix instructions unroll two 32-blocks at most, bytes and floats at least, halves none", function(p)
      if p.act == "f32" then return true end
      if is_half(p) then return p.unroll == 1 end
      return (is_mma(p) and p.unroll <= 2) or (not is_mma(p) and p.unroll >= 2) end },
    { "three stages are for matrix instructions", function(p) return p.stages == 2 or is_mma(p) end },
    { "int8 by fp32 fma is for cards without dp4a", function(p, card)
      return p.act == "f32" or p.path ~= "ffma" or not card.has.dp4a end },
    { "matrix instructions load through registers where there is no cp_async for the layout", function(p, card)
      return not is_mma(p) or p.load == "cp_async" or not card.has.cp_async or p.layout == "rows" end },
    { "steps are of 128, on cards with little shared memory also of 64, those of halves of 32 or 64", function(p, card)
      if is_half(p) then return p.step < 128 end
      return p.step == 128 or (p.step == 64 and card.smem <= 64) end },
    { "the stages fit the shared memory", function(p, card) return plan(p, card).smem <= card.smem * 1024 end },
    { "threads divide the loads of a 32-block", function(p, card)
      local g = plan(p, card)
      return p.act == "f32" or p.load == "cp_async" or (2 * g.x % g.threads == 0 and 2 * g.w % g.threads == 0) end },
    { "the sums fit the registers", function(p, card) return plan(p, card).registers < 268 end },
    { "a whole chain differs beyond one chunk", function(p) return p.chain == "chunk" or p.k > 1024 end },
    { "parts of k are whole chains of weights in planes, and their sums fit the work area", function(p)
      return p.split == 1 or (p.layout == "planes" and p.chain == "whole" and p.split * p.n <= 16384) end },
    { "parts of k are tried with the usual loop", function(p)
      return p.split == 1 or (p.stages == 2 and p.unroll == ((is_mma(p) or is_half(p)) and 1 or p.step // 32)) end },
  },
  default = cuda_default,
  -- Parts of one chunk each are the canonical order.
  numerics = function(p)
    if is_half(p) then return p.split > 1 and "half_split" .. p.split or "half" end
    if p.split > 1 then return p.k == 1024 * p.split and "canonical" or "split" .. p.split end
    return p.chain == "whole" and "whole" or "canonical"
  end,
  launch = function(p, card)
    local g = plan(p, card)
    local main = { threads = g.threads, smem = g.smem, grid = { { 1, rows = g.x }, { lib.ceil_div(p.n, g.w) }, { p.split } } }
    local phases = p.split == 1 and main or { main, { threads = 256, grid = { { 1, rows = 1 }, { lib.ceil_div(p.n, 256) } } } }
    phases.plan = g
    return phases
  end,
}

return {
  shape  = { { "type", { "q8_0", "f16", "bf16", "f32" } }, { "act", { "q8", "f32" } }, { "layout", { "rows", "r16", "r16u", "planes" } },
             "n", "k", { "epi", { "none", "add", "parts" } } },
  params = { { "isa", lib.isa }, { "fma", lib.fma }, { "tm", { 1, 2, 3, 4, 6 } }, { "tn", { 1, 2, 3, 4, 5, 6, 8, 12 } },
             { "chain", { "chunk", "whole", "lanes" } } },
  require = {
    { "several outputs are for CUDA", function(p) return p.epi ~= "parts" end },
    { "weights in planes are for CUDA", function(p) return p.layout ~= "planes" end },
    { "int8 activations meet q8_0 weights", function(p) return p.act == "f32" or p.type == "q8_0" end },
    { "k of q8_0 is whole blocks of 32", function(p) return p.type ~= "q8_0" or p.k % 32 == 0 end },
    { "fp32 activations read weights as in the file", function(p) return p.act == "q8" or p.layout == "rows" end },
    { "groups of 16 rows divide n", function(p) return p.n % unit(p) == 0 end },
    { "the scalar path reads weights as in the file", function(p) return p.isa ~= "scalar" or p.layout == "rows" end },
    { "the tile is no taller than the matrix", function(p) return p.tm * unit(p) <= p.n end },
    { "the tile's sums fit the registers", function(p) return registers(p) <= (p.isa == "avx512vnni" and 36 or 16) end },
    { "a chain a lane is for vectors of q8_0 in file layout", function(p)
      return p.chain ~= "lanes" or (p.act == "q8" and p.layout == "rows" and p.isa ~= "scalar" and p.fma ~= "soft") end },
    { "a whole chain is for groups of rows and fp32, and differs only beyond one chunk", function(p)
      return p.chain ~= "whole" or (p.k > 1024 and (p.act == "f32" or p.layout ~= "rows")) end },
    lib.card_has_isa, lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    local t = tile(p, isa)
    return { isa = isa, fma = lib.default_fma(isa, numerics), tm = math.min(t[1], math.max(1, p.n // unit(p))), tn = t[2], chain = "chunk" }
  end,
  numerics = function(p)
    local class = p.chain == "chunk" and "canonical" or p.chain
    if p.fma ~= "none" then return class end
    return class == "canonical" and "nofma" or class .. "_nofma"
  end,
  bytes = function(p, rows)
    local x = p.act == "q8" and p.k + p.k // 4 or 4 * p.k
    return p.n * (BYTES[p.type] and BYTES[p.type] * p.k or p.k // 32 * 34) + rows * (x + 4 * p.n)
  end,
  ops = function(p, rows) return 2 * rows * p.n * p.k end,
  cuda = cuda,
}
