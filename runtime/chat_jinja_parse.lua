-- Chat templates, stage 2: tokens to a tree.
--
-- A node is { kind, ..., line }. Precedence and the places where a tuple may stand without brackets are Jinja's.
-- What is outside the subset (inheritance, includes, call blocks, star arguments) is refused with its line.
local M = ...

-- Nesting of brackets and blocks; a template deeper than this is broken or hostile.
local MAX_DEPTH = 200
local CONSTANTS = { ["true"] = true, ["True"] = true, ["false"] = false, ["False"] = false }
local COMPARE = { ["=="] = "eq", ["!="] = "ne", ["<"] = "lt", ["<="] = "le", [">"] = "gt", [">="] = "ge" }
local RESERVED = {}
for word in ("and or not in is if else elif true True false False none None"):gmatch("%S+") do RESERVED[word] = true end

local P = {}
P.__index = P

local function fail(line, ...) error({ msg = string.format(...), line = line, kind = "syntax" }, 0) end

local function describe(t)
    if t.type == "eof" then return "the end of the template" end
    if t.type == "block_end" or t.type == "print_end" then return "the end of the tag" end
    return "'" .. tostring(t.value or t.type) .. "'"
end

function P:cur() return self.tokens[self.pos] end
function P:next()
    local t = self.tokens[self.pos]
    self.pos = self.pos + 1
    return t
end
function P:is(type, value)
    local t = self.tokens[self.pos]
    return t.type == type and (value == nil or t.value == value)
end
function P:is_op(op) return self:is("op", op) end
function P:is_name(name) return self:is("name", name) end
function P:accept(type, value)
    if self:is(type, value) then return self:next() end
end
function P:expect(type, value)
    if self:is(type, value) then return self:next() end
    fail(self:cur().line, "expected %s, found %s", value and "'" .. value .. "'" or type, describe(self:cur()))
end
function P:node(kind, fields)
    fields.kind, fields.line = kind, fields.line or self:cur().line
    return fields
end
function P:enter()
    self.depth = self.depth + 1
    if self.depth > MAX_DEPTH then fail(self:cur().line, "nested deeper than %d", MAX_DEPTH) end
end
function P:leave(...)
    self.depth = self.depth - 1
    return ...
end

-- expressions, loosest first ------------------------------------------------------------------------------------

function P:expression()
    self:enter()
    local e = self:or_()
    while self:accept("name", "if") do
        local test = self:or_()
        local otherwise = self:accept("name", "else") and self:expression() or nil
        e = self:node("cond", { test = test, yes = e, no = otherwise })
    end
    return self:leave(e)
end

function P:or_()
    local e = self:and_()
    while self:accept("name", "or") do e = self:node("or", { a = e, b = self:and_() }) end
    return e
end

function P:and_()
    local e = self:not_()
    while self:accept("name", "and") do e = self:node("and", { a = e, b = self:not_() }) end
    return e
end

function P:not_()
    if not self:accept("name", "not") then return self:compare() end
    self:enter()
    return self:leave(self:node("not", { a = self:not_() }))
end

function P:compare_op()
    if self:is("op") and COMPARE[self:cur().value] then return COMPARE[self:next().value] end
    if self:accept("name", "in") then return "in" end
    local after = self.tokens[self.pos + 1]
    if self:is_name("not") and after.type == "name" and after.value == "in" then
        self.pos = self.pos + 2
        return "notin"
    end
end

-- a < b < c means a < b and b < c, b evaluated once.
function P:compare()
    local first, rest = self:binary(1), {}
    local op = self:compare_op()
    while op do
        rest[#rest + 1] = { op = op, e = self:binary(1) }
        op = self:compare_op()
    end
    if #rest == 0 then return first end
    return self:node("compare", { a = first, rest = rest })
end

local LEVELS = { { ["+"] = "add", ["-"] = "sub" }, { ["~"] = "concat" },
                 { ["*"] = "mul", ["/"] = "div", ["//"] = "floordiv", ["%"] = "mod" }, { ["**"] = "pow" } }

function P:binary(level)
    if level > #LEVELS then return self:unary(true) end
    local e = self:binary(level + 1)
    while self:is("op") and LEVELS[level][self:cur().value] do
        local line = self:cur().line
        local op = LEVELS[level][self:next().value]
        e = self:node("binary", { op = op, a = e, b = self:binary(level + 1), line = line })
    end
    return e
end

function P:unary(with_filter)
    local e
    if self:is_op("-") or self:is_op("+") then
        self:enter()
        local op = self:next().value
        e = self:leave(self:node("unary", { op = op, a = self:unary(false) }))
    else
        e = self:primary()
    end
    e = self:postfix(e)
    return with_filter and self:filters(e) or e
end

function P:primary()
    local t = self:next()
    if t.type == "name" then
        if CONSTANTS[t.value] ~= nil then return self:node("const", { value = CONSTANTS[t.value] }) end
        if t.value == "none" or t.value == "None" then return self:node("const", { value = M.none }) end
        return self:node("name", { name = t.value, line = t.line })
    elseif t.type == "string" then
        local parts = { t.value }
        while self:is("string") do parts[#parts + 1] = self:next().value end
        return self:node("const", { value = table.concat(parts) })
    elseif t.type == "int" or t.type == "float" then
        return self:node("const", { value = t.value })
    elseif t.type == "op" and t.value == "(" then
        local e = self:tuple({ brackets = true })
        self:expect("op", ")")
        return e
    elseif t.type == "op" and t.value == "[" then
        return self:node("list", { items = self:items("]") })
    elseif t.type == "op" and t.value == "{" then
        return self:dict()
    end
    fail(t.line, "expected an expression, found %s", describe(t))
end

function P:items(closer)
    local items = {}
    while not self:is_op(closer) do
        if #items > 0 then self:expect("op", ",") end
        if self:is_op(closer) then break end
        items[#items + 1] = self:expression()
    end
    self:expect("op", closer)
    return items
end

function P:dict()
    local pairs_ = {}
    while not self:is_op("}") do
        if #pairs_ > 0 then self:expect("op", ",") end
        if self:is_op("}") then break end
        local key = self:expression()
        self:expect("op", ":")
        pairs_[#pairs_ + 1] = { key = key, value = self:expression() }
    end
    self:expect("op", "}")
    return self:node("dict", { pairs = pairs_ })
end

-- An expression, or several with commas between. Options: brackets ("()" is legal), no_cond (`x if y` is not part
-- of it), stop (a name that ends it).
function P:tuple(o)
    local items, is_tuple = {}, false
    while true do
        local t = self:cur()
        if t.type == "print_end" or t.type == "block_end" or self:is_op(")") or (o.stop and self:is_name(o.stop)) then
            break
        end
        items[#items + 1] = o.no_cond and self:or_() or self:expression()
        if not self:accept("op", ",") then break end
        is_tuple = true
    end
    if not is_tuple and items[1] then return items[1] end
    if not is_tuple and not o.brackets then fail(self:cur().line, "expected an expression, found %s", describe(self:cur())) end
    return self:node("tuple", { items = items })
end

function P:postfix(e)
    while true do
        local line = self:cur().line
        if self:accept("op", ".") then
            local t = self:next()
            if t.type == "name" then
                e = self:node("attr", { a = e, name = t.value, line = line })
            elseif t.type == "int" then
                e = self:node("item", { a = e, key = self:node("const", { value = t.value }), line = line })
            else
                fail(t.line, "expected a name after '.', found %s", describe(t))
            end
        elseif self:is_op("[") then
            e = self:subscript(e)
        elseif self:is_op("(") then
            e = self:call(e)
        else
            return e
        end
    end
end

function P:subscript(e)
    local line, parts, colons = self:next().line, {}, 0
    while not self:is_op("]") do
        if self:accept("op", ":") then
            colons = colons + 1
            if colons > 2 then fail(line, "a slice has at most two ':'") end
        else
            if parts[colons + 1] then fail(self:cur().line, "expected ']', found %s", describe(self:cur())) end
            parts[colons + 1] = self:expression()
        end
    end
    self:expect("op", "]")
    if colons > 0 then return self:node("slice", { a = e, from = parts[1], to = parts[2], step = parts[3], line = line }) end
    if not parts[1] then fail(line, "expected an index between '[' and ']'") end
    return self:node("item", { a = e, key = parts[1], line = line })
end

-- (a, b, name = c): positional expressions, and named ones as { name, expression } in order.
function P:arguments()
    local args, named = {}, {}
    self:expect("op", "(")
    while not self:is_op(")") do
        if #args + #named > 0 then self:expect("op", ",") end
        if self:is_op(")") then break end
        local after = self.tokens[self.pos + 1]
        if self:is_op("*") or self:is_op("**") then
            fail(self:cur().line, "'%s' arguments are not supported", self:cur().value)
        elseif self:is("name") and after.type == "op" and after.value == "=" then
            local name = self:next().value
            self:next()
            named[#named + 1] = { name = name, e = self:expression() }
        else
            if #named > 0 then fail(self:cur().line, "a positional argument follows a named one") end
            args[#args + 1] = self:expression()
        end
    end
    self:expect("op", ")")
    return args, named
end

function P:call(e)
    local line = self:cur().line
    local args, named = self:arguments()
    return self:node("call", { f = e, args = args, named = named, line = line })
end

function P:filter_name()
    local name = self:expect("name").value
    while self:accept("op", ".") do name = name .. "." .. self:expect("name").value end
    return name
end

function P:filter(e)
    local line = self:cur().line
    local name, args, named = self:filter_name(), {}, {}
    if self:is_op("(") then args, named = self:arguments() end
    return self:node("filter", { a = e, name = name, args = args, named = named, line = line })
end

-- The one operand that a test may take without brackets: `is divisibleby 3`.
function P:test_operand()
    local t = self:cur()
    if self:is_name("is") then fail(t.line, "tests cannot be chained with 'is'") end
    local word = t.type == "name" and (not RESERVED[t.value] or CONSTANTS[t.value] ~= nil or t.value:lower() == "none")
    local opens = t.type == "op" and (t.value == "[" or t.value == "{")
    if not (opens or word or t.type == "string" or t.type == "int" or t.type == "float") then return {} end
    return { self:postfix(self:primary()) }
end

function P:test(e)
    local line = self:cur().line
    local negated = self:accept("name", "not") ~= nil
    local name, args, named = self:filter_name(), nil, {}
    if self:is_op("(") then args, named = self:arguments() else args = self:test_operand() end
    local node = self:node("test", { a = e, name = name, args = args, named = named, line = line })
    return negated and self:node("not", { a = node }) or node
end

function P:filters(e)
    while true do
        if self:accept("op", "|") then e = self:filter(e)
        elseif self:accept("name", "is") then e = self:test(e)
        elseif self:is_op("(") then e = self:call(e)
        else return e end
    end
end

-- statements ----------------------------------------------------------------------------------------------------

-- Statements up to a block tag named in `stops`, whose name is consumed and returned.
function P:body(stops, opener)
    local list = {}
    self:enter()
    while true do
        local t = self:next()
        if t.type == "eof" then
            if not stops then return self:leave(list) end
            fail(opener.line, "{%% %s %%} is not closed", opener.value)
        elseif t.type == "data" then
            list[#list + 1] = self:node("data", { text = t.value, line = t.line })
        elseif t.type == "print_begin" then
            local e = self:tuple({})
            self:expect("print_end")
            list[#list + 1] = self:node("print", { e = e, line = t.line })
        else
            local tag = self:expect("name")
            if stops and stops[tag.value] then return self:leave(list, tag.value) end
            list[#list + 1] = self:statement(tag)
        end
    end
end

function P:end_tag() self:expect("block_end") end

local TAGS = {}

function P:statement(tag)
    local parse = TAGS[tag.value]
    if not parse then fail(tag.line, "{%% %s %%} is not supported here", tag.value) end
    return parse(self, tag)
end

-- Names to assign to: one, several with commas, or `ns.name`.
function P:target(stop)
    local names, is_tuple = {}, false
    local bracket = self:accept("op", "(")
    repeat
        if stop and self:is_name(stop) or self:is_op("=") then break end
        local t = self:expect("name")
        if RESERVED[t.value] then fail(t.line, "cannot assign to '%s'", t.value) end
        names[#names + 1] = t.value
        local more = self:accept("op", ",")
        is_tuple = is_tuple or more ~= nil
    until not more
    if bracket then self:expect("op", ")") end
    if #names == 0 then fail(self:cur().line, "expected a name, found %s", describe(self:cur())) end
    return is_tuple and { names = names } or { name = names[1] }
end

TAGS["if"] = function(self, tag)
    local branches, otherwise, word = {}, nil, "if"
    while word == "if" or word == "elif" do
        local test = self:tuple({ no_cond = true })
        self:end_tag()
        local body
        body, word = self:body({ ["elif"] = true, ["else"] = true, ["endif"] = true }, tag)
        branches[#branches + 1] = { test = test, body = body }
    end
    if word == "else" then
        self:end_tag()
        otherwise = self:body({ ["endif"] = true }, tag)
    end
    self:end_tag()
    return self:node("if", { branches = branches, otherwise = otherwise, line = tag.line })
end

TAGS["for"] = function(self, tag)
    local target = self:target("in")
    self:expect("name", "in")
    local iter, test, otherwise = self:tuple({ no_cond = true, stop = "recursive" }), nil, nil
    if self:accept("name", "if") then test = self:expression() end
    if self:is_name("recursive") then fail(tag.line, "a recursive loop is not supported") end
    self:end_tag()
    self.loops = self.loops + 1
    local body, word = self:body({ ["endfor"] = true, ["else"] = true }, tag)
    self.loops = self.loops - 1
    if word == "else" then
        self:end_tag()
        otherwise = self:body({ ["endfor"] = true }, tag)
    end
    self:end_tag()
    return self:node("for", { target = target, iter = iter, test = test, body = body, otherwise = otherwise, line = tag.line })
end

TAGS["set"] = function(self, tag)
    local target = self:target(nil)
    if target.name and self:accept("op", ".") then
        target = { namespace = target.name, name = self:expect("name").value }
    end
    if self:accept("op", "=") then
        local e = self:tuple({})
        self:end_tag()
        return self:node("set", { target = target, e = e, line = tag.line })
    end
    local filter = self:piped(self:node("captured", {}))
    self:end_tag()
    local body = self:body({ ["endset"] = true }, tag)
    self:end_tag()
    return self:node("set_block", { target = target, filter = filter, body = body, line = tag.line })
end

function P:piped(e)
    while self:accept("op", "|") do e = self:filter(e) end
    return e
end

TAGS["filter"] = function(self, tag)
    local filter = self:piped(self:filter(self:node("captured", {})))
    self:end_tag()
    local body = self:body({ ["endfilter"] = true }, tag)
    self:end_tag()
    return self:node("filter_block", { filter = filter, body = body, line = tag.line })
end

TAGS["macro"] = function(self, tag)
    local name, params = self:expect("name").value, {}
    self:expect("op", "(")
    while not self:is_op(")") do
        if #params > 0 then self:expect("op", ",") end
        if self:is_op(")") then break end
        local param = { name = self:expect("name").value }
        if self:accept("op", "=") then param.default = self:expression() end
        params[#params + 1] = param
    end
    self:expect("op", ")")
    self:end_tag()
    local loops = self.loops
    self.loops = 0
    local body = self:body({ ["endmacro"] = true }, tag)
    self.loops = loops
    self:end_tag()
    return self:node("macro", { name = name, params = params, body = body, line = tag.line })
end

local function jump(self, tag)
    if self.loops == 0 then fail(tag.line, "{%% %s %%} outside a loop", tag.value) end
    self:end_tag()
    return self:node("jump", { word = tag.value, line = tag.line })
end
TAGS["break"], TAGS["continue"] = jump, jump

-- Marks the assistant's text for training masks; for rendering it is transparent.
TAGS["generation"] = function(self, tag)
    self:end_tag()
    local body = self:body({ ["endgeneration"] = true }, tag)
    self:end_tag()
    return self:node("group", { body = body, line = tag.line })
end

-- The tree of a template: a list of statements. Raises { kind = "syntax", msg, line }.
function M.parse(tokens)
    return (setmetatable({ tokens = tokens, pos = 1, depth = 0, loops = 0 }, P):body(nil))
end
