"""`/v1/completions`: prompts of every kind, echo, logprobs in the old form, choices, streams; and what it refuses."""
import json
import math
import re

import openai
import pytest

from test_server import OSLO, is_error, program, server  # noqa: F401

CHAT = "<|im_start|>user\nWhat is the capital of Norway?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
PATH = "/v1/completions"


def complete(server, **fields):
    status, _, body = server.ask("POST", PATH, {"temperature": 0, "max_tokens": 20, **fields})
    return status, json.loads(body)


def texts(server, **fields):
    status, r = complete(server, **fields)
    assert status == 200, r
    assert [c["index"] for c in r["choices"]] == list(range(len(r["choices"])))
    return [c["text"] for c in r["choices"]]


def events(server, **fields):
    """The chunks of a stream, after its form was looked at."""
    status, headers, body = server.ask("POST", PATH, {"temperature": 0, "max_tokens": 20, "stream": True, **fields})
    assert status == 200 and headers["Content-Type"].startswith("text/event-stream"), body
    lines = [e for e in body.decode().split("\n\n") if not e.startswith(":")]
    assert lines[-2:] == ["data: [DONE]", ""]
    got = [json.loads(e.removeprefix("data: ")) for e in lines[:-2]]
    assert len({(c["id"], c["created"], c["object"], c["model"]) for c in got}) == 1 and got[0]["object"] == "text_completion"
    return got


def joined(chunks):
    out = {}
    for c in chunks:
        for choice in c["choices"]:
            out[choice["index"]] = out.get(choice["index"], "") + choice["text"]
    return [out[i] for i in sorted(out)]


def ids_of(server, text):
    return json.loads(server.ask("POST", "/tokenize", {"content": text})[2])["tokens"]


def test_every_kind_of_prompt_is_the_same_prompt(server):
    ids = ids_of(server, CHAT)
    assert texts(server, prompt=CHAT) == texts(server, prompt=[CHAT]) == texts(server, prompt=ids) == texts(server, prompt=[ids]) == [OSLO]
    assert texts(server, prompt=[CHAT, "3, 4, 5"])[0] == texts(server, prompt=[ids, ids_of(server, "3, 4, 5")])[0] == OSLO


def test_the_client_gets_what_it_knows(server):
    r = server.client().completions.create(model="tiny", prompt=CHAT, temperature=0)
    assert r.choices[0].text == OSLO and r.choices[0].finish_reason == "stop" and r.object == "text_completion" and r.id.startswith("cmpl-")
    assert r.usage.prompt_tokens == 19 and r.usage.completion_tokens == 8 and r.usage.total_tokens == 27
    stream = list(server.client().completions.create(model="tiny", prompt=CHAT, temperature=0, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].text for c in stream if c.choices) == OSLO
    assert stream[-1].choices == [] and stream[-1].usage.completion_tokens == 8 and all(c.usage is None for c in stream[:-1])
    with pytest.raises(openai.BadRequestError):
        server.client().completions.create(model="tiny", prompt=CHAT, suffix="x")


def test_sixteen_tokens_without_a_limit(server):
    r = server.client().completions.create(model="tiny", prompt="3, 4, 5, 6, 7", temperature=0, extra_body={"ignore_eos": True})
    assert r.usage.completion_tokens == 16 and r.choices[0].finish_reason == "length"


def test_prompts_times_choices_keep_their_order(server):
    asked = {"prompt": [CHAT, "3, 4, 5"], "n": 2, "max_tokens": 8}
    whole = texts(server, **asked)
    assert len(whole) == 4 and whole[0] == whole[1] == OSLO and whole[2] == whole[3] != OSLO
    chunks = events(server, **asked)
    assert joined(chunks) == whole
    assert sorted(c["choices"][0]["index"] for c in chunks if c["choices"][0]["finish_reason"]) == [0, 1, 2, 3]
    status, r = complete(server, **asked)
    assert r["usage"]["prompt_tokens"] == 19 + len(ids_of(server, "3, 4, 5"))


def test_echo_gives_the_prompt_back(server):
    assert texts(server, prompt=CHAT, echo=True) == [CHAT + OSLO]
    assert texts(server, prompt=["ㅎㅏㄴ 👩‍👩‍👧‍👦", CHAT], echo=True, max_tokens=1)[0].startswith("ㅎㅏㄴ 👩‍👩‍👧‍👦")
    assert joined(events(server, prompt=CHAT, echo=True)) == [CHAT + OSLO]


def test_nothing_is_thinking_here(server):
    opened = CHAT.removesuffix("\n</think>\n\n")
    (text,) = texts(server, prompt=opened, max_tokens=40)
    assert "</think>" in text and text.endswith(OSLO)


def test_a_stop_string(server):
    status, r = complete(server, prompt=CHAT, stop=[" is"])
    assert (r["choices"][0]["text"], r["choices"][0]["finish_reason"]) == ("The capital of Norway", "stop")


def token_bytes(s):
    return bytes.fromhex(re.sub(r"\\x", "", s.removeprefix("bytes:"))) if s.startswith("bytes:") else s.encode()


def is_legacy(lp, text, top, offset=0):
    assert set(lp) == {"tokens", "token_logprobs", "top_logprobs", "text_offset"}
    assert len({len(v) for v in lp.values()}) == 1
    assert b"".join(map(token_bytes, lp["tokens"])) == text.encode()
    sure = 0
    for token, p, most, at in zip(*(lp[k] for k in ("tokens", "token_logprobs", "top_logprobs", "text_offset"))):
        assert p <= 0 and token in most and top <= len(most) <= top + 1
        assert sum(map(math.exp, most.values())) < 1.0001 and abs(most[token] - p) < 1e-4
        assert at == offset
        offset += sum(b & 0xC0 != 0x80 for b in token_bytes(token))
        sure += 1
    return offset


@pytest.mark.parametrize("top", [0, 1, 5, 20])
def test_logprobs_of_every_token(server, top):
    status, r = complete(server, prompt=CHAT, logprobs=top)
    is_legacy(r["choices"][0]["logprobs"], OSLO, top)
    assert len(r["choices"][0]["logprobs"]["tokens"]) == 7  # without the end token, which is no text


def test_logprobs_in_a_stream_are_those_of_the_whole(server):
    whole = complete(server, prompt=CHAT, logprobs=2)[1]["choices"][0]["logprobs"]
    at, tokens = 0, []
    for c in events(server, prompt=CHAT, logprobs=2):
        lp = c["choices"][0]["logprobs"]
        if lp["tokens"]:
            at = is_legacy(lp, c["choices"][0]["text"], 2, at)
        tokens += lp["tokens"]
    assert tokens == whole["tokens"] and at == len(OSLO)


def test_tokens_that_are_no_characters_are_told_as_bytes(server):
    status, r = complete(server, prompt="ㅎㅏㄴㄱㅡㄹ ㅋㅋㅋ 뷁 쀍", logprobs=0, max_tokens=1, logit_bias={str(ids_of(server, "쀍")[0]): 100})
    assert r["choices"][0]["logprobs"]["tokens"][0].startswith("bytes:\\x")


def test_a_banned_token_does_not_come_and_a_wanted_one_does(server):
    first = ids_of(server, "The")[0]
    assert not texts(server, prompt=CHAT, logit_bias={str(first): -100})[0].startswith("The")
    wanted = ids_of(server, " Os")[0]
    status, r = complete(server, prompt=CHAT, logit_bias={str(wanted): 100}, max_tokens=3, logprobs=0)
    assert len(set(r["choices"][0]["logprobs"]["tokens"])) == 1


WRONG = [({}, "prompt"), ({"prompt": None}, "prompt"), ({"prompt": 5}, "prompt"), ({"prompt": {}}, "prompt"), ({"prompt": ""}, "prompt"), ({"prompt": []}, "prompt"),
         ({"prompt": ["x", 5]}, "prompt[1]"), ({"prompt": [5, "x"]}, "prompt"), ({"prompt": [[]]}, "prompt[0]"), ({"prompt": ["a", ""]}, "prompt[1]"),
         ({"prompt": [4096]}, "prompt"), ({"prompt": [-1]}, "prompt"), ({"prompt": [1.5]}, "prompt"), ({"prompt": [[1], [1e300]]}, "prompt[1]"),
         ({"prompt": ["x"] * 129}, "prompt"), ({"prompt": ["x"] * 40, "n": 40}, "n"), ({"suffix": "x"}, "suffix"), ({"best_of": 2}, "best_of"),
         ({"logprobs": 21}, "logprobs"), ({"logprobs": True}, "logprobs"), ({"logprobs": -1}, "logprobs"), ({"echo": 1}, "echo"),
         ({"echo": True, "logprobs": 1}, "echo"), ({"max_tokens": -2}, "max_tokens"), ({"messages": [{"role": "user", "content": "x"}]}, "messages"),
         ({"tools": [{"type": "function"}]}, "tools"), ({"n": 0}, "n"), ({"temperature": "x"}, "temperature"), ({"stop": ["", "x"]}, "stop")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("fields,param", WRONG, ids=lambda v: json.dumps(v)[:40])
def test_a_wrong_field_is_named(server, fields, param, stream):
    ask = {"prompt": "x", "stream": stream, **fields}
    if fields == {}:
        del ask["prompt"]
    assert is_error(*server.ask("POST", PATH, ask), 400)["param"] == param


def test_a_prompt_that_does_not_fit(server):
    e = is_error(*server.ask("POST", PATH, {"prompt": ["x", [5] * 40000]}), 400)
    assert e["code"] == "context_length_exceeded" and e["param"] == "prompt[1]" and "40000" in e["message"]


HEAD = '{"id":"ID","object":"text_completion","created":N,"model":"tiny","system_fingerprint":"FP","choices":['
USAGE = ('"usage":{"prompt_tokens":19,"completion_tokens":2,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":N},'
         '"completion_tokens_details":{"reasoning_tokens":0}},"timings":{"cache_n":N,"prompt_n":N,"prompt_ms":N,"prompt_per_second":N,'
         '"predicted_n":N,"predicted_ms":N,"predicted_per_second":N}}')


def without_luck(body):
    """The bytes, without what a clock or a draw put in them."""
    s = re.sub(r'"id":"cmpl-[a-z0-9]{24}"', '"id":"ID"', body.decode())
    s = re.sub(r'"system_fingerprint":"[^"]+"', '"system_fingerprint":"FP"', s)
    return re.sub(r'("(?:created|cached_tokens|cache_n|prompt_n|\w+_ms|\w+_per_second|predicted_n)":)[\d.]+', r"\1N", s)


def test_the_bytes_of_an_answer(server):
    ask = {"prompt": CHAT, "temperature": 0, "max_tokens": 2}
    whole = server.ask("POST", PATH, ask)[2]
    assert without_luck(whole) == HEAD + '{"index":0,"text":"The capital","logprobs":null,"finish_reason":"length"}],' + USAGE
    stream = without_luck(server.ask("POST", PATH, {**ask, "stream": True, "stream_options": {"include_usage": True}, "logit_bias": {}})[2])
    text = "".join(re.findall(r'"text":"([^"]*)"', stream))
    assert text == "The capital"
    assert stream.endswith('data: ' + HEAD + '{"index":0,"text":"","logprobs":null,"finish_reason":"length"}],"usage":null}\n\n'
                           'data: ' + HEAD + "]," + USAGE + "\n\ndata: [DONE]\n\n")
