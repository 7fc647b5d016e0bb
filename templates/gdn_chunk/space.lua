local function block(p) return p.vecs * lib.width(p.isa) end
local function step(p) return p.chunk == 1 end
local function registers(p) return p.isa == "avx512vnni" and 32 or 16 end

-- CUDA. Shared memory of the first kernel: products of rows (staged 32 values at a time), a head's A, decays and b.
local function inverse_threads(p) return p.chunk == 64 and 256 or 128 end
local function inverse_smem(p)
  local c, heads = p.chunk, math.min(inverse_threads(p) // p.chunk, p.v_heads // p.k_heads)
  return 4 * (math.max(2 * c * 36, 2 * c * c) + heads * (c * (c + 4) + 2 * c))
end

-- Threads that share four columns, each with rows of its own; k padded to whole tiles of S.
local function teams(p) return p.threads * 4 // p.cols end
local function depth(p) return lib.round_up(p.dim, 4 * teams(p)) end

-- Of the second: S, two matrices of a chunk's rows, and what chunks bring.
local function chunk_smem(p)
  local c = p.chunk
  return 4 * (depth(p) * p.cols + 2 * c * p.cols + p.stages * (2 * c * (depth(p) + 4) + 2 * c * (c + 4) + 2 * c))
end

local function fits(p, card)
  return step(p) or teams(p) <= p.chunk and math.max(inverse_smem(p), chunk_smem(p)) <= card.smem * 1024
end

-- From what is fastest where it fits to what fits anywhere: chunk, cols, threads, stages.
local choices = { { 32, 32, 128, 2 }, { 32, 32, 128, 1 }, { 32, 16, 64, 1 }, { 16, 32, 128, 1 }, { 16, 16, 64, 1 }, { 16, 8, 32, 1 } }

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
  cuda = {
    params = {
      { "chunk", { 1, 16, 32, 64 } },      -- rows of a chunk; 1: the token recurrence, gdn_step's text and bits
      { "cols", { 8, 16, 32, 64 } },       -- value columns of a block
      { "threads", { 32, 64, 128, 256 } }, -- of a block
      { "stages", { 1, 2 } },              -- 2: a chunk's rows arrive while the one before is worked on
    },
    require = {
      { "dim is a multiple of 8, at most 256", function(p) return p.dim % 8 == 0 and p.dim >= 8 and p.dim <= 256 end },
      { "value heads are a multiple of key heads", function(p) return p.k_heads >= 1 and p.v_heads >= 1 and p.v_heads % p.k_heads == 0 end },
      { "chunk 1 has a column a thread, 32 or 64 of each", function(p) return not step(p) or p.cols == p.threads and p.threads <= 64 and p.stages == 1 end },
      { "chunk 1 keeps more than 128 k of S in shared memory, 32 columns of it", function(p) return not step(p) or p.threads == 32 or p.dim <= 128 end },
      lib.card_has("two stages need cp.async", function(p) return p.stages == 2 and "cp_async" end),
      { "every thread has a row of a chunk, and all fits the card's shared memory", fits },
      { "S fits 64 registers a thread", function(p) return step(p) or depth(p) // teams(p) * 4 <= 64 end },
    },
    default = function(p, card, numerics)
      if p.chunk == 1 or numerics == "strict" or numerics == "reference" then return { chunk = 1, cols = 32, threads = 32, stages = 1 } end
      local idle = 4 * p.v_heads * lib.ceil_div(p.dim, 32) < 3 * card.sms -- then narrow blocks, so that more multiprocessors have one
      for _, c in ipairs(choices) do
        local q = { chunk = p.chunk or c[1], cols = p.cols or c[2], threads = p.threads or c[3], stages = p.stages or c[4],
                    dim = p.dim, k_heads = p.k_heads, v_heads = p.v_heads }
        local wide = idle and c[2] >= 32
        if c == choices[#choices] or not wide and (q.stages == 1 or card.has.cp_async) and fits(q, card) then return q end
      end
    end,
    numerics = function(p) return step(p) and "canonical" or "inverse" .. p.chunk end,
    launch = function(p)
      local columns = { p.v_heads * lib.ceil_div(p.dim, p.cols) }
      if step(p) then return { threads = p.threads, grid = { columns, { 1, seqs = 1 } } } end
      return { { threads = inverse_threads(p), smem = inverse_smem(p), grid = { { p.k_heads }, { 1, rows = p.chunk } } },
               { threads = p.threads, smem = chunk_smem(p), grid = { columns, { 1, seqs = 1 } } } }
    end,
  },
}
