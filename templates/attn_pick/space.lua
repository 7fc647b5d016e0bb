-- A part of the team, or a few warps, take pages of K for the probes of some blocks of rows; then one takes a block and KV head and chooses.
local function group(p) return p.heads // p.kv_heads end

local groups = { "heads are a multiple of kv_heads, at most 16 to one", function(p) return p.heads % p.kv_heads == 0 and group(p) <= 16 end }
local widest = { "the head is at most 1024 wide", function(p) return p.head_dim <= 1024 end }

-- CUDA. `mma`: a warp has 16 probe rows in registers, keys of a page lie in shared memory as halves, in one or two buffers.
-- `lanes`: a warp a page, the canonical order, any shape.
local function is_mma(p) return p.path == "mma" end
local function mma_bytes(p) return p.stages * 64 * (p.head_dim + 8) * 2 end
local function mma_fits(p, card)
  return p.head_dim % 16 == 0 and p.head_dim <= 256 and card.has.mma_f16 == true and 16 * p.warps >= 4 * group(p) and p.warps <= 4 * p.stages
    and mma_bytes(p) + 128 <= card.smem * 1024
end

local cuda_order = { { path = "mma", warps = 8, stages = 2 }, { path = "mma", warps = 4, stages = 2 }, { path = "mma", warps = 4, stages = 1 } }

local cuda = {
  params = { { "path", { "mma", "lanes" } }, { "warps", { 4, 8 } }, { "stages", { 1, 2 } } },
  require = {
    groups, lib.kv_whole_runs, widest,
    { "mma needs fp16 matrix instructions for 16 rows (sm_75), whole steps of 16 in a head of at most 256, 16 rows a warp and a buffer of 4 warps",
      function(p, card) return not is_mma(p) or mma_fits(p, card) end },
    { "lanes has one form", function(p) return is_mma(p) or p.warps == 8 and p.stages == 1 end },
  },
  default = function(p, card, numerics)
    for _, c in ipairs(cuda_order) do
      local q = { warps = c.warps, stages = c.stages, heads = p.heads, kv_heads = p.kv_heads, head_dim = p.head_dim }
      if numerics ~= "strict" and p.path ~= "lanes" and mma_fits(q, card) then return c end
    end
    return { path = "lanes", warps = 8, stages = 1 }
  end,
  numerics = function(p) return is_mma(p) and "mma_f16" or "canonical" end,
  launch = function(p)
    local blocks = is_mma(p) and 16 * p.warps // (4 * group(p)) or 1
    return { { threads = 32 * p.warps, smem = is_mma(p) and mma_bytes(p) or 0, blocks = blocks,
               grid = { { p.kv_heads, ctx = 4096 }, { 1, rows = 64 * blocks }, { 1, seqs = 1 } } },
             { threads = 256, grid = { { p.kv_heads }, { 1, rows = 64 }, { 1, seqs = 1 } } } }
  end,
}

return {
  shape = { "heads", "kv_heads", "head_dim", { "fk", { "f16", "f32", "q8", "r4", "r3" } } },
  params = { { "isa", lib.isa }, { "fma", lib.fma } },
  require = { groups, lib.kv_whole_runs, widest, lib.card_has_isa, lib.fma_fits_isa },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics) }
  end,
  numerics = lib.numerics_by_fma,
  bytes = function(p, rows, past)
    return (past + rows) * p.kv_heads * lib.kv_token_bytes(p.fk, p.head_dim) + rows // 16 * p.heads * (4 * p.head_dim + (past + rows) // 4)
  end,
  ops = function(p, rows, past) return rows // 16 * (past + rows // 2 + 1) * p.heads * p.head_dim * 2 + 1 end,
  cuda = cuda,
}
