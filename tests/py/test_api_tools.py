"""Tool calls through the chat endpoint, whole and streamed, with `openai`'s client too: form, finish reasons, choices of a tool, what is refused."""
import json
import re

import pytest

from programs import goldens
from test_server import OSLO, USER, alive, is_error, program, server, stream_of  # noqa: F401

PATH = "/v1/chat/completions"
CALLS = [g for g in goldens() if g["tools"] and "<tool_call>" in g["text"] and g["margin_min"] > 0.4]
ANSWERS = [g for g in goldens() if g["tools"] and "<tool_call>" not in g["text"] and g["margin_min"] > 1]


def asked(g, **more):
    return {"messages": g["messages"], "tools": g["tools"], "enable_thinking": g["enable_thinking"], **more}


def chat(server, **fields):
    status, r = server.chat(**fields)
    assert status == 200, r
    return r["choices"][0]


def written(g):
    """Name and arguments of the call in a golden's text, which has one."""
    name = g["text"].split("<function=")[1].split(">")[0]
    values = {p.split(">")[0]: p.split(">", 1)[1].split("</parameter>")[0].strip("\n") for p in g["text"].split("<parameter=")[1:]}
    tool = next(t["function"] for t in g["tools"] if t["function"]["name"] == name)
    types = {k: v.get("type") for k, v in tool["parameters"]["properties"].items()}
    return name, {k: v if types[k] == "string" else json.loads(v) for k, v in values.items()}


def from_stream(chunks):
    """Content, thinking, calls and finish reason, after the deltas' form was looked at."""
    content, thinking, calls, finish = "", "", [], None
    for c in (c.choices[0] for c in chunks if c.choices):
        content += c.delta.content or ""
        thinking += getattr(c.delta, "reasoning_content", None) or ""
        for d in c.delta.tool_calls or []:
            if d.id is not None:
                assert d.index == len(calls) and d.type == "function" and d.function.name and d.function.arguments == ""
                calls.append([d.id, d.function.name, ""])
            else:
                assert d.index == len(calls) - 1 and d.function.name is None and d.type is None
                calls[-1][2] += d.function.arguments
        assert finish is None, "expected nothing behind the finish reason"
        finish = c.finish_reason
    return content, thinking, calls, finish


@pytest.mark.parametrize("g", CALLS, ids=lambda g: g["messages"][-1]["content"][:24])
def test_a_call_whole_and_streamed(server, g):
    c = chat(server, **asked(g))
    name, arguments = written(g)
    (call,) = c["message"]["tool_calls"]
    assert (call["type"], call["function"]["name"], json.loads(call["function"]["arguments"])) == ("function", name, arguments)
    assert call["id"].startswith("call_") and c["finish_reason"] == "tool_calls" and c["message"]["content"] is None
    content, thinking, calls, finish = from_stream(stream_of(server, **asked(g)))
    assert (content, thinking or None, finish) == ("", c["message"].get("reasoning_content"), "tool_calls")
    assert [(n, a) for _, n, a in calls] == [(name, call["function"]["arguments"])]


@pytest.mark.parametrize("g", ANSWERS, ids=lambda g: g["messages"][-1]["content"][:24])
def test_an_answer_where_tools_are_there(server, g):
    c = chat(server, **asked(g))
    assert c["finish_reason"] == "stop" and "tool_calls" not in c["message"]
    assert c["message"]["content"] == g["text"].removesuffix("<|im_end|>").split("</think>")[-1].strip()


def test_a_call_that_is_cut_is_not_shown_as_whole(server):
    g = CALLS[0]
    n = len(g["ids"])
    seen = set()
    for limit in range(1, n, 4):
        r = chat(server, **asked(g), max_tokens=limit)
        assert r["finish_reason"] == "length"
        for call in r["message"].get("tool_calls", []):
            assert json.loads(call["function"]["arguments"]) == written(g)[1]
        content, thinking, calls, finish = from_stream(stream_of(server, **asked(g), max_tokens=limit))
        assert finish == "length"
        seen |= {len(calls)}
    assert seen == {0, 1}


def test_logprobs_with_tools(server):
    g = CALLS[0]
    c = chat(server, **asked(g), logprobs=True, top_logprobs=2)
    content = c["logprobs"]["content"]
    assert b"".join(bytes(t["bytes"]) for t in content).decode() == g["text"].removesuffix("<|im_end|>")
    chunks = stream_of(server, **asked(g), logprobs=True, top_logprobs=2)
    assert [t.token for k in chunks if k.choices[0].logprobs for t in k.choices[0].logprobs.content] == [t["token"] for t in content]


def test_a_loop_of_calls_with_the_client(server):
    g = CALLS[0]
    client, messages = server.client(), list(g["messages"])
    ask = {"model": "tiny", "tools": g["tools"], "temperature": 0, "extra_body": {"enable_thinking": g["enable_thinking"]}}
    first = client.chat.completions.create(messages=messages, **ask).choices[0]
    call = first.message.tool_calls[0]
    messages += [first.message, {"role": "tool", "tool_call_id": call.id, "content": json.dumps({"ok": True, "value": 8})}]
    last = client.chat.completions.create(messages=messages, **ask).choices[0]
    assert last.finish_reason == "stop" and "8" in last.message.content and not last.message.tool_calls


HEAD = 'data: {"id":"ID","object":"chat.completion.chunk","created":N,"model":"tiny","system_fingerprint":"FP","choices":[{"index":0,"delta":{'
TAIL = '},"logprobs":null,"finish_reason":%s}]}\n\n'


def test_the_bytes_of_a_call(server):
    g = next(g for g in CALLS if not g["enable_thinking"])
    raw = server.ask("POST", PATH, {**asked(g), "temperature": 0, "stream": True})[2].decode()
    said = re.sub(r'"id":"call_[a-z0-9]{24}"', '"id":"CALL"', re.sub(r'"id":"chatcmpl-[a-z0-9]{24}"', '"id":"ID"', raw))
    said = re.sub(r'"created":\d+', '"created":N', re.sub(r'"system_fingerprint":"[^"]+"', '"system_fingerprint":"FP"', said))
    name, _ = written(g)
    first = HEAD + '"role":"assistant","content":""' + TAIL % "null"
    first += HEAD + '"tool_calls":[{"index":0,"id":"CALL","type":"function","function":{"name":"%s","arguments":""}}]' % name + TAIL % "null"
    last = HEAD + TAIL % '"tool_calls"' + "data: [DONE]\n\n"
    assert said.startswith(first) and said.endswith(last)
    one = re.escape(HEAD) + r'"tool_calls":\[\{"index":0,"function":\{"arguments":"(?:[^"\\]|\\.)*"\}\}\]' + re.escape(TAIL % "null")
    assert re.fullmatch(f"(?:{one})+", said[len(first):len(said) - len(last)])


# --- choices of a tool ------------------------------------------------------------------------------------------------


def tool(name, **properties):
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}}


SAVE = tool("save", path={"type": "string"}, n={"anyOf": [{"type": "integer"}, {"type": "null"}]})
LOOK = tool("look_up", word={"type": "string", "enum": ["cat", "moon"]})


@pytest.mark.parametrize("g", CALLS, ids=lambda g: g["messages"][-1]["content"][:24])
def test_none_makes_no_call_nor_half_a_one(server, g):
    """The tools stay in the prompt, so that it is re-used. Where the model would call one the text ends, once there is any."""
    for thinking in (False, True):
        ask = {**asked(g), "enable_thinking": thinking, "tool_choice": "none", "max_tokens": 60}
        c = chat(server, **ask)
        assert "tool_calls" not in c["message"] and c["finish_reason"] == "stop"
        content, _, calls, finish = from_stream(stream_of(server, **ask))
        assert content == c["message"]["content"] == content.strip() != "" and "<" not in content and (calls, finish) == ([], "stop"), content


NAMED = {"type": "function", "function": {"name": "look_up"}}


@pytest.mark.parametrize("choice,names", [("required", {"save", "look_up"}), (NAMED, {"look_up"}), ({"type": "function", "name": "save"}, {"save"})], ids=str)
@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("temperature", [0, 1.5])
def test_a_call_is_made_when_it_must_be(server, choice, names, thinking, temperature):
    ask = {"messages": USER, "tools": [SAVE, LOOK], "tool_choice": choice, "enable_thinking": thinking, "parallel_tool_calls": False, "temperature": temperature,
           "top_p": 1, "top_k": 0, "seed": 3, "thinking_budget": 20, "max_tokens": 600}
    c = chat(server, **ask)
    if temperature and c["finish_reason"] == "length":
        pytest.skip("needs a draw that ends")
    assert c["finish_reason"] == "tool_calls" and not c["message"]["content"]
    (call,) = c["message"]["tool_calls"]
    arguments = json.loads(call["function"]["arguments"])
    assert call["function"]["name"] in names
    if call["function"]["name"] == "look_up":
        assert arguments in ({"word": "cat"}, {"word": "moon"})
    else:
        assert set(arguments) == {"path", "n"} and isinstance(arguments["n"], (int, type(None)))
    content, thought, calls, finish = from_stream(stream_of(server, **{k: v for k, v in ask.items() if k not in ("top_k", "enable_thinking", "thinking_budget")},
                                                            chat_template_kwargs={"enable_thinking": thinking}, top_k=0))
    assert finish in ("tool_calls", "length") and content == ""


def test_a_schema_that_cannot_be_kept_is_still_a_tool_unless_strict(server):
    odd = tool("odd", x={"type": "object", "propertyNames": {"pattern": "^a"}, "dependentRequired": {"a": ["b"]}})
    c = chat(server, messages=USER, tools=[odd], tool_choice="required", enable_thinking=False, parallel_tool_calls=False, max_tokens=400)
    assert c["finish_reason"] == "length" or c["message"]["tool_calls"][0]["function"]["name"] == "odd"
    odd["function"]["strict"] = True
    e = is_error(*server.ask("POST", PATH, {"messages": USER, "tools": [odd]}), 400)
    assert e["param"] == "tools"


PERSON = {"type": "json_schema", "json_schema": {"name": "p", "schema": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}},
                                                                        "required": ["name"], "additionalProperties": False}}}


@pytest.mark.parametrize("temperature", [0, 1.5])
def test_a_format_beside_tools_is_kept_or_a_call_made(server, temperature):
    g = CALLS[0]
    c = chat(server, **asked(g, response_format=PERSON))
    assert c["finish_reason"] == "tool_calls" and c["message"]["content"] is None
    assert json.loads(c["message"]["tool_calls"][0]["function"]["arguments"]) == written(g)[1]
    seen = set()
    for seed in range(6):
        c = chat(server, messages=USER, tools=[SAVE, LOOK], response_format=PERSON, enable_thinking=False, temperature=temperature, seed=seed, max_tokens=300)
        seen.add(c["finish_reason"])
        if c["finish_reason"] == "stop":
            assert list(json.loads(c["message"]["content"])) == ["name"]
        elif c["finish_reason"] == "tool_calls":
            assert c["message"]["content"] is None
    assert seen & {"stop", "tool_calls"}
    c = chat(server, messages=USER, tools=[LOOK], tool_choice="required", response_format=PERSON, enable_thinking=False, parallel_tool_calls=False)
    assert c["message"]["tool_calls"][0]["function"]["name"] == "look_up"
    assert is_error(*server.ask("POST", PATH, {"messages": USER, "tools": [LOOK], "guided_choice": ["a"]}), 400)["param"] == "tools"
    c = chat(server, messages=USER, tools=[LOOK], tool_choice="none", guided_choice=["a", "b"], enable_thinking=False)
    assert c["message"]["content"] in ("a", "b")


WRONG = [({"tools": {}}, "tools"), ({"tools": [5]}, "tools"), ({"tools": [{}]}, "tools"), ({"tools": [{"type": "function", "function": {}}]}, "tools"),
         ({"tools": [{"type": "function", "function": {"name": 5}}]}, "tools"), ({"tool_choice": "required"}, "tool_choice"), ({"tool_choice": NAMED}, "tool_choice"),
         ({"tools": [SAVE], "tool_choice": "sometimes"}, "tool_choice"), ({"tools": [SAVE], "tool_choice": 5}, "tool_choice"),
         ({"tools": [SAVE], "tool_choice": {}}, "tool_choice"), ({"tools": [SAVE], "tool_choice": {"type": "function"}}, "tool_choice"),
         ({"tools": [SAVE], "tool_choice": NAMED}, "tool_choice"), ({"tools": [SAVE], "parallel_tool_calls": 1}, "parallel_tool_calls"),
         ({"functions": [{"name": "f"}]}, "functions"), ({"function_call": "auto", "functions": [{"name": "f"}]}, "functions")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("fields,param", WRONG, ids=lambda v: json.dumps(v)[:50])
def test_a_wrong_field_is_named(server, fields, param, stream):
    assert is_error(*server.ask("POST", PATH, {"messages": USER, "stream": stream, **fields}), 400)["param"] in (param, "function_call")
    alive(server)
