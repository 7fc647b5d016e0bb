-- Made-up weights, on the card that a preset is loaded on.
return {
  shape   = { { "type", { "q8_0", "f16", "bf16", "f32" } }, { "layout", { "rows", "planes" } }, "n", "k", { "kind", { "matrix", "vector" } } },
  params  = {},
  require = { { "a card: the host makes them by runtime/model_synth.c", function() return false end } },
  default = function() return {} end,
  bytes   = function(p) return p.n * (({ f32 = 4 * p.k, f16 = 2 * p.k, bf16 = 2 * p.k })[p.type] or p.k // 32 * 34) end,
  ops     = function(p) return 2 * p.n * p.k end,
  cuda    = {
    params  = { { "threads", { 128, 256, 512 } } },
    require = {
      { "k of q8_0 is whole blocks of 32", function(p) return p.type ~= "q8_0" or p.k % 32 == 0 end },
      { "planes are of q8_0", function(p) return p.layout == "rows" or p.type == "q8_0" end },
      { "vectors are fp32", function(p) return p.kind == "matrix" or p.type == "f32" end },
    },
    default = function() return { threads = 256 } end,
    launch  = function(p, card) return { threads = p.threads, grid = { { 4 * card.sms } } } end,
  },
}
