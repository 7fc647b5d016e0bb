-- What spaces and templates share: instruction paths, the fused multiply-add of a path, C constants, small arithmetic.
-- Everything here is a pure function of its arguments.

local lib = {}

-- Instruction paths, plain to wide. A path's number of fp32 lanes, and what the C compiler must be told.
lib.isa = { "scalar", "sse42", "avx2", "avxvnni", "avx512vnni" }

local width = { scalar = 1, sse42 = 4, avx2 = 8, avxvnni = 8, avx512vnni = 16 }
local march = {
  scalar = "-march=x86-64",
  sse42 = "-march=x86-64-v2",
  avx2 = "-march=x86-64-v3",
  avxvnni = "-march=x86-64-v3 -mavxvnni",
  avx512vnni = "-march=x86-64-v4 -mavx512vnni -mprefer-vector-width=512",
}

function lib.width(isa) return width[isa] or error("'" .. tostring(isa) .. "' is no instruction path", 2) end
function lib.has_fma(isa) return lib.width(isa) >= 8 end
function lib.cflags(isa)
  return "-O3 " .. march[isa] .. " -ffp-contract=off -fno-math-errno -fno-trapping-math -shared -fPIC"
end

-- CUDA: what NVRTC must be told. Every fma is written out; functions without a space of their own are the device's.
function lib.nvrtc_flags(cc)
  return "--gpu-architecture=sm_" .. cc .. " --fmad=false --std=c++17 --device-as-default-execution-space"
end

-- A `require` row: the card has a feature of gen/card.lua. `needs` is its name, or a function of p that gives it or nil.
function lib.card_has(reason, needs)
  return { reason, function(p, card)
    local name = type(needs) == "string" and needs or needs(p)
    return not name or card.has[name] == true
  end }
end

-- The param `fma`: hw where the path has it; else soft (libm: exact, slow, canonical) or none (multiply and add).
lib.fma = { "hw", "soft", "none" }

-- Rows for `require`: the reason is what a legal candidate fulfils.
lib.card_has_isa = { "the card has the instruction path", function(p, card) return card.has[p.isa] == true end }
lib.fma_fits_isa = { "fma is hw on paths that have it, soft or none on the others",
  function(p) return (p.fma == "hw") == lib.has_fma(p.isa) end }

-- Defaults: a given isa stays; strict numerics take the exact fma.
function lib.default_isa(p, card) return p.isa or card.isa_best end
function lib.default_fma(isa, numerics)
  if lib.has_fma(isa) then return "hw" end
  return numerics == "strict" and "soft" or "none"
end

-- Numerics class of ops that are canonical on any path with an exact fma.
function lib.numerics_by_fma(p) return p.fma == "none" and "nofma" or "canonical" end

-- Parts of vec.c.in, with what each needs. The order is that of the file.
local parts = {
  tail = {}, bits = {}, abs = { "bits" }, max = {}, min = {}, select = { "bits" }, int = { "bits" }, fma = {},
  sum = {}, hmax = {}, half = { "bits", "select" }, half_tail = { "half" }, bf16 = { "bits" }, bf16_tail = { "bf16" },
  exp = { "bits", "select", "fma" }, sexp = { "exp" }, sigmoid = { "exp" }, silu = { "exp" },
  dot32 = { "fma", "sum" }, sumsq32 = { "fma", "sum" }, q8 = { "abs", "max", "hmax", "int" },
}

-- Parts asked for, closed over what they need. An unknown name is an error. dot32 and sumsq32 as "whole" promise lengths that
-- are multiples of 32, as true they take any and need `tail`.
function lib.vec_parts(asked)
  local has = {}
  local function take(name)
    if not parts[name] then error("vec.c.in has no part '" .. tostring(name) .. "'", 0) end
    has[name] = true
    for _, need in ipairs(parts[name]) do take(need) end
  end
  for name, on in pairs(asked) do -- order does not matter: the result is a set
    if on then take(name) end
  end
  for _, name in ipairs { "dot32", "sumsq32" } do
    if asked[name] and asked[name] ~= "whole" then take("tail") end
  end
  return has
end

-- A number as a C float constant, exact.
function lib.f32(x)
  local s = string.format("%.9g", x)
  if not s:find("[.e]") then s = s .. ".0" end
  return s .. "f"
end

-- Formats of K and V (templates/kv_append/args.h): values of a run that share a rotation, bytes of a token's codes in a head, its scales.
function lib.kv_run(head_dim) return math.min(head_dim & -head_dim, 256) end
function lib.kv_plain(format) return format == "f16" or format == "f32" end
function lib.kv_rotated(format) return format == "r3" or format == "r4" end
function lib.kv_code_bytes(format, head_dim)
  return ({ f32 = 4 * head_dim, f16 = 2 * head_dim, q8 = head_dim, r4 = head_dim // 2, r3 = head_dim // 32 * 12 })[format]
end
function lib.kv_per_scale(format, head_dim) return format == "q8" and 32 or lib.kv_run(head_dim) end
function lib.kv_scales(format, head_dim) return lib.kv_plain(format) and 0 or head_dim // lib.kv_per_scale(format, head_dim) end
function lib.kv_token_bytes(format, head_dim) return lib.kv_code_bytes(format, head_dim) + 2 * lib.kv_scales(format, head_dim) end

-- A `require` row for shapes with fk and perhaps fv.
lib.kv_whole_runs = { "formats with scales need heads of whole runs of 32", function(p)
  return p.head_dim % 32 == 0 or lib.kv_plain(p.fk) and (not p.fv or lib.kv_plain(p.fv)) end }

function lib.ceil_div(a, b) return (a + b - 1) // b end
function lib.round_up(a, b) return (a + b - 1) // b * b end
function lib.is_pow2(n) return n > 0 and n & (n - 1) == 0 end

-- "base + n", or base alone for n = 0.
function lib.plus(base, n) return n == 0 and base or base .. " + " .. n end

-- f(first) .. sep .. f(first+1) ... f(last): "a0, a1, a2".
function lib.list(first, last, f, sep)
  local t = {}
  for i = first, last do t[#t + 1] = f(i) end
  return table.concat(t, sep or ", ")
end

return lib
