"""KV pages run out while several answers are written: one of them loses its slot, waits, is read again and goes on, and nobody's text tells of it.

Without checkpoints a server of 4 slots has 4 contexts of pages, and an answer at the context's end is promised one page more than its context, so
that four that get there together are too many for once."""
import concurrent.futures
import json
import re

import pytest

from test_server import Server, program, start  # noqa: F401

CONTEXT, SLOTS, TOKENS = 1280, 4, 1262   # the promise at first is of 1024 tokens of an answer: all four are let in


def asks():
    """Each with a text of its own, drawn and greedy."""
    for i in range(SLOTS + 1):
        yield {"prompt": f"{'Star ' * (i + 1)}number {i} is", "max_tokens": TOKENS - i, "ignore_eos": True, "seed": i, "temperature": i % 2}


def preempted(s):
    return int(re.search(r"^\w*preempted_total (\d+)", s.get("/metrics")[2].decode(), re.M).group(1))


def answer(s, ask, stream=False):
    status, _, raw = s.ask("POST", "/v1/completions", {**ask, "stream": stream, **({"stream_options": {"include_usage": True}} if stream else {})})
    assert status == 200, raw
    if not stream:
        r = json.loads(raw)
        return r["choices"][0]["text"], r["choices"][0]["finish_reason"], r["usage"]["completion_tokens"]
    lines = [x[6:] for x in raw.decode().split("\n") if x.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(x) for x in lines[:-1]]
    choices = [c["choices"][0] for c in chunks if c["choices"]]
    ends = [c["finish_reason"] for c in choices if c["finish_reason"]]
    assert len(ends) == 1
    return "".join(c["text"] for c in choices), ends[0], chunks[-1]["usage"]["completion_tokens"]


def test_an_answer_that_loses_its_slot_is_the_same(start):
    s = start("--numerics", "strict", "-c", CONTEXT, "--parallel", SLOTS, "--cache-device", 0)
    alone = [answer(s, ask) for ask in asks()]
    assert all(end == "length" and n == ask["max_tokens"] for (_, end, n), ask in zip(alone, asks())) and len({t for t, _, _ in alone}) == len(alone)
    assert preempted(s) == 0
    with concurrent.futures.ThreadPoolExecutor(SLOTS + 1) as pool:
        together = list(pool.map(lambda x: answer(s, x[1], stream=x[0] % 2 == 1), enumerate(asks())))
    assert preempted(s) > 0
    assert together == alone
    health = s.counts()
    assert health["status"] == "ok"
    assert s.stop() == 0


NOTES = {"type": "object", "additionalProperties": False, "required": ["word", "lines"], "properties": {
    "word": {"type": "string", "pattern": "^[^,;]*$", "minLength": 40, "maxLength": 150},
    "lines": {"type": "array", "minItems": 40, "items": {"type": "string", "minLength": 60}}}}


def forms():
    """As asks, in chats whose answers are of a schema that they cannot end before their last token."""
    for i in range(SLOTS + 1):
        yield {"messages": [{"role": "user", "content": f"{'Star ' * (i + 1)}number {i}"}], "max_tokens": TOKENS - 20 - i, "seed": i,
               "temperature": i % 2, "chat_template_kwargs": {"enable_thinking": False},
               "response_format": {"type": "json_schema", "json_schema": {"name": "notes", "strict": True, "schema": NOTES}}}


def formed(s, ask):
    status, _, raw = s.ask("POST", "/v1/chat/completions", ask)
    assert status == 200, raw
    r = json.loads(raw)
    return r["choices"][0]["message"]["content"], r["choices"][0]["finish_reason"], r["usage"]["completion_tokens"]


def test_an_answer_in_a_form_that_loses_its_slot_is_the_same(start):
    """The constraint stands where the text stands, also while its pages are away and are read again."""
    s = start("--numerics", "strict", "-c", CONTEXT, "--parallel", SLOTS, "--cache-device", 0)
    alone = [formed(s, ask) for ask in forms()]
    assert all(text.startswith("{") and end == "length" for text, end, _ in alone) and len({t for t, _, _ in alone}) == len(alone)
    assert preempted(s) == 0
    with concurrent.futures.ThreadPoolExecutor(SLOTS + 1) as pool:
        together = list(pool.map(lambda ask: formed(s, ask), forms()))
    assert preempted(s) > 0
    assert together == alone
    assert s.stop() == 0
