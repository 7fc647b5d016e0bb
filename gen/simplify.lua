-- Arithmetic that a shape or a path made trivial, taken out of an emitted text as a person would not have written it: `j * 1`,
-- `u / 1`, `h % 1`, `1 * n`, `p + 0`. Works on statements; comments stay as they are. Such numbers are integers in our templates:
-- a constant with a point or a suffix is a float and is left alone.

local NAME = "[%w_%.%->%[%]]+"
local END = "%f[^%w_%.]"

-- Pattern and replacement, in order. Products and quotients bind to the left, so what stands before and after keeps its meaning.
local rules = {
  { "([ (%[])%((" .. NAME .. ") %* 1%)", "%1%2" },
  { "([ (%[])%(1 %* (" .. NAME .. ")%)", "%1%2" },
  { " %* 1" .. END, "" },
  { " / 1" .. END, "" },
  { "([=<>+%-?:,] )1 %* ", "%1" },
  { "([(%[])1 %* ", "%1" },
  { NAME .. " / " .. NAME .. " %% 1" .. END, "0" },
  { NAME .. " %% 1" .. END, "0" },
  { "([-+*/=,(%[] ?)%(0%)", "%10" },
  { "([=+%-(,] ?)0 %* %d+" .. END, "%10" },
  { "([ (%[])%((" .. NAME .. ") %+ 0%)", "%1%2" },
  { "([%w_%])]) %+ 0([,);%]])", "%1%2" },
}

local function code(text)
  for _, rule in ipairs(rules) do text = text:gsub(rule[1], rule[2]) end
  return text
end

-- The text with every line's code simplified; a comment runs from "/*" to "*/", over lines or behind a statement.
return function(text)
  local out, comment = {}, false
  for line in text:gmatch("([^\n]*)\n") do
    local from = comment and 1 or line:find("/*", 1, true)
    out[#out + 1] = not from and code(line) or code(line:sub(1, from - 1)) .. line:sub(from)
    if from then comment = not line:find("*/", comment and 1 or from + 2, true) end
  end
  return table.concat(out, "\n") .. "\n"
end
