-- The last look at an emitted text, once its values are in place and unused parts are gone: a blank line between definitions, and
-- no comment, declaration or function's head beyond 130 columns. Works on lines, as prune.lua does: what stands in column 0 begins a
-- definition or a comment. Other statements are left as the template wrote them.

local MAX = 130

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  return lines
end

-- What begins on a line in column 0: "comment", "typedef", "inline" (a whole function on one line), "function", "struct" or nil.
local function begins(line)
  if line:find("^/%*") then return "comment" end
  if line:find("^typedef ") then return "typedef" end
  if line:find("^struct ") then return "struct" end
  if line:find("^static .*%).*}$") then return "inline" end
  if line:find("^static [^=;]*%(") or line:find("^void ") then return "function" end
  return nil
end

-- Whether a blank line belongs between line a and the next one, b. One-line functions and typedefs stay together as groups.
local function apart(a, b)
  local next_kind = begins(b)
  if not next_kind or a == "" or a:find("^/?%s?%*.*%*/$") then return false end
  return next_kind == "comment" or a == "}" or a == "};" or next_kind ~= begins(a)
end

-- How many brackets are open at the end of a text.
local function depth_of(text)
  local _, opened = text:gsub("[({[]", "")
  local _, closed = text:gsub("[)}%]]", "")
  return opened - closed
end

-- The last blank of a line outside brackets, from column `least` to MAX + 1, before which `pattern` matches; nil if none.
local function last_blank(line, pattern, least)
  for i = MAX + 1, least, -1 do
    local before = line:sub(1, i - 1)
    if line:sub(i, i) == " " and before:find(pattern) and depth_of(before) == 0 then return i end
  end
  return nil
end

-- Puts `line` into out as lines of at most MAX columns, cut after a comma, semicolon or colon if one is near the end, else at a
-- blank; those after the first begin with `indent`.
local function fold(out, line, indent)
  while #line > MAX do
    local cut = last_blank(line, "[,;:.]$", MAX - 35) or last_blank(line, "", #indent + 2)
    if not cut or line:sub(cut) == " */" then break end
    out[#out + 1] = line:sub(1, cut - 1):gsub(" +$", "")
    line = indent .. line:sub(cut + 1):gsub("^ +", "")
  end
  out[#out + 1] = line
end

-- A line of a comment in column 0. The command that remakes the text stays whole.
local function fold_comment(out, line, first)
  if line:find("made by: ", 1, true) then
    out[#out + 1] = line
  elseif first then
    fold(out, line, line:find("^/%* [%w_]+: ") and " *     " or " * ")
  else
    local indent = line:match("^ %* *")
    fold(out, line, indent == " * " and indent or indent .. "  ")
  end
end

-- The head of a function, cut at its commas: further arguments below the first, or all on a line of their own.
local function fold_head(out, line)
  local head, args = line:match("^(.-%()(.*)$")
  local indent = string.rep(" ", #head)
  if #head > MAX // 2 then
    out[#out + 1] = head
    head, indent = "    ", "    "
  end
  local row = head
  for arg in args:gmatch("[^,]+,?") do
    arg = arg:gsub("^ ", "")
    if row ~= head and row ~= indent and #row + 1 + #arg > MAX then
      out[#out + 1], row = row, indent .. arg
    else
      row = row .. ((row == head or row == indent) and "" or " ") .. arg
    end
  end
  out[#out + 1] = row
end

-- A declaration of several variables, cut between them.
local function fold_declaration(out, line)
  local indent = line:match("^( +[%w_]+ )"):gsub("%S", " ")
  while #line > MAX do
    local cut = last_blank(line, ",$", #indent + 2)
    if not cut then break end
    out[#out + 1] = line:sub(1, cut - 1)
    line = indent .. line:sub(cut + 1)
  end
  out[#out + 1] = line
end

-- A whole function on one line, written on four.
local function open_inline(out, line)
  local head, body = line:match("^(.-%)) { (.*) }$")
  if not head then
    out[#out + 1] = line
    return
  end
  if #head > MAX then fold_head(out, head) else out[#out + 1] = head end
  out[#out + 1] = "{"
  out[#out + 1] = "    " .. body
  out[#out + 1] = "}"
end

local function shorten(lines)
  local out, comment = {}, false
  for _, line in ipairs(lines) do
    local kind = begins(line)
    local inside = comment
    if kind == "comment" then comment = true end
    if #line <= MAX then
      out[#out + 1] = line
    elseif comment then
      fold_comment(out, line, not inside)
    elseif kind == "inline" then
      open_inline(out, line)
    elseif kind == "function" and line:find("%)$") then
      fold_head(out, line)
    elseif line:find("^ +[%w_]+ [^()]*=.*;$") then
      fold_declaration(out, line)
    else
      out[#out + 1] = line
    end
    if line:find("%*/$") then comment = false end
  end
  return out
end

return function(text)
  local lines, out = shorten(lines_of(text)), {}
  for i, line in ipairs(lines) do
    out[#out + 1] = line
    if lines[i + 1] and apart(line, lines[i + 1]) then out[#out + 1] = "" end
  end
  return table.concat(out, "\n") .. "\n"
end
