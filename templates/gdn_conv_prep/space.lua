-- On a card only: there a step of few rows costs its launches. Elsewhere conv_silu and gdn_prep do it.
local GATE_WARPS = 4 -- of 32 gates, as kernel.cu.in has them

local function channels(p) return (2 * p.k_heads + p.v_heads) * p.dim end

return {
  shape   = { "k_heads", "v_heads", "dim", "taps" },
  params  = {},
  require = { { "a card: a CPU runs conv_silu and gdn_prep", function() return false end } },
  default = function() return {} end,
  bytes   = function(p, rows) return rows * (8 * channels(p) + 16 * p.v_heads) + 4 * channels(p) * (3 * p.taps - 2) end,
  ops     = function(p, rows) return rows * (channels(p) * (2 * p.taps + 20) + 6 * p.k_heads * p.dim + 60 * p.v_heads) end,
  cuda    = {
    params = {
      { "lanes", { 32, 64, 128, 256 } }, -- of a head: a warp adds its squares by shuffles, several by shared memory
      { "threads", { 32, 64, 128, 256 } },
    },
    require = {
      { "dim is a multiple of 8, at most 256", function(p) return p.dim % 8 == 0 and p.dim >= 8 and p.dim <= 256 end },
      { "value heads are a multiple of key heads",
        function(p) return p.k_heads >= 1 and p.v_heads >= 1 and p.v_heads % p.k_heads == 0 end },
      { "a filter has 2 to 8 taps", function(p) return p.taps >= 2 and p.taps <= 8 end },
      { "a block is one head, or a warp each of several",
        function(p) return p.threads == p.lanes or (p.lanes == 32 and p.threads > 32) end },
      { "half of the lanes are too few for a head", function(p) return p.lanes == 32 or p.lanes < 2 * p.dim end },
    },
    default = function(p) -- a channel a thread
      local lanes = p.lanes or 32
      while not p.lanes and lanes < p.dim and lanes < 256 do lanes = lanes * 2 end
      return { lanes = lanes, threads = lanes }
    end,
    numerics = function() return "canonical" end,
    launch = function(p)
      local gates = lib.ceil_div(lib.ceil_div(p.v_heads, 32) * GATE_WARPS, p.lanes // 32)
      local items = 2 * p.k_heads + p.v_heads + gates
      return { threads = p.threads, grid = { { lib.ceil_div(items, p.threads // p.lanes) }, { 1, seqs = 1 } } }
    end,
  },
}
