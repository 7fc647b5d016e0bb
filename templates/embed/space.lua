local BYTES = { f32 = 4, f16 = 2, bf16 = 2 }

-- Elements that a thread takes at once (CUDA): rows start at multiples of them.
local function width(p) return p.n % 4 == 0 and 4 or p.n % 2 == 0 and 2 or 1 end

return {
  shape   = { { "type", { "q8_0", "f16", "bf16", "f32" } }, { "layout", { "rows", "r16", "r16u", "planes" } }, "n", "vocab" },
  params  = { { "isa", lib.isa } },
  require = {
    { "a row of q8_0 is whole blocks of 32", function(p) return p.type ~= "q8_0" or p.n % 32 == 0 end },
    { "weights in planes are for CUDA", function(p) return p.layout ~= "planes" end },
    { "groups of 16 rows are of q8_0 and divide the vocabulary", function(p)
      return p.layout == "rows" or (p.type == "q8_0" and p.vocab % 16 == 0) end },
    lib.card_has_isa,
  },
  default = function(p, card) return { isa = lib.default_isa(p, card) } end,
  bytes   = function(p, rows) return rows * ((BYTES[p.type] and BYTES[p.type] * p.n or p.n // 32 * 34) + 4 * p.n) end,
  ops     = function(p, rows) return rows * p.n end,
  cuda    = {
    params  = { { "threads", { 64, 128, 256, 512 } } },
    require = {
      { "a row of q8_0 is whole blocks of 32", function(p) return p.type ~= "q8_0" or p.n % 32 == 0 end },
      { "groups of 16 rows are for CPUs", function(p) return p.layout == "rows" or p.layout == "planes" end },
      { "planes are of q8_0", function(p) return p.layout == "rows" or p.type == "q8_0" end },
    },
    default = function() return { threads = 128 } end,
    launch  = function(p)
      return { threads = p.threads, width = width(p), grid = { { lib.ceil_div(p.n, p.threads * width(p)) }, { 1, rows = 1 } } }
    end,
  },
}
