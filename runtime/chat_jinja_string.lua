-- Chat templates: Python's string, list and dict methods.
local M = ...
local V = M.value
local fail, kind = V.fail, V.kind
local S = {}
M.string = S

-- What str.isspace() holds to be white space.
local SPACE = {}
for c in ("\t\n\v\f\r\28\29\30\31 "):gmatch(".") do SPACE[c] = true end
for _, cp in ipairs({ 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000 }) do SPACE[utf8.char(cp)] = true end
for cp = 0x2000, 0x200A do SPACE[utf8.char(cp)] = true end

local function char_set(chars)
    if chars == nil or chars == M.none then return SPACE end
    if type(chars) ~= "string" then fail("strip: expected a string, found '%s'", V.type_name(chars)) end
    local set = {}
    for c in chars:gmatch(utf8.charpattern) do set[c] = true end
    return set
end

-- Position after the run of characters of `set` (default: white space) that starts at byte `at`.
function S.skip(s, at, set)
    set = set or SPACE
    while at <= #s do
        local stop = utf8.offset(s, 2, at)
        if not set[s:sub(at, stop - 1)] then break end
        at = stop
    end
    return at
end

function S.lstrip(s, chars) return s:sub(S.skip(s, 1, char_set(chars))) end

function S.rstrip(s, chars)
    local set, stop = char_set(chars), #s
    while stop > 0 do
        local at = utf8.offset(s, -1, stop + 1)
        if not set[s:sub(at, stop)] then break end
        stop = at - 1
    end
    return s:sub(1, stop)
end

function S.strip(s, chars) return S.lstrip(S.rstrip(s, chars), chars) end

local function need_string(what, v)
    if type(v) ~= "string" then
        V.need_defined(v)
        fail("%s: expected a string, found '%s'", what, V.type_name(v))
    end
    return v
end

local function need_int(what, v, default)
    if v == nil then return default end
    if kind(v) ~= "int" and kind(v) ~= "boolean" then fail("%s: expected an integer, found '%s'", what, V.type_name(v)) end
    return V.num(v)
end

-- Splits at runs of white space; the last piece keeps what follows the last allowed cut.
local function split_space(s, max)
    local out, at = {}, S.skip(s, 1)
    while at <= #s and (max < 0 or #out < max) do
        local stop = at
        while stop <= #s and not SPACE[s:sub(stop, utf8.offset(s, 2, stop) - 1)] do stop = utf8.offset(s, 2, stop) end
        out[#out + 1] = s:sub(at, stop - 1)
        at = S.skip(s, stop)
    end
    if at <= #s then out[#out + 1] = s:sub(at) end
    return V.list(out)
end

local function separator(sep)
    need_string("split", sep)
    if sep == "" then fail("empty separator") end
end

function S.split(s, sep, max)
    max = need_int("split", max, -1)
    if sep == nil or sep == M.none then return split_space(s, max) end
    separator(sep)
    local out, at = {}, 1
    while max < 0 or #out < max do
        local b, e = s:find(sep, at, true)
        if not b then break end
        out[#out + 1], at = s:sub(at, b - 1), e + 1
    end
    out[#out + 1] = s:sub(at)
    return V.list(out)
end

local function find_all(s, sub)
    local at, list = 1, {}
    while true do
        local b, e = s:find(sub, at, true)
        if not b then return list end
        list[#list + 1], at = b, e + 1
    end
end

-- From the right the cuts are found by searching the reversed bytes: "aaa".rsplit("aa", 1) is ["a", ""].
function S.rsplit(s, sep, max)
    max = need_int("rsplit", max, -1)
    if max < 0 then return S.split(s, sep, max) end
    if sep == nil or sep == M.none then fail("rsplit on white space with a limit is not supported") end
    separator(sep)
    local cuts, stop, out = find_all(s:reverse(), sep:reverse()), #s, {}
    local n = math.min(max, #cuts)
    for i = 1, n do
        local last = #s - cuts[i] + 1
        out[n + 2 - i] = s:sub(last + 1, stop)
        stop = last - #sep
    end
    out[1] = s:sub(1, stop)
    return V.list(out)
end

function S.splitlines(s, keep)
    local out, at = {}, 1
    while at <= #s do
        local b = s:find("[\n\v\f\r\28\29\30\194\226]", at)
        local e = b
        while b do
            e = s:match("^\r\n()", b) or s:match("^[\n\v\f\r\28\29\30]()", b) or s:match("^\194\133()", b) or
                s:match("^\226\128[\168\169]()", b)
            if e then break end
            b = s:find("[\n\v\f\r\28\29\30\194\226]", b + 1)
        end
        if not b then
            out[#out + 1], at = s:sub(at), #s + 1
        else
            out[#out + 1], at = s:sub(at, keep and V.truthy(keep) and e - 1 or b - 1), e
        end
    end
    return V.list(out)
end

local function affix(what, s, x, test)
    if kind(x) == "tuple" then
        for _, one in ipairs(x) do
            if test(s, need_string(what, one)) then return true end
        end
        return false
    end
    return test(s, need_string(what, x))
end
local function starts(s, x) return s:sub(1, #x) == x end
local function ends(s, x) return x == "" or s:sub(-#x) == x end
function S.startswith(s, x) return affix("startswith", s, x, starts) end
function S.endswith(s, x) return affix("endswith", s, x, ends) end
function S.removeprefix(s, x) return starts(s, need_string("removeprefix", x)) and s:sub(#x + 1) or s end
function S.removesuffix(s, x)
    return x ~= "" and ends(s, need_string("removesuffix", x)) and s:sub(1, #s - #x) or s
end

-- "" matches between all characters, as in Python.
local function replace_empty(s, new, count)
    local out = {}
    for _, c in ipairs(V.chars(s)) do
        if count ~= 0 then out[#out + 1], count = new, count - 1 end
        out[#out + 1] = c
    end
    if count ~= 0 then out[#out + 1] = new end
    return table.concat(out)
end

function S.replace(s, old, new, count)
    need_string("replace", old)
    need_string("replace", new)
    count = count == M.none and -1 or need_int("replace", count, -1)
    if old == "" then return replace_empty(s, new, count) end
    return table.concat(S.split(s, old, count), new)
end

local function find(s, sub)
    local b = s:find(need_string("find", sub), 1, true)
    return b and utf8.len(s:sub(1, b - 1)) or -1
end
S.find = find
function S.rfind(s, sub)
    if sub == "" then return utf8.len(s) end
    local cuts = find_all(s:reverse(), need_string("rfind", sub):reverse())
    if not cuts[1] then return -1 end
    return utf8.len(s:sub(1, #s - cuts[1] - #sub + 1))
end
function S.index(s, sub)
    local at = find(s, sub)
    if at < 0 then fail("substring not found") end
    return at
end
function S.count(s, sub)
    if sub == "" then return utf8.len(s) + 1 end
    return #find_all(s, need_string("count", sub))
end
function S.join(s, seq)
    local parts = {}
    for i, item in ipairs(V.items(seq)) do parts[i] = need_string("join", item) end
    return table.concat(parts, s)
end

function S.partition(s, sep)
    separator(sep)
    local b, e = s:find(sep, 1, true)
    if not b then return V.tuple({ s, "", "" }) end
    return V.tuple({ s:sub(1, b - 1), sep, s:sub(e + 1) })
end
function S.rpartition(s, sep)
    local parts = S.rsplit(s, sep, 1)
    if #parts == 1 then return V.tuple({ "", "", s }) end
    return V.tuple({ parts[1], sep, parts[2] })
end

function S.upper(s) return M.prim.upper(s) end
function S.lower(s) return M.prim.lower(s) end
function S.capitalize(s)
    local n = utf8.offset(s, 2)
    return n and M.prim.title(s:sub(1, n - 1)) .. M.prim.lower(s:sub(n)) or s
end
-- Letters after a letter are lowered, others raised.
function S.title(s)
    local out, inside = {}, false
    for c in s:gmatch(utf8.charpattern) do
        out[#out + 1] = inside and M.prim.lower(c) or M.prim.title(c)
        inside = M.prim.cased(utf8.codepoint(c))
    end
    return table.concat(out)
end

local function padding(s, width, fill)
    fill = fill or " "
    if type(fill) ~= "string" or utf8.len(fill) ~= 1 then fail("the fill character must be one character") end
    return fill, math.max(need_int("width", width, 0) - utf8.len(s), 0)
end
function S.ljust(s, width, fill)
    local c, n = padding(s, width, fill)
    return s .. c:rep(n)
end
function S.rjust(s, width, fill)
    local c, n = padding(s, width, fill)
    return c:rep(n) .. s
end
function S.zfill(s, width)
    local _, n = padding(s, width)
    local sign = s:match("^[+-]?")
    return sign .. ("0"):rep(n) .. s:sub(#sign + 1)
end

function S.isspace(s) return s ~= "" and S.lstrip(s) == "" end
function S.isupper(s) return M.prim.lower(s) ~= s and M.prim.upper(s) == s end
function S.islower(s) return M.prim.upper(s) ~= s and M.prim.lower(s) == s end
-- ASCII only: no template asks more of these.
function S.isdigit(s) return s:find("^%d+$") ~= nil end
function S.isalpha(s) return s:find("^%a+$") ~= nil end
function S.isalnum(s) return s:find("^%w+$") ~= nil end

local PARAMS = {
    lstrip = "chars", rstrip = "chars", strip = "chars", split = "sep maxsplit", rsplit = "sep maxsplit",
    splitlines = "keepends", startswith = "prefix", endswith = "suffix", removeprefix = "prefix", removesuffix = "suffix",
    replace = "old new count", find = "sub", rfind = "sub", index = "sub", count = "sub", join = "iterable",
    partition = "sep", rpartition = "sep", upper = "", lower = "", capitalize = "", title = "", ljust = "width fillchar",
    rjust = "width fillchar", zfill = "width", isspace = "", isupper = "", islower = "", isdigit = "", isalpha = "", isalnum = "",
}

local function names(text)
    local list = {}
    for name in text:gmatch("%S+") do list[#list + 1] = name end
    return list
end
M.names = names

for name, params in next, PARAMS do V.methods.string[name] = { params = names(params), fn = S[name] } end

local function define(kinds, name, params, fn)
    for _, k in ipairs(kinds) do V.methods[k][name] = { params = names(params), fn = fn } end
end

define({ "list", "tuple" }, "index", "value", function(list, value)
    for i, item in ipairs(list) do
        if V.eq(item, value) then return i - 1 end
    end
    fail("%s is not in list", V.repr(value))
end)
define({ "list", "tuple" }, "count", "value", function(list, value)
    local n = 0
    for _, item in ipairs(list) do n = V.eq(item, value) and n + 1 or n end
    return n
end)

function M.dict_items(d)
    local out = {}
    for i, key in ipairs(d.keys) do out[i] = V.tuple({ key, d.map[key] }) end
    return V.list(out)
end
define({ "dict" }, "items", "", M.dict_items)
define({ "dict" }, "keys", "", function(d) return V.list(table.move(d.keys, 1, #d.keys, 1, {})) end)
define({ "dict" }, "values", "", function(d)
    local out = {}
    for i, key in ipairs(d.keys) do out[i] = d.map[key] end
    return V.list(out)
end)
define({ "dict" }, "get", "key default", function(d, key, default)
    local v = V.dict_get(d, key)
    if v ~= nil then return v end
    return default == nil and M.none or default
end)

-- The sandbox that templates are written for refuses every method that changes a value; so does this one.
local function refuse(name)
    return function() fail("%s() would change a value: not allowed in a template", name) end
end
for name in ("append clear extend insert pop remove reverse sort"):gmatch("%S+") do
    V.methods.list[name] = { fn = refuse(name) }
end
for name in ("clear pop popitem setdefault update copy fromkeys"):gmatch("%S+") do
    V.methods.dict[name] = { fn = refuse(name) }
end
