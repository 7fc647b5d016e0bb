-- Chat templates, stage 3: the tree to Lua closures, and rendering.
--
-- Each expression becomes function(scope) -> value, each statement function(scope, out) -> nil, "break" or "continue".
-- No Lua source is generated, so a template can neither overflow a limit of Lua's compiler nor smuggle code into it.
-- A scope is a table of variables that inherits from the one around it, as Jinja has it: a loop body, a macro and a
-- captured block each have their own (a loop body a new one each turn), an `if` has none.
local M = ...
local V = M.value
local fail, truthy, str = V.fail, V.truthy, V.str
local MAX_CALLS, MAX_RANGE = 100, 100000

local function child(scope) return setmetatable({}, { __index = scope }) end

-- While a template is compiled or run, `at` holds the line it is on, for its errors.
local at = { line = 0, calls = 0 }

local E, ST = {}, {}

local function expr(node) return E[node.kind](node) end

local function exprs(nodes)
    local list = {}
    for i, node in ipairs(nodes) do list[i] = expr(node) end
    return list
end

local function eval_all(fs, scope)
    local out = {}
    for i = 1, #fs do out[i] = fs[i](scope) end
    return out
end

-- expressions ---------------------------------------------------------------------------------------------------

function E.const(node)
    local value = node.value
    return function() return value end
end

function E.name(node)
    local name = node.name
    return function(scope)
        local v = scope[name]
        if v == nil then return V.undefined("'" .. name .. "' is undefined") end
        return v
    end
end

function E.captured() return function(scope) return scope["captured text"] end end

E["and"] = function(node)
    local a, b = expr(node.a), expr(node.b)
    return function(scope)
        local v = a(scope)
        if truthy(v) then return b(scope) end
        return v
    end
end

E["or"] = function(node)
    local a, b = expr(node.a), expr(node.b)
    return function(scope)
        local v = a(scope)
        if truthy(v) then return v end
        return b(scope)
    end
end

E["not"] = function(node)
    local a = expr(node.a)
    return function(scope) return not truthy(a(scope)) end
end

function E.cond(node)
    local test, yes, no = expr(node.test), expr(node.yes), node.no and expr(node.no)
    return function(scope)
        if truthy(test(scope)) then return yes(scope) end
        if no then return no(scope) end
        return V.undefined("the inline if-expression evaluated to false and no else section was defined.")
    end
end

function E.compare(node)
    local first, rest = expr(node.a), {}
    for i, r in ipairs(node.rest) do rest[i] = { M.comparisons[r.op], expr(r.e) } end
    return function(scope)
        local left = first(scope)
        for i = 1, #rest do
            local right = rest[i][2](scope)
            if not rest[i][1](left, right) then return false end
            left = right
        end
        return true
    end
end

local function concat(node)
    local reversed, left = { node.b }, node.a
    while left.kind == "binary" and left.op == "concat" do
        reversed[#reversed + 1], left = left.b, left.a
    end
    reversed[#reversed + 1] = left
    local parts = {}
    for i = #reversed, 1, -1 do parts[#parts + 1] = expr(reversed[i]) end
    return function(scope)
        local out = {}
        for i = 1, #parts do out[i] = str(parts[i](scope)) end
        return table.concat(out)
    end
end

function E.binary(node)
    if node.op == "concat" then return concat(node) end
    local op, a, b = M.operators[node.op], expr(node.a), expr(node.b)
    return function(scope) return op(a(scope), b(scope)) end
end

function E.unary(node)
    local op, a = M.operators[node.op == "-" and "neg" or "pos"], expr(node.a)
    return function(scope) return op(a(scope)) end
end

function E.list(node)
    local items = exprs(node.items)
    return function(scope) return V.list(eval_all(items, scope)) end
end

function E.tuple(node)
    local items = exprs(node.items)
    return function(scope) return V.tuple(eval_all(items, scope)) end
end

function E.dict(node)
    local pairs_ = {}
    for i, p in ipairs(node.pairs) do pairs_[i] = { expr(p.key), expr(p.value) } end
    return function(scope)
        local d = V.dict()
        for i = 1, #pairs_ do V.dict_set(d, pairs_[i][1](scope), pairs_[i][2](scope)) end
        return d
    end
end

function E.attr(node)
    local a, name, attr = expr(node.a), node.name, V.attr
    return function(scope) return attr(a(scope), name) end
end

function E.item(node)
    local a, key, item = expr(node.a), expr(node.key), V.item
    return function(scope) return item(a(scope), key(scope)) end
end

local function optional(node) return node and expr(node) or function() return nil end end

function E.slice(node)
    local a, from, to, step = expr(node.a), optional(node.from), optional(node.to), optional(node.step)
    return function(scope) return V.slice(a(scope), from(scope), to(scope), step(scope)) end
end

-- Positional and named arguments: function(scope) -> args, named.
local function arguments(node)
    local args, named = exprs(node.args), {}
    for i, n in ipairs(node.named) do named[i] = { n.name, expr(n.e) } end
    return function(scope)
        local values = {}
        for i = 1, #named do values[i] = { named[i][1], named[i][2](scope) } end
        return eval_all(args, scope), values
    end
end

function E.call(node)
    local f, args = expr(node.f), arguments(node)
    return function(scope)
        local callee = f(scope)
        return V.call(callee, args(scope))
    end
end

function E.filter(node)
    local a, name, args = expr(node.a), node.name, arguments(node)
    return function(scope)
        local v = a(scope)
        return M.apply(M.filters, "filter", name, v, args(scope))
    end
end

function E.test(node)
    local a, name, args = expr(node.a), node.name, arguments(node)
    return function(scope)
        local v = a(scope)
        return M.apply(M.tests, "test", name, v, args(scope))
    end
end

-- statements ----------------------------------------------------------------------------------------------------

local function block(nodes)
    local list = {}
    for i, node in ipairs(nodes) do list[i] = ST[node.kind](node) end
    return function(scope, out)
        for i = 1, #list do
            local jump = list[i](scope, out)
            if jump then return jump end
        end
    end
end

function ST.data(node)
    local text = node.text
    return function(_, out) out[#out + 1] = text end
end

function ST.print(node)
    local e, line = expr(node.e), node.line
    return function(scope, out)
        at.line = line
        out[#out + 1] = str(e(scope))
    end
end

function ST.jump(node)
    local word = node.word
    return function() return word end
end

function ST.group(node) return block(node.body) end

ST["if"] = function(node)
    local branches, otherwise, line = {}, block(node.otherwise or {}), node.line
    for i, b in ipairs(node.branches) do branches[i] = { expr(b.test), block(b.body) } end
    return function(scope, out)
        at.line = line
        for i = 1, #branches do
            if truthy(branches[i][1](scope)) then return branches[i][2](scope, out) end
        end
        return otherwise(scope, out)
    end
end

-- function(scope, value): binds a name, unpacks into several, or sets a field of a namespace.
local function assigner(target)
    if target.namespace then
        return function(scope, v)
            local ns = scope[target.namespace]
            if ns == nil or V.kind(ns) ~= "namespace" then fail("cannot assign attribute on non-namespace object") end
            ns[target.name] = v
        end
    elseif target.name then
        return function(scope, v) scope[target.name] = v end
    end
    return function(scope, v)
        V.need_defined(v)
        local items = V.items(v)
        if #items ~= #target.names then
            fail("expected %d values to unpack, found %d", #target.names, #items)
        end
        for i, name in ipairs(target.names) do scope[name] = items[i] end
    end
end

function ST.set(node)
    local assign, e, line = assigner(node.target), expr(node.e), node.line
    return function(scope)
        at.line = line
        assign(scope, e(scope))
    end
end

local function capture(body, scope)
    local out = {}
    body(child(scope), out)
    return table.concat(out)
end

local function filtered(filter, scope, text)
    local inner = child(scope)
    inner["captured text"] = text
    return filter(inner)
end

function ST.set_block(node)
    local assign, filter, body, line = assigner(node.target), expr(node.filter), block(node.body), node.line
    return function(scope)
        at.line = line
        assign(scope, filtered(filter, scope, capture(body, scope)))
    end
end

function ST.filter_block(node)
    local filter, body, line = expr(node.filter), block(node.body), node.line
    return function(scope, out)
        at.line = line
        out[#out + 1] = str(filtered(filter, scope, capture(body, scope)))
    end
end

local function neighbour(l, step, why)
    local v = l.items[l.i + step]
    if v == nil then return V.undefined(why) end
    return v
end

local LOOP = {
    index = function(l) return l.i end,
    index0 = function(l) return l.i - 1 end,
    revindex = function(l) return #l.items - l.i + 1 end,
    revindex0 = function(l) return #l.items - l.i end,
    first = function(l) return l.i == 1 end,
    last = function(l) return l.i == #l.items end,
    length = function(l) return #l.items end,
    depth = function() return 1 end,
    depth0 = function() return 0 end,
    previtem = function(l) return neighbour(l, -1, "there is no previous item") end,
    nextitem = function(l) return neighbour(l, 1, "there is no next item") end,
    cycle = function(l)
        return V.func("cycle", nil, function(args)
            if #args == 0 then fail("no items for cycling given") end
            return args[(l.i - 1) % #args + 1]
        end)
    end,
}

function M.loop_attribute(l, name) return LOOP[name] and LOOP[name](l) end

-- The items that pass the loop's own `if`; the loop counts these alone.
local function passing(items, test, assign, scope)
    local out = {}
    for i = 1, #items do
        local inner = child(scope)
        assign(inner, items[i])
        if truthy(test(inner)) then out[#out + 1] = items[i] end
    end
    return out
end

-- `else` runs when no turn came to its end: without items, and, as in Jinja, when each turn broke off or went on early.
ST["for"] = function(node)
    local assign, iter, test = assigner(node.target), expr(node.iter), node.test and expr(node.test)
    local body, otherwise, line = block(node.body), block(node.otherwise or {}), node.line
    return function(scope, out)
        at.line = line
        local items = V.items(iter(scope))
        if test then items = passing(items, test, assign, scope) end
        local loop, ended = V.loop({ items = items, i = 0 }), false
        for i = 1, #items do
            local inner = child(scope)
            loop.i = i
            inner.loop = loop
            assign(inner, items[i])
            local jump = body(inner, out)
            ended = ended or jump == nil
            if jump == "break" then break end
        end
        if not ended then return otherwise(child(scope), out) end
    end
end

local function macro_scope(node, defaults, scope, args)
    local inner = child(scope)
    for i, param in ipairs(node.params) do
        if args[i] ~= nil then inner[param.name] = args[i]
        elseif defaults[i] then inner[param.name] = defaults[i](inner)
        else inner[param.name] = V.undefined("parameter '" .. param.name .. "' was not provided") end
    end
    return inner
end

local function call_macro(node, body, inner)
    local out, line = {}, at.line
    at.calls = at.calls + 1
    if at.calls > MAX_CALLS then fail("macro '%s' calls itself deeper than %d times", node.name, MAX_CALLS) end
    body(inner, out)
    at.calls, at.line = at.calls - 1, line
    return table.concat(out)
end

function ST.macro(node)
    local body, names, defaults = block(node.body), {}, {}
    for i, param in ipairs(node.params) do
        names[i], defaults[i] = param.name, param.default and expr(param.default)
    end
    return function(scope)
        local macro = V.func(node.name, names, function(...)
            return call_macro(node, body, macro_scope(node, defaults, scope, { ... }))
        end)
        macro.macro = true
        scope[node.name] = macro
    end
end

-- globals and entry points --------------------------------------------------------------------------------------

local function range(a, b, step)
    local from, to = b and a or 0, b or a
    step = step or 1
    for _, v in ipairs({ from, to or M.none, step }) do
        if V.kind(v) ~= "int" then fail("range: expected integers, found '%s'", V.type_name(v)) end
    end
    if step == 0 then fail("range: the step is zero") end
    if (to - from) // step > MAX_RANGE then fail("range: expected at most %d numbers", MAX_RANGE) end
    local out = {}
    for i = from, step > 0 and to - 1 or to + 1, step do out[#out + 1] = i end
    return V.list(out)
end

local function fill(set, what)
    return function(args, named)
        local box = set.new()
        for _, source in ipairs(args) do
            if V.kind(source) ~= "dict" then fail("%s: expected a mapping, found '%s'", what, V.type_name(source)) end
            for _, key in ipairs(source.keys) do set.put(box, key, source.map[key]) end
        end
        for _, pair in ipairs(named) do set.put(box, pair[1], pair[2]) end
        return box
    end
end

local GLOBALS = {
    range = V.func("range", { "start", "stop", "step" }, range),
    dict = V.func("dict", nil, fill({ new = V.dict, put = V.dict_set }, "dict")),
    namespace = V.func("namespace", nil, fill({ new = V.namespace, put = rawset }, "namespace")),
    strftime_now = V.func("strftime_now", { "format" }, function(format) return M.prim.strftime_now(str(format)) end),
    raise_exception = V.func("raise_exception", { "message" }, function(message)
        error({ msg = message and str(message) or "", kind = "raised" }, 0)
    end),
}

-- Compiles a template: function(variables) -> text, where variables are by name.
function M.compile(text)
    at.line = 0
    local body = block(M.parse(M.lex(text)))
    return function(variables)
        at.line, at.calls = 0, 0
        local scope, out = child(GLOBALS), {}
        for name, value in next, variables do scope[name] = value end
        body(scope, out)
        return table.concat(out)
    end
end

-- The line that the last error belongs to, 0 if none.
function M.line() return at.line end
