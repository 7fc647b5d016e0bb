return {
  shape = { "k_heads", "v_heads", "dim" },
  params = {
    { "isa", lib.isa },
    { "fma", lib.fma },
  },
  require = {
    { "dim is a multiple of 8, at most 256", function(p) return p.dim % 8 == 0 and p.dim >= 8 and p.dim <= 256 end },
    { "value heads are a multiple of key heads", function(p) return p.k_heads >= 1 and p.v_heads >= 1 and p.v_heads % p.k_heads == 0 end },
    lib.card_has_isa,
    lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa = lib.default_isa(p, card)
    return { isa = isa, fma = lib.default_fma(isa, numerics) }
  end,
  numerics = lib.numerics_by_fma,
  bytes = function(p, rows) return rows * (16 * p.k_heads * p.dim + 16 * p.v_heads) end,
  ops = function(p, rows) return rows * (6 * p.k_heads * p.dim + 60 * p.v_heads) end,
  cuda = {
    params = { { "threads", { 32, 64, 128, 256 } } },
    require = {
      { "dim is a multiple of 8, at most 256", function(p) return p.dim % 8 == 0 and p.dim >= 8 and p.dim <= 256 end },
      { "value heads are a multiple of key heads", function(p) return p.k_heads >= 1 and p.v_heads >= 1 and p.v_heads % p.k_heads == 0 end },
    },
    default = function() return { threads = 128 } end,
    launch = function(p)
      local items = 2 * p.k_heads + lib.ceil_div(p.v_heads, 32)
      return { threads = p.threads, grid = { { 1, rows = 1 }, { lib.ceil_div(items, p.threads // 32) } } }
    end,
  },
}
