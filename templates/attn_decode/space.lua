-- Lanes run along the head. `rows` query rows share each load of a key or value, `vecs` vectors of the output stay in registers over
-- `block` tokens, `ahead` pages are fetched early. On paths without hardware conversion from f16 a key is converted once for all its query rows.
local function registers(p) return lib.width(p.isa) == 16 and 32 or 16 end

-- CUDA. `tree`: the canonical order, any shape. `split`: `lanes` lanes a token with whole 16-byte vectors, `unroll` of them in flight twice;
-- heads of a KV head that would need too many registers are shared out over several blocks.
local function group_of(p) return p.heads // p.kv_heads end

-- Heads of a block: the most that divide the group and take at most 64 values of o a lane.
local function share(p)
  local most = group_of(p)
  while most > 1 and (group_of(p) % most > 0 or most * p.head_dim > 64 * p.lanes) do most = most - 1 end
  return most
end

local function is_split(p) return p.path == "split" end
local function vectors_fit(p, lanes) return p.fk == "f16" and p.fv == "f16" and p.head_dim % (8 * lanes) == 0 end
local function static_bytes(p)
  return 4 * p.warps * (share(p) * (p.head_dim + 2) + 32 * lib.round_up(share(p), 4)) + 4 * share(p) * p.head_dim
end

-- A row's queries, gates and results.
local function row_bytes(p)
  local n = p.heads * p.head_dim
  return 8 * n + (p.out ~= "q8" and 4 * n or 0) + (p.out ~= "f32" and n + n // 4 or 0)
end

-- Bytes that a token of a KV head takes in a format, codes and scales (kv_append/args.h).
local function token_bytes(p, format)
  local n, run = p.head_dim, math.min(p.head_dim & -p.head_dim, 256)
  local of = { f16 = 2 * n, f32 = 4 * n, q8 = n + n // 16, r4 = n // 2 + 2 * (n // run), r3 = 3 * n // 8 + 2 * (n // run) }
  return of[format]
end
local function is_plain(format) return format == "f16" or format == "f32" end
local whole_runs = { "formats with scales need heads of whole runs of 32", function(p)
  return p.head_dim % 32 == 0 or is_plain(p.fk) and is_plain(p.fv) end }

local plain = { "reads K and V of f16 and f32", function(p) return is_plain(p.fk) and is_plain(p.fv) end }

local whole_blocks = { "out as int8 needs whole blocks of 32 in a head", function(p) return p.out == "f32" or p.head_dim % 32 == 0 end }

local cuda = {
  params = { { "path", { "split", "tree" } }, { "warps", { 2, 4, 8 } }, { "chunk", { 64, 128, 256, 512 } }, { "lanes", { 8, 16, 32 } },
             { "unroll", { 2, 4, 8 } } },
  require = {
    { "heads are a multiple of kv_heads, at most 16 to one", function(p) return p.heads % p.kv_heads == 0 and group_of(p) <= 16 end },
    { "the head is at most 1024 wide", function(p) return p.head_dim <= 1024 end },
    whole_blocks, whole_runs, plain,
    { "tree has one form: chunks of 256, a warp a token, four at a time", function(p)
      return is_split(p) or p.chunk == 256 and p.lanes == 32 and p.unroll == 4 end },
    { "split reads K and V of f16 in vectors of 8 that the lanes of a token divide", function(p)
      return not is_split(p) or vectors_fit(p, p.lanes) end },
    { "every warp has whole runs of 32 tokens", function(p) return not is_split(p) or p.chunk % (32 * p.warps) == 0 end },
    { "what is in flight stays in registers", function(p) return not is_split(p) or p.unroll * p.head_dim <= 64 * p.lanes end },
    { "the warps' results fit the static shared memory", function(p) return not is_split(p) or static_bytes(p) <= 48 * 1024 end },
  },
  default = function(p, _, numerics)
    for _, lanes in ipairs { 32, 16, 8 } do
      if numerics ~= "strict" and p.path ~= "tree" and vectors_fit(p, lanes) then
        return { path = "split", warps = 4, chunk = 128, lanes = lanes, unroll = 4 }
      end
    end
    return { path = "tree", warps = 8, chunk = 256, lanes = 32, unroll = 4 }
  end,
  numerics = function(p) return is_split(p) and "split" or "canonical" end,
  launch = function(p)
    local blocks = is_split(p) and p.kv_heads * group_of(p) // share(p) or p.kv_heads
    return { { threads = 32 * p.warps, grid = { { blocks }, { 1, rows = 1 }, { 1, ctx = p.chunk } } },
             { threads = 64, grid = { { p.heads * lib.ceil_div(p.head_dim, 64) }, { 1, rows = 1 } } } }
  end,
}

return {
  shape = { "heads", "kv_heads", "head_dim", { "fk", { "f16", "f32", "q8", "r4", "r3" } }, { "fv", { "f16", "f32", "q8", "r4", "r3" } },
            { "out", { "f32", "q8", "both" } } },
  args = "attn_prefill", ref = "attn_prefill",
  params = { { "isa", lib.isa }, { "fma", lib.fma }, { "rows", { 1, 2, 4 } }, { "vecs", { 1, 2, 4 } }, { "block", { 8, 16, 64 } },
             { "ahead", { 0, 1 } } },
  require = {
    { "heads are a multiple of kv_heads, at most 16 to one", function(p)
      return p.heads % p.kv_heads == 0 and p.heads // p.kv_heads <= 16 end },
    { "the head is at most 1024 wide", function(p) return p.head_dim <= 1024 end },
    whole_blocks, whole_runs,
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
    return (past + rows) * p.kv_heads * (token_bytes(p, p.fk) + token_bytes(p, p.fv)) + rows * row_bytes(p)
  end,
  ops = function(p, rows, past) return rows * (past + 1) * p.heads * p.head_dim * 4 end,
  cuda = cuda,
}
