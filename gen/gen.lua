-- From op, shape, params and card to the text of one kernel. This file decides what is legal, names it and puts it together;
-- the op's space.lua says what there is to choose, its kernel.c.in how the kernel reads. Called by gen.c.
--
-- Every function here is pure in its arguments and the texts that `host.read` gives, and never walks a hash table.

local host = require "host" -- read(name) -> text or nil; ops() -> names, sorted
local lib = require "gen.lib"
local card = require "gen.card"
local template = require "gen.template"
local prune = require "gen.prune"
local simplify = require "gen.simplify"
local tidy = require "gen.tidy"

local gen = {}

-- Errors carry a code for the C side: "input" (malformed) or "unsup" (well formed, refused).
local function fail(code, ...) error({ code = code, text = string.format(...) }, 0) end

-- What a space may use: no pairs, so that nothing can depend on the order of a hash table.
local function space_names()
  return { lib = lib, math = math, string = string, table = table, ipairs = ipairs, tostring = tostring,
           tonumber = tonumber, error = error, assert = assert, type = type, select = select }
end

local function space_of(op)
  local file = "templates/" .. op .. "/space.lua"
  local text = op:match("^[a-z0-9_]+$") and host.read(file)
  if not text then fail("input", "op '%s': expected one of %s", op, table.concat(host.ops(), " ")) end
  local chunk, err = load(text, "=" .. file, "t", space_names())
  if not chunk then error(err, 0) end
  local space = chunk()
  space.op = op
  return space
end

-- A list of shape or param entries in one form: { name, values or nil }.
local function entries(list)
  local out = {}
  for i, e in ipairs(list) do out[i] = type(e) == "table" and { name = e[1], values = e[2] } or { name = e } end
  return out
end

local function find_entry(list, name)
  for _, e in ipairs(list) do
    if e.name == name then return e end
  end
  return nil
end

local function to_value(text) return (text == "0" or text:match("^[1-9]%d*$")) and math.tointeger(tonumber(text)) or text end

local function admitted(e, v)
  if not e.values then return true end
  for _, x in ipairs(e.values) do
    if x == v then return true end
  end
  return false
end

local function value_list(e)
  local t = {}
  for i, v in ipairs(e.values) do t[i] = tostring(v) end
  return table.concat(t, " ")
end

-- Reads "a=1,b=x" into p; every name must be in `list` and new to p.
local function read_pairs(op, what, text, list, p)
  if text:find("%s") then fail("input", "%s: %s '%s': no blanks allowed", op, what, text) end
  for pair in text:gmatch("[^,]+") do
    local name, value = pair:match("^([a-z0-9_]+)=([A-Za-z0-9_.]+)$")
    if not name then fail("input", "%s: %s '%s': expected name=value at '%s'", op, what, text, pair) end
    local e = find_entry(list, name)
    if not e then fail("input", "%s: %s has no '%s'", op, what, name) end
    if p[name] ~= nil then fail("input", "%s: %s names '%s' twice", op, what, name) end
    p[name] = to_value(value)
    if not admitted(e, p[name]) then
      fail("input", "%s: %s is '%s', expected one of %s", op, name, value, value_list(e))
    end
  end
end

-- n=N,out=f32|q8|both: what a shape looks like.
local function shape_form(list)
  local t = {}
  for i, e in ipairs(list) do t[i] = e.name .. "=" .. (e.values and value_list(e):gsub(" ", "|") or e.name:upper()) end
  return table.concat(t, ",")
end

-- A size: a plain whole number, at least 1, or 0 where the space says so (rope sections).
local function check_size(space, e, v)
  local least = space.may_be_zero and find_entry(entries(space.may_be_zero), e.name) and 0 or 1
  if math.type(v) ~= "integer" or v < least or v > 0x7FFFFFFF then
    fail("input", "%s: %s is '%s', expected a whole number from %d to 2147483647", space.op, e.name, tostring(v), least)
  end
end

local function read_shape(space, text)
  local list, p, missing = entries(space.shape), {}, {}
  if text == "" then fail("input", "%s: expected --shape %s", space.op, shape_form(list)) end
  read_pairs(space.op, "shape", text, list, p)
  for _, e in ipairs(list) do
    if p[e.name] == nil then missing[#missing + 1] = e.name end
  end
  if #missing > 0 then
    fail("input", "%s: shape '%s' lacks %s; expected --shape %s", space.op, text, table.concat(missing, ", "), shape_form(list))
  end
  for _, e in ipairs(list) do
    if not e.values then check_size(space, e, p[e.name]) end
  end
  return p
end

local function find_card(text)
  local c, err = card.find(text, host.read)
  if not c then fail("input", "%s", err) end
  return c
end

local function class_of(side, p) return side.numerics and side.numerics(p) or "canonical" end

-- What the space has for a kind of card: a CPU's params, require, default and numerics stand in the space itself, CUDA's in space.cuda.
local function side_of(space, c)
  if c.kind == "cpu" then return space end
  return space[c.kind] or fail("unsup", "%s has no %s kernel", space.op, c.kind)
end

-- nil when the candidate is legal, else the first reason that it does not fulfil.
local function refusal(side, p, c, numerics)
  for _, row in ipairs(side.require or {}) do
    if not row[2](p, c) then return row[1] end
  end
  if numerics == "strict" and class_of(side, p) ~= "canonical" then
    return "strict numerics admit the canonical class alone"
  end
  return nil
end

local function check_numerics(numerics)
  for _, name in ipairs { "strict", "pinned", "free", "reference" } do
    if name == numerics then return end
  end
  fail("input", "numerics '%s': expected strict, pinned, free or reference", numerics)
end

-- Fills what the params text left out with the space's default for this card.
local function complete(op, side, p, c, numerics)
  local given = side.default(p, c, numerics)
  for _, e in ipairs(entries(side.params)) do
    if p[e.name] == nil then p[e.name] = given[e.name] end
    if p[e.name] == nil then error(op .. ": the default leaves out '" .. e.name .. "'", 0) end
    if not admitted(e, p[e.name]) then
      error(op .. ": the default gives " .. e.name .. "=" .. tostring(p[e.name]) .. ", not a value of the space", 0)
    end
  end
end

local function text_of(list, p)
  local t = {}
  for i, e in ipairs(list) do t[i] = e.name .. "=" .. tostring(p[e.name]) end
  return table.concat(t, ",")
end

-- Integers as n4096, words alone: rmsnorm_n4096_q8_avx2_hw.
local function name_of(space, side, p)
  local t = { space.op }
  for _, list in ipairs { entries(space.shape), entries(side.params) } do
    for _, e in ipairs(list) do
      local v = p[e.name]
      t[#t + 1] = math.type(v) and e.name .. v or (v:lower():gsub("%.", "_"))
    end
  end
  local name = table.concat(t, "_")
  if #name > 150 then error("name longer than 150 characters: " .. name, 0) end
  return name
end

-- A candidate as the emitter needs it; refused with a reason if it is not legal.
local function plan(op, shape, params, key, numerics)
  check_numerics(numerics)
  local space, c = space_of(op), find_card(key)
  local p, side = read_shape(space, shape), side_of(space, c)
  local shape_text = text_of(entries(space.shape), p)
  read_pairs(op, "params", params, entries(side.params), p)
  complete(op, side, p, c, numerics)
  local params_text = text_of(entries(side.params), p)
  local reason = refusal(side, p, c, numerics)
  if reason then fail("unsup", "%s %s with %s: refused: required: %s", op, shape_text, params_text, reason) end
  return { space = space, side = side, card = c, p = p, shape = shape_text, params = params_text, name = name_of(space, side, p) }
end

-- The names that a template sees: shape and params, and these.
local function template_names(pl)
  local names = space_names()
  for _, list in ipairs { entries(pl.space.shape), entries(pl.side.params) } do
    for _, e in ipairs(list) do names[e.name] = pl.p[e.name] end
  end
  names.op, names.name, names.p, names.card = pl.space.op, pl.name, pl.p, pl.card
  names.command = "quarry-gen " .. pl.space.op .. " --shape " .. pl.shape .. " --params " .. pl.params
  if pl.card.kind == "cuda" then
    names.launch = pl.side.launch(pl.p, pl.card)
    names.command = names.command .. " --card cuda:sm_" .. pl.card.cc
  end
  return names
end

local function must_read(name) return host.read(name) or error("no file '" .. name .. "'", 0) end

local function args_file(space) return "templates/" .. (space.args or space.op) .. "/args.h" end

-- The source with the headers' text in place of their #include lines.
local function unit_of(space, source)
  local texts = { ["kernel.h"] = must_read("runtime/kernel.h"), ["args.h"] = must_read(args_file(space)),
                  ["kernel.cuh"] = must_read("runtime/kernel.h") .. must_read("runtime/kernel.cuh") }
  local out = {}
  for line in source:gmatch("([^\n]*)\n") do
    local header = line:match('^#include "([a-z.]+)"$')
    if header and not texts[header] then error(space.op .. ": a kernel may not include '" .. header .. "'", 0) end
    out[#out + 1] = header and texts[header]:gsub("\n+$", "") or line
  end
  return table.concat(out, "\n") .. "\n"
end

local KERNEL = { cpu = "/kernel.c.in", cuda = "/kernel.cu.in" }

-- "" for an op without a template: its params are a choice (a weight's layout), not a kernel.
local function source_of(pl)
  local file = "templates/" .. pl.space.op .. KERNEL[pl.card.kind]
  if not host.read(file) then return "" end
  return tidy(simplify(template.squeeze(prune(template.render(file, template_names(pl), host.read)))))
end

-- What the compiler must be told.
local function flags_of(pl)
  if pl.card.kind == "cpu" then return pl.p.isa and lib.cflags(pl.p.isa) or "" end
  return lib.nvrtc_flags(pl.card.cc)
end

-- The space's launch as flat integers, a phase after the other: threads, smem, then mul, rows, seqs, ctx of the three axes.
local function launch_of(pl)
  local out = {}
  if pl.card.kind ~= "cuda" or not pl.side.launch then return out end
  local phases = pl.side.launch(pl.p, pl.card)
  for _, ph in ipairs(phases.grid and { phases } or phases) do
    out[#out + 1], out[#out + 2] = ph.threads, ph.smem or 0
    for i = 1, 3 do
      local axis = ph.grid[i] or { 1 }
      for _, v in ipairs { axis[1], axis.rows or 0, axis.seqs or 0, axis.ctx or 0 } do out[#out + 1] = v end
    end
  end
  for i, v in ipairs(out) do
    if math.type(v) ~= "integer" or v < 0 then error(pl.name .. ": launch number " .. i .. " is " .. tostring(v), 0) end
  end
  return out
end

function gen.emit(op, shape, params, key, numerics)
  local pl = plan(op, shape, params, key, numerics)
  local space, p = pl.space, pl.p
  local source = source_of(pl)
  return {
    name = pl.name, params = pl.params, isa = p.isa or p.path or "", kind = pl.card.kind == "cuda" and "cubin" or "so",
    arch = pl.card.kind == "cuda" and "sm_" .. pl.card.cc or "", cflags = flags_of(pl), launch = launch_of(pl),
    numerics = class_of(pl.side, p),
    layout = space.layout and space.layout(p) or p.layout or "",
    source = source, unit = source ~= "" and unit_of(space, source) or "",
  }
end

-- Calls visit(params, legal, reason) for every candidate, the last param varying fastest, until it returns true.
function gen.space(op, shape, key, numerics, visit)
  check_numerics(numerics)
  local space, c = space_of(op), find_card(key)
  local side = side_of(space, c)
  local p, list = read_shape(space, shape), entries(side.params)
  local function walk(i)
    if i > #list then
      local reason = refusal(side, p, c, numerics)
      return visit(text_of(list, p), reason == nil, reason or "")
    end
    for _, v in ipairs(list[i].values) do
      p[list[i].name] = v
      if walk(i + 1) then return true end
    end
    return false
  end
  walk(1)
end

function gen.cost(op, shape, rows, past)
  local space = space_of(op)
  local p = read_shape(space, shape)
  return space.bytes(p, rows, past) + 0.0, space.ops(p, rows, past) + 0.0
end

-- Everything that an op's text depends on, framed by names and sizes, for a hash.
function gen.identity(op)
  local space = space_of(op)
  local files = { "runtime/kernel.h", "gen/gen.lua", "gen/lib.lua", "gen/template.lua", "gen/prune.lua",
                  "gen/simplify.lua", "gen/tidy.lua", "templates/" .. op .. "/space.lua" }
  for i, name in ipairs { KERNEL.cpu, KERNEL.cuda } do
    local kernel = "templates/" .. op .. name
    if host.read(kernel) then
      files[#files + 1] = i == 1 and args_file(space) or "runtime/kernel.cuh"
      files[#files + 1] = kernel
      for _, f in ipairs(template.includes(kernel, host.read)) do files[#files + 1] = f end
    end
  end
  local out = {}
  for _, f in ipairs(files) do
    local text = must_read(f)
    out[#out + 1] = f .. " " .. #text .. "\n" .. text
  end
  return table.concat(out)
end

-- The op whose ref.c checks this one; "" for an op without a kernel.
function gen.ref_name(op)
  local space, folder = space_of(op), "templates/" .. op
  return (host.read(folder .. KERNEL.cpu) or host.read(folder .. KERNEL.cuda)) and (space.ref or op) or ""
end

return gen
