-- Chat templates, stage 1: template text to tokens.
--
-- White space follows the environment that chat templates are written for: trim_blocks and lstrip_blocks on, one
-- trailing newline of the file dropped. A token is { type, value, line }: "data" between tags; "block_begin",
-- "block_end", "print_begin", "print_end"; inside a tag "name", "string", "int", "float" and "op"; at the end "eof".
local M = ...

local function fail(line, ...) error({ msg = string.format(...), line = line, kind = "syntax" }, 0) end

local ESCAPES = { a = "\a", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", v = "\v",
                  ["\\"] = "\\", ["'"] = "'", ['"'] = '"', ["\n"] = "" }
local HEX_DIGITS = { x = 2, u = 4, U = 8 }

local function code_point(hex, line)
    local cp = tonumber(hex, 16)
    if cp > 0x10FFFF or (cp >= 0xD800 and cp < 0xE000) then fail(line, "escape \\u%s is not a character", hex) end
    return utf8.char(cp)
end

-- Resolves the escapes of a string literal as Python does; an unknown escape keeps its backslash.
local function unescape(s, line)
    if not s:find("\\", 1, true) then return s end
    local out, at = {}, 1
    while true do
        local b = s:find("\\", at, true)
        if not b then break end
        out[#out + 1] = s:sub(at, b - 1)
        local c = s:sub(b + 1, b + 1)
        local octal, digits = s:match("^[0-7][0-7]?[0-7]?", b + 1), HEX_DIGITS[c]
        if digits then
            local hex = s:sub(b + 2, b + 1 + digits)
            if #hex < digits or hex:find("%X") then fail(line, "escape \\%s needs %d hex digits", c, digits) end
            out[#out + 1], at = code_point(hex, line), b + 2 + digits
        elseif octal then
            out[#out + 1], at = utf8.char(tonumber(octal, 8)), b + 1 + #octal
        else
            out[#out + 1], at = ESCAPES[c] or "\\" .. c, b + 2
        end
    end
    out[#out + 1] = s:sub(at)
    return table.concat(out)
end

local function string_end(s, at)
    local quote, p = s:sub(at, at), at + 1
    while true do
        local q = s:find("[\\" .. quote .. "]", p)
        if not q then return nil end
        if s:sub(q, q) == quote then return q end
        p = q + 2
    end
end

local OPERATORS = {}
for op in ("== != >= <= ** // + - / * % ~ [ ] ( ) { } > < = . : | , ;"):gmatch("%S+") do OPERATORS[op] = true end

local function number_at(s, at)
    local prefixed = s:match("^0[xX]_?%x[%x_]*", at)
    if prefixed then return "int", math.tointeger(tonumber((prefixed:gsub("_", "")))), #prefixed end
    local whole = s:match("^%d[%d_]*", at)
    if s:sub(at - 1, at - 1) == "." then return "int", tonumber((whole:gsub("_", ""))), #whole end
    local frac = s:match("^%.%d[%d_]*", at + #whole) or ""
    local exp = s:match("^[eE][+-]?%d[%d_]*", at + #whole + #frac) or ""
    local text = whole .. frac .. exp
    local value = tonumber((text:gsub("_", "")))
    return frac .. exp == "" and "int" or "float", value, #text
end

-- One token inside a tag, or nil where nothing fits: type, value, length in bytes.
local function token_at(s, at, line)
    local name = s:match("^[%a_\128-\255][%w_\128-\255]*", at)
    if name then return "name", name, #name end
    if s:find("^%d", at) then
        local kind, value, len = number_at(s, at)
        if kind == "int" and math.type(value) ~= "integer" then fail(line, "number is too large") end
        return kind, value, len
    end
    if s:find("^[\"']", at) then
        local stop = string_end(s, at)
        if not stop then fail(line, "a string is not closed") end
        return "string", unescape(s:sub(at + 1, stop - 1), line), stop - at + 1
    end
    local op = s:sub(at, at + 1)
    if not OPERATORS[op] then op = s:sub(at, at) end
    if OPERATORS[op] then return "op", op, #op end
end

local CLOSER = { ["("] = ")", ["["] = "]", ["{"] = "}" }

-- Keeps the stack of open brackets: while one is open, `}}` and `%}` are not the end of the tag.
local function balance(stack, op, line)
    if CLOSER[op] then
        stack[#stack + 1] = CLOSER[op]
    elseif op == ")" or op == "]" or op == "}" then
        if stack[#stack] ~= op then fail(line, "unexpected '%s'", op) end
        stack[#stack] = nil
    end
end

local Lexer = {}
Lexer.__index = Lexer

function Lexer:emit(type, value) self.tokens[#self.tokens + 1] = { type = type, value = value, line = self.line } end

function Lexer:advance(to)
    local _, newlines = self.src:sub(self.at, to - 1):gsub("\n", "")
    self.line, self.at = self.line + newlines, to
end

-- Where the text goes on after a closing `%}`, `#}` or `}}` whose last byte is at `stop`.
function Lexer:after_tag(stop, sign, trims)
    if sign == "-" then return M.string.skip(self.src, stop + 1) end
    if trims and sign ~= "+" and self.src:sub(stop + 1, stop + 1) == "\n" then return stop + 2 end
    return stop + 1
end

-- Emits the text before a tag. A `-` strips all white space; a block or comment alone on its line loses its indent.
function Lexer:data(text, sign, is_print)
    if sign == "-" then
        text = M.string.rstrip(text)
    elseif sign ~= "+" and not is_print then
        local start = #text - #text:match("[^\n]*$") + 1
        local alone = start > 1 or self.line_starting
        if alone and M.string.lstrip(text:sub(start)) == "" then text = text:sub(1, start - 1) end
    end
    if text ~= "" then self:emit("data", text) end
end

-- Tokens up to the closing `closer` ("%}" or "}}") of a tag.
function Lexer:tag(closer, end_type)
    local src, stack, open_line = self.src, {}, self.line
    while true do
        self:advance(M.string.skip(src, self.at))
        if self.at > #src then fail(open_line, "a tag is not closed: expected '%s'", closer) end
        local sign = src:match("^[-+]?", self.at)
        if sign == "+" and closer == "}}" then sign = "" end
        if #stack == 0 and src:sub(self.at + #sign, self.at + #sign + 1) == closer then
            self:emit(end_type)
            local to = self:after_tag(self.at + #sign + 1, sign, closer == "%}")
            self.line_starting = src:sub(to - 1, to - 1) == "\n"
            return self:advance(to)
        end
        local type, value, len = token_at(src, self.at, self.line)
        if not type then fail(self.line, "unexpected character '%s'", src:match(utf8.charpattern, self.at) or "?") end
        if type == "op" then balance(stack, value, self.line) end
        self:emit(type, value)
        self:advance(self.at + len)
    end
end

function Lexer:comment(at)
    local stop = self.src:find("#}", at, true)
    if not stop then fail(self.line, "a comment is not closed: expected '#}'") end
    local sign = stop > at and self.src:sub(stop - 1, stop - 1):match("[-+]") or ""
    local to = self:after_tag(stop + 1, sign, true)
    self.line_starting = self.src:sub(to - 1, to - 1) == "\n"
    self:advance(to)
end

-- {% raw %} ... {% endraw %}: text that is not looked into. Returns false if no raw block starts here.
function Lexer:raw(start)
    local src = self.src
    local _, stop, sign = src:find("^{%%[-+]?%s*raw%s*(%-?)%%}", start)
    if not stop then return false end
    local from = sign == "-" and M.string.skip(src, stop + 1) or stop + 1
    local b, e, before, after = src:find("{%%([-+]?)%s*endraw%s*([-+]?)%%}", from)
    if not b then fail(self.line, "{%% raw %%} is not closed: expected {%% endraw %%}") end
    self.line_starting = src:sub(from - 1, from - 1) == "\n"
    self:advance(from)
    self:data(src:sub(from, b - 1), before, false)
    local to = self:after_tag(e, after, true)
    self.line_starting = src:sub(to - 1, to - 1) == "\n"
    self:advance(to)
    return true
end

function Lexer:run()
    local src = self.src
    while self.at <= #src do
        local b = src:find("{[{%%#]", self.at)
        if not b then break end
        local mark = src:sub(b + 1, b + 1)
        local sign = src:match("^[-+]?", b + 2)
        self:data(src:sub(self.at, b - 1), sign, mark == "{")
        self:advance(b)
        if mark == "#" then
            self:comment(b + 2 + #sign)
        elseif mark == "{" then
            self:emit("print_begin")
            self:advance(b + 2 + #sign)
            self:tag("}}", "print_end")
        elseif not self:raw(b) then
            self:emit("block_begin")
            self:advance(b + 2 + #sign)
            self:tag("%}", "block_end")
        end
    end
    if self.at <= #src then self:emit("data", src:sub(self.at)) end
    self:emit("eof")
    return self.tokens
end

-- The tokens of a template. Raises { kind = "syntax", msg, line }.
function M.lex(text)
    text = text:gsub("\r\n", "\n"):gsub("\r", "\n"):gsub("\n$", "")
    return setmetatable({ src = text, at = 1, line = 1, tokens = {}, line_starting = true }, Lexer):run()
end
