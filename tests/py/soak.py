"""Many clients at once for `quarry-serve`, all kinds mixed, and what each of them must be told.

An Ask is a request whose right answer is known: it was asked alone before, and of the goldens' questions the golden says it too. A Client plays
asks on one connection, leaves some before their end, and counts what a server has to count as well."""
import collections
import http.client
import json
import random
import socket
import struct
import threading
import time

from programs import goldens

CHAT, COMPLETIONS, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                                           "city": {"enum": ["Busan", "Oslo"]}}, "required": ["name", "age", "city"], "additionalProperties": False}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "required": ["city"],
           "properties": {"city": {"enum": ["Oslo", "Busan"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}}}}
CREATIVE = {"temperature": 1.1, "top_p": 0.95, "top_k": 40, "frequency_penalty": 0.3, "max_tokens": 60}


class Ask:
    """jobs: answers it makes of the engine. exact: the answer is the same alone and among others in the strict numerics only."""

    def __init__(self, name, path, body, jobs=1, exact=False, weight=4, status=200):
        self.name, self.path, self.body, self.jobs, self.exact, self.weight, self.status = name, path, body, jobs, exact, weight, status
        self.right = self.right_streamed = self.golden = None
        self.streams = status == 200


def user(text):
    return [{"role": "user", "content": text}]


def golden_asks():
    for g in goldens():
        if g["margin_min"] > 0.4 and len(g["prompt_ids"]) < 3000:
            body = {"messages": g["messages"], "temperature": 0, "enable_thinking": g["enable_thinking"]}
            ask = Ask("golden " + str(g["messages"][-1]["content"])[:30], CHAT, {**body, "tools": g["tools"]} if g["tools"] else body)
            ask.golden = g
            yield ask


def other_asks():
    sora, plain = user("Write JSON with name, age and city for: Sora, 27, Busan"), {"temperature": 0, "enable_thinking": False}
    yield Ask("schema", CHAT, {**plain, "messages": sora, "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}}, weight=20)
    yield Ask("grammar", CHAT, {**plain, "messages": user("What is 68 + 57?"), "grammar": 'root ::= "It is " [0-9]{1,4} "."'}, weight=10)
    yield Ask("choice", CHAT, {**plain, "messages": user("What is the opposite of loud?"), "guided_choice": ["quiet", "loud"]}, weight=10)
    yield Ask("tool that must be called", CHAT, {**plain, "messages": user("What is the weather in Oslo?"), "tools": [WEATHER], "tool_choice": "required", "max_tokens": 200}, weight=10)
    yield Ask("two choices", CHAT, {**plain, "messages": user("Count from 3 to 33."), "n": 2}, jobs=2, weight=10)
    yield Ask("stop string", CHAT, {**plain, "messages": user("Count from 3 to 33."), "stop": ["17"]}, weight=10)
    yield Ask("limit", CHAT, {**plain, "messages": user("List the months of the year."), "max_tokens": 9}, weight=10)
    yield Ask("logprobs", CHAT, {**plain, "messages": user("Who are you?"), "logprobs": True, "top_logprobs": 3, "seed": 5, **CREATIVE}, exact=True, weight=10)
    yield Ask("completion", COMPLETIONS, {"temperature": 0, "prompt": "<|im_start|>user\nWhat is the capital of Norway?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"}, weight=10)
    yield Ask("two prompts", COMPLETIONS, {"prompt": ["One, two,", "Mina"], "seed": 3, "echo": True, **CREATIVE}, jobs=2, exact=True, weight=10)
    yield Ask("Messages", MESSAGES, {"model": "x", "max_tokens": 40, "temperature": 0, "messages": user("Who are you?")}, weight=10)
    yield Ask("Responses", RESPONSES, {"model": "tiny", "temperature": 0, "input": "Who are you?", "max_output_tokens": 40}, weight=10)
    for seed in range(6):
        yield Ask(f"tale {seed}", CHAT, {"messages": user("Tell me a story about Mina and the sea."), "enable_thinking": seed % 2 == 1, "seed": seed, **CREATIVE}, exact=True)
    yield Ask("schema, wildly", CHAT, {"messages": sora, "enable_thinking": False, "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}},
                                       "temperature": 1.5, "seed": 2, "max_tokens": 100}, exact=True)


def wrong_asks():
    ok = {"messages": user("x")}
    for name, path, body, status in (("no JSON", CHAT, "{", 400), ("no messages", CHAT, {}, 400), ("a model that is not here", CHAT, {**ok, "model": "gpt-9"}, 404),
                                     ("n", CHAT, {**ok, "n": 0}, 400), ("temperature", CHAT, {**ok, "temperature": "hot"}, 400), ("a schema", CHAT, {**ok, "json_schema": {"type": "king"}}, 400),
                                     ("an image", CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]}, 400),
                                     ("no endpoint", "/v1/embeddings", {"input": "x"}, 404), ("no such path", "/nope", {}, 404), ("Messages", MESSAGES, {"messages": []}, 400)):
        yield Ask("wrong: " + name, path, body, jobs=0, weight=3, status=status)


def all_asks():
    return [*golden_asks(), *other_asks(), *wrong_asks()]


LEAVES = {"messages": user("Count from 3 to 33."), "enable_thinking": False, "temperature": 0, "ignore_eos": True, "max_tokens": 400}

# --- what an answer says ----------------------------------------------------------------------------------------------


def calls_of(calls):
    return [(c["function"]["name"], c["function"]["arguments"]) for c in calls or []]


def entries(logprobs):
    return json.dumps((logprobs or {}).get("content"))


def of_whole(path, r):
    """What of a whole answer must be the same each time."""
    if path == MESSAGES:
        return [(b["type"], b.get("text")) for b in r["content"]], r["stop_reason"], r["usage"]["output_tokens"]
    if path == RESPONSES:
        return [[p["text"] for p in o["content"]] for o in r["output"] if o["type"] == "message"], r["status"], r["usage"]["output_tokens"]
    u = r["usage"]
    if path == COMPLETIONS:
        return [(c["text"], c["finish_reason"]) for c in r["choices"]], u["prompt_tokens"], u["completion_tokens"]
    said = [(c["message"].get("reasoning_content"), c["message"]["content"], calls_of(c["message"].get("tool_calls")), c["finish_reason"], entries(c.get("logprobs"))) for c in r["choices"]]
    return said, u["prompt_tokens"], u["completion_tokens"]


def of_error(r):
    e = r["error"]
    return e.get("type"), e.get("code"), e.get("param"), e["message"]


def of_stream(path, events):
    """The same of a stream's events."""
    if path in (MESSAGES, RESPONSES):
        text = "".join(e["delta"]["text"] if path == MESSAGES else e["delta"] for e in events
                       if e["type"] == "response.output_text.delta" or e["type"] == "content_block_delta" and e["delta"]["type"] == "text_delta")
        return text, events[-1]["type"]
    choices, usage = collections.defaultdict(lambda: {"text": "", "reasoning_content": "", "content": "", "calls": [], "finish": None, "entries": []}), None
    for e in events:
        usage = e.get("usage") or usage
        for c in e["choices"]:
            mine, delta = choices[c["index"]], c.get("delta", {})
            mine["text"] += c.get("text", "")
            for part in ("reasoning_content", "content"):
                mine[part] += delta.get(part) or ""
            for call in delta.get("tool_calls", []):
                if call.get("id"):
                    mine["calls"].append([call["function"]["name"], ""])
                mine["calls"][-1][1] += call["function"]["arguments"]
            mine["entries"] += (c.get("logprobs") or {}).get("content") or []
            assert not mine["finish"], "expected nothing behind the finish reason"
            mine["finish"] = c["finish_reason"]
    return json.dumps([choices[i] for i in sorted(choices)]), usage["prompt_tokens"], usage["completion_tokens"]


# --- clients ----------------------------------------------------------------------------------------------------------


class Client:
    def __init__(self, port):
        self.port, self.connection = port, None
        self.statuses, self.jobs = collections.Counter(), collections.Counter()
        self.generated = self.prompt = 0          # tokens of the answers that were read to their end, by their usage

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def send(self, path, body):
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        self.connection.request("POST", path, body if isinstance(body, str) else json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        self.statuses[path, answer.status] += 1
        return answer

    def note(self, ask, usage):
        self.jobs["done"] += ask.jobs
        if usage and ask.path in (CHAT, COMPLETIONS):
            self.generated += usage["completion_tokens"]
            self.prompt += usage["prompt_tokens"] * (1 if "prompt" in ask.body else ask.jobs)
        elif usage:
            self.generated += usage["output_tokens"]
            self.prompt += usage["input_tokens"]

    def whole(self, ask):
        answer = self.send(ask.path, ask.body)
        r = json.loads(answer.read())
        assert answer.status == ask.status, (ask.name, answer.status, r)
        self.note(ask, r.get("usage"))
        return of_whole(ask.path, r) if ask.status == 200 else of_error(r)

    def streamed(self, ask):
        more = {"stream_options": {"include_usage": True}} if ask.path in (CHAT, COMPLETIONS) else {}
        answer = self.send(ask.path, {**ask.body, "stream": True, **more})
        assert answer.status == 200, (ask.name, answer.read())
        lines = answer.read().decode().split("\n")
        data = [x.removeprefix("data: ") for x in lines if x.startswith("data: ")]
        if more:
            assert data.pop() == "[DONE]", lines[-10:]
        events = [json.loads(x) for x in data]
        self.note(ask, next(u for e in reversed(events) if (u := e.get("usage") or e.get("response", {}).get("usage"))) if ask.path != MESSAGES else
                  {"output_tokens": events[-2]["usage"]["output_tokens"], "input_tokens": events[0]["message"]["usage"]["input_tokens"]})
        return of_stream(ask.path, events)

    def leave(self, rng):
        """Asks for something long and goes, politely or not, at once or after some of it; a few lose the race against the answer's end."""
        stream = rng.random() < 0.7
        data = json.dumps({**LEAVES, "stream": stream}).encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as s:
            s.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (CHAT.encode(), len(data)) + data)
            if stream and rng.random() < 0.8:
                s.recv(rng.choice([10, 600, 5000]))
            else:
                time.sleep(rng.random() * 0.3)
            if rng.random() < 0.5:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.jobs["left"] += 1


def check_golden(ask):
    """Text as the golden has it; its calls are as the parser of calls has them, which other tests look at."""
    ((thinking, content, calls, _, _),), n_prompt, n_generated = ask.right
    text = ask.golden["text"].removesuffix("<|im_end|>")
    assert (n_prompt, n_generated) == (len(ask.golden["prompt_ids"]), len(ask.golden["ids"])), ask.name
    assert calls or text.split("</think>")[-1].strip() == content and (thinking or "") in text, (ask.name, thinking, content)


def play_alone(port, asks):
    """Learns the right answers: asked whole and as a stream, nobody else there."""
    c = Client(port)
    for a in asks:
        a.right = c.whole(a)
        if a.streams:
            a.right_streamed = c.streamed(a)
        if a.golden:
            check_golden(a)
    c.close()
    return c


def one(c, asks, rng, strict):
    if rng.random() < 0.08:
        c.leave(rng)
        return
    a = rng.choices(asks, [a.weight for a in asks])[0]
    stream = a.streams and rng.random() < 0.5
    got, right = (c.streamed(a), a.right_streamed) if stream else (c.whole(a), a.right)
    if strict or not a.exact:
        assert got == right, f"{a.name}, {'streamed' if stream else 'whole'}: expected\n{right}\nand it said\n{got}"
    if rng.random() < 0.1:
        c.close()


def crowd(port, asks, seconds, strict, clients=64, seed=1):
    """Their counts, and what went wrong, as text."""
    end, faults, cs = time.monotonic() + seconds, [], [Client(port) for _ in range(clients)]

    def live(i):
        rng = random.Random(f"{seed}/{i}")
        while time.monotonic() < end and len(faults) < 10:
            try:
                one(cs[i], asks, rng, strict)
            except Exception as e:
                faults.append(f"client {i}: {type(e).__name__}: {e}")
                cs[i].close()
        cs[i].close()

    threads = [threading.Thread(target=live, args=(i,)) for i in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return cs, faults
