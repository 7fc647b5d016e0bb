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

return {
  shape  = { { "type", { "q8_0", "f16", "bf16", "f32" } }, { "act", { "q8", "f32" } }, { "layout", { "rows", "r16", "r16u", "planes" } },
             "n", "k", { "epi", { "none", "add" } } },
  params = { { "isa", lib.isa }, { "fma", lib.fma }, { "tm", { 1, 2, 3, 4, 6 } }, { "tn", { 1, 2, 3, 4, 5, 6, 8, 12 } },
             { "chain", { "chunk", "whole", "lanes" } } },
  require = {
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
}
