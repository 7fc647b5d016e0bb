-- Puts the generator's scripts, templates and headers into one C table, so that a program needs no files of its own:
--   lua5.4 gen/embed.lua SOURCE_DIR OUT.c FILE...
-- FILE is relative to SOURCE_DIR. The output depends on the files' names and contents alone.

local function quoted(text)
  local out = {}
  for line in text:gmatch("[^\n]*\n?") do
    if line ~= "" then
      local body = line:gsub('[\\"\n\t\r?]', { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n", ["\t"] = "\\t",
                                               ["\r"] = "\\r", ["?"] = "\\?" })
      out[#out + 1] = '        "' .. body .. '"'
    end
  end
  return #out > 0 and table.concat(out, "\n") or '        ""'
end

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("a")
  f:close()
  return text
end

local function main(dir, out, ...)
  local files, text = { ... }, {}
  table.sort(files)
  text[1] = "/* Printed by gen/embed.lua. Do not edit. */\n#include \"embed.h\"\n\nconst struct gen_file gen_files[] = {"
  for _, name in ipairs(files) do
    local body = read(dir .. "/" .. name)
    text[#text + 1] = string.format('    { "%s", %d,\n%s },', name, #body, quoted(body))
  end
  text[#text + 1] = string.format("};\nconst int gen_n_files = %d;\n", #files)
  local f = assert(io.open(out, "wb"))
  assert(f:write(table.concat(text, "\n")))
  assert(f:close())
end

if #arg < 3 then
  io.stderr:write("usage: lua5.4 embed.lua SOURCE_DIR OUT.c FILE...\n")
  os.exit(2)
end
local ok, err = pcall(main, table.unpack(arg))
if not ok then
  io.stderr:write("embed.lua: ", tostring(err), "\n")
  os.exit(1)
end
