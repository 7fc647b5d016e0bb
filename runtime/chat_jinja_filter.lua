-- Chat templates: filters (`x | name(...)`) and tests (`x is name(...)`).
local M = ...
local V = M.value
local fail, kind, str = V.fail, V.kind, V.str
local S = M.string
local F, T = {}, {}
M.filters, M.tests = F, T

local function filter(name, params, fn) F[name] = { params = M.names(params), fn = fn } end
local function opt(v, default) if v == nil then return default end return v end
local function flag(v) return v ~= nil and V.truthy(v) end

-- json ----------------------------------------------------------------------------------------------------------

local JSON_ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\b"] = "\\b", ["\f"] = "\\f" }
for c = 0, 31 do
    local ch = string.char(c)
    JSON_ESCAPES[ch] = JSON_ESCAPES[ch] or string.format("\\u%04x", c)
end

local function json_string(s) return '"' .. s:gsub('[\0-\31"\\]', JSON_ESCAPES) .. '"' end

local json

-- `open` items `close`, on one line, or one item a line where an indent is asked for.
local function json_block(open, close, items, style, level)
    if #items == 0 then return open .. close end
    if not style.indent then return open .. table.concat(items, style.item) .. close end
    local inner = "\n" .. style.indent:rep(level + 1)
    return open .. inner .. table.concat(items, style.item .. inner) .. "\n" .. style.indent:rep(level) .. close
end

local function json_key(key)
    if type(key) == "string" then return json_string(key) end
    if type(key) == "table" and key ~= M.none then fail("a JSON key cannot be a '%s'", V.type_name(key)) end
    return json_string(json(key))
end

local function json_dict(v, style, level)
    local keys, items = v.keys, {}
    if style.sort then keys = M.sorted(keys, V.lt) end
    for i, key in ipairs(keys) do items[i] = json_key(key) .. style.colon .. json(v.map[key], style, level + 1) end
    return json_block("{", "}", items, style, level)
end

function json(v, style, level)
    local k = kind(v)
    if k == "string" then return json_string(v) end
    if k == "boolean" then return v and "true" or "false" end
    if k == "none" then return "null" end
    if k == "int" or k == "float" then return str(v) end
    if k == "dict" then return json_dict(v, style, level) end
    if k ~= "list" and k ~= "tuple" then fail("Object of type %s is not JSON serializable", V.type_name(v)) end
    local items = {}
    for i, item in ipairs(v) do items[i] = json(item, style, level + 1) end
    return json_block("[", "]", items, style, level)
end

-- The tojson that chat templates are written for: Python's json.dumps, text beyond ASCII kept as it is.
filter("tojson", "ensure_ascii indent separators sort_keys", function(v, _, indent, separators, sort_keys)
    local style = { item = ", ", colon = ": ", sort = flag(sort_keys) }
    if indent ~= nil and indent ~= M.none then
        style.item = ","
        style.indent = type(indent) == "string" and indent or (" "):rep(V.num(indent) or 0)
    end
    if separators ~= nil and separators ~= M.none then style.item, style.colon = separators[1], separators[2] end
    return json(v, style, 0)
end)

-- sequences -----------------------------------------------------------------------------------------------------

-- A stable merge sort: table.sort is not stable, and its comparator may not fail half way.
function M.sorted(list, less)
    local n, from, to, width = #list, table.move(list, 1, #list, 1, {}), {}, 1
    while width < n do
        for lo = 1, n, 2 * width do
            local i, j = lo, lo + width
            local mid, hi = math.min(lo + width, n + 1), math.min(lo + 2 * width, n + 1)
            for k = lo, hi - 1 do
                local right = i >= mid or (j < hi and less(from[j], from[i]))
                if right then to[k], j = from[j], j + 1 else to[k], i = from[i], i + 1 end
            end
        end
        from, to, width = to, from, 2 * width
    end
    return from
end

-- The value at a path like "function.name" or "0.role".
local function path_value(v, path, default)
    if type(path) ~= "string" then return V.item(v, path) end
    for part in path:gmatch("[^.]+") do
        v = V.item(v, part:find("^%d+$") and math.tointeger(part) or part)
        if default ~= nil and kind(v) == "undefined" then v = default end
    end
    return v
end

-- What items are compared by: an attribute or themselves, without regard to case unless asked.
local function key_of(attribute, case_sensitive)
    return function(v)
        if attribute ~= nil and attribute ~= M.none then v = path_value(v, attribute) end
        return type(v) == "string" and not flag(case_sensitive) and S.lower(v) or v
    end
end

local function sort_by(items, key, reverse)
    local keyed = {}
    for i, v in ipairs(items) do keyed[i] = { v, key(v) } end
    keyed = M.sorted(keyed, function(a, b)
        if reverse then a, b = b, a end
        return V.lt(a[2], b[2])
    end)
    for i, pair in ipairs(keyed) do keyed[i] = pair[1] end
    return keyed
end

filter("sort", "reverse case_sensitive attribute", function(v, reverse, case_sensitive, attribute)
    local keys = {}
    for i, one in ipairs(type(attribute) == "string" and S.split(attribute, ",") or { attribute or M.none }) do
        keys[i] = key_of(one, case_sensitive)
    end
    return V.list(sort_by(V.items(v), function(item)
        local key = {}
        for i = 1, #keys do key[i] = keys[i](item) end
        return V.list(key)
    end, flag(reverse)))
end)

filter("dictsort", "case_sensitive by reverse", function(v, case_sensitive, by, reverse)
    if kind(v) ~= "dict" then V.need_defined(v) fail("dictsort: expected a mapping, found '%s'", V.type_name(v)) end
    if by ~= nil and by ~= "key" and by ~= "value" then fail("dictsort: by must be 'key' or 'value'") end
    return V.list(sort_by(M.dict_items(v), key_of(by == "value" and 1 or 0, case_sensitive), flag(reverse)))
end)

filter("unique", "case_sensitive attribute", function(v, case_sensitive, attribute)
    local key, seen, out = key_of(attribute, case_sensitive), V.dict(), {}
    for _, item in ipairs(V.items(v)) do
        local k = key(item)
        if V.dict_get(seen, k) == nil then
            V.dict_set(seen, k, true)
            out[#out + 1] = item
        end
    end
    return V.list(out)
end)

local function extreme(better)
    return function(v, case_sensitive, attribute)
        local key, best = key_of(attribute, case_sensitive), nil
        for _, item in ipairs(V.items(v)) do
            if best == nil or better(key(item), key(best)) then best = item end
        end
        return best == nil and V.undefined("No aggregated item, sequence was empty.") or best
    end
end
filter("min", "case_sensitive attribute", extreme(V.lt))
filter("max", "case_sensitive attribute", extreme(function(a, b) return V.lt(b, a) end))

filter("sum", "attribute start", function(v, attribute, start)
    local total = opt(start, 0)
    for _, item in ipairs(V.items(v)) do
        if attribute ~= nil and attribute ~= M.none then item = path_value(item, attribute) end
        total = M.operators.add(total, item)
    end
    return total
end)

local function list_of(v)
    local items = V.items(v)
    return V.list(table.move(items, 1, #items, 1, {}))
end
filter("list", "", list_of)
filter("length", "", V.len)
filter("count", "", V.len)
filter("first", "", function(v)
    local items = V.items(v)
    return items[1] == nil and V.undefined("No first item, sequence was empty.") or items[1]
end)
filter("last", "", function(v)
    local items = V.items(v)
    return #items == 0 and V.undefined("No last item, sequence was empty.") or items[#items]
end)
filter("reverse", "", function(v)
    if type(v) == "string" then return V.slice(v, nil, nil, -1) end
    return V.slice(list_of(v), nil, nil, -1)
end)
filter("join", "d attribute", function(v, d, attribute)
    local out = {}
    for i, item in ipairs(V.items(v)) do
        if attribute ~= nil and attribute ~= M.none then item = path_value(item, attribute) end
        out[i] = str(item)
    end
    return table.concat(out, d == nil and "" or str(d))
end)
filter("items", "", function(v)
    if kind(v) == "undefined" then return V.list({}) end
    if kind(v) ~= "dict" then fail("Can only get item pairs from a mapping.") end
    return M.dict_items(v)
end)

-- map(attribute = "a.b", default = x) or map("filter name", its arguments).
F.map = { fn = function(v, args, named)
    local options, out = {}, {}
    for _, pair in ipairs(named) do options[pair[1]] = pair[2] end
    if #args == 0 and options.attribute == nil then fail("map: expected a filter name or an attribute") end
    for i, item in ipairs(V.items(v)) do
        if #args > 0 then
            out[i] = M.apply(F, "filter", args[1], item, table.move(args, 2, #args, 1, {}), named)
        else
            out[i] = path_value(item, options.attribute, options.default)
        end
    end
    return V.list(out)
end }

-- select and reject (by a test on the item), selectattr and rejectattr (by a test on one of its attributes).
local function chooser(keep, by_attribute)
    return function(v, args, named)
        local at, out = by_attribute and 2 or 1, {}
        if by_attribute and not args[1] then fail("expected the name of an attribute") end
        for _, item in ipairs(V.items(v)) do
            local value, yes = item, nil
            if by_attribute then value = path_value(item, args[1]) end
            if args[at] == nil then yes = V.truthy(value)
            else yes = M.apply(T, "test", args[at], value, table.move(args, at + 1, #args, 1, {}), named) end
            if yes == keep then out[#out + 1] = item end
        end
        return V.list(out)
    end
end
F.select, F.reject = { fn = chooser(true, false) }, { fn = chooser(false, false) }
F.selectattr, F.rejectattr = { fn = chooser(true, true) }, { fn = chooser(false, true) }

-- text and numbers ----------------------------------------------------------------------------------------------

filter("string", "", str)
filter("safe", "", str)
filter("trim", "chars", function(v, chars) return S.strip(str(v), chars) end)
filter("upper", "", function(v) return S.upper(str(v)) end)
filter("lower", "", function(v) return S.lower(str(v)) end)
filter("capitalize", "", function(v) return S.capitalize(str(v)) end)
filter("title", "", function(v)
    local out, start = {}, true
    for c in str(v):gmatch(utf8.charpattern) do
        local breaks = c:find("^[-%s({%[<]") ~= nil
        out[#out + 1] = start and S.upper(c) or S.lower(c)
        start = breaks
    end
    return table.concat(out)
end)
filter("replace", "old new count", function(v, old, new, count) return S.replace(str(v), str(old), str(new), count) end)
filter("indent", "width first blank", function(v, width, first, blank)
    local pad = type(width) == "string" and width or (" "):rep(opt(width, 4))
    local lines = S.splitlines(str(v) .. "\n")
    for i, line in ipairs(lines) do
        if i > 1 and (line ~= "" or flag(blank)) then lines[i] = pad .. line end
    end
    return (flag(first) and pad or "") .. table.concat(lines, "\n")
end)

local function default(v, value, boolean)
    if kind(v) == "undefined" or (flag(boolean) and not V.truthy(v)) then return opt(value, "") end
    return v
end
filter("default", "default_value boolean", default)
filter("d", "default_value boolean", default)

local function parse_number(v)
    if type(v) ~= "string" then return V.num(v) end
    local text = S.strip(v)
    return text:find("^[+-]?[%d.]") and not text:find("[xXpP]") and tonumber((text:gsub("^%+", ""))) or nil
end
filter("int", "default base", function(v, value, base)
    V.need_defined(v)
    if base ~= nil and base ~= 10 then fail("int: only base 10 is supported") end
    if kind(v) == "int" then return v end
    local x = parse_number(v)
    local whole = x and math.tointeger(x < 0 and math.ceil(x) or math.floor(x))
    return whole or opt(value, 0)
end)
filter("float", "default", function(v, value)
    V.need_defined(v)
    local x = parse_number(v)
    return x and x * 1.0 or opt(value, 0.0)
end)
filter("abs", "", function(v)
    local x = V.num(v)
    if not x then V.need_defined(v) fail("abs: expected a number, found '%s'", V.type_name(v)) end
    return math.abs(x)
end)
-- Halves go to the even neighbour, as the binary value stands (Python's round).
filter("round", "precision method", function(v, precision, method)
    local x, p = V.num(v), opt(precision, 0)
    if not x or math.type(p) ~= "integer" then V.need_defined(v) fail("round: expected numbers") end
    if method == "ceil" then return math.ceil(x * 10 ^ p) / 10 ^ p end
    if method == "floor" then return math.floor(x * 10 ^ p) / 10 ^ p end
    if p < 0 or p > 60 then fail("round: precision must be 0 to 60") end
    local rounded = tonumber(string.format("%." .. p .. "f", x))
    return math.type(x) == "integer" and x or rounded * 1.0
end)

-- tests ---------------------------------------------------------------------------------------------------------

local function test(name, params, fn) T[name] = { params = M.names(params), fn = fn } end
local function of_kind(...)
    local set = {}
    for _, k in ipairs({ ... }) do set[k] = true end
    return function(v) return set[kind(v)] == true end
end

test("defined", "", function(v) return kind(v) ~= "undefined" end)
test("undefined", "", of_kind("undefined"))
test("none", "", of_kind("none"))
test("string", "", of_kind("string"))
test("mapping", "", of_kind("dict"))
test("iterable", "", of_kind("string", "list", "tuple", "dict", "undefined"))
test("sequence", "", of_kind("string", "list", "tuple", "dict", "undefined"))
test("number", "", of_kind("int", "float", "boolean"))
test("integer", "", of_kind("int"))
test("float", "", of_kind("float"))
test("boolean", "", of_kind("boolean"))
test("callable", "", of_kind("function"))
test("true", "", function(v) return v == true end)
test("false", "", function(v) return v == false end)
test("sameas", "other", function(v, other) return v == other and math.type(v) == math.type(other) end)
test("odd", "", function(v) return M.operators.mod(v, 2) == 1 end)
test("even", "", function(v) return M.operators.mod(v, 2) == 0 end)
test("divisibleby", "num", function(v, n) return M.operators.mod(v, n) == 0 end)
test("upper", "", function(v) return S.isupper(str(v)) end)
test("lower", "", function(v) return S.islower(str(v)) end)
test("in", "seq", function(v, seq) return V.contains(seq, v) end)
for name, aliases in next, { eq = "== equalto", ne = "!=", lt = "< lessthan", le = "<=", gt = "> greaterthan", ge = ">=" } do
    for _, alias in ipairs(M.names(name .. " " .. aliases)) do test(alias, "other", M.comparisons[name]) end
end

-- Applies the filter or test called `name` to v.
function M.apply(set, what, name, v, args, named)
    local def = set[name]
    if not def then fail("there is no %s named '%s'", what, str(name)) end
    if not def.params then return def.fn(v, args, named) end
    return V.call(V.func(name, def.params, def.fn, v), args, named)
end
