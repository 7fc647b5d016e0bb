return {
  shape   = { "n" },
  params  = { { "isa", { "scalar" } },
              { "fault", { "none", "value", "unwritten", "outside", "input", "crash", "hang", "unstable", "team", "warning", "beyond" } } },
  require = { lib.card_has_isa },
  default = function() return { isa = "scalar", fault = "none" } end,
  bytes   = function(p, rows) return rows * p.n * 8 end,
  ops     = function(_, rows) return rows end,
}
