-- A card from its key (runtime/card.h), from a short form "cpu:avx2" or "cuda:sm_70", or by name from gen/cards/NAME.lua.
-- The result is what spaces see: { kind = "cpu", key, has = {isa = true}, isa_best, l1, l2, l3 (KiB), threads, vendor, family, model }
-- or { kind = "cuda", key, cc = 70, sms, l2 (KiB), bus (bits), smem (KiB a block), has = {feature = true} }.
-- Keys are read as runtime/card.c reads them: the same order, bounds and generic values, and nothing behind; tests/unit/test_tune_keys.c
-- feeds both. Generator hashes do not cover this file: what a key means may not change, only which keys there are.

local lib = require "gen.lib"

local card = {}

-- A key that is being read: its text, and where the rest begins. An error here is a reason, raised and caught in parse().
local function refuse(form, ...) error({ reason = form:format(...) }, 0) end

local function take(k, pattern)
  local first, last, found = k.text:find("^" .. pattern, k.at)
  if first then k.at = last + 1 end
  return first and (found or true)
end

local function number(name, digits, min, max, unit)
  local n = math.tointeger(tonumber(digits))
  if not n or n < min or n > max then refuse("expected %s=%d..%d%s, found %s", name, min, max, unit or "", digits) end
  return n
end

-- Fields in their order, each or its generic value; where there is none, the field must be there.
local function take_fields(k, c, fields)
  for _, f in ipairs(fields) do
    local digits = take(k, "," .. f.name .. "=(%d+)")
    if not digits and not f.missing then refuse("expected ,%s=NUMBER at '%s'", f.name, k.text:sub(k.at)) end
    c[f.to or f.name] = digits and number(f.name, digits, f.min, f.max, f.unit) or f.missing
  end
end

local function expect_end(k)
  if k.at <= #k.text then refuse("expected the end or a field in its order at '%s'", k.text:sub(k.at)) end
end

-- --- CPU ---------------------------------------------------------------------------------------------------------------

local function cpu_fields(generic)
  return {
    { name = "l1", min = 0, max = 1 << 24, unit = " KiB", missing = generic and 32 },
    { name = "l2", min = 0, max = 1 << 24, unit = " KiB", missing = generic and 512 },
    { name = "l3", min = 0, max = 1 << 24, unit = " KiB", missing = generic and 8192 },
    { name = "t", to = "threads", min = 1, max = 4096, missing = generic and 1 },
  }
end

local function set_isa(c, list)
  c.has = {}
  for name in (list .. "+"):gmatch("([^+]*)%+") do
    if not pcall(lib.width, name) then refuse("'%s' is no instruction path", name) end
    c.has[name] = true
  end
  for _, name in ipairs(lib.isa) do
    if c.has[name] then c.isa_best = name end
  end
  if not c.has.scalar then refuse("isa does not contain scalar") end
end

-- "avx2": that path and those below it (avxvnni stands beside avx512vnni, not below it).
local function short_form(c, isa)
  local list = {}
  for _, name in ipairs(lib.isa) do
    if name ~= "avxvnni" or isa == "avxvnni" then list[#list + 1] = name end
    if name == isa then break end
  end
  set_isa(c, table.concat(list, "+"))
end

-- "amd-25-17,isa=avx2+sse42+scalar"
local function full_form(k, c, id)
  local vendor, family, model = id:match("^([a-z]+)%-(%d+)%-(%d+)$")
  if not vendor or #vendor > 15 then refuse("expected VENDOR-FAMILY-MODEL or an instruction path, found '%s'", id) end
  c.vendor, c.family, c.model = vendor, number("family", family, 0, 65535), number("model", model, 0, 65535)
  set_isa(c, take(k, ",isa=([^,]*)") or refuse("isa is missing"))
end

local function parse_cpu(k)
  local c = { key = k.text, kind = "cpu", vendor = "other", family = 0, model = 0 }
  local id = take(k, "([^,]*)")
  local short = pcall(lib.width, id)
  if short then short_form(c, id) else full_form(k, c, id) end
  take_fields(k, c, cpu_fields(short))
  return c
end

-- --- CUDA --------------------------------------------------------------------------------------------------------------

-- What the instruction set has, by compute capability. What fuses left of its rate is for the tuner to find out.
local function cuda_features(cc)
  return {
    dp4a = cc >= 61,
    half = cc == 60 or cc == 62 or cc >= 70,  -- half2 arithmetic at full rate
    mma_f16_884 = cc == 70 or cc == 72 or cc == 75, -- fp16 tensor cores in Volta's form, fp32 sums
    mma_f16 = cc >= 75, -- m16n8k8
    mma_f16_16 = cc >= 80, -- m16n8k16
    mma_i8 = cc >= 75,  -- m8n8k16
    mma_i8_32 = cc >= 80, -- m16n8k32
    ldmatrix = cc >= 75,
    cp_async = cc >= 80,
    pdl = cc >= 90,     -- programmatic dependent launch
    wgmma = cc == 90,   -- matrix instructions of four warps
  }
end

local SMEM = { [70] = 96, [72] = 96, [75] = 64, [80] = 163, [86] = 99, [87] = 163, [89] = 99, [90] = 227, [100] = 227, [103] = 227,
               [110] = 227, [120] = 99, [121] = 99 }

local function cuda_fields(cc)
  return {
    { name = "sms", min = 1, max = 1024, missing = 40 },
    { name = "l2", min = 1, max = 1 << 20, unit = " KiB", missing = 4096 },
    { name = "bus", min = 1, max = 1 << 14, unit = " bits", missing = 256 },
    { name = "smem", min = 16, max = 1024, unit = " KiB", missing = SMEM[cc] or 48 },
  }
end

-- Families up to Hopper's are complete: a number that is not here is a slip. From sm_100 on any number may come.
local MADE = { 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90 }

local function exists(cc)
  for _, made in ipairs(MADE) do
    if made == cc then return true end
  end
  return cc >= 100
end

local function parse_cuda(k)
  local cc = math.tointeger(tonumber(take(k, "sm_(%d+)")))
  if not cc or cc < 60 or cc > 999 then refuse("expected cuda:sm_CC,..., CC from 60") end
  if not exists(cc) then refuse("there is no card with sm_%d; expected one of sm_%s, or sm_100 and later", cc, table.concat(MADE, " sm_")) end
  local c = { key = k.text, kind = "cuda", cc = cc, has = cuda_features(cc) }
  take_fields(k, c, cuda_fields(cc))
  if take(k, ",without=mma") then
    for _, name in ipairs { "mma_f16_884", "mma_f16", "mma_f16_16", "mma_i8", "mma_i8_32", "wgmma" } do c.has[name] = false end
    if take(k, "%+dp4a") then c.has.dp4a = false end
  end
  return c
end

local function parse(text)
  local k = { text = text, at = 1 }
  local ok, c = pcall(function()
    local read = take(k, "cuda:") and parse_cuda or take(k, "cpu:") and parse_cpu or refuse("expected 'cpu:...' or 'cuda:...'")
    local card_read = read(k)
    expect_end(k)
    return card_read
  end)
  if ok then return c end
  if not c.reason then error(c, 0) end
  return nil, c.reason
end

-- The card of a key or a name; nil and a reason. read(file) gives a source text or nil.
function card.find(text, read)
  if not text:find(":", 1, true) then
    local source = text:match("^[%w_.-]+$") and read("gen/cards/" .. text .. ".lua")
    if not source then return nil, "card '" .. text .. "': neither a key nor a file of gen/cards" end
    local chunk = assert(load(source, "=gen/cards/" .. text .. ".lua", "t", {}))
    text = chunk().key
  end
  local c, err = parse(text)
  if not c then return nil, "card '" .. text .. "': " .. err end
  return c
end

return card
