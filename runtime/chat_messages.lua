-- Chat templates: what callers send, made into what templates expect.
--
--  * `developer` is another name for `system`.
--  * content that is null or absent is ""; other content is a string or a list of parts.
--  * Leading system messages become one, a blank line between them. A later one stays where it is if the template
--    shows it there (found out once, with a probe chat); if the template refuses or drops it, its text joins the first
--    one: every instruction reaches the prompt.
--  * The arguments of a past tool call, a JSON text by the API, become a mapping; "", "null" and absent are no arguments.
--
-- Errors name the message: "messages[2].tool_calls[0].function.arguments: ...".
local M = ...
local V = M.value
local kind = V.kind

local function fail(...) error({ msg = string.format(...), kind = "messages" }, 0) end

-- A copy of dict d with some keys set.
local function with(d, changes)
    local copy = V.dict()
    for _, key in ipairs(d.keys) do V.dict_set(copy, key, d.map[key]) end
    for key, value in next, changes do V.dict_set(copy, key, value) end
    return copy
end

local function absent(v) return v == nil or v == M.none end

local function arguments(v, where)
    if absent(v) then return V.dict() end
    if kind(v) == "dict" then return v end
    if type(v) ~= "string" then fail("%s: expected an object or its JSON text, found %s", where, V.type_name(v)) end
    if M.string.strip(v) == "" then return V.dict() end
    local parsed, why = M.prim.json_decode(v)
    if parsed == nil then fail("%s: %s", where, why) end
    if parsed == M.none then return V.dict() end
    if kind(parsed) ~= "dict" then fail("%s: expected a JSON object, found %s", where, V.type_name(parsed)) end
    return parsed
end

local function tool_call(call, where)
    if kind(call) ~= "dict" then fail("%s: expected an object, found %s", where, V.type_name(call)) end
    local f = call.map["function"]
    if absent(f) then
        if type(call.map.name) ~= "string" then fail("%s: expected a function with a name", where) end
        return with(call, { arguments = arguments(call.map.arguments, where .. ".arguments") })
    end
    where = where .. ".function"
    if kind(f) ~= "dict" then fail("%s: expected an object, found %s", where, V.type_name(f)) end
    if type(f.map.name) ~= "string" then fail("%s.name: expected a string", where) end
    return with(call, { ["function"] = with(f, { arguments = arguments(f.map.arguments, where .. ".arguments") }) })
end

local function tool_calls(calls, where)
    if absent(calls) then return nil end
    if kind(calls) ~= "list" then fail("%s: expected a list, found %s", where, V.type_name(calls)) end
    local out = {}
    for i, call in ipairs(calls) do out[i] = tool_call(call, string.format("%s[%d]", where, i - 1)) end
    return V.list(out)
end

local function content(v, where)
    if absent(v) then return "" end
    if type(v) == "string" then return v end
    if kind(v) ~= "list" then fail("%s: expected a string or a list of parts, found %s", where, V.type_name(v)) end
    for i, part in ipairs(v) do
        if type(part) ~= "string" and kind(part) ~= "dict" then
            fail("%s[%d]: expected a content part, found %s", where, i - 1, V.type_name(part))
        end
    end
    return v
end

-- The text of a system message: instructions are merged as text, so other parts have no place in them.
local function text_of(v, where)
    if type(v) == "string" then return v end
    local out = {}
    for i, part in ipairs(v) do
        local text = type(part) == "string" and part or part.map.text
        if type(text) ~= "string" then fail("%s[%d]: a system message may only hold text", where, i - 1) end
        out[i] = text
    end
    return table.concat(out)
end

local function message(m, i)
    local where = string.format("messages[%d]", i - 1)
    if kind(m) ~= "dict" then fail("%s: expected an object, found %s", where, V.type_name(m)) end
    local role = m.map.role
    if type(role) ~= "string" then fail("%s.role: expected a string, found %s", where, role == nil and "none" or V.type_name(role)) end
    local changes = { content = content(m.map.content, where .. ".content") }
    changes.tool_calls = tool_calls(m.map.tool_calls, where .. ".tool_calls")
    if role == "developer" or role == "system" then
        changes.role, changes.content = "system", text_of(changes.content, where .. ".content")
    end
    return with(m, changes)
end

local function is_system(m) return m.map.role == "system" end

-- Moves the system messages that cannot stay into the first one.
local function merge_system(list, keeps_late)
    local texts, rest = {}, {}
    local first
    for _, m in ipairs(list) do
        local leading = #rest == 0
        if is_system(m) and (leading or not keeps_late) then
            first = first or m
            if m.map.content ~= "" then texts[#texts + 1] = m.map.content end
        else
            rest[#rest + 1] = m
        end
    end
    if not first then return list end
    table.insert(rest, 1, with(first, { content = table.concat(texts, "\n\n") }))
    return V.list(rest)
end

-- The messages as the template will see them.
function M.normalise(list, keeps_late)
    if kind(list) ~= "list" then fail("messages: expected a list, found %s", V.type_name(list)) end
    if #list == 0 then fail("messages: expected at least one message, found none") end
    local out = {}
    for i, m in ipairs(list) do out[i] = message(m, i) end
    return merge_system(V.list(out), keeps_late)
end

local function probe_message(role, text)
    local d = V.dict()
    V.dict_set(d, "role", role)
    V.dict_set(d, "content", text)
    return d
end

-- Whether the template shows a system message that comes after a user's.
function M.keeps_late_system(render)
    local mark = "a later instruction"
    local list = V.list({ probe_message("system", "s"), probe_message("user", "u"), probe_message("assistant", "a"),
                          probe_message("system", mark), probe_message("user", "v") })
    local ok, text = pcall(render, { messages = list, tools = M.none, documents = M.none, add_generation_prompt = true })
    return ok and text:find(mark, 1, true) ~= nil
end

-- A copy of v with every string and key guarded. After normalising, so that each is guarded whole and once.
local function guarded(v)
    local k = kind(v)
    if k == "string" then return M.prim.guard(v) end
    if k == "list" then
        local out = {}
        for i, item in ipairs(v) do out[i] = guarded(item) end
        return V.list(out)
    end
    if k ~= "dict" then return v end
    local out = V.dict()
    for _, key in ipairs(v.keys) do V.dict_set(out, M.prim.guard(key), guarded(v.map[key])) end
    return out
end

local function variables(messages, tools, kwargs, add_generation_prompt)
    local vars = { messages = messages, tools = tools, documents = M.none, add_generation_prompt = add_generation_prompt }
    for _, name in ipairs(kwargs.keys) do
        if name == "messages" or name == "tools" then fail("template options: '%s' cannot be given here", name) end
        vars[name] = kwargs.map[name]
    end
    return vars
end

-- open compiles the template; render takes values made from JSON. `as_is` leaves the messages as they came.
function M.open(text)
    M.template = M.compile(text)
    M.keeps_late = M.keeps_late_system(M.template)
end

function M.render(messages, tools, kwargs, add_generation_prompt, as_is)
    if tools ~= M.none and kind(tools) ~= "list" then fail("tools: expected a list, found %s", V.type_name(tools)) end
    if kind(kwargs) ~= "dict" then fail("template options: expected an object, found %s", V.type_name(kwargs)) end
    if not as_is then messages = M.normalise(messages, M.keeps_late) end
    return M.template(variables(guarded(messages), guarded(tools), guarded(kwargs), add_generation_prompt))
end
