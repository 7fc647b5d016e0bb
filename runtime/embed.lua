-- lua5.4 embed.lua OUT.c symbol=file ...: C arrays that hold files, as `const char symbol[]` (with a final zero byte)
-- and `const size_t symbol_size` (without it).
-- lua5.4 embed.lua OUT.c --presets file ...: the table of presets.h, a file NAME.lua each.
local out_path = assert(arg[1], "usage: embed.lua OUT.c symbol=file ... | --presets file ...")

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

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("a")
    file:close()
    return text
end

local function symbols(first)
    local parts = { "#include <stddef.h>\n" }
    for i = first, #arg do
        local symbol, path = arg[i]:match("^([%a_][%w_]*)=(.+)$")
        assert(symbol, "expected symbol=file, found " .. arg[i])
        parts[#parts + 1] = array(symbol, read(path))
    end
    return parts
end

local function presets(first)
    local parts, rows = { '#include "presets.h"\n' }, { "const struct q_preset q_presets[] = {" }
    local files = { table.unpack(arg, first) }
    table.sort(files)
    for i, path in ipairs(files) do
        local name, symbol = assert(path:match("([^/]+)%.lua$"), "expected NAME.lua, found " .. path), "q_preset_" .. i
        parts[i + 1] = array(symbol, read(path))
        rows[i + 1] = string.format('    { "%s", %s, &%s_size },', name, symbol, symbol)
    end
    rows[#rows + 1] = string.format("};\nconst int q_n_presets = %d;\n", #files)
    parts[#parts + 1] = table.concat(rows, "\n")
    return parts
end

local parts = arg[2] == "--presets" and presets(3) or symbols(2)
local out = assert(io.open(out_path, "wb"))
out:write(table.concat(parts, "\n"))
out:close()
