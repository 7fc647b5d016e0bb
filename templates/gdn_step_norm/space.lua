-- A block holds a head, so its threads follow from how columns and rows of S are dealt to them.
local function warps(p)
  return lib.ceil_div(lib.ceil_div(p.dim, p.vec), 32 // p.lanes)
end

-- S and all else, against what a multiprocessor's 64 Ki registers leave a thread.
local function registers_fit(p)
  local left = math.min(255, 65536 // (32 * warps(p)) // 8 * 8)
  return warps(p) <= 32 and p.dim // p.lanes * p.vec + (p.lanes > 1 and 72 or 119) <= left
end

local function whole_fours(p) return p.lanes == 1 or p.dim % (4 * p.lanes) == 0 and p.vec <= p.lanes end

return {
  shape   = { "k_heads", "v_heads", "dim", { "group", { "tiled", "grouped" } }, { "out", { "f32", "q8", "both" } } },
  params  = {},
  require = { { "a card: a CPU runs gdn_step, then gated_norm", function() return false end } },
  default = function() return {} end,
  bytes   = function(p, rows)
    local n = p.v_heads * p.dim
    return rows * (n * (8 * p.dim + 16) + (p.out ~= "q8" and 4 * n or 0) + (p.out ~= "f32" and n + n // 4 or 0))
  end,
  ops     = function(p, rows) return rows * p.v_heads * (7 * p.dim * p.dim + 31 * p.dim) end,
  cuda    = {
    params  = {
      { "lanes", { 1, 2, 4, 8, 16 } },       -- that share a column; 1: one chain a column
      { "vec", { 1, 2, 4 } },                -- neighbouring columns of a thread
      { "hold", { "registers", "memory" } }, -- where S lives from row to row
    },
    require = {
      { "dim is at most 256", function(p) return p.dim <= 256 end },
      { "value heads are a multiple of key heads", function(p) return p.v_heads % p.k_heads == 0 end },
      { "out as int8 needs whole blocks of 32 in a head", function(p) return p.out == "f32" or p.dim % 32 == 0 end },
      { "a thread that owns a column whole owns one", function(p) return p.lanes > 1 or p.vec == 1 end },
      { "lanes have whole fours of k, and a column each when the sums are folded", whole_fours },
      { "only whole columns stay in memory", function(p) return p.hold == "registers" or p.lanes == 1 end },
      { "S and what goes with it fit the registers", function(p) return p.hold == "memory" or registers_fit(p) end },
    },
    default = function(p, _, numerics)
      if not p.lanes and not p.hold and numerics ~= "strict" then
        for _, c in ipairs { { 8, 4 }, { 8, 2 }, { 4, 4 }, { 4, 2 }, { 2, 2 } } do -- lanes, vec
          local q = { dim = p.dim, lanes = c[1], vec = p.vec or c[2] }
          if whole_fours(q) and registers_fit(q) then return { lanes = q.lanes, vec = q.vec, hold = "registers" } end
        end
      end
      local q = { dim = p.dim, lanes = p.lanes or 1 }
      q.vec = p.vec or math.min(q.lanes, 2)
      return { lanes = q.lanes, vec = q.vec, hold = p.hold or (registers_fit(q) and "registers" or "memory") }
    end,
    numerics = function(p) return p.lanes == 1 and "canonical" or "lanes" .. p.lanes end,
    launch   = function(p) return { threads = 32 * warps(p), grid = { { p.v_heads }, { 1, seqs = 1 } } } end,
  },
}
