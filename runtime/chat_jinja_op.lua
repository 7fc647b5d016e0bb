-- Chat templates: operators, with Python's meaning. Integers are 64 bits: beyond that is an error, never a wrong digit.
local M = ...
local V = M.value
local fail, num, kind = V.fail, V.num, V.kind
local O = {}
M.operators = O

local function no_operator(op, a, b)
    V.need_defined(a)
    V.need_defined(b)
    fail("unsupported operand types for %s: '%s' and '%s'", op, V.type_name(a), V.type_name(b))
end

local function operands(op, a, b)
    local x, y = num(a), num(b)
    if not (x and y) then no_operator(op, a, b) end
    return x, y
end

-- Lua wraps integers around; the same sum in floats shows whether it did.
local function in_range(exact, approximate)
    if math.type(exact) == "integer" and math.abs(approximate) >= 0x1p63 then fail("integer is too large") end
    return exact
end

local function concat_lists(a, b)
    local out = table.move(a, 1, #a, 1, {})
    return table.move(b, 1, #b, #a + 1, out)
end

function O.add(a, b)
    local k = kind(a)
    if k == "string" and type(b) == "string" then return a .. b end
    if k == "list" and kind(b) == "list" then return V.list(concat_lists(a, b)) end
    if k == "tuple" and kind(b) == "tuple" then return V.tuple(concat_lists(a, b)) end
    local x, y = operands("+", a, b)
    return in_range(x + y, x * 1.0 + y)
end

function O.sub(a, b)
    local x, y = operands("-", a, b)
    return in_range(x - y, x * 1.0 - y)
end

local function repeated(seq, count)
    if type(seq) == "string" then return seq:rep(count) end
    local out = {}
    for _ = 1, count do table.move(seq, 1, #seq, #out + 1, out) end
    return kind(seq) == "tuple" and V.tuple(out) or V.list(out)
end

local REPEATABLE = { string = true, list = true, tuple = true }

function O.mul(a, b)
    if REPEATABLE[kind(b)] then a, b = b, a end
    if REPEATABLE[kind(a)] then
        if not num(b) or kind(b) == "float" then no_operator("*", a, b) end
        return repeated(a, math.max(num(b), 0))
    end
    local x, y = operands("*", a, b)
    return in_range(x * y, x * 1.0 * y)
end

local function divisor(y) if y == 0 then fail("division by zero") end end

function O.div(a, b)
    local x, y = operands("/", a, b)
    divisor(y)
    return x / y
end

function O.floordiv(a, b)
    local x, y = operands("//", a, b)
    divisor(y)
    return x // y
end

function O.mod(a, b)
    if type(a) == "string" then fail("string formatting with %% is not supported") end
    local x, y = operands("%", a, b)
    divisor(y)
    local r = x % y
    if r == 0 and math.type(r) == "float" then return y < 0 and -0.0 or 0.0 end
    return r
end

local function int_power(x, n)
    local r = 1
    while n > 0 do
        if n % 2 == 1 then r = in_range(r * x, r * 1.0 * x) end
        n = n // 2
        if n > 0 then x = in_range(x * x, x * 1.0 * x) end
    end
    return r
end

function O.pow(a, b)
    local x, y = operands("**", a, b)
    if math.type(x) == "integer" and math.type(y) == "integer" and y >= 0 then return int_power(x, y) end
    if x == 0 and y < 0 then fail("zero cannot be raised to a negative power") end
    local r = (x * 1.0) ^ y
    if r ~= r then fail("the power is not a real number") end
    return r
end

function O.neg(a)
    local x = num(a)
    if not x then no_operator("-", a, a) end
    return in_range(-x, -(x * 1.0))
end

function O.pos(a)
    return num(a) or no_operator("+", a, a)
end

local C = {}
M.comparisons = C
function C.eq(a, b) return V.eq(a, b) end
function C.ne(a, b) return not V.eq(a, b) end
function C.lt(a, b) return V.lt(a, b) end
function C.gt(a, b) return V.lt(b, a) end
function C.le(a, b) return V.lt(a, b) or V.eq(a, b) end
function C.ge(a, b) return V.lt(b, a) or V.eq(a, b) end
C["in"] = function(a, b) return V.contains(b, a) end
function C.notin(a, b) return not V.contains(b, a) end
