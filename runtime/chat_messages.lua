-- Chat templates: what callers send, made into what templates expect.
--
--  * `developer` is another name for `system`.
--  * content that is null or absent is ""; parts that are all text become one string, since older templates know no parts; other
--    content is a list of parts.
--  * Leading system messages become one, a blank line between them. A later one stays where it is if the template
--    shows it there (found out once, with a probe chat); if the template refuses or drops it, its text joins the first
--    one: every instruction reaches the prompt.
--  * The arguments of a past tool call, a JSON text by the API, become a mapping; "", "null" and absent are no arguments. A text that
--    is no JSON object (a call that was cut short) is shown as text, so that one bad call does not end the conversation.
--  * `reasoning` is another name for `reasoning_content`.
--  * Where the template drops earlier turns' thinking and knows no `preserve_thinking`, that option puts it into their content.
--  * A tool without the object `function` around it gets one.
--  * Where the template refuses the caller's word for reasoning_effort, it gets the nearest one that it takes.
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

-- A mapping; or nil where v is a text that is none.
local function arguments(v, where)
    if absent(v) then return V.dict() end
    if kind(v) == "dict" then return v end
    if type(v) ~= "string" then fail("%s: expected an object or its JSON text, found %s", where, V.type_name(v)) end
    if M.string.strip(v) == "" then return V.dict() end
    local parsed = M.prim.json_decode(v)
    if parsed == M.none then return V.dict() end
    return parsed and kind(parsed) == "dict" and parsed or nil
end

-- The call with its arguments as a mapping; or nil and a text in its place.
local function tool_call(call, where)
    if kind(call) ~= "dict" then fail("%s: expected an object, found %s", where, V.type_name(call)) end
    local f = call.map["function"]
    local bare = absent(f)
    if bare then f = call else where = where .. ".function" end
    if kind(f) ~= "dict" then fail("%s: expected an object, found %s", where, V.type_name(f)) end
    if type(f.map.name) ~= "string" then fail("%s.name: expected a string", where) end
    local args = arguments(f.map.arguments, where .. ".arguments")
    if not args then
        return nil, string.format('<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>', f.map.name, f.map.arguments)
    end
    f = with(f, { arguments = args })
    return bare and f or with(call, { ["function"] = f })
end

-- The calls, and the texts of those that are none.
local function tool_calls(calls, where)
    if absent(calls) then return nil, {} end
    if kind(calls) ~= "list" then fail("%s: expected a list, found %s", where, V.type_name(calls)) end
    local out, texts = {}, {}
    for i, call in ipairs(calls) do
        out[#out + 1], texts[#texts + 1] = tool_call(call, string.format("%s[%d]", where, i - 1))
    end
    return V.list(out), texts
end

-- The text of a part; nil: it holds something else.
local function part_text(part)
    if type(part) == "string" then return part end
    local t = part.map.type
    local text = part.map[t == "refusal" and t or "text"]
    return (t == nil or t == "text" or t == "refusal") and type(text) == "string" and text or nil
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
    local texts = {}
    for i, part in ipairs(v) do texts[i] = part_text(part) end
    return #texts == #v and table.concat(texts) or v
end

-- Instructions are merged as text, so other parts have no place in them.
local function only_text(v, where)
    if type(v) == "string" then return v end
    for i, part in ipairs(v) do
        if not part_text(part) then fail("%s[%d]: a system message may only hold text", where, i - 1) end
    end
end

-- Calls that are none follow the content.
local function add_texts(v, texts)
    if #texts == 0 then return v end
    local text = table.concat(texts, "\n")
    if type(v) == "string" then return v == "" and text or v .. "\n\n" .. text end
    local parts = {}
    for i, part in ipairs(v) do parts[i] = part end
    parts[#parts + 1] = "\n\n" .. text
    return V.list(parts)
end

local function message(m, i)
    local where = string.format("messages[%d]", i - 1)
    if kind(m) ~= "dict" then fail("%s: expected an object, found %s", where, V.type_name(m)) end
    local role = m.map.role
    if type(role) ~= "string" then fail("%s.role: expected a string, found %s", where, role == nil and "none" or V.type_name(role)) end
    local calls, texts = tool_calls(m.map.tool_calls, where .. ".tool_calls")
    local changes = { content = add_texts(content(m.map.content, where .. ".content"), texts), tool_calls = calls }
    if absent(m.map.reasoning_content) and type(m.map.reasoning) == "string" then changes.reasoning_content = m.map.reasoning end
    if role == "developer" or role == "system" then
        changes.role, changes.content = "system", only_text(changes.content, where .. ".content")
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

-- ---- earlier thinking ----

-- A user's message that is no tool's result in disguise: templates keep the thinking behind the last one.
local function is_question(m)
    local text = m.map.content
    if m.map.role ~= "user" then return false end
    return type(text) ~= "string" or not M.string.strip(text):find("^<tool_response>.*</tool_response>$")
end

-- An assistant's message whose content shows its thinking, an empty one too, whatever the template does with thinking.
local function with_thought(m)
    local thought, text = m.map.reasoning_content, m.map.content
    if m.map.role ~= "assistant" or type(text) ~= "string" then return m end
    if type(thought) == "string" then
        text = "<think>\n" .. M.string.strip(thought) .. "\n</think>\n\n" .. M.string.strip(text)
    elseif not text:find("</think>", 1, true) then
        text = "<think>\n\n</think>\n\n" .. M.string.strip(text)
    elseif not text:find("<think>", 1, true) then
        text = "<think>\n" .. text
    end
    return with(m, { content = text, reasoning_content = "" })
end

local function with_earlier_thoughts(list)
    local out, last = {}, 0
    for i, m in ipairs(list) do
        if is_question(m) then last = i end
    end
    for i, m in ipairs(list) do out[i] = i < last and with_thought(m) or m end
    return V.list(out)
end

-- ---- what the template does, found out with probe chats ----

local function probe(render, messages, shows)
    local list = {}
    for i, m in ipairs(messages) do
        list[i] = V.dict()
        V.dict_set(list[i], "role", m[1])
        V.dict_set(list[i], "content", m[2])
        if m[3] then V.dict_set(list[i], "reasoning_content", m[3]) end
    end
    list = V.list(list)
    local vars = { tools = M.none, documents = M.none, add_generation_prompt = true, preserve_thinking = true }
    local function shown()
        vars.messages = list
        local ok, text = pcall(render, vars)
        for _, part in ipairs(shows) do ok = ok and text:find(part, 1, true) ~= nil end
        return ok
    end
    if shown() then return true, false end
    list = with_earlier_thoughts(list)
    return false, shown()
end

-- Whether the template shows a system message that comes after a user's, and the first one still.
local function keeps_late_system(render)
    local first, late = "an instruction", "a later one"
    return (probe(render, { { "system", first }, { "user", "u" }, { "assistant", "a" }, { "system", late }, { "user", "v" } }, { first, late }))
end

-- Whether an earlier turn's thinking has to be put into its content to be kept, and then is.
local function loses_thoughts(render)
    local turns = { { "user", "u" }, { "assistant", "a", "a thought" }, { "user", "v" } }
    local _, by_content = probe(render, turns, { "<think>\na thought\n</think>\n\na" })
    return by_content
end

-- ---- rendering ----

-- Templates expect {"type": "function", "function": {...}}.
local function tools_in_full(tools)
    if tools == M.none then return tools end
    local out = {}
    for i, tool in ipairs(tools) do
        out[i] = tool
        if kind(tool) == "dict" and absent(tool.map["function"]) and type(tool.map.name) == "string" then
            local f = V.dict()
            for _, key in ipairs(tool.keys) do
                if key ~= "type" then V.dict_set(f, key, tool.map[key]) end
            end
            out[i] = V.dict()
            V.dict_set(out[i], "type", "function")
            V.dict_set(out[i], "function", f)
        end
    end
    return V.list(out)
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

local EFFORTS = { "none", "minimal", "low", "medium", "high", "xhigh", "max" }

-- What the template makes of vars; if it raises an error, with the nearest effort that it does not raise one for.
local function with_effort(vars)
    local at
    for i, word in ipairs(EFFORTS) do
        if vars.reasoning_effort == word then at = i end
    end
    if not at then return M.template(vars) end
    local ok, text = pcall(M.template, vars)
    local refused = not ok and type(text) == "table" and text.kind == "raised"
    for step = 2, refused and 2 * #EFFORTS or 0 do
        vars.reasoning_effort = EFFORTS[at + (step % 2 == 0 and step // 2 or -(step // 2))]
        local taken, other = pcall(M.template, vars)
        if vars.reasoning_effort and taken then return other end
    end
    if not ok then error(text, 0) end
    return text
end

local ROLES = { system = true, developer = true, user = true, assistant = true, tool = true }

-- What the callers can mend, where the template raised an error over messages as they came: a role that it does not know, a question without text.
local function explain(messages)
    for i, m in ipairs(messages) do
        local where, role = string.format("messages[%d]", i - 1), m.map.role
        if not ROLES[role] then fail("%s.role: expected system, developer, user, assistant or tool, found '%s'", where, role:sub(1, 40)) end
        if role == "user" and absent(m.map.content) then fail("%s.content: expected a string or a list of parts, found none", where) end
    end
end

-- open compiles the template; render takes values made from JSON. `as_is` leaves the messages as they came.
function M.open(text)
    M.template = M.compile(text)
    M.keeps_late = keeps_late_system(M.template)
    M.loses_thoughts = loses_thoughts(M.template)
end

function M.render(messages, tools, kwargs, add_generation_prompt, as_is)
    if tools ~= M.none and kind(tools) ~= "list" then fail("tools: expected a list, found %s", V.type_name(tools)) end
    if kind(kwargs) ~= "dict" then fail("template options: expected an object, found %s", V.type_name(kwargs)) end
    local came = messages
    if not as_is then
        messages = M.normalise(messages, M.keeps_late)
        tools = tools_in_full(tools)
        if M.loses_thoughts and kwargs.map.preserve_thinking == true then messages = with_earlier_thoughts(messages) end
    end
    local ok, text = pcall(as_is and M.template or with_effort, variables(guarded(messages), guarded(tools), guarded(kwargs), add_generation_prompt))
    if ok then return text end
    if not as_is and type(text) == "table" and text.kind == "raised" then explain(came) end
    error(text, 0)
end
