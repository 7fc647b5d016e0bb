-- Usage: lua prelude.lua runtime/kernel.cuh tests/simt/kernel.cuh OUT
-- What of the CUDA prelude is plain C++ goes to OUT as it stands, so that the text that cards run is the text that is checked. Functions
-- with inline PTX are left out: tests/simt/kernel.cuh has its own of the same name, and it is an error if it has not.

local prelude_path, own_path, out_path = arg[1], arg[2], arg[3]

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read("a")
  f:close()
  return text
end

local own, out = read(own_path), { "/* Made by prelude.lua from " .. prelude_path:match("[^/]+/[^/]+$") .. ". */" }

local function take(lines, first)
  local text = table.concat(lines, "\n")
  if text:find("__cvta_", 1, true) and not text:find("%f[%w_]asm%f[^%w_]") then return end -- a number for PTX alone
  if text:find("%f[%w_]asm%f[^%w_]") then
    local name = text:match("([%w_]+)%(")
    if not own:find("%f[%w_]" .. name .. "%(") then error(own_path .. " lacks " .. name .. ", which is PTX in " .. prelude_path, 0) end
  else
    out[#out + 1] = "#line " .. first .. ' "' .. prelude_path:match("[^/]+$") .. '"'
    out[#out + 1] = text
  end
end

local body, first, number, define = nil, 0, 0, false
for line in read(prelude_path):gmatch("([^\n]*)\n") do
  number = number + 1
  if body then
    body[#body + 1] = line
    if line == "}" then
      take(body, first)
      body = nil
    end
  elseif line:find("^static inline ") or line:find("^template ") then
    if line:find("}$") then take({ line }, number) else body, first = { line }, number end
  elseif define then
    define = line:find("\\$") ~= nil
  elseif line:find("^#define SHARED_DYNAMIC") then
    define = line:find("\\$") ~= nil
  elseif line:find("^#") and not line:find("^#pragma nv_diag") then
    out[#out + 1] = line
  end
end

local f = assert(io.open(out_path, "wb"))
f:write(table.concat(out, "\n"), "\n")
f:close()
