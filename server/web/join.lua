-- lua5.4 join.lua OUT.html index.html style.css first.js ...: one page out of its parts.
--
-- The page keeps `@style@` and `@script@` where the parts go. Scripts are ES modules by form, so that editors and people see what
-- comes from where; here their imports and the word `export` are dropped and they are put one after the other, in the given
-- order, as one module. So a name may be used once among all of them: a second one is a syntax error that the browser's test meets.
local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("a")
    file:close()
    return text
end

local function script(path)
    local text = "\n" .. read(path)
    text = text:gsub("\nimport [^;]*;", ""):gsub("\nexport ", "\n")
    assert(not text:find("</script", 1, true), path .. ": would end the page's script")
    return "// ---- " .. path:match("[^/]+$") .. text
end

local out_path, page_path, style_path = arg[1], arg[2], arg[3]
assert(style_path, "usage: join.lua OUT.html index.html style.css first.js ...")
local scripts = {}
for i = 4, #arg do scripts[#scripts + 1] = script(arg[i]) end
local parts = { style = "\n" .. read(style_path), script = "\n" .. table.concat(scripts, "\n") }
local page, n = read(page_path):gsub("@(%a+)@", parts)
assert(n == 2, page_path .. ": expected @style@ and @script@ once each")
local out = assert(io.open(out_path, "wb"))
out:write(page)
out:close()
