-- Lanes run along the head. `rows` query rows share each load of a key or value, `vecs` vectors of the output stay in registers over
-- `block` tokens, `ahead` pages are fetched early. On paths without hardware conversion from f16 a key is converted once for all its query rows.
local function registers(p) return lib.width(p.isa) == 16 and 32 or 16 end

return {
  shape = { "heads", "kv_heads", "head_dim", { "fk", { "f16", "f32" } }, { "fv", { "f16", "f32" } } },
  args = "attn_prefill", ref = "attn_prefill",
  params = { { "isa", lib.isa }, { "fma", lib.fma }, { "rows", { 1, 2, 4 } }, { "vecs", { 1, 2, 4 } }, { "block", { 8, 16, 64 } },
             { "ahead", { 0, 1 } } },
  require = {
    { "heads are a multiple of kv_heads, at most 16 to one", function(p)
      return p.heads % p.kv_heads == 0 and p.heads // p.kv_heads <= 16 end },
    { "the head is at most 1024 wide", function(p) return p.head_dim <= 1024 end },
    { "no more rows share a load than heads share a key, or rows are wasted in decode", function(p)
      return p.rows == 1 or p.rows < 2 * (p.heads // p.kv_heads) end },
    { "the partial sums of a score stay in registers", function(p)
      return lib.width(p.isa) < 8 or p.rows * (32 // lib.width(p.isa)) <= registers(p) // 2 end },
    { "the output tile stays in registers", function(p) return (p.rows + 1) * p.vecs + 1 <= registers(p) end },
    lib.card_has_isa, lib.fma_fits_isa,
  },
  default = function(p, card, numerics)
    local isa, group = lib.default_isa(p, card), p.heads // p.kv_heads
    local most = lib.width(isa) == 16 and 4 or 2
    local rows = group >= 3 and most or group >= 2 and 2 or 1
    return { isa = isa, fma = lib.default_fma(isa, numerics), rows = rows, vecs = 4, block = 64, ahead = 1 }
  end,
  numerics = lib.numerics_by_fma,
  bytes = function(p, rows, past)
    local value = (p.fk == "f16" and 2 or 4) + (p.fv == "f16" and 2 or 4)
    return (past + rows) * p.kv_heads * p.head_dim * value + rows * p.heads * p.head_dim * 12
  end,
  ops = function(p, rows, past) return rows * (past + 1) * p.heads * p.head_dim * 4 end,
}
