-- A card from its key (runtime/card.h), from a short form "cpu:avx2" or "cuda:sm_70", or by name from gen/cards/NAME.lua.
-- The result is what spaces see: { kind = "cpu", key, has = {isa = true}, isa_best, l1, l2, l3 (KiB), threads, vendor, family, model }
-- or { kind = "cuda", key, cc = 70, sms, l2 (KiB), bus (bits), smem (KiB a block), has = {feature = true} }.

local lib = require "gen.lib"

local card = {}

local FIELDS = { l1 = "l1", l2 = "l2", l3 = "l3", t = "threads" }

local function set_isa(c, list)
  c.has = {}
  for name in list:gmatch("[^+]+") do
    if not pcall(lib.width, name) then return "'" .. name .. "' is no instruction path" end
    c.has[name] = true
  end
  for _, name in ipairs(lib.isa) do
    if c.has[name] then c.isa_best = name end
  end
  return not c.has.scalar and "isa does not contain scalar" or nil
end

-- "cpu:avx2": that path and those below it (avxvnni stands beside avx512vnni, not below it).
local function short_form(c, isa)
  local list = {}
  for _, name in ipairs(lib.isa) do
    if name ~= "avxvnni" or isa == "avxvnni" then list[#list + 1] = name end
    if name == isa then break end
  end
  return set_isa(c, table.concat(list, "+"))
end

local function set_pair(c, name, value)
  if name == "isa" then return set_isa(c, value) end
  local n = math.tointeger(tonumber(value))
  if not FIELDS[name] then return "unknown field '" .. name .. "'" end
  if not n or n < 0 then return name .. " is '" .. value .. "', expected a number" end
  c[FIELDS[name]] = n
  return nil
end

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
  }
end

local CUDA_FIELDS = { sms = 40, l2 = 4096, bus = 256 } -- and their generic values
local SMEM = { [70] = 96, [72] = 96, [75] = 64, [80] = 163, [86] = 99, [87] = 163, [89] = 99, [90] = 227, [100] = 227, [103] = 227,
               [110] = 227, [120] = 99, [121] = 99 }

local function parse_cuda(key)
  local cc, rest = key:match("^cuda:sm_(%d+),?(.*)$")
  if not cc or #cc > 3 or tonumber(cc) < 60 then return nil, "expected cuda:sm_CC,..., CC from 60" end
  local c = { key = key, kind = "cuda", cc = math.tointeger(tonumber(cc)) }
  c.has = cuda_features(c.cc)
  c.sms, c.l2, c.bus, c.smem = CUDA_FIELDS.sms, CUDA_FIELDS.l2, CUDA_FIELDS.bus, SMEM[c.cc] or 48
  local kept = rest:match("^(.-),?without=mma$")
  if kept then
    for _, name in ipairs { "mma_f16_884", "mma_f16", "mma_f16_16", "mma_i8", "mma_i8_32" } do c.has[name] = false end
  end
  for pair in (kept or rest):gmatch("[^,]+") do
    local name, value = pair:match("^(%w+)=(%d+)$")
    if not name or not (CUDA_FIELDS[name] or name == "smem") then return nil, "expected sms, l2, bus or smem=NUMBER at '" .. pair .. "'" end
    c[name] = #value < 8 and math.tointeger(tonumber(value)) or 0
    if c[name] < 1 then return nil, name .. " is " .. value .. ", expected a number from 1" end
  end
  return c
end

local function parse(key)
  if key:find("^cuda:") then return parse_cuda(key) end
  local c = { key = key, kind = "cpu", vendor = "other", family = 0, model = 0, l1 = 32, l2 = 512, l3 = 8192, threads = 1 }
  local id, rest = key:match("^cpu:([^,]+),?(.*)$")
  if not id then return nil, "expected 'cpu:...' or 'cuda:...'" end
  if pcall(lib.width, id) then
    local err = short_form(c, id)
    if err then return nil, err end
  else
    local vendor, family, model = id:match("^(%w+)%-(%d+)%-(%d+)$")
    if not vendor then return nil, "expected VENDOR-FAMILY-MODEL or an instruction path, found '" .. id .. "'" end
    c.vendor, c.family, c.model = vendor, math.tointeger(tonumber(family)), math.tointeger(tonumber(model))
  end
  for pair in rest:gmatch("[^,]+") do
    local name, value = pair:match("^(%w+)=([%w_+]+)$")
    local err = name and set_pair(c, name, value) or not name and "expected name=value at '" .. pair .. "'"
    if err then return nil, err end
  end
  if not c.has then return nil, "isa is missing" end
  return c
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
