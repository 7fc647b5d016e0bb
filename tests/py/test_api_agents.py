"""`/v1/messages` by Anthropic's own client, `/v1/responses` by OpenAI's: texts, thinking, tools, streams whose events come in order, refusals."""
import json

import pytest

from test_server import OSLO, alive, openai, program, server, start  # noqa: F401

anthropic = pytest.importorskip("anthropic", reason="needs PyPI anthropic")

NORWAY = [{"role": "user", "content": "What is the capital of Norway?"}]
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SEOUL = [{"role": "user", "content": "What is the weather in Seoul?"}]
GREEDY = {"extra_body": {"temperature": 0}}
THINKING = {"type": "enabled", "budget_tokens": 1024}


@pytest.fixture(scope="module")
def claude(server):
    with anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key="any", max_retries=0) as c:
        yield c.messages


@pytest.fixture(scope="module")
def codex(server):
    with openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="any", max_retries=0) as c:
        yield c.responses


def events(server, path, body):
    """(name, data) of each event of a raw stream."""
    status, headers, raw = server.ask("POST", path, {**body, "stream": True})
    assert status == 200 and headers["Content-Type"] == "text/event-stream"
    blocks = [b for b in raw.decode().split("\n\n") if b and not b.startswith(":")]
    rows = [dict(line.split(": ", 1) for line in b.split("\n")) for b in blocks]
    return [(r["event"], json.loads(r["data"])) for r in rows]


# --- Anthropic --------------------------------------------------------------------------------------------------------


def test_a_message(claude):
    m = claude.create(model="claude-any", max_tokens=50, system="Answer.", messages=NORWAY, **GREEDY)
    assert [b.type for b in m.content] == ["text"] and OSLO in m.content[0].text
    assert m.stop_reason == "end_turn" and m.stop_sequence is None and m.role == "assistant" and m.id.startswith("msg_")
    counted = claude.count_tokens(model="any", system="Answer.", messages=NORWAY).input_tokens
    assert m.usage.input_tokens + m.usage.cache_read_input_tokens == counted and m.usage.output_tokens > 1


def test_why_it_stopped(claude):
    m = claude.create(model="any", max_tokens=3, messages=NORWAY, **GREEDY)
    assert m.stop_reason == "max_tokens" and m.usage.output_tokens == 3
    m = claude.create(model="any", max_tokens=50, messages=NORWAY, stop_sequences=["xyz", " of"], **GREEDY)
    assert m.stop_reason == "stop_sequence" and m.stop_sequence == " of" and m.content[0].text == "The capital"


def test_thinking_is_off_unless_asked_for(claude):
    assert [b.type for b in claude.create(model="any", max_tokens=80, messages=NORWAY, **GREEDY).content] == ["text"]
    assert [b.type for b in claude.create(model="any", max_tokens=80, messages=NORWAY, thinking=THINKING, **GREEDY).content] == ["thinking", "text"]


def test_the_stream_says_the_same(claude):
    ask = dict(model="any", max_tokens=80, messages=NORWAY, thinking=THINKING, **GREEDY)
    whole = claude.create(**ask)
    with claude.stream(**ask) as s:
        streamed = s.get_final_message()
    assert [b.model_dump(include={"type", "text", "thinking"}) for b in streamed.content] == [b.model_dump(include={"type", "text", "thinking"}) for b in whole.content]
    assert streamed.stop_reason == whole.stop_reason and streamed.usage.output_tokens == whole.usage.output_tokens


def test_events_of_a_message_come_in_order(server):
    rows = events(server, "/v1/messages", {"max_tokens": 80, "temperature": 0, "thinking": THINKING, "messages": NORWAY})
    assert all(name == data["type"] for name, data in rows)
    names = [name for name, _ in rows]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"] and names.count("message_stop") == 1
    open_block, blocks = None, []
    for name, data in rows[1:-2]:
        if name == "content_block_start":
            assert open_block is None and data["index"] == len(blocks)
            open_block = data["index"]
            blocks.append(data["content_block"]["type"])
        else:
            assert data["index"] == open_block
            if name == "content_block_stop":
                open_block = None
    assert open_block is None and blocks == ["thinking", "text"]


def test_tools_and_their_results(claude):
    tools = [{"name": "get_weather", "description": "The weather of a city", "input_schema": WEATHER}, {"type": "web_search_20250305", "name": "web_search"}]
    m = claude.create(model="any", max_tokens=200, tools=tools, messages=SEOUL, **GREEDY)
    calls = [b for b in m.content if b.type == "tool_use"]
    assert m.stop_reason == "tool_use" and [(c.name, c.input) for c in calls] == [("get_weather", {"city": "Seoul"})]
    with claude.stream(model="any", max_tokens=200, tools=tools, messages=SEOUL, **GREEDY) as s:
        streamed = s.get_final_message()
    assert [(b.name, b.input) for b in streamed.content if b.type == "tool_use"] == [("get_weather", {"city": "Seoul"})]
    history = SEOUL + [{"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in m.content]},
                       {"role": "user", "content": [{"type": "tool_result", "tool_use_id": calls[0].id, "content": [{"type": "text", "text": "21 degrees"}]}]}]
    assert claude.create(model="any", max_tokens=200, tools=tools, messages=history, **GREEDY).stop_reason in ("end_turn", "tool_use")
    assert claude.create(model="any", max_tokens=60, tools=tools, tool_choice={"type": "none"}, messages=SEOUL, **GREEDY).stop_reason != "tool_use"


def test_arguments_keep_their_digits(server):
    """What a client sends back is what the template sees."""
    big = '{"n":12345678901234567890.5,"city":"x"}'
    body = ('{"max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":%s}]},'
            '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"b"}]}]}') % big
    status, _, raw = server.ask("POST", "/v1/messages/count_tokens", body)
    assert status == 200
    longer = json.loads(raw)["input_tokens"]
    status, _, raw = server.ask("POST", "/v1/messages/count_tokens", body.replace("12345678901234567890.5", "1"))
    assert longer - json.loads(raw)["input_tokens"] > 10


@pytest.mark.parametrize("body, said", [
    ({"max_tokens": 5}, "messages"), ({"messages": NORWAY}, "max_tokens"), ({"max_tokens": 5, "messages": [{"role": "robot", "content": ""}]}, "messages[0].role"),
    ({"max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "images"),
    ({"max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "document"}]}]}, "document"),
    ({"max_tokens": 5, "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]}]}, "name and input"),
    ({"max_tokens": 5, "messages": NORWAY, "tools": [{"name": "f"}]}, "input_schema"), ({"max_tokens": 5, "messages": NORWAY, "tool_choice": {"type": "x"}}, "tool_choice"),
    ({"max_tokens": 5, "messages": NORWAY, "mcp_servers": [{"url": "x"}]}, "mcp_servers"), ({"max_tokens": 5, "messages": NORWAY, "system": [{"type": "image"}]}, "system"),
])
def test_refusals_of_messages(server, body, said):
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        if path.endswith("tokens") and said == "max_tokens":
            continue
        status, _, raw = server.ask("POST", path, body)
        r = json.loads(raw)
        assert status == 400 and r["type"] == "error" and r["error"]["type"] == "invalid_request_error" and said in r["error"]["message"], r


def test_errors_before_the_handler_have_its_form(server):
    for method, path, status in (("GET", "/v1/messages", 405), ("POST", "/v1/messages/batches", 404)):
        got, _, raw = server.ask(method, path)
        assert got in (status, 400, 404, 405) and json.loads(raw)["type"] == "error"


# --- OpenAI's Responses -----------------------------------------------------------------------------------------------


def test_a_response(codex):
    r = codex.create(model="tiny", input="What is the capital of Norway?", instructions="Answer.", temperature=0, max_output_tokens=100, reasoning={"effort": "none"})
    assert OSLO in r.output_text and r.status == "completed" and [i.type for i in r.output] == ["message"] and r.id.startswith("resp_")
    assert r.usage.total_tokens == r.usage.input_tokens + r.usage.output_tokens and r.instructions == "Answer." and r.max_output_tokens == 100
    r = codex.create(model="tiny", input=NORWAY, temperature=0, reasoning={"effort": "high"})
    assert [i.type for i in r.output] == ["reasoning", "message"] and r.usage.output_tokens_details.reasoning_tokens > 0


def test_a_response_that_is_cut(codex):
    r = codex.create(model="tiny", input=NORWAY, temperature=0, max_output_tokens=3)
    assert r.status == "incomplete" and r.incomplete_details.reason == "max_output_tokens"


def test_probes_and_what_is_not_kept(codex):
    assert codex.create(model="tiny", input=[], max_output_tokens=1).status == "incomplete"
    for more in ({"previous_response_id": "resp_1"}, {"background": True}, {"conversation": "c"}):
        with pytest.raises(openai.BadRequestError, match=list(more)[0]):
            codex.create(model="tiny", input="x", **more)
    with pytest.raises(openai.BadRequestError, match="images"):
        codex.create(model="tiny", input=[{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}])
    with pytest.raises(openai.BadRequestError, match="stored"):
        codex.create(model="tiny", input=[{"type": "item_reference", "id": "x"}])


def test_events_of_a_response_come_in_order(server, codex):
    body = {"model": "tiny", "input": NORWAY, "temperature": 0, "max_output_tokens": 100}
    rows = events(server, "/v1/responses", body)
    assert [d["sequence_number"] for _, d in rows] == list(range(len(rows))) and all(n == d["type"] for n, d in rows)
    names = [n for n, _ in rows]
    assert names[:2] == ["response.created", "response.in_progress"] and names[-1] == "response.completed"
    for kind in ("reasoning_text", "output_text"):
        at = names.index(f"response.{kind}.done")
        done = rows[at][1]["text"]
        assert "".join(d["delta"] for n, d in rows if n == f"response.{kind}.delta") == done
        assert names[at + 1:at + 3] == ["response.content_part.done", "response.output_item.done"]
    assert names.count("response.output_item.added") == names.count("response.output_item.done") == 2
    whole = codex.create(model="tiny", input=NORWAY, temperature=0, max_output_tokens=100)
    assert whole.output_text == rows[-1][1]["response"]["output"][-1]["content"][0]["text"]
    assert events(server, "/v1/responses", {**body, "max_output_tokens": 2})[-1][0] == "response.incomplete"


def test_functions_and_their_outputs(codex):
    tools = [{"type": "function", "name": "get_weather", "description": "The weather of a city", "parameters": WEATHER}, {"type": "web_search"}]
    r = codex.create(model="tiny", input=SEOUL, tools=tools, temperature=0)
    calls = [i for i in r.output if i.type == "function_call"]
    assert [(c.name, c.arguments, c.status) for c in calls] == [("get_weather", '{"city":"Seoul"}', "completed")]
    with codex.stream(model="tiny", input=SEOUL, tools=tools, temperature=0) as s:
        streamed = s.get_final_response()
    assert [(i.name, i.arguments) for i in streamed.output if i.type == "function_call"] == [("get_weather", '{"city":"Seoul"}')]
    history = SEOUL + [i.model_dump(exclude_none=True) for i in r.output] + [{"type": "function_call_output", "call_id": calls[0].call_id, "output": "21 degrees"}]
    assert codex.create(model="tiny", input=history, tools=tools, temperature=0, max_output_tokens=50).output
