-- The layout of a weight, chosen before its products are tuned: no kernel, only the choice. q8_0 with whole groups of 16 rows goes into groups
-- (lane = row: no fold a block, one stream), unsigned where the path multiplies unsigned by signed; reference numerics and other
-- types keep the file's rows. CUDA: q8_0 in planes, whose words are aligned.
return {
  shape   = { { "type", { "q8_0", "f16", "bf16", "f32" } }, "n", "k" },
  params  = { { "layout", { "rows", "r16", "r16u" } } },
  require = {
    { "k of q8_0 is whole blocks of 32", function(p) return p.type ~= "q8_0" or p.k % 32 == 0 end },
    { "groups of 16 rows are of q8_0 and divide n", function(p) return p.layout == "rows" or (p.type == "q8_0" and p.n % 16 == 0) end },
    { "groups of rows need a vector path", function(p, card) return p.layout == "rows" or card.isa_best ~= "scalar" end },
  },
  default = function(p, card, numerics)
    if p.type ~= "q8_0" or p.n % 16 ~= 0 or numerics == "reference" or card.isa_best == "scalar" then return { layout = "rows" } end
    local vnni = card.has.avx512vnni or card.has.avxvnni
    return { layout = vnni and "r16u" or "r16" }
  end,
  bytes   = function(p) return p.n * p.k end,
  ops     = function() return 0 end,
  cuda    = {
    params  = { { "layout", { "rows", "planes" } } },
    require = {
      { "k of q8_0 is whole blocks of 32", function(p) return p.type ~= "q8_0" or p.k % 32 == 0 end },
      { "planes are of q8_0", function(p) return p.layout == "rows" or p.type == "q8_0" end },
    },
    default = function(p, _, numerics)
      return { layout = p.type == "q8_0" and numerics ~= "reference" and "planes" or "rows" }
    end,
  },
}
