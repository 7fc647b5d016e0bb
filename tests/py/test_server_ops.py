"""What operators of `quarry-serve` meet: keys, CORS, limits of size, time and number, logs, refusals of what is not there."""
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest

from programs import BUILD, SOURCE, environment
from test_server import (LONG, NORWAY, OSLO, USER, Server, alive, is_error, joined, program, raw_exchange, read_all, refused, request_bytes, send, server, start, stream_of,
                         until)  # noqa: F401

jsonschema = pytest.importorskip("jsonschema", reason="needs PyPI jsonschema")


def status_of(raw):
    return int(raw.split(b" ", 2)[1])


def slowly(s, data, step=0.2, seconds=20):
    """Sends byte by byte until the server has had enough; what it said."""
    end = time.monotonic() + seconds
    s.settimeout(step)
    got = b""
    for at in range(len(data)):
        assert time.monotonic() < end, "expected it to be cut off"
        try:
            s.sendall(data[at:at + 1])
            piece = s.recv(65536)
            if not piece:
                return got
            got += piece
        except TimeoutError:
            continue
        except OSError:
            return got
    raise AssertionError("all was taken")


# --- keys -------------------------------------------------------------------------------------------------------------


def test_keys_of_the_command_line_and_a_file(start, tmp_path):
    path = tmp_path / "keys"
    path.write_text("# the team\nin-the-file\n")
    s = start("--api-key", "one", "--api-key", "two", "--api-key-file", path)
    for key in ("one", "two", "in-the-file"):
        assert s.get("/v1/models", headers={"Authorization": f"Bearer {key}"})[0] == 200
        assert s.get("/v1/models", headers={"X-Api-Key": key})[0] == 200
    for key in ("on", "one ", "three", "# the team", ""):
        is_error(*s.get("/v1/models", headers={"X-Api-Key": key}), 401)
    # The right key in either place is enough.
    assert s.get("/v1/models", headers={"Authorization": "Bearer wrong", "X-Api-Key": "two"})[0] == 200
    assert s.get("/health")[0] == 200 and s.ask("OPTIONS", "/v1/chat/completions")[0] == 204
    s.stop()
    assert not any(key in s.err for key in ("one\n", '"two"', "in-the-file"))


def test_keys_that_are_none(program, tmp_path):
    refused(program, "-m", "x", "--api-key", "", status=2)
    refused(program, "-m", "x", *["--api-key", "k"] * 65, status=2)


# --- other sites' pages -----------------------------------------------------------------------------------------------


def test_cors_is_off_unless_asked_for(server):
    for method, path in (("GET", "/v1/models"), ("OPTIONS", "/v1/chat/completions"), ("GET", "/nope")):
        headers = server.ask(method, path, headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"})[1]
        assert not [h for h in headers if h.lower().startswith("access-control")]


def test_cors_for_the_origins_that_are_named(start):
    s = start("--cors", "http://localhost:3000,https://chat.example", "--api-key", "k")
    good = {"Origin": "https://chat.example"}
    asks = {**good, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, x-stainless-os"}
    status, headers, _ = s.ask("OPTIONS", "/v1/chat/completions", headers=asks)
    assert status == 204 and headers["Access-Control-Allow-Origin"] == "https://chat.example" and headers["Vary"] == "Origin"
    assert "POST" in headers["Access-Control-Allow-Methods"] and "x-stainless-os" in headers["Access-Control-Allow-Headers"]
    # A refusal can be read by the page too.
    status, headers, raw = s.get("/v1/models", headers=good)
    is_error(status, headers, raw, 401)
    assert headers["Access-Control-Allow-Origin"] == "https://chat.example"
    for other in ("https://chat.example.evil", "http://chat.example", "null", "https://chat.example:443"):
        assert "Access-Control-Allow-Origin" not in s.get("/health", headers={"Origin": other})[1]


def test_cors_for_all(start):
    s = start("--cors", "*", "--host", "0.0.0.0")
    assert s.get("/health", headers={"Origin": "http://a.example"})[1]["Access-Control-Allow-Origin"] == "*"
    s.stop()
    assert "any page a browser shows" in s.err


@pytest.mark.parametrize("origins", ["", "chat.example", "http://", "http://a/", "http://a,", "null", "http://A.example", "http://a b"])
def test_origins_that_are_none(program, origins):
    refused(program, "-m", "x", "--cors", origins, status=2)


def test_a_page_of_another_site_cannot_have_us_work(server):
    """Browsers send a form or text/plain across sites without asking first."""
    cross = {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example", "Content-Type": "text/plain"}
    is_error(*server.ask("POST", "/v1/chat/completions", NORWAY, headers=cross), 403)
    assert server.ask("POST", "/v1/chat/completions", NORWAY, headers={**cross, "Sec-Fetch-Site": "same-origin"})[0] == 200
    assert server.get("/health", headers=cross)[0] == 200


# --- what is not there ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path,word", [("/v1/embeddings", "embeddings"), ("/embeddings", "embeddings"), ("/v1/rerank", "reranking"), ("/v1/audio/speech", "audio"),
                                       ("/v1/images/generations", "images"), ("/v1/files", "files"), ("/v1/batches", "batches"), ("/api/chat", "Ollama"),
                                       ("/v1/moderations", "moderation"), ("/v1/fine_tuning/jobs", "fine-tuning"), ("/v1/assistants", "assistants")])
def test_endpoints_of_others_are_refused_with_the_reason(server, path, word):
    e = is_error(*server.ask("POST", path, {"model": "tiny", "input": "x"}), 404)
    assert e["code"] == "unsupported_endpoint" and word in e["message"]


def test_every_answer_has_an_id_of_its_own(server):
    ids = [server.get(path)[1]["X-Request-Id"] for path in ("/health", "/nope", "/v1/models")]
    assert len(set(ids)) == 3 and all(i.startswith("req-") for i in ids)


# --- size, time, number -----------------------------------------------------------------------------------------------


def test_a_body_larger_than_allowed(start):
    s = start("--max-body", 1)
    large = {"messages": USER, "user": "x" * (3 << 19)}  # a client that writes it whole before it reads
    is_error(*s.ask("POST", "/v1/chat/completions", large), 413)
    chunks = b"".join(b"10000\r\n" + b" " * 65536 + b"\r\n" for _ in range(17))
    got = raw_exchange(s, b"POST /tokenize HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    assert status_of(got) == 413
    alive(s)


def test_headers_beyond_measure(server):
    lines = b"".join(b"X-%d: y\r\n" % i for i in range(200))
    assert status_of(raw_exchange(server, b"GET /health HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n")) == 431
    for huge in (b"X-A: " + b"y" * 200000, b"Y" * 200000 + b": x"):
        assert 400 <= status_of(raw_exchange(server, b"GET /health HTTP/1.1\r\nHost: x\r\n" + huge + b"\r\n\r\n")) < 500
    assert 400 <= status_of(raw_exchange(server, b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")) < 500
    alive(server)


LENGTHS = [b"Content-Length: -1", b"Content-Length: +5", b"Content-Length: 5 5", b"Content-Length: 0x5", b"Content-Length: 99999999999999999999", b"Content-Length: ",
           b"Content-Length: 5\r\nContent-Length: 5", b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked",
           b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: identity"]


@pytest.mark.parametrize("lines", LENGTHS, ids=repr)
def test_lengths_that_are_none(server, lines):
    got = raw_exchange(server, b"POST /tokenize HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n\r\n{}   ")
    assert 400 <= status_of(got) < 500, got
    alive(server)


def test_who_sends_too_slowly_is_cut_off(start):
    s = start("--header-time", 1, "--body-time", 2)
    line, head = b"POST /tokenize HTTP/1.1\r\n", b"Host: x\r\nContent-Length: 1000\r\n\r\n"
    connect = lambda: socket.create_connection(("127.0.0.1", s.port), timeout=20)
    with connect() as silent, connect() as request_line, connect() as headers, connect() as body:
        headers.sendall(line)
        body.sendall(line + head)
        assert slowly(request_line, line * 10) == b""
        got = slowly(headers, b"X-Slow: " + b"a" * 1000)
        assert status_of(got) == 408 and b"request_timeout" in got
        assert status_of(slowly(body, b" " * 1000)) == 408
        silent.settimeout(10)
        assert silent.recv(100) == b""
    alive(s)
    s.stop()
    assert re.search(r"POST /tokenize 408 ", s.err)


def test_large_bodies_do_not_fill_the_memory(start):
    """Twelve that would send four MiB each, where eight times four may be held; small requests go on."""
    s = start("--max-body", 4, "--body-time", 60)
    half = b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (4 << 20)
    half += b" " * ((4 << 20) - 10)
    many = [socket.create_connection(("127.0.0.1", s.port), timeout=60) for _ in range(12)]
    for c in many:
        c.sendall(half)
    alive(s)
    for c in many:
        c.sendall(b" " * 10)
    statuses = sorted(status_of(c.recv(65536)) for c in many)
    assert statuses.count(503) >= 4 and set(statuses) == {400, 503}, statuses
    status, _, raw = s.ask("POST", "/tokenize", b" " * (3 << 20))  # there is room again
    assert status == 400
    for c in many:
        c.close()


def test_more_connections_than_there_is_room_for(start):
    s = start("--queue", 1)
    idle = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(140)]
    time.sleep(0.3)
    status, headers, raw = s.ask("POST", "/v1/chat/completions", NORWAY)
    e = is_error(status, headers, raw, 429)
    assert e["code"] == "too_many_connections" and int(headers["Retry-After"]) >= 1 and headers["Connection"] == "close"
    assert s.get("/health")[0] == 200
    end = time.monotonic() + 10
    while s.ask("POST", "/v1/chat/completions", NORWAY)[0] != 200:  # the idle ones give way
        assert time.monotonic() < end
        time.sleep(0.2)
    for i in idle:
        i.close()


def test_a_prompt_that_takes_long_to_write_holds_up_nobody(start):
    s = start("-c", 32768, "--parallel", 1)
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
    long = [*NORWAY["messages"], *[call, {"role": "tool", "content": "y", "tool_call_id": "a"}] * 12000]
    told = []
    thread = threading.Thread(target=lambda: told.append(s.chat(messages=long)))
    thread.start()
    time.sleep(0.3)
    assert s.chat(**NORWAY)[1]["choices"][0]["message"]["content"] == OSLO and thread.is_alive()
    thread.join()
    assert told[0][0] == 400 and told[0][1]["error"]["code"] == "context_length_exceeded"


def test_what_cannot_fit_is_refused_before_it_takes_time(server):
    begin = time.monotonic()
    for messages in (NORWAY["messages"] * 40000, [{"role": "user", "content": [{"type": "text", "text": ""}] * 40000}]):
        assert is_error(*server.ask("POST", "/v1/chat/completions", {"messages": messages}), 400)["code"] == "context_length_exceeded"
    is_error(*server.ask("POST", "/v1/chat/completions", {**NORWAY, "chat_template_kwargs": {f"k{i}": i for i in range(60000)}}), 400)
    assert time.monotonic() - begin < 20


def ticks(process):
    """Processor time it took, in hundredths of a second."""
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))


def answers(s):
    try:
        return s.ask("POST", "/v1/chat/completions", NORWAY)[0] == 200
    except OSError:  # it was one too many, and still writing
        return False


def test_fewer_files_than_connections_would_need(start):
    """Who comes when no file is left would have the listening thread try again without a pause."""
    limited = start("--queue", 200, files=64)
    idle = [socket.create_connection(("127.0.0.1", limited.port)) for _ in range(70)]
    time.sleep(0.3)
    before = ticks(limited.process)
    time.sleep(1)
    assert ticks(limited.process) - before < 20
    end = time.monotonic() + 20
    # Whoever waits is let in once idle ones gave way.
    while not answers(limited):
        assert time.monotonic() < end
        time.sleep(0.2)
    for i in idle:
        i.close()


# --- logs -------------------------------------------------------------------------------------------------------------

SECRET = {**NORWAY, "temperature": 0, "user": "my-secret"}


def test_the_log_has_a_line_a_request_and_no_text(start):
    s = start()
    s.ask("POST", "/v1/chat/completions?token=abc", SECRET)
    s.ask("POST", "/v1/chat/completions", {**SECRET, "stream": True})
    s.get("/nope")
    s.stop()
    assert len(re.findall(r"^# POST /v1/chat/completions 200 [0-9.]+ s: prompt \d+", s.err, re.M)) == 2
    assert re.search(r"^# GET /nope 404 ", s.err, re.M)
    assert not any(word in s.err for word in ("Norway", "Oslo", "my-secret", "abc"))


def test_the_text_is_logged_when_asked_for(start):
    s = start("--log-text")
    for stream in (False, True):
        s.ask("POST", "/v1/chat/completions", {**SECRET, "stream": stream})
    s.stop()
    assert len(re.findall(r"^# req-\S+ body: .*capital of Norway", s.err, re.M)) == 2
    answers = re.findall(r"^# req-\S+ answer: (.*)$", s.err, re.M)
    assert OSLO in json.loads(json.loads(answers[0]))["choices"][0]["message"]["content"] and "[DONE]" in answers[1]


def test_the_log_as_json(start):
    s = start("-q", "--log-json", "--log-text")
    s.ask("POST", "/v1/chat/completions", SECRET)
    s.get("/nope%0Ainjected%ff")
    s.stop()
    lines = [json.loads(line) for line in s.err.splitlines()]
    assert any(line.get("message") == "ready" for line in lines)
    asked = next(line for line in lines if line.get("path") == "/v1/chat/completions")
    assert asked["status"] == 200 and asked["method"] == "POST" and asked["client"] == "127.0.0.1" and asked["seconds"] > 0 and asked["body_bytes"] > 10
    assert [line["id"] for line in lines if "body" in line][0] == asked["id"]
    assert next(line for line in lines if line.get("status") == 404)["path"].startswith("/nope?injected")
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines)


# --- the description --------------------------------------------------------------------------------------------------


def description(server):
    return json.loads(server.get("/openapi.json")[2])


def operations(described):
    """(method, path) of the description, references followed."""
    for path, item in described["paths"].items():
        if "$ref" in item:
            item = described["components"]["pathItems"][item["$ref"].rsplit("/", 1)[1]]
        for method, operation in item.items():
            yield method.upper(), path, operation


def routes():
    """The table in main.c."""
    table = (SOURCE / "server/main.c").read_text().split("http_route routes[] = {")[1].split("};")[0]
    return {(method, path) for method, path in re.findall(r'{"(\w+)", "([^"]+)"', table)}


def test_the_description_has_every_route_and_no_other(server):
    described = {(method, re.sub(r"\{\w+\}$", "*", path)) for method, path, _ in operations(description(server))}
    assert described == routes() and len(described) > 10


def test_the_description_is_one(server):
    text = description(server)
    assert text["openapi"].startswith("3.1.")
    for ref in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(text)):
        at = text
        for name in ref.split("/"):
            at = at[name]
    jsonschema.Draft202012Validator.check_schema(text["components"]["schemas"]["ChatRequest"])


def test_the_server_has_what_is_described(server):
    for method, path, operation in operations(description(server)):
        status, headers, _ = server.ask("OPTIONS", path.replace("{model}", "tiny").replace("{id}", "0"))
        assert status == 204 and method in headers["Allow"], path
        assert operation["summary"] and "200" in operation["responses"]


def test_answers_are_as_described(server):
    """One good and one bad request of every operation, held against its schemas."""
    text = description(server)
    bodies = {"/tokenize": {"content": "쀍 a", "with_pieces": True}, "/detokenize": {"tokens": [1, 2]}, "/v1/completions": {"prompt": "a", "max_tokens": 2},
              "/completions": {"prompt": "a", "max_tokens": 2}}

    def check(path, operation, status, headers, raw):
        response = operation["responses"][str(status)]
        if "$ref" in response:
            response = text["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        kind = headers["Content-Type"].split(";")[0]
        schema = {**response["content"][kind]["schema"], "components": text["components"]}
        if kind == "application/json":
            jsonschema.validate(json.loads(raw), schema)

    for method, path, operation in operations(text):
        where = path.replace("{model}", "tiny").replace("{id}", "0")
        check(path, operation, *server.ask(method, where, {**bodies.get(path, {**NORWAY, "max_tokens": 3})} if method == "POST" else None))
        if method == "POST":
            check(path, operation, *server.ask(method, where, {"stream": 5, "content": 5}))
    check("/v1/models/{model}", text["paths"]["/v1/models/{model}"]["get"], *server.get("/v1/models/nope"))


# --- properties, templates, tokens ------------------------------------------------------------------------------------


def test_props(server):
    p = json.loads(server.get("/props")[2])
    assert p["model_alias"] == "tiny" and p["model_path"] == "tiny.gguf" and p["default_generation_settings"]["n_ctx"] == 32768
    assert p["eos_token"] == "<|im_end|>" and "<|im_start|>" in p["chat_template"] and p["build_info"].startswith("quarry ")
    assert p["default_generation_settings"]["params"]["top_k"] == 20 and p["modalities"] == {"vision": False, "audio": False}
    m = p["memory"]
    assert m["taken"] is None and m["planned"] == sum(v for k, v in m.items() if k not in ("planned", "taken"))   # a CPU does not tell
    assert m["kv_pages"] == 4 * 2 * 2 * 32768 * 256 * 2 * 2 and min(m["weights"], m["states"], m["checkpoints"], m["scratch"]) > 1 << 16, m


def test_a_context_beyond_the_trained_one_is_served_when_asked_for(start):
    s = start("-c", 40000, "--rope-scaling", "yarn", "--parallel", 1)
    assert json.loads(s.get("/props")[2])["default_generation_settings"]["n_ctx"] == 40000
    status, r = s.chat(messages=[{"role": "user", "content": "1 2 3 4 5 6 7 8 9 " * 4000}], max_tokens=1)
    assert status == 400 and "40000" in r["error"]["message"]


def test_the_template_is_applied_as_a_completion_does(server):
    chat = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "안녕 👩‍👩‍👧‍👦"}], "enable_thinking": False}
    got = json.loads(server.ask("POST", "/apply-template", chat)[2])
    assert got["prompt"].startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n안녕 👩‍👩‍👧‍👦<|im_end|>\n<|im_start|>assistant\n")
    assert got["n_tokens"] == server.chat(**chat, max_tokens=1)[1]["usage"]["prompt_tokens"]
    assert json.loads(server.ask("POST", "/v1/chat/completions/input_tokens", chat)[2])["input_tokens"] == got["n_tokens"]
    assert len(json.loads(server.ask("POST", "/tokenize", {"content": got["prompt"]})[2])["tokens"]) == got["n_tokens"]
    is_error(*server.ask("POST", "/apply-template", {"messages": 5}), 400)
    e = is_error(*server.ask("POST", "/apply-template", {"messages": [{"role": "tool", "content": "x"}]}), 400)
    assert "tiny.gguf" in e["message"] and str(SOURCE) not in e["message"]  # our folders are nobody's business
    is_error(*server.ask("POST", "/v1/chat/completions/input_tokens", {**chat, "temperature": "hot"}), 400)


def test_pieces_of_tokens(server):
    text = "Hello 쀍<|im_end|>"
    tokens = json.loads(server.ask("POST", "/tokenize", {"content": text, "with_pieces": True})[2])["tokens"]
    plain = json.loads(server.ask("POST", "/tokenize", {"content": text})[2])["tokens"]
    assert [t["id"] for t in tokens] == plain
    pieces = [t["piece"].encode() if isinstance(t["piece"], str) else bytes(t["piece"]) for t in tokens]
    assert b"".join(pieces).decode() == text and any(isinstance(t["piece"], list) for t in tokens)


# --- metrics ----------------------------------------------------------------------------------------------------------


def metrics(server, **more):
    """{name{labels}: value} of an exposition that is well formed: each name has its help and type first, and stands together."""
    status, headers, raw = server.get("/metrics", **more)
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    told, values, now = set(), {}, None
    for line in raw.decode().splitlines():
        if line.startswith("# HELP "):
            now = line.split()[2]
            assert now.startswith("quarry_") and now not in told and len(line.split()) > 4
            told.add(now)
        elif line.startswith("# TYPE "):
            assert line.split()[2] == now and line.split()[3] in ("counter", "gauge", "histogram")
        else:
            m = re.fullmatch(r'([a-z_]+)((?:\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+\})?) (\S+)', line)
            assert m and m[1] in (now, f"{now}_bucket", f"{now}_sum", f"{now}_count"), line
            assert m[1] + m[2] not in values
            values[m[1] + m[2]] = float(m[3])
    return values


def http_counted(m):
    """Requests for answers or for nothing there is. One counts once its answer is sent, which its client may know before the counter does."""
    return sum(v for k, v in m.items() if k.startswith("quarry_http_requests_total{") and ('"/v1/chat/completions"' in k or 'path=""' in k))


def test_metrics_count_what_happens(start):
    s = start("--alias", 'a "b" \\c')
    before = metrics(s)
    usage = s.chat(**NORWAY)[1]["usage"]
    s.chat(**NORWAY, max_tokens=2)
    s.ask("POST", "/v1/chat/completions", {"messages": 5})
    s.get("/nope")
    until(lambda: http_counted(metrics(s)) == http_counted(before) + 4)
    now = metrics(s)
    grown = lambda name: now[name] - before.get(name, 0)
    assert grown('quarry_answers_total{outcome="stop"}') == 1 and grown('quarry_answers_total{outcome="length"}') == 1
    assert grown("quarry_prompt_tokens_total") == 2 * usage["prompt_tokens"] and grown("quarry_generated_tokens_total") == usage["completion_tokens"] + 2
    assert grown("quarry_prompt_seconds_total") > 0 and grown("quarry_generated_seconds_total") > 0 and now["quarry_generated_tokens_per_second"] > 0
    route = 'method="POST",path="/v1/chat/completions"'
    assert grown('quarry_http_requests_total{%s,status="200"}' % route) == 2 and grown('quarry_http_requests_total{%s,status="400"}' % route) == 1
    assert grown('quarry_http_requests_total{method="",path="",status="404"}') == 1
    buckets = [v for k, v in now.items() if k.startswith("quarry_http_request_seconds_bucket{" + route)]
    assert buckets == sorted(buckets) and buckets[-1] == now["quarry_http_request_seconds_count{%s}" % route] == 3
    assert now["quarry_ready"] == 1 and now["quarry_requests_running"] == 0 and now["quarry_load_progress"] == 1
    assert [k for k in now if k.startswith('quarry_info{') and 'model="a \\"b\\" \\\\c"' in k]


def test_the_cache_says_what_it_did(start):
    """A prompt is new, is asked again, goes another way; the counts, the log and the answers' usage tell the same."""
    s = start("--parallel", 1)
    system = {"role": "system", "content": "You know every capital of the world and answer in one short sentence. " * 8}
    ask = lambda text, head=system: s.chat(messages=[head, {"role": "user", "content": text}], enable_thinking=False, max_tokens=4)[1]["usage"]
    cached = [ask(text)["prompt_tokens_details"]["cached_tokens"] for text in ("Norway?", "Norway?", "Norway, please?")]
    ask("Norway?", {"role": "system", "content": "Norwegen? " * 60})
    m = metrics(s)
    count = lambda result, reason: m['quarry_prompt_cache_total{result="%s",reason="%s"}' % (result, reason)]
    hits = sum(count("hit", x) for x in ("slot", "device", "host", "disk"))
    assert cached[0] == 0 and hits == sum(c > 0 for c in cached) == 2 and cached[2] > 140  # the system message, though the question is another
    assert count("miss", "empty") == 1 and count("miss", "different") == 1 and count("miss", "busy") == 0
    assert count("miss", "no_place") == count("miss", "evicted") == 0
    assert m["quarry_prompt_cached_tokens_total"] == sum(cached) and m["quarry_prompt_shared_tokens_total"] > sum(cached)
    assert m["quarry_first_token_seconds_count"] == m["quarry_wait_seconds_count"] == 4 and m["quarry_first_token_seconds_sum"] > 0
    s.stop()
    assert re.search(r"prompt \d+ \(0 cached: empty\)", s.err)
    assert re.search(r"\(0 cached: different; token \d+ differs, in message 1 \(system\)\)", s.err)
    assert "Norwegen" not in s.err


def test_slots_show_what_runs(start):
    s = start("--parallel", 2)
    slots = lambda: json.loads(s.get("/slots")[2])
    assert [x["is_processing"] for x in slots()] == [False, False] and slots()[0]["id"] == 0
    c = send(s, {**LONG, "stream": True})
    until(lambda: any(x["is_processing"] and x["completion_tokens"] > 3 for x in slots()))
    busy = next(x for x in slots() if x["is_processing"])
    assert busy["prompt_tokens"] > 5 and busy["max_tokens"] == LONG["max_tokens"] and busy["seconds"] > 0 and busy["tokens_held"] > busy["prompt_tokens"]
    c.close()
    until(lambda: not any(x["is_processing"] for x in slots()), 5)
    assert json.loads(s.get("/props")[2])["total_slots"] == 2


def test_metrics_need_a_key_and_no_model(start):
    s = start("--api-key", "k", wait=False)
    is_error(*s.get("/metrics"), 401)
    assert metrics(s, headers={"X-Api-Key": "k"})["quarry_ready"] in (0, 1)


# --- as a service -----------------------------------------------------------------------------------------------------


def test_a_service_manager_is_told(program, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(60)
        s = Server(program, wait=False, env=environment(NOTIFY_SOCKET=path))
        assert manager.recv(100) == b"READY=1" and s.get("/health")[0] == 200
        assert s.stop() == 0
        assert manager.recv(100) == b"STOPPING=1"


def test_whoever_is_connected_while_it_ends_is_told(start):
    """A connection that stays open is asked for /health by whoever balances load."""
    s = start()
    kept = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
    ask = lambda method, path, body=None: (kept.request(method, path, body), kept.getresponse())[1]
    assert json.loads(ask("GET", "/health").read())["status"] == "ok"
    running = send(s, {**LONG, "max_tokens": 3000, "stream": True})
    until(lambda: s.counts()["running"] == 1)
    s.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    r = ask("GET", "/health")
    assert r.status == 503 and json.loads(r.read())["status"] == "ending" and r.headers["Connection"] == "close"
    assert b"[DONE]" in read_all(running) and s.process.wait(20) == 0


def test_the_unit_and_the_container_file_are_true(program):
    """Programs and options in dist/ are those that there are (its packages: test_dist.py)."""
    text = subprocess.run([BUILD / program, "--help"], capture_output=True, text=True).stdout
    unit, container = ((SOURCE / "dist" / name).read_text() for name in ("quarry.service", "Containerfile"))
    for option in re.findall(r"(?<![\w-])--(?:host|port|api-key[a-z-]*|drain)\b", unit + container):
        assert re.search(rf"^  {option} ", text, re.M), option
    drain = int(re.search(r"lets requests go on \(default (\d+)\)", text)[1])
    assert int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]) > drain + 10
    if shutil.which("systemd-analyze"):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "quarry.service"
            path.write_text(unit.replace("/usr/local/bin/quarry-serve", str(BUILD / program)))
            done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
            assert done.returncode == 0 and "quarry.service" not in done.stderr, done.stderr


# --- loading and the first request (cases.md A5) ----------------------------------------------------------------------


def test_ready_means_ready(program, start, tmp_path):
    """Polled from the start without any kernel built: 503 with how far it is, then 200; the first request is as fast as a later one."""
    if program.endswith("san"):
        pytest.skip("needs one program: kernels are built anew, which takes seconds")
    s = start("--log-json", wait=False, env=environment(XDG_CACHE_HOME=str(tmp_path)))
    seen = []
    for _ in range(1200):
        status, headers, raw = s.get("/health")
        h = json.loads(raw)
        seen.append((h.get("progress", 1), h.get("stage")))
        if status == 200:
            break
        assert status == 503 and h["status"] == "loading" and 0 <= h["progress"] < 1 and h["error"]["code"] == "loading", h
        time.sleep(0.1)
    assert [p for p, _ in seen] == sorted(p for p, _ in seen) and {"kernels"} <= {stage for _, stage in seen}

    def took():
        begin = time.monotonic()
        assert s.chat(**NORWAY, max_tokens=4)[0] == 200
        return time.monotonic() - begin

    times = [took() for _ in range(10)]
    assert times[0] <= 2 * max(times[9], 0.01) + 0.05, times
    s.stop()
    loaded = next(line["message"] for line in map(json.loads, s.err.splitlines()) if line.get("message", "").startswith("loaded in "))
    assert all(f"{stage} " in loaded for stage in ("model", "kernels", "weights", "memory", "warm-up")), loaded


# --- streams that are silent (cases.md H11) ---------------------------------------------------------------------------


def test_a_long_prompt_does_not_look_dead(program, start):
    """Nor do our limits of a client's time cut it off: they end when the request is whole."""
    if program.endswith("san"):
        pytest.skip("needs one program: this reads 10000 tokens")
    s = start("--keep-alive", 1, "--header-time", 1, "--body-time", 1)
    ask = {"messages": [{"role": "user", "content": "The sea is blue today. " * 1500}], "max_tokens": 3, "temperature": 0, "stream": True}
    c = socket.create_connection(("127.0.0.1", s.port), timeout=60)
    begin, got, gaps, last = time.monotonic(), b"", [], time.monotonic()
    c.sendall(request_bytes(ask))
    while b"[DONE]" not in got:
        got += c.recv(65536)
        gaps.append(time.monotonic() - last)
        last = time.monotonic()
    c.close()
    assert b'"role":"assistant"' in got.split(b"\n\n")[0], "the head comes at once"
    assert max(gaps) < 3, gaps
    if time.monotonic() - begin < 2:
        pytest.skip("needs a machine where 10000 tokens take more than 2 s")
    assert b"\n: " in got
    stream = s.client().chat.completions.create(model="tiny", stream=True, **{k: v for k, v in ask.items() if k in ("messages", "max_tokens", "temperature")})
    assert [c.choices[0].finish_reason for c in stream][-1] == "length"


# --- stop strings (cases.md H5) ---------------------------------------------------------------------------------------


def test_a_stop_string_in_the_thinking(server):
    ask = {"messages": USER, "max_tokens": 60}
    thinking = server.chat(**ask)[1]["choices"][0]["message"]["reasoning_content"]
    stop = thinking[8:14]
    whole = server.chat(**ask, stop=[stop])[1]["choices"][0]
    assert whole["finish_reason"] == "stop" and whole["message"]["reasoning_content"] == thinking[:thinking.index(stop)] and not whole["message"]["content"]
    assert joined(stream_of(server, **ask, stop=[stop]), "reasoning_content") == whole["message"]["reasoning_content"]
