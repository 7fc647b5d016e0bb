"""Answers in a form that was asked for, through chat and completions: every spelling of a format, with and without thinking, whole and streamed."""
import json
import re

import pytest

from test_server import USER, alive, is_error, joined, program, server, stream_of  # noqa: F401

PATH = "/v1/chat/completions"
SORA = [{"role": "user", "content": "Write JSON with name, age and city for: Sora, 27, Busan"}]
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                                           "city": {"enum": ["Busan", "Oslo"]}}, "required": ["name", "age", "city"], "additionalProperties": False}
STRICT = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}


def chat(server, **fields):
    status, r = server.chat(**{"messages": USER, "enable_thinking": False, "max_tokens": 300, **fields})
    assert status == 200, r
    return r["choices"][0]


def is_person(text):
    p = json.loads(text)
    assert list(p) == ["name", "age", "city"] and isinstance(p["name"], str) and 0 <= p["age"] <= 150 and p["city"] in ("Busan", "Oslo")
    return p


SPELLINGS = [{"response_format": STRICT}, {"response_format": {"type": "json_schema", "schema": PERSON}}, {"response_format": {"type": "json_object", "schema": PERSON}},
             {"json_schema": PERSON}, {"guided_json": PERSON}, {"guided_json": json.dumps(PERSON)}, {"structured_outputs": {"json": PERSON}}]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda s: json.dumps(s)[:40])
def test_every_spelling_of_a_schema(server, spelling):
    c = chat(server, messages=SORA, **spelling)
    assert is_person(c["message"]["content"]) == {"name": "Sora", "age": 27, "city": "Busan"} and c["finish_reason"] == "stop"


@pytest.mark.parametrize("seed", range(4))
def test_a_wild_draw_keeps_to_the_schema(server, seed):
    c = chat(server, response_format=STRICT, temperature=1.5, top_p=1, top_k=0, seed=seed)
    assert c["finish_reason"] == "stop"
    is_person(c["message"]["content"])


def test_streamed_it_is_the_same(server):
    want = chat(server, messages=SORA, response_format=STRICT)["message"]["content"]
    assert joined(stream_of(server, messages=SORA, enable_thinking=False, response_format=STRICT)) == want
    for c in range(3):
        r = server.chat(messages=SORA, enable_thinking=False, response_format=STRICT, n=3)[1]["choices"][c]
        assert r["message"]["content"] == want


def test_the_client_parses_it(server):
    pydantic = pytest.importorskip("pydantic")

    class Person(pydantic.BaseModel):
        name: str
        age: int
        city: str

    r = server.client().chat.completions.parse(model="tiny", messages=SORA, temperature=0, response_format=Person, extra_body={"enable_thinking": False})
    assert r.choices[0].message.parsed == Person(name="Sora", age=27, city="Busan")


def test_a_thought_comes_first_and_is_free(server):
    who = [{"role": "user", "content": "Who are you?"}]
    c = chat(server, messages=who, enable_thinking=True, response_format=STRICT)
    assert c["message"]["reasoning_content"] == "The user asks who I am." and c["finish_reason"] == "stop"
    is_person(c["message"]["content"])
    c = chat(server, messages=who, enable_thinking=True, response_format=STRICT, thinking_budget=3)
    assert "The user asks who I am.".startswith(c["message"]["reasoning_content"])
    is_person(c["message"]["content"])
    chunks = stream_of(server, messages=who, enable_thinking=True, response_format=STRICT)
    assert joined(chunks, "reasoning_content") == "The user asks who I am."
    is_person(joined(chunks))


def test_any_object(server):
    c = chat(server, messages=SORA, response_format={"type": "json_object"})
    assert json.loads(c["message"]["content"]) == {"name": "Sora", "age": 27, "city": "Busan"}
    c = chat(server, response_format={"type": "json_object"}, temperature=1, max_tokens=60)
    assert c["message"]["content"].lstrip().startswith("{")


TEXTS = [({"guided_regex": "[a-c]{3}-[0-9]+0"}, "[a-c]{3}-[0-9]+0"), ({"guided_choice": ["moon", "sun shine", "달"]}, "moon|sun shine|달"),
         ({"grammar": 'root ::= "a" [0-9] [0-9]? "!"'}, "a[0-9]{1,2}!"), ({"guided_grammar": 'root ::= ("ab" | "cd")+ "."'}, r"(ab|cd)+\."),
         ({"structured_outputs": {"choice": ["x1", "x2"]}}, "x[12]"), ({"structured_outputs": {"regex": "q{5}"}}, "q{5}"),
         ({"structured_outputs": {"grammar": 'root ::= "yes" | "no"'}}, "yes|no")]


@pytest.mark.parametrize("form,pattern", TEXTS, ids=lambda v: json.dumps(v)[:40])
@pytest.mark.parametrize("path", ["chat", "completions"])
def test_texts_of_a_form(server, form, pattern, path):
    if path == "chat":
        c = chat(server, **form, logit_bias={"4072": 5})
        text = c["message"]["content"]
    else:
        status, _, body = server.ask("POST", "/v1/completions", {"prompt": "hello", "max_tokens": 300, "temperature": 0, **form, "logit_bias": {"4072": 5}})
        assert status == 200, body
        c = json.loads(body)["choices"][0]
        text = c["text"]
    assert re.fullmatch(pattern, text) or (c["finish_reason"] == "length" and not pattern.startswith("q")), text


def test_forms_with_logprobs_and_biases(server):
    c = chat(server, guided_choice=["moon", "sun"], logprobs=True, top_logprobs=3)
    assert b"".join(bytes(t["bytes"]) for t in c["logprobs"]["content"]).decode() == c["message"]["content"] in ("moon", "sun")
    other = {"moon": "sun", "sun": "moon"}[c["message"]["content"]]
    bias = {str(t): -100 for t in json.loads(server.ask("POST", "/tokenize", {"content": c["message"]["content"]})[2])["tokens"][:1]}
    assert chat(server, guided_choice=["moon", "sun"], logit_bias=bias)["message"]["content"] in (other, c["message"]["content"])


def test_an_answer_of_a_form_goes_on(server):
    begun = [*SORA, {"role": "assistant", "content": '{"name": "Sora", "a'}]
    c = chat(server, messages=begun, response_format=STRICT)
    assert is_person(begun[-1]["content"] + c["message"]["content"])["age"] == 27
    begun[-1]["content"] = '{"nom'
    assert is_error(*server.ask("POST", PATH, {"messages": begun, "response_format": STRICT}), 400)["param"] == "messages"


WRONG = [({"response_format": 5}, "response_format"), ({"response_format": {"type": "xml"}}, "response_format"), ({"response_format": {}}, "response_format"),
         ({"response_format": {"type": "json_schema"}}, "response_format"), ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format"),
         ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "banana"}}}}, "response_format"),
         ({"json_schema": {"type": "object", "propertyNames": {"pattern": "a"}}}, "json_schema"), ({"json_schema": 5}, "json_schema"), ({"guided_json": "{"}, "guided_json"),
         ({"grammar": 5}, "grammar"), ({"grammar": "root ::= ("}, "grammar"), ({"grammar": 'rot ::= "a"'}, "grammar"), ({"guided_regex": "(a"}, "guided_regex"),
         ({"guided_regex": "a(?=b)"}, "guided_regex"), ({"guided_choice": "a"}, "guided_choice"), ({"guided_choice": [1]}, "guided_choice"),
         ({"structured_outputs": {"json": {}, "regex": "a"}}, "structured_outputs"), ({"structured_outputs": {"xml": 1}}, "structured_outputs"),
         ({"grammar": 'root ::= "a"', "guided_choice": ["a"]}, "guided_choice"), ({"response_format": {"type": "json_object"}, "grammar": 'root ::= "a"'}, "grammar")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("fields,param", WRONG, ids=lambda v: json.dumps(v)[:50])
def test_a_wrong_form_is_named(server, fields, param, stream):
    assert is_error(*server.ask("POST", PATH, {"messages": USER, "stream": stream, **fields}), 400)["param"] == param


def test_forms_that_ask_for_nothing(server):
    for nothing in ({"response_format": {"type": "text"}}, {"response_format": None}, {"grammar": ""}, {"grammar": None}, {"guided_choice": []}, {"json_schema": None}):
        assert chat(server, messages=[{"role": "user", "content": "What is the capital of Norway?"}], **nothing)["message"]["content"].startswith("The capital")
    alive(server)
