-- lua5.4 embed.lua OUT.c symbol=file ...: C arrays that hold files, as `const char symbol[]` (with a final zero byte)
-- and `const size_t symbol_size` (without it).
local out_path = assert(arg[1], "usage: embed.lua OUT.c symbol=file ...")

local function array(symbol, text)
    local lines = { string.format("extern const char %s[];\nextern const size_t %s_size;\nconst char %s[] = {", symbol, symbol, symbol) }
    for at = 1, #text, 20 do
        local bytes = {}
        for _, b in ipairs({ text:byte(at, at + 19) }) do bytes[#bytes + 1] = b < 128 and b or b - 256 end
        lines[#lines + 1] = table.concat(bytes, ",") .. ","
    end
    lines[#lines + 1] = string.format("0};\nconst size_t %s_size = %d;\n", symbol, #text)
    return table.concat(lines, "\n")
end

local parts = { "#include <stddef.h>\n" }
for i = 2, #arg do
    local symbol, path = arg[i]:match("^([%a_][%w_]*)=(.+)$")
    assert(symbol, "expected symbol=file, found " .. arg[i])
    local file = assert(io.open(path, "rb"))
    parts[#parts + 1] = array(symbol, file:read("a"))
    file:close()
end
local out = assert(io.open(out_path, "wb"))
out:write(table.concat(parts, "\n"))
out:close()
