-- As matmul, with few rows: tn rows of x meet each pass over w. prefetch: bytes ahead in w, 0: left to the hardware.
-- chain: how an output's sum is cut. chunk: canonical; whole: one chain over all of k; lanes: a chain a lane (q8 in file layout).
local function unit(p) return p.layout == "rows" and 1 or 16 end
local BYTES = { f32 = 4, f16 = 2, bf16 = 2 }

-- Registers for sums and accumulators that a tile wants, in vectors.
local function registers(p)
  local w = lib.width(p.isa)
  if p.act == "f32" then return p.tm * p.tn * math.min(32 // w, 8) end
  return p.layout == "rows" and p.tm * p.tn * 2 or p.tm * p.tn * 2 * math.min(16 // w, 4)
end

-- CUDA. K_CHUNKs of a row, and how many of them a warp keeps (q8).
local function chunks(p) return lib.ceil_div(p.k, 1024) end
local function span(p) return lib.ceil_div(chunks(p), p.split) end

-- Neighbours along k that a lane loads at once, at most 16 bytes, as far as rows are aligned (fp32 activations). Rows a warp.
local function vector(p)
  local v = (p.type == "f16" or p.type == "bf16") and 8 or 4
  while p.k % v > 0 do v = v // 2 end
  return v
end
local function height(p) return p.act == "q8" and p.hold or vector(p) end

-- Bytes of static shared memory: partial sums, and a chain's scaled block sums.
local function shared(p)
  local outputs = height(p) * p.tn * p.groups * (p.split > 1 and 2 or 1)
  if p.act == "f32" then return outputs * chunks(p) * 4 end
  if p.chain == "lanes" then return outputs * p.split * 4 end
  return outputs * chunks(p) * 4 + p.split * p.groups * (p.hold + 1) * span(p) * p.tn * 36 * 4
end

-- Rows and K_CHUNKs of a warp: eight of both together keep enough bytes under way; fewer where warps would be short, and where
-- bytes become floats in registers.
local TILES = { { 4, 2 }, { 4, 1 }, { 2, 2 }, { 2, 1 }, { 1, 2 }, { 1, 1 } }
local FLOAT_TILES = { { 2, 1 }, { 1, 2 }, { 1, 1 } }

local function default_tile(p, card)
  local c = chunks(p)
  local least = lib.ceil_div(c, 16)
  for _, t in ipairs(card.has.dp4a and TILES or FLOAT_TILES) do
    local hold, keep = t[1], math.max(math.min(t[2], c), least)
    local split = lib.ceil_div(c, keep)
    local fits = hold * keep < 8 or hold * keep == 8 and 16 // split * split >= 12 -- 16 warps of 128 registers a multiprocessor
    if fits and hold <= p.n and lib.ceil_div(p.n, hold) * split >= 8 * card.sms then return hold, split end
  end
  return 1, lib.ceil_div(c, least)
end

return {
  args = "matmul", ref = "matmul",
  shape  = { { "type", { "q8_0", "f16", "bf16", "f32" } }, { "act", { "q8", "f32" } }, { "layout", { "rows", "r16", "r16u", "planes" } },
             "n", "k", { "epi", { "none", "add", "parts" } } },
  params = { { "isa", lib.isa }, { "fma", lib.fma }, { "tm", { 1, 2, 3, 4, 6 } }, { "tn", { 1, 2, 4, 8 } },
             { "chain", { "chunk", "whole", "lanes" } }, { "prefetch", { 0, 1024, 4096, 8192 } } },
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
    { "prefetch is for weights in q8_0 by int8", function(p) return p.prefetch == 0 or p.act == "q8" end },
    lib.card_has_isa, lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics), tm = 1, tn = isa == "avx512vnni" and 8 or lib.width(isa) < 8 and 2 or 4, chain = "chunk",
             prefetch = 0 }
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
  -- hold: what a warp keeps in registers: rows of w by its K_CHUNKs (q8), or steps of 32 along k (fp32 activations).
  -- split: warps that share a row. groups: such groups a thread block. tn: rows of x at a time, after a first one alone.
  -- prefetch: 1: weights are fetched before earlier kernels have ended. path ffma: integer products in fp32, exact.
  cuda = {
    params = { { "path", { "dp4a", "ffma" } }, { "chain", { "chunk", "lanes" } }, { "hold", { 1, 2, 4, 8 } },
               { "split", { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } }, { "groups", { 1, 2, 4, 8 } },
               { "tn", { 1, 2, 4, 8 } }, { "prefetch", { 0, 1 } } },
    require = {
      { "several outputs are of int8 activations", function(p) return p.epi ~= "parts" or p.act == "q8" end },
      { "int8 activations meet q8_0 weights", function(p) return p.act == "f32" or p.type == "q8_0" end },
      { "k of q8_0 is whole blocks of 32", function(p) return p.type ~= "q8_0" or p.k % 32 == 0 end },
      { "groups of 16 rows are for CPUs", function(p) return p.layout == "rows" or p.layout == "planes" end },
      { "fp32 activations read weights as in the file", function(p) return p.act == "q8" or p.layout == "rows" end },
      { "dp4a is of int8 activations", function(p) return p.path ~= "dp4a" or p.act == "q8" end },
      lib.card_has("dp4a needs compute capability 6.1", function(p) return p.path == "dp4a" and "dp4a" or nil end),
      { "a chain a lane is of int8 activations", function(p) return p.chain ~= "lanes" or p.act == "q8" end },
      lib.card_has("weights before the end of earlier kernels need dependent launches", function(p) return p.prefetch == 1 and "pdl" or nil end),
      { "k of int8 activations is at most 131072", function(p) return p.act == "f32" or p.k <= 131072 end },
      { "a thread block has at most 16 warps", function(p) return p.split * p.groups <= 16 end },
      { "every warp has part of k", function(p) return lib.ceil_div(chunks(p), span(p)) == p.split end },
      { "a lane keeps at most 16 times 32 bytes", function(p) return p.act == "f32" or p.hold * span(p) <= 16 end },
      { "a warp stores at most 32 outputs at a time", function(p) return height(p) * p.tn <= 32 end },
      { "no group of warps is without a row", function(p) return p.groups == 1 or height(p) * (p.groups - 1) < p.n end },
      { "a warp has no more rows than w", function(p) return p.act == "f32" or p.hold < 2 * p.n end },
      { "sums fit the static shared memory", function(p) return shared(p) <= 49152 end },
    },
    default = function(p, card, numerics)
      local hold, split = default_tile(p, card)
      if p.act == "f32" then hold, split = 4, lib.ceil_div(chunks(p), lib.ceil_div(chunks(p), 4)) end   -- at most 4, all with as much or the last with less
      local dp4a = p.act == "q8" and card.has.dp4a
      local t = { act = p.act, type = p.type, n = p.n, k = p.k, hold = hold, split = split,
                  path = dp4a and "dp4a" or "ffma", chain = p.chain or (p.act == "f32" or numerics == "strict") and "chunk" or "lanes",
                  groups = split == 1 and 4 or split <= 3 and 2 or 1, tn = (dp4a or p.act == "f32") and 2 or 1,
                  prefetch = card.has.pdl and 1 or 0 }
      while t.groups > 1 and lib.ceil_div(p.n, height(t) * t.groups) < 2 * card.sms do t.groups = t.groups // 2 end
      if shared(t) > 49152 then t.groups, t.tn = 1, 1 end
      return t
    end,
    numerics = function(p) return p.chain == "chunk" and "canonical" or "lanes" end,
    launch = function(p)
      return { threads = 32 * p.split * p.groups, span = span(p), vector = vector(p),
               grid = { { lib.ceil_div(p.n, height(p) * p.groups) } } }
    end,
  },
}
