-- File rows of q8_0 into planes, on a card while it is being loaded. Row counts are arguments, so a fixed grid walks over the blocks.
return {
  shape   = { { "type", { "q8_0" } }, { "layout", { "planes" } }, "n", "k" },
  params  = {},
  require = { { "a card: the host packs by runtime/layout.h", function() return false end } },
  default = function() return {} end,
  bytes   = function(p) return 2 * p.n * (p.k // 32) * 34 end,
  ops     = function() return 0 end,
  cuda    = {
    params  = { { "threads", { 128, 256, 512 } } },
    require = { { "k is whole blocks of 32", function(p) return p.k % 32 == 0 end } },
    default = function() return { threads = 256 } end,
    launch  = function(p, card) return { threads = p.threads, grid = { { 4 * card.sms } } } end,
  },
}
