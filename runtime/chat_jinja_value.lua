-- Chat templates: values, with Python's meaning.
--
-- string, boolean and number are Lua's (a string is UTF-8 bytes; positions count code points). The rest are tables
-- whose metatable names the kind: a list or tuple holds its items at 1..#t, a dict is { keys = order, map = values },
-- a number that Lua or Python would write differently is { text, value }: it prints as the caller wrote it.
-- No value is ever changed once made, except a namespace.
local M = ...
local V = {}
M.value = V

local function meta(kind) return { kind = kind } end
local LIST, TUPLE, DICT, UNDEFINED = meta("list"), meta("tuple"), meta("dict"), meta("undefined")
local NAMESPACE, FUNCTION, LOOP = meta("namespace"), meta("function"), meta("loop")
local INT_TEXT, FLOAT_TEXT = meta("int"), meta("float")
M.metatables = { list = LIST, dict = DICT, int_text = INT_TEXT, float_text = FLOAT_TEXT }
M.none = setmetatable({}, meta("none"))
V.methods = { string = {}, list = {}, tuple = {}, dict = {} }

local TYPE_NAMES = { string = "str", boolean = "bool", none = "NoneType", undefined = "Undefined",
                     namespace = "Namespace", ["function"] = "function", loop = "LoopContext" }

function V.fail(...) error({ msg = string.format(...), kind = "template" }, 0) end
local fail = V.fail

function V.list(t) return setmetatable(t, LIST) end
function V.tuple(t) return setmetatable(t, TUPLE) end
function V.dict() return setmetatable({ keys = {}, map = {} }, DICT) end
function V.namespace() return setmetatable({}, NAMESPACE) end
function V.loop(t) return setmetatable(t, LOOP) end
function V.undefined(why) return setmetatable({ why = why }, UNDEFINED) end

-- A callable. params: names of its parameters in order (after `self`, which a method or filter gets first).
function V.func(name, params, fn, self)
    return setmetatable({ name = name, params = params, fn = fn, self = self }, FUNCTION)
end

function V.kind(v)
    local t = type(v)
    if t == "table" then return getmetatable(v).kind end
    if t == "number" then return math.type(v) == "integer" and "int" or "float" end
    return t
end
local kind = V.kind

function V.type_name(v)
    local k = kind(v)
    return TYPE_NAMES[k] or k
end

-- The Lua number behind an int, float or bool; nil for others.
function V.num(v)
    local t = type(v)
    if t == "number" then return v end
    if t == "boolean" then return v and 1 or 0 end
    if t == "table" and (getmetatable(v) == INT_TEXT or getmetatable(v) == FLOAT_TEXT) then return v.value end
end
local num = V.num

function V.truthy(v)
    if v == true or v == false then return v end
    local k = kind(v)
    if k == "string" then return v ~= "" end
    if k == "int" or k == "float" then return num(v) ~= 0 end
    if k == "list" or k == "tuple" then return #v > 0 end
    if k == "dict" then return #v.keys > 0 end
    return k ~= "none" and k ~= "undefined"
end

-- Any use of an undefined value other than printing and testing it is an error that names it.
local function need_defined(v)
    if type(v) == "table" and getmetatable(v) == UNDEFINED then fail("%s", v.why) end
end
V.need_defined = need_defined

-- dicts ---------------------------------------------------------------------------------------------------------

local ANY_UNDEFINED = V.undefined("the key is undefined")

-- The form under which a key is looked up. All undefined values are one; tuples are not supported as keys.
local function hashable(key)
    local k = kind(key)
    if k == "undefined" then return ANY_UNDEFINED end
    if k == "list" or k == "tuple" or k == "dict" or key ~= key then fail("unhashable type: '%s'", V.type_name(key)) end
    return key
end

function V.dict_set(d, key, value)
    key = hashable(key)
    if d.map[key] == nil then d.keys[#d.keys + 1] = key end
    d.map[key] = value
end

function V.dict_get(d, key) return d.map[hashable(key)] end

-- text ----------------------------------------------------------------------------------------------------------

local REPR_ESCAPES = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\" }

local function repr_char(c)
    if REPR_ESCAPES[c] then return REPR_ESCAPES[c] end
    local cp = utf8.codepoint(c)
    if M.prim.printable(cp) then return c end
    return string.format(cp < 0x100 and "\\x%02x" or cp < 0x10000 and "\\u%04x" or "\\U%08x", cp)
end

local function string_repr(s)
    local quote = s:find("'", 1, true) and not s:find('"', 1, true) and '"' or "'"
    local out = {}
    for c in s:gmatch(utf8.charpattern) do
        out[#out + 1] = c == quote and "\\" .. c or repr_char(c)
    end
    return quote .. table.concat(out) .. quote
end

local str

local function repr(v)
    if type(v) == "string" then return string_repr(v) end
    if kind(v) == "undefined" then return "Undefined" end
    return str(v)
end

local function join_repr(items)
    local out = {}
    for i, item in ipairs(items) do out[i] = repr(item) end
    return table.concat(out, ", ")
end

local STR = {
    string = function(v) return v end,
    boolean = function(v) return v and "True" or "False" end,
    int = function(v) return type(v) == "table" and v.text or string.format("%d", v) end,
    float = function(v) return type(v) == "table" and v.text or M.prim.float_repr(v) end,
    none = function() return "None" end,
    undefined = function() return "" end,
    ["function"] = function(v) return v.macro and "<Macro '" .. v.name .. "'>" or "<function " .. v.name .. ">" end,
    list = function(v) return "[" .. join_repr(v) .. "]" end,
    tuple = function(v) return "(" .. join_repr(v) .. (#v == 1 and ",)" or ")") end,
    dict = function(v)
        local out = {}
        for i, key in ipairs(v.keys) do out[i] = repr(key) .. ": " .. repr(v.map[key]) end
        return "{" .. table.concat(out, ", ") .. "}"
    end,
}

-- Python's str(v): what printing shows.
function V.str(v)
    local f = STR[kind(v)]
    if not f then fail("a %s cannot be printed", V.type_name(v)) end
    return f(v)
end
str = V.str
V.repr = repr

-- comparison ----------------------------------------------------------------------------------------------------

local function is_sequence(k) return k == "list" or k == "tuple" end

local function same_items(a, b)
    if #a ~= #b then return false end
    for i = 1, #a do
        if not V.eq(a[i], b[i]) then return false end
    end
    return true
end

local function same_dict(a, b)
    if #a.keys ~= #b.keys then return false end
    for key, value in next, a.map do
        if b.map[key] == nil or not V.eq(value, b.map[key]) then return false end
    end
    return true
end

function V.eq(a, b)
    if type(a) == "string" or type(b) == "string" then return a == b end
    local x, y = num(a), num(b)
    if x or y then return x == y end
    local k = kind(a)
    if k ~= kind(b) then return false end
    if k == "undefined" then return true end
    if is_sequence(k) then return same_items(a, b) end
    if k == "dict" then return same_dict(a, b) end
    return a == b
end

function V.lt(a, b)
    need_defined(a)
    need_defined(b)
    if type(a) == "string" and type(b) == "string" then return M.prim.bytes_less(a, b) end
    local x, y = num(a), num(b)
    if x and y then return x < y end
    if is_sequence(kind(a)) and kind(a) == kind(b) then
        for i = 1, math.min(#a, #b) do
            if not V.eq(a[i], b[i]) then return V.lt(a[i], b[i]) end
        end
        return #a < #b
    end
    fail("'<' not supported between '%s' and '%s'", V.type_name(a), V.type_name(b))
end

function V.contains(box, v)
    local k = kind(box)
    if k == "string" then
        if type(v) ~= "string" then need_defined(v) fail("'in <string>' requires string as left operand, not %s", V.type_name(v)) end
        return box:find(v, 1, true) ~= nil
    elseif k == "dict" then
        return V.dict_get(box, v) ~= nil
    elseif k == "undefined" then
        return false
    end
    for _, item in ipairs(V.items(box)) do
        if V.eq(item, v) then return true end
    end
    return false
end

-- iteration and indexing ----------------------------------------------------------------------------------------

function V.chars(s)
    local out = {}
    for c in s:gmatch(utf8.charpattern) do out[#out + 1] = c end
    return out
end

-- What a loop over v visits, as a plain array (not to be changed).
function V.items(v)
    local k = kind(v)
    if k == "list" or k == "tuple" then return v end
    if k == "dict" then return v.keys end
    if k == "string" then return V.chars(v) end
    if k == "undefined" then return {} end
    fail("'%s' object is not iterable", V.type_name(v))
end

function V.len(v)
    local k = kind(v)
    if k == "string" then return utf8.len(v) end
    if k == "list" or k == "tuple" then return #v end
    if k == "dict" then return #v.keys end
    if k == "undefined" then return 0 end
    fail("object of type '%s' has no len()", V.type_name(v))
end

-- Code points i..j (from 1) of s.
local function code_points(s, i, j)
    if j < i then return "" end
    if not s:find("[\128-\255]") then return s:sub(i, j) end
    return s:sub(utf8.offset(s, i), utf8.offset(s, j - i + 2, utf8.offset(s, i)) - 1)
end

local function reverse(s)
    local c, out = V.chars(s), {}
    for i = #c, 1, -1 do out[#out + 1] = c[i] end
    return table.concat(out)
end

local function slice_bound(v, n, step, default)
    if v == nil or v == M.none then return default end
    local i = num(v)
    if i < 0 then i = i + n end
    if step > 0 then return math.max(0, math.min(i, n)) end
    return math.max(-1, math.min(i, n - 1))
end

local function check_slice(v, from, to, step)
    need_defined(v)
    if type(v) ~= "string" and not is_sequence(kind(v)) then fail("'%s' object cannot be sliced", V.type_name(v)) end
    for _, bound in ipairs({ from or 0, to or 0, step or 1 }) do
        local k = kind(bound)
        if k ~= "int" and k ~= "boolean" and k ~= "none" then fail("slice indices must be integers or None") end
    end
end

-- v[from:to:step]; bounds are values or nil.
function V.slice(v, from, to, step)
    check_slice(v, from, to, step)
    local k, n, by = kind(v), V.len(v), (step == nil or step == M.none) and 1 or num(step)
    if by == 0 then fail("slice step cannot be zero") end
    local i = slice_bound(from, n, by, by > 0 and 0 or n - 1)
    local j = slice_bound(to, n, by, by > 0 and n or -1)
    if k == "string" then
        if by == 1 then return code_points(v, i + 1, j) end
        if by == -1 and i == n - 1 and j == -1 then return reverse(v) end
        v = V.chars(v)
    end
    local out = {}
    for p = i, by > 0 and j - 1 or j + 1, by do out[#out + 1] = v[p + 1] end
    if k == "string" then return table.concat(out) end
    return k == "tuple" and V.tuple(out) or V.list(out)
end

local function missing(v, key)
    local owner = v == M.none and "None" or V.type_name(v) .. " object"
    if type(key) == "string" then return V.undefined(string.format("'%s' has no attribute '%s'", owner, key)) end
    return V.undefined(string.format("'%s' has no element %s", owner, repr(key)))
end

local function element(v, key)
    local k = kind(v)
    if k == "dict" then return v.map[key] end
    local i = num(key)
    if not i or kind(key) == "float" then return nil end
    if is_sequence(k) then return v[i < 0 and #v + i + 1 or i + 1] end
    if k ~= "string" then return nil end
    local n = utf8.len(v)
    if i < 0 then i = i + n end
    if i >= 0 and i < n then return code_points(v, i + 1, i + 1) end
end

local function attribute(v, name)
    local k = kind(v)
    local method = V.methods[k] and V.methods[k][name]
    if method then return V.func(name, method.params, method.fn, v) end
    if k == "namespace" then return v[name] end
    if k == "loop" then return M.loop_attribute(v, name) end
end

-- v.name: an attribute or method if there is one, else an element.
function V.attr(v, name)
    need_defined(v)
    local r = attribute(v, name)
    if r == nil and kind(v) == "dict" then r = v.map[name] end
    if r == nil then return missing(v, name) end
    return r
end

-- v[key]: an element if there is one, else an attribute.
function V.item(v, key)
    need_defined(v)
    local r = element(v, key)
    if r == nil and type(key) == "string" then r = attribute(v, key) end
    if r == nil then return missing(v, key) end
    return r
end

-- calls ---------------------------------------------------------------------------------------------------------

-- Calls f with positional values args[1..n] and named ones ({name, value} pairs). Missing parameters arrive as nil.
function V.call(f, args, named)
    need_defined(f)
    if kind(f) ~= "function" then fail("'%s' object is not callable", V.type_name(f)) end
    if not f.params then return f.fn(args, named or {}) end
    local n, given = #f.params, #args
    if given > n then fail("%s() takes at most %d arguments, %d given", f.name, n, given) end
    for _, pair in ipairs(named or {}) do
        local at
        for i, name in ipairs(f.params) do
            if name == pair[1] then at = i end
        end
        if not at then fail("%s() has no parameter '%s'", f.name, pair[1]) end
        if args[at] ~= nil then fail("%s() got two values for '%s'", f.name, pair[1]) end
        args[at] = pair[2]
    end
    if f.self ~= nil then return f.fn(f.self, table.unpack(args, 1, n)) end
    return f.fn(table.unpack(args, 1, n))
end
