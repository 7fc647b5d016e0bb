-- Bytes that a token of a KV head takes in a format, codes and scales (kv_append/args.h).
local function token_bytes(p, format)
  local n, run = p.head_dim, math.min(p.head_dim & -p.head_dim, 256)
  local of = { f16 = 2 * n, f32 = 4 * n, q8 = n + n // 16, r4 = n // 2 + 2 * (n // run), r3 = 3 * n // 8 + 2 * (n // run) }
  return of[format]
end
local function is_plain(format) return format == "f16" or format == "f32" end
local whole_runs = { "formats with scales need heads of whole runs of 32", function(p)
  return p.head_dim % 32 == 0 or is_plain(p.fk) and is_plain(p.fv) end }

return {
  shape = { "kv_heads", "head_dim", { "fk", { "f16", "f32", "q8", "r4", "r3" } }, { "fv", { "f16", "f32", "q8", "r4", "r3" } } },
  params = { { "isa", lib.isa } },
  require = { whole_runs, lib.card_has_isa },
  default = function(p, card) return { isa = lib.default_isa(p, card) } end,
  bytes = function(p, rows)
    return rows * p.kv_heads * (8 * p.head_dim + token_bytes(p, p.fk) + token_bytes(p, p.fv))
  end,
  ops = function(p, rows) return rows * p.kv_heads * p.head_dim * 2 end,
  -- A thread takes 4, 2 or 1 values, as they divide the head; in formats with scales a warp takes a run.
  cuda = {
    params = { { "threads", { 64, 128, 256 } } },
    require = { whole_runs },
    default = function() return { threads = 128 } end,
    launch = function(p)
      local values = p.head_dim % 4 == 0 and 4 or p.head_dim % 2 == 0 and 2 or 1
      local run = math.min(p.head_dim & -p.head_dim, 256)
      local blocks = is_plain(p.fk) and is_plain(p.fv) and 1 or lib.ceil_div(p.kv_heads * p.head_dim, p.threads // 32 * run)
      return { threads = p.threads, grid = { { math.max(blocks, lib.ceil_div(p.kv_heads * p.head_dim, values * p.threads)) }, { 1, rows = 1 }, { 2 } } }
    end,
  },
}
