-- Leaves out of an emitted text the `static inline` functions and typedefs that nothing in it uses, so that a kernel shows the
-- parts of the vector prelude that it works with and no others. Works on lines, as our templates write them: a definition begins in
-- column 0 and ends on its first line, or at a `}` in column 0; a comment directly above belongs to the definitions that follow
-- it without a blank line, and goes when all of them go.

-- The name that a line defines, if it begins such a definition.
local function defined_name(line)
  if line:find("^static inline ") then return line:match("([%w_]+)%(") end
  if line:find("^typedef ") then return line:match("^typedef [%w_]+ ([%w_]+)") end
  return nil
end

-- Lines as items: { kind = "define" | "comment" | "blank" | "text", name, first, last }.
local function split(lines)
  local items, i = {}, 1
  while i <= #lines do
    local line, item = lines[i], { kind = "text", first = i }
    item.name = defined_name(line)
    if item.name then
      item.kind = "define"
      if not line:find("[;}]$") then
        while lines[i] ~= "}" and lines[i + 1] do i = i + 1 end
      end
    elseif line:find("^/%*") then
      item.kind = "comment"
      while not lines[i]:find("%*/$") and lines[i + 1] do i = i + 1 end
    elseif line == "" then
      item.kind = "blank"
    end
    item.last = i
    items[#items + 1] = item
    i = i + 1
  end
  return items
end

local function count_words(lines, items)
  local count = {}
  for _, item in ipairs(items) do
    if not item.gone and item.kind ~= "comment" then
      for i = item.first, item.last do
        for word in lines[i]:gmatch("[%a_][%w_]*") do count[word] = (count[word] or 0) + 1 end
      end
    end
  end
  return count
end

-- Marks what nothing else names; true if it found any.
local function drop_unused(lines, items)
  local count, found = count_words(lines, items), false
  for _, item in ipairs(items) do
    if item.kind == "define" and not item.gone and count[item.name] == 1 then item.gone, found = true, true end
  end
  return found
end

local function drop_comments(items)
  for i, item in ipairs(items) do
    local j = i + 1
    while item.kind == "comment" and items[j] and items[j].kind == "define" and items[j].gone do j = j + 1 end
    local next_kind = items[j] and items[j].kind or "blank"
    if j > i + 1 and (next_kind == "blank" or next_kind == "comment") then item.gone = true end
  end
end

return function(text)
  local lines, out = {}, {}
  for line in text:gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  local items = split(lines)
  while drop_unused(lines, items) do end
  drop_comments(items)
  for _, item in ipairs(items) do
    for i = item.first, item.gone and item.first - 1 or item.last do out[#out + 1] = lines[i] end
  end
  return table.concat(out, "\n") .. "\n"
end
