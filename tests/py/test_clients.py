"""The clients people use, unchanged, against a server: OpenAI's (sync, async, streaming helper, parsed answers, a loop of tools), litellm,
LangChain. What is checked is what these make of an answer, not how they were answered."""
import asyncio
import enum
import json
import os

import pytest

from test_server import OSLO, openai, program, server, start  # noqa: F401

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask its makers' server for prices
pydantic = pytest.importorskip("pydantic", reason="needs PyPI pydantic")

NORWAY = [{"role": "user", "content": "What is the capital of Norway?"}]
SEOUL = [{"role": "user", "content": "What is the weather in Seoul?"}]
QUIET = {"chat_template_kwargs": {"enable_thinking": False}}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


@pytest.fixture(scope="module")
def program():  # noqa: F811
    """The shipped one alone: test_server.py has both."""
    return "quarry-serve"


@pytest.fixture(scope="module")
def url(server):
    return f"http://127.0.0.1:{server.port}/v1"


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as c:
        yield c


# --- openai -----------------------------------------------------------------------------------------------------------


def test_async_many_at_once(url):
    async def ask_all():
        async with openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0) as c:
            async def one():
                parts = []
                async for chunk in await c.chat.completions.create(model="tiny", messages=NORWAY, temperature=0, stream=True, extra_body=QUIET):
                    parts += [chunk.choices[0].delta.content or ""] if chunk.choices else []
                return "".join(parts)
            return await asyncio.gather(*(one() for _ in range(8)))
    assert asyncio.run(ask_all()) == [OSLO] * 8


def test_streaming_helper(client):
    with client.chat.completions.stream(model="tiny", messages=NORWAY, temperature=0, extra_body=QUIET) as s:
        kinds = [event.type for event in s]
        final = s.get_final_completion()
    assert final.choices[0].message.content == OSLO and final.choices[0].finish_reason == "stop"
    assert "content.delta" in kinds and kinds[-1] == "content.done"


def test_raw_and_errors(client):
    raw = client.chat.completions.with_raw_response.create(model="tiny", messages=NORWAY, temperature=0, extra_body=QUIET)
    assert raw.headers["x-request-id"] and raw.parse().choices[0].message.content == OSLO
    with pytest.raises(openai.BadRequestError) as e:
        client.chat.completions.create(model="tiny", messages=NORWAY, temperature=-1)
    assert e.value.param == "temperature" and e.value.type == "invalid_request_error"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="another", messages=NORWAY)


def test_parsed_answers(client):
    class Size(enum.Enum):
        small = "small"
        large = "large"

    class Sea(enum.Enum):
        north = "North Sea"
        baltic = "Baltic Sea"

    class City(pydantic.BaseModel):
        size: Size
        coast: bool
        seas: list[Sea] = pydantic.Field(max_length=2)

    r = client.chat.completions.parse(model="tiny", messages=NORWAY, temperature=0, max_tokens=300, response_format=City, extra_body=QUIET)
    assert isinstance(r.choices[0].message.parsed, City)
    answers = [client.chat.completions.create(model="tiny", messages=NORWAY, temperature=1, seed=seed, max_tokens=300, extra_body=QUIET, response_format={
        "type": "json_schema", "json_schema": {"name": "city", "schema": {"type": "object", "properties": {
            "size": {"enum": ["small", "large"]}, "coast": {"type": "boolean"}}, "required": ["size", "coast"], "additionalProperties": False}}})
        for seed in range(4)]
    for a in answers:
        assert a.choices[0].finish_reason == "stop"
        got = json.loads(a.choices[0].message.content)
        assert set(got) == {"size", "coast"} and got["size"] in ("small", "large") and isinstance(got["coast"], bool)


def test_a_loop_of_tools(client):
    messages = list(SEOUL)
    called = []
    for _ in range(4):
        r = client.chat.completions.create(model="tiny", messages=messages, tools=[WEATHER], temperature=0, max_tokens=200)
        message = r.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if r.choices[0].finish_reason != "tool_calls":
            break
        for call in message.tool_calls:
            called.append((call.function.name, json.loads(call.function.arguments)))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "sunny, 21 degrees"})
    assert called and called[0] == ("get_weather", {"city": "Seoul"})


def test_a_tool_that_must_be_called(client):
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        r = client.chat.completions.create(model="tiny", messages=NORWAY, tools=[WEATHER], tool_choice=choice, temperature=0, max_tokens=300, extra_body=QUIET)
        assert r.choices[0].finish_reason in ("tool_calls", "length")
        if r.choices[0].finish_reason == "tool_calls":
            assert {c.function.name for c in r.choices[0].message.tool_calls} == {"get_weather"}
            assert all(isinstance(json.loads(c.function.arguments)["city"], str) for c in r.choices[0].message.tool_calls)


# --- others -----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_litellm(url):
    litellm = pytest.importorskip("litellm", reason="needs PyPI litellm")
    ask = dict(model="openai/tiny", api_base=url, api_key="any", messages=NORWAY, temperature=0, extra_body=QUIET)
    r = litellm.completion(**ask)
    assert r.choices[0].message.content == OSLO and r.usage.prompt_tokens > 5
    parts = [chunk.choices[0].delta.content or "" for chunk in litellm.completion(**ask, stream=True) if chunk.choices]
    assert "".join(parts) == OSLO
    r = litellm.completion(**{**ask, "messages": SEOUL, "tools": [WEATHER]})
    assert r.choices[0].finish_reason == "tool_calls" and json.loads(r.choices[0].message.tool_calls[0].function.arguments) == {"city": "Seoul"}


@pytest.mark.filterwarnings("ignore")
def test_langchain(url):
    langchain = pytest.importorskip("langchain_openai", reason="needs PyPI langchain-openai")
    llm = langchain.ChatOpenAI(model="tiny", base_url=url, api_key="any", temperature=0, max_retries=0, extra_body=QUIET)
    assert llm.invoke("What is the capital of Norway?").content == OSLO
    assert "".join(chunk.content for chunk in llm.stream("What is the capital of Norway?")) == OSLO
    message = llm.bind_tools([WEATHER]).invoke("What is the weather in Seoul?")
    assert [(c["name"], c["args"]) for c in message.tool_calls] == [("get_weather", {"city": "Seoul"})]
    assert message.usage_metadata["input_tokens"] > 5
