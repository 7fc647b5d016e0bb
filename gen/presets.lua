-- Prints gen/models/*.lua as a C table of `struct q_config` (runtime/presets.h):
--   lua5.4 gen/presets.lua gen/models OUT.c
-- A model file is data: a table of the fields named below. What it leaves out has the family's value. The order is that
-- of the file names, so the output depends on the files' contents alone. Held against config_check at run time.

local dir, out = arg[1], arg[2]
if not dir or not out then
  io.stderr:write("usage: lua5.4 presets.lua MODELS_DIR OUT.c\n")
  os.exit(2)
end

-- field, C form, default (nil: the file must give it)
local fields = {
  { "n_layers", "int" }, { "n_nextn", "int", 0 },
  { "n_embd", "int" }, { "n_ff", "int" }, { "n_vocab", "int" }, { "n_ctx_train", "int", 262144 },
  { "rms_eps", "float", 1e-6 },
  { "n_head", "int" }, { "n_head_kv", "int" }, { "head_dim", "int" },
  { "rope_dims", "int", 64 }, { "rope_sections", "ints", { 11, 11, 10, 0 } }, { "rope_base", "float", 1e7 },
  { "conv_taps", "int", 4 }, { "state_dim", "int" }, { "n_k_heads", "int" }, { "n_v_heads", "int" },
  { "v_grouped", "bool", false }, { "tied", "bool" },
}
-- Read here, not fields of the C struct: the attention rhythm becomes `kind`, the rest has a form of its own.
local others = { name = true, arch = true, interval = true, attn_scale = true }

local function list_models()
  local names = {}
  local p = assert(io.popen("LC_ALL=C ls '" .. dir:gsub("'", "'\\''") .. "'"))
  for line in p:lines() do
    if line:match("%.lua$") then names[#names + 1] = line end
  end
  p:close()
  table.sort(names)
  return names
end

local function check(file, ok, text)
  if not ok then error(dir .. "/" .. file .. ": " .. text, 0) end
end

local function read_model(file)
  local chunk, err = loadfile(dir .. "/" .. file, "t", {})
  if not chunk then error(err, 0) end
  local m = chunk()
  check(file, type(m) == "table", "expected a table")
  check(file, m.name == file:sub(1, -5), "name is '" .. tostring(m.name) .. "', expected the file's name")
  local known = {}
  for _, f in ipairs(fields) do known[f[1]] = true end
  for k in pairs(m) do check(file, known[k] or others[k], "unknown field '" .. tostring(k) .. "'") end
  return m
end

local function float(v) return string.format("%.9gf", v):gsub("^(%-?%d+)f$", "%1.0f") end

local form = {
  int = function(v) return math.type(v) == "integer" and v >= 0 and v < 2 ^ 31 and tostring(v) or nil end,
  bool = function(v) return type(v) == "boolean" and (v and "1" or "0") or nil end,
  float = function(v) return type(v) == "number" and v > 0 and (float(v)) or nil end,
  ints = function(v) return type(v) == "table" and "{ " .. table.concat(v, ", ") .. " }" or nil end,
}

-- Layer i is attention iff (i+1) % interval == 0; interval 0: no attention layer.
local function kinds(file, m)
  local every = m.interval or 4
  check(file, math.type(every) == "integer" and every >= 0, "interval: expected an integer >= 0")
  local k = {}
  for i = 1, m.n_layers do k[i] = every > 0 and i % every == 0 and "1" or "0" end
  return table.concat(k, ",")
end

local function print_model(file, m, line)
  line("    {")
  line(string.format('        .arch = "%s", .name = "%s",', m.arch or "qwen35", m.name))
  for _, f in ipairs(fields) do
    local name, kind, value = f[1], f[2], m[f[1]]
    if value == nil then value = f[3] end
    check(file, value ~= nil, "field '" .. name .. "' is missing")
    local text = form[kind](value)
    check(file, text, "field '" .. name .. "': expected " .. kind .. ", found '" .. tostring(value) .. "'")
    line(string.format("        .%s = %s,", name, text))
  end
  line(string.format("        .attn_scale = %s,", float(m.attn_scale or 1 / math.sqrt(m.head_dim))))
  line(string.format("        .kind = { %s },", kinds(file, m)))
  line("    },")
end

local function main()
  local text = {}
  local function line(s) text[#text + 1] = s end
  line("/* Printed by gen/presets.lua out of gen/models/. Do not edit. */")
  line('#include "presets.h"')
  line("")
  line("const struct q_config q_presets[] = {")
  local names = list_models()
  for _, file in ipairs(names) do print_model(file, read_model(file), line) end
  line("};")
  line(string.format("const int q_n_presets = %d;", #names))
  local f = assert(io.open(out, "w"))
  assert(f:write(table.concat(text, "\n"), "\n"))
  assert(f:close())
end

local ok, err = pcall(main)
if not ok then
  io.stderr:write("presets.lua: ", tostring(err), "\n")
  os.exit(1)
end
