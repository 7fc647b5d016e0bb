-- The template engine. A line whose first character (after blanks) is `$` is Lua, `${expr}` is a value, the rest is copied.
-- `$include "file"` puts another template's lines in place, where they see the same locals.
--
-- A template becomes one Lua chunk with exactly one Lua line per template line, so a position in the chunk is a position in a
-- template: every error names file and line. A name that nobody set is an error; so is a value that has no one C form (nil,
-- a table, a float: lib.f32 writes those). Blank lines are squeezed, trailing blanks dropped.

local template = {}

local CHUNK = "=template" -- as Lua writes it in messages: "template:12: ..."

-- The end of a `${`: position of the `}` that closes it. Braces inside the expression must balance.
local function close_brace(line, from)
  local depth = 1
  for i = from, #line do
    local c = line:sub(i, i)
    if c == "{" then depth = depth + 1 end
    if c == "}" then depth = depth - 1 end
    if depth == 0 then return i end
  end
  return nil
end

-- A text line as a Lua call that emits it.
local function text_line(line, where)
  local out, at = {}, 1
  while true do
    local open = line:find("${", at, true)
    if not open then break end
    local close = close_brace(line, open + 2)
    if not close then error(where .. ": '${' is not closed", 0) end
    if open > at then out[#out + 1] = string.format("%q", line:sub(at, open - 1)) end
    local expr = line:sub(open + 2, close - 1)
    if not expr:find("%S") then error(where .. ": '${}' is empty", 0) end
    out[#out + 1] = string.format("_value(%q, %s)", expr, expr)
    at = close + 1
  end
  out[#out + 1] = string.format("%q", line:sub(at))
  return "_emit(" .. table.concat(out, ", ") .. ")"
end

local function each_line(text)
  if text ~= "" and text:sub(-1) ~= "\n" then text = text .. "\n" end
  return text:gmatch("([^\n]*)\n")
end

-- Appends the Lua lines of one file to `unit`; unit.where[i] is the template position of Lua line i.
local function translate(unit, name, read, depth)
  local text = read(name)
  if not text then error((unit.at or name) .. ": no template '" .. name .. "'", 0) end
  if depth > 8 then error(unit.at .. ": includes nest deeper than 8", 0) end
  local number = 0
  for line in each_line(text) do
    number = number + 1
    local where = name .. ":" .. number
    local code = line:match("^%s*%$([^{].*)$")
    local include = code and code:match('^include%s+"([^"]+)"%s*$')
    unit.at = where
    if include then
      unit.files[#unit.files + 1] = include
      translate(unit, "templates/" .. include, read, depth + 1)
    else
      if not code and line:match("^%s*%$$") then code = "" end
      unit.lines[#unit.lines + 1] = code or text_line(line, where)
      unit.where[#unit.lines] = where
    end
  end
end

-- "template:12: ..." and "... at line 12" of Lua's messages become positions in template files.
local function mapper(unit)
  local function at(n) return unit.where[tonumber(n)] or unit.where[#unit.where] or "template" end
  return function(message)
    if type(message) ~= "string" then return message end
    message = message:gsub("template:(%d+)", at)
    return (message:gsub("at line (%d+)", function(n) return "at " .. at(n) end))
  end
end

local function value(expr, v)
  if type(v) == "string" then return v end
  if math.type(v) == "integer" then return tostring(v) end
  local what = math.type(v) == "float" and "a float (// divides integers, lib.f32 writes a constant)" or type(v)
  error("'" .. expr .. "' is " .. what, 2)
end

-- At most one blank line in a row, none at the start or end, none after '{' or before '}'.
function template.squeeze(text)
  local out, blank = {}, false
  for line in each_line(text) do
    line = line:gsub("%s+$", "")
    if line == "" then
      blank = true
    else
      local last = out[#out]
      if blank and last and not last:match("{$") and not line:match("^%s*}") then out[#out + 1] = "" end
      out[#out + 1], blank = line, false
    end
  end
  return table.concat(out, "\n") .. "\n"
end

local function environment(names, emit)
  local env = setmetatable({ _emit = emit, _value = value }, { __index = names })
  return setmetatable({}, {
    __index = function(_, k)
      local v = env[k]
      if v == nil then error("'" .. tostring(k) .. "' is not set", 2) end
      return v
    end,
    __newindex = function(_, k) error("'" .. tostring(k) .. "' is not local", 2) end,
  })
end

-- Renders template `name` with the names in the table `names`. read(name) gives a file's text, or nil.
function template.render(name, names, read)
  local unit = { lines = {}, where = {}, files = {} }
  translate(unit, name, read, 1)
  local map = mapper(unit)
  local out = {}
  local function emit(...)
    out[#out + 1] = table.concat({ ... }) .. "\n"
  end
  local chunk, err = load(table.concat(unit.lines, "\n"), CHUNK, "t", environment(names, emit))
  if not chunk then error(map(err), 0) end
  local ok, failure = pcall(chunk)
  if not ok then error(map(failure), 0) end
  return template.squeeze(table.concat(out))
end

-- Names of the files that a template includes, in order, each once (for hashes).
function template.includes(name, read)
  local unit = { lines = {}, where = {}, files = {} }
  translate(unit, name, read, 1)
  local seen, list = {}, {}
  for _, f in ipairs(unit.files) do
    if not seen[f] then list[#list + 1] = "templates/" .. f end
    seen[f] = true
  end
  return list
end

return template
