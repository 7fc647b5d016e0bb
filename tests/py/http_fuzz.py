"""Hostile HTTP for `quarry-serve`: what a broken client, proxy or attacker puts on the wire.

A case is made from a seeded generator and played on a socket of its own. What comes back must be HTTP, and where our handlers wrote it
(X-Request-Id), JSON in the API's error form. Good requests among the cases (split, pipelined) must be answered as if alone."""
import errno
import json
import random
import re
import socket
import struct
import time

METHODS = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW", "get", "", "P\x00ST", "A" * 3000, "POST\tX", "\u00e9"]
PATHS = ["/v1/chat/completions", "/v1/completions", "/chat/completions", "/v1/models", "/v1/models/", "/v1/models/tiny", "/v1/models/%00", "/health", "/tokenize", "/detokenize",
         "/apply-template", "/props", "/slots", "/metrics", "/openapi.json", "/", "*", "//", "/../../etc/passwd", "/%", "/%2", "/%zz", "/v1/%63hat/completions", "/\xff\xfe", "/?a=b&a",
         "http://x/health", "/v1/embeddings", "/health#x", "/" + "a" * 9000, "", " ", "/v1/models/" + "%41" * 2000, "/v1/messages", "/v1/responses"]
ASK = {"messages": [{"role": "user", "content": "What is the capital of Norway?"}], "enable_thinking": False, "temperature": 0, "max_tokens": 2}
DEEP = 3000


def head(lines):
    return b"\r\n".join(line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape") for line in lines) + b"\r\n\r\n"


def request(body=None, method="POST", path="/v1/chat/completions", *more):
    data = json.dumps(ASK if body is None else body).encode() if not isinstance(body, bytes) else body
    return head([f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(data)}", *more]) + data


def chunked(data, rng):
    out, at = b"", 0
    while at < len(data):
        n = rng.randrange(1, 40)
        piece = data[at:at + n]
        out += b"%x%s\r\n%s\r\n" % (len(piece), rng.choice([b"", b"", b";a=b"]), piece)
        at += n
    return out + b"0\r\n\r\n"


class Case:
    """pieces: what is sent, with a pause (seconds) after each; end: "wait", "half" (only the sending half ends), "close", "reset";
    answers: how many 200s must come (None: anything)."""

    def __init__(self, kind, *pieces, pause=0.0, end="wait", answers=None, patience=3.0, read=1 << 30):
        self.kind, self.pieces, self.pause, self.end, self.answers, self.patience, self.read = kind, pieces, pause, end, answers, patience, read


# --- kinds ------------------------------------------------------------------------------------------------------------


def truncated(rng):
    whole = request()
    return Case("truncated", whole[:rng.randrange(len(whole))], end=rng.choice(["close", "half", "reset"]))


def split(rng):
    whole, cuts = request(), sorted(rng.randrange(1, 200) for _ in range(rng.randrange(1, 12)))
    at = [0, *cuts, len(whole)]
    return Case("split", *(whole[a:b] for a, b in zip(at, at[1:]) if a < b), pause=rng.choice([0, 0.001, 0.02]), answers=1, patience=60)


def lines(rng):
    version = rng.choice(["HTTP/1.1", "HTTP/1.0", "HTTP/9.9", "HTTP/2", "", "HTTP/1.1 x", "http/1.1", "HTTP/1." + "1" * 300])
    body = rng.choice([b"", b"{}", json.dumps(ASK).encode()])
    return Case("line", head([f"{rng.choice(METHODS)} {rng.choice(PATHS)} {version}", "Host: x", f"Content-Length: {len(body)}"]) + body, end="half", patience=20)


def headers(rng):
    odd = rng.choice(["X" * 70000 + ": y", "X: " + "y" * 70000, "NoColon", ": empty", "X : y", " X: folded", "X: a\x00b", "X: a\rb", "X\x01: y", "Host: y", "Cookie: " + "a=b; " * 3000,
                      "Authorization: Bearer", "Authorization: " + "Bearer " * 500, "Content-Type: text/plain\x00", "Connection: close, close, upgrade", "Upgrade: h2c", "Expect: 200-maybe",
                      "Expect: 100-continue", "Range: bytes=0-1", "Accept-Encoding: " + "gzip," * 2000, "X: \udcff\udcfe", "Content-Encoding: gzip", "If-None-Match: *", "Origin: null",
                      "Access-Control-Request-Method: POST", "Transfer-Encoding: chunked", "Content-Length: 5", "\n\n", "X: y\nSmuggled: 1"])
    return Case("header", request(None, "POST", "/v1/chat/completions", *[odd] * rng.choice([1, 1, 1, 3, 200])), end="half", patience=20)


def chunks(rng):
    start = head(["POST /tokenize HTTP/1.1", "Host: x", "Transfer-Encoding: chunked"])
    data = json.dumps({"content": "a" * 50}).encode()
    bad = rng.choice([b"-1\r\n", b"fffffffffffffffff\r\nx", b"7fffffffffffffff\r\nx", b"ffffffff\r\nx", b"5\r\nab", b"2\r\nabcdef\r\n0\r\n\r\n", b"g\r\n", b"\r\n\r\n", b"0x5\r\nabcde\r\n",
                      b"5;" + b"e" * 70000 + b"\r\nabcde\r\n", b"0\r\nTrailer: " + b"x" * 70000, b"1\nx\n0\n\n", b"00000000000000000000001\r\nx\r\n", b" 1\r\nx\r\n", b"1" * 5000, b"0\r\n"])
    if rng.random() < 0.25:
        return Case("chunks", start + chunked(data, rng), answers=1, patience=30)
    return Case("bad chunks", start + bad, end=rng.choice(["half", "close"]))


def lengths(rng):
    n = rng.choice(["-1", "0", "1", "99999999999999999999999", "18446744073709551615", "9223372036854775807", "5, 5", "0x10", "١٢", " ", "1e3", "00000000005", "5\r\nContent-Length: 6"])
    return Case("length", head(["POST /tokenize HTTP/1.1", "Host: x", f"Content-Length: {n}"]) + b'{"content":"x"}', end=rng.choice(["half", "close"]))


def slow(rng):
    whole = request()[:rng.randrange(2, 12)]
    return Case("slow", *(whole[i:i + 1] for i in range(len(whole))), pause=0.03, end=rng.choice(["close", "reset"]))


def pipelined(rng):
    good = rng.randrange(1, 5)
    parts = [request(*rng.choice([(ASK,), ({"content": "x"}, "POST", "/tokenize")])) for _ in range(good)]
    return Case("pipelined", b"".join(parts), answers=good, patience=60)


def pipelined_bad(rng):
    parts = [rng.choice([request(), request(b"{"), request(ASK, "PUT"), request(ASK, "POST", "/nope"), b"junk\r\n\r\n", request()[:-5]]) for _ in range(rng.randrange(2, 6))]
    return Case("pipelined badly", b"".join(parts), end="half", patience=20)


def early(rng):
    ask = {**ASK, "max_tokens": 200, "stream": rng.random() < 0.5, "n": rng.choice([1, 1, 2])}
    return Case("early close", request(ask), pause=rng.random() * 0.1, end=rng.choice(["close", "reset"]))


def stops_reading(rng):
    return Case("stops reading", request({**ASK, "max_tokens": 100, "stream": True}), end=rng.choice(["close", "reset"]), read=rng.choice([1, 100, 400]), patience=20)


BYTES = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe6\xad", b"\x00", b"\x80" * 50, b"\xef\xbb\xbf", b"\xf0\x9f"]


def bad_text(rng):
    data = bytearray(json.dumps(ASK).encode())
    at = rng.randrange(len(data))
    data[at:at + rng.choice([0, 1])] = rng.choice(BYTES)
    return Case("bad text", request(bytes(data)), patience=30)


def deep(rng):
    n = rng.choice([100, 130, DEEP, 100000])
    nest = rng.choice([b"[" * n + b"]" * n, b'{"a":' * n + b"1" + b"}" * n, b"[" * n, b'{"messages":' + b"[" * n, b'{"messages":[{"role":"user","content":' + b"[" * n + b"]" * n + b"}]}",
                       b'{"chat_template_kwargs":' + b'{"a":' * n + b"1" + b"}" * n + b',"messages":[{"role":"user","content":"x"}]}'])
    return Case("deep", request(nest, "POST", rng.choice(["/v1/chat/completions", "/tokenize", "/apply-template", "/v1/completions"])), patience=30)


VALUES = [None, True, False, 0, -1, 1, 0.5, 1e308, -1e308, 1 << 70, "", "x", "0", "null", [], {}, [[]], [None], {"a": 1}, ["x"] * 300, "\u0000", "\ud7ff", "a" * 5000, [1] * 2000, {"type": "text"},
          [{"type": "text", "text": "x"}], {"include_usage": True}, "<|im_end|>", "{{ 7*7 }}", "{% for i in range(10**9) %}", "\ufdd0", "\u202e", 1e-320, "none", "auto", "required"]
FIELDS = ["model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repeat_penalty",
          "seed", "stop", "n", "logprobs", "top_logprobs", "logit_bias", "tools", "tool_choice", "parallel_tool_calls", "response_format", "enable_thinking", "reasoning_effort", "chat_template_kwargs",
          "user", "prompt", "echo", "suffix", "content", "tokens", "add_special", "parse_special", "with_pieces", "grammar", "json_schema", "continue_final_message", "add_generation_prompt",
          "thinking_budget_tokens", "ignore_eos", "metadata", "store", "best_of", "guided_json", "guided_regex", "guided_choice", "structured_outputs", "functions",
          "function_call", "reasoning_format", "thinking"]


def odd_fields(rng):
    body = {**ASK, "prompt": "x", "content": "x", "tokens": [1]}
    path = rng.choice(["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize", "/apply-template", "/v1/chat/completions/input_tokens"])
    for _ in range(rng.choice([1, 1, 2, 4])):
        body[rng.choice(FIELDS)] = rng.choice(VALUES)
    body["max_tokens"] = body["max_tokens"] if body["max_tokens"] is None or not isinstance(body["max_tokens"], (int, float)) or body["max_tokens"] < 3 else 2
    if body["max_tokens"] is None or body.get("max_completion_tokens"):
        body["max_completion_tokens"] = 2
    return Case("fields", request(body, "POST", path), patience=60)


def odd_schema(rng, depth=0):
    kinds = ["object", "array", "string", "integer", "number", "boolean", "null", ["string", "null"], "thing", 5]
    s = {"type": rng.choice(kinds)} if rng.random() < 0.8 else {}
    for _ in range(rng.randrange(4)):
        key = rng.choice(["properties", "items", "required", "enum", "const", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "anyOf", "oneOf", "allOf", "$ref",
                          "additionalProperties", "format", "description", "default", "not", "$defs", "prefixItems", "patternProperties", "if"])
        deeper = (lambda: odd_schema(rng, depth + 1)) if depth < 4 else dict
        s[key] = rng.choice([rng.choice(VALUES), {rng.choice("abc"): deeper()}, deeper(), [deeper(), deeper()], rng.choice([0, 3, 10**9, -1]), ["a", "b"], "#/$defs/a", "^(a|b)*c{2,9}$",
                             "(" * 200, "[a-", "a{99999}", "(?<x>a)", "\\p{L}+", "date-time"])
    return s


GRAMMARS = ['root ::= "a" | "b"', "root ::= root", "root ::= [^", 'root ::= "a" root', "root ::= x", "", "root", 'root ::= ("a"*)*', 'root ::= "' + "a" * 5000 + '"', "root ::= [a-z]{1,100000}",
            "root ::= " + "(" * 500 + '"a"' + ")" * 500, 'root ::= "\\xff"', 'root ::= .*', 'root ::= "가" [가-힣]+', "root ::= a\na ::= b\nb ::= a"]


def odd_form(rng):
    schema = odd_schema(rng)
    tools = [{"type": rng.choice(["function", "function", "custom"]), "function": {"name": rng.choice(["f", "f", "g", "", "a b", 5]), "parameters": odd_schema(rng)}} for _ in range(rng.randrange(1, 4))]
    more = rng.choice([{"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}}, {"response_format": {"type": "json_object", "schema": schema}},
                       {"json_schema": schema}, {"grammar": rng.choice(GRAMMARS)}, {"guided_regex": rng.choice(["a|b", "(", "[a-z]{3}", "(a*)*b"])}, {"guided_choice": ["a", "b", ""]},
                       {"tools": tools}, {"tools": tools, "tool_choice": rng.choice(["auto", "none", "required", {"type": "function", "function": {"name": "f"}}, 5])}])
    return Case("form", request({**ASK, "max_tokens": 3, "stream": rng.random() < 0.3, **more}, "POST", rng.choice(["/v1/chat/completions", "/v1/chat/completions", "/apply-template"])), patience=90)


def agents(rng):
    path = rng.choice(["/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/v1/responses/input_tokens"])
    body = {"model": "tiny", "max_tokens": 2, "max_output_tokens": 2, "messages": ASK["messages"], "input": rng.choice(["hi", ASK["messages"], *VALUES])}
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        body[rng.choice(["system", "messages", "tools", "tool_choice", "thinking", "stop_sequences", "metadata", "stream", "instructions", "reasoning", "text", "previous_response_id", "include", "input",
                         "temperature", "top_p", "truncation", "store", "max_output_tokens", "max_tokens", "parallel_tool_calls"])] = rng.choice(VALUES)
    for name in ("max_tokens", "max_output_tokens"):
        if isinstance(body[name], (int, float)) and body[name] > 3:
            body[name] = 2
    if rng.random() < 0.5:
        body["messages"] = [{"role": rng.choice(ROLES[:4]), "content": rng.choice([*VALUES, [{"type": rng.choice(["text", "tool_use", "tool_result", "thinking", "image", "document", "x"]), "text": "x",
                            "id": rng.choice(VALUES), "name": "f", "input": rng.choice(VALUES), "content": rng.choice(VALUES), "tool_use_id": "1"}]])} for _ in range(rng.randrange(1, 4))]
    return Case("agents", request(body, "POST", path), patience=90)


ROLES = ["user", "system", "assistant", "tool", "developer", "function", "", "king", None, 5, "user\n"]


TEXTS = ["hi", "안녕 👩‍👩‍👧‍👦", "x /no_think", "/think", "<think>\n</think>", "<|im_end|>\n<|im_start|>system\n", "<tool_call>\n<function=f>", "{{ messages }}", "\ufdd0", "\u202e\u0301", "",
         [{"type": "text", "text": "a"}, {"type": "text", "text": ""}], "a" * 3000, "\r\n\t", "\U000e0001"]


def odd_messages(rng):
    messages = [{"role": "user", "content": "hi"}] * rng.choice([0, 1, 1])
    for _ in range(rng.randrange(1, 7)):
        m = {"role": rng.choice(ROLES if rng.random() < 0.05 else ROLES[:4]), "content": rng.choice(VALUES if rng.random() < 0.1 else TEXTS)}
        if rng.random() < 0.1:
            m["tool_calls"] = rng.choice([VALUES[rng.randrange(len(VALUES))], [{"id": "1", "type": "function", "function": {"name": rng.choice(VALUES), "arguments": rng.choice(VALUES)}}]])
        if rng.random() < 0.1:
            m[rng.choice(["reasoning_content", "name", "tool_call_id", "refusal", "audio"])] = rng.choice(VALUES)
        messages.append(m)
    return Case("messages", request({**ASK, "messages": messages, "chat_template_kwargs": rng.choice([{}, {}, {rng.choice(FIELDS): rng.choice(VALUES)}])}), patience=60)


def noise(rng):
    data = rng.choice([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(200), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rng.randbytes(30), rng.randbytes(rng.randrange(1, 3000)), b"\r\n" * 500,
                       b"\n", b"\x00" * 1000, b"SSH-2.0-x\r\n", b"GET / HTTP/1.1\r\n" + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"])
    return Case("noise", data, end=rng.choice(["half", "close"]))


def flipped(rng):
    data = bytearray(request(ASK, *rng.choice([("POST", "/v1/chat/completions"), ("POST", "/tokenize"), ("GET", "/v1/models")])))
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(data))
        what = rng.randrange(4)
        if what == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            data[at:at] = bytes([rng.randrange(256)])
        elif what == 2:
            del data[at:at + rng.randrange(1, 9)]
        else:
            to = rng.randrange(len(data) + 1)
            data[to:to] = data[at:at + rng.randrange(1, 60)]
        data = data or bytearray(b"x")
    return Case("flipped", bytes(data), end="half", patience=20)


def large(rng):
    word = rng.choice(["a", "\n", " ", "한", "<think>", "\u0301", "0"])
    ask = {**ASK, "messages": [{"role": "user", "content": word * rng.choice([1000, 20000])}], "max_tokens": 1}
    return Case("large", request(ask, "POST", rng.choice(["/apply-template", "/tokenize", "/v1/chat/completions/input_tokens"])), patience=60)


KINDS = [truncated, split, lines, lines, headers, headers, chunks, lengths, slow, pipelined, pipelined_bad, early, stops_reading, bad_text, deep, odd_fields, odd_fields, odd_fields, odd_messages,
         odd_messages, noise, flipped, flipped, flipped, large, odd_form, odd_form, agents]


def make(seed, i):
    rng = random.Random(f"{seed}/{i}")
    return rng.choice(KINDS)(rng)


# --- playing ----------------------------------------------------------------------------------------------------------


def end_sending(s, how):
    if how == "reset":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if how == "half":
        s.shutdown(socket.SHUT_WR)


def read_answer(s, case):
    """All that comes within the case's patience: until the end, or enough answers."""
    got, end = b"", time.monotonic() + case.patience
    s.settimeout(0.25)
    while time.monotonic() < end and len(got) < case.read:
        try:
            piece = s.recv(min(65536, case.read))
        except TimeoutError:
            continue
        if not piece:
            break
        got += piece
        if case.end == "wait" and len(answers_of(got)) >= (case.answers or 1):
            break
    return got


def play(port, case):
    """What came back."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        try:
            for piece in case.pieces:
                s.sendall(piece)
                if case.pause:
                    time.sleep(case.pause)
            end_sending(s, case.end)
            if case.end in ("close", "reset") and case.read == 1 << 30:
                return b""
            return read_answer(s, case)
        except OSError as e:
            if e.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
                raise
            return b""


def answers_of(raw):
    """[(status, headers, body)] of whole answers; interim ones and a cut one at the end are left out."""
    found = []
    while raw:
        top, blank, rest = raw.partition(b"\r\n\r\n")
        if not blank:
            break
        status = re.match(rb"HTTP/1\.[01] (\d\d\d) [^\r\n]*(?:\r\n|$)", top)
        assert status, f"expected HTTP, found {top[:200]!r}"
        fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(b":") for line in top.split(b"\r\n")[1:])}
        if status[1][:1] == b"1":
            raw = rest
            continue
        if fields.get(b"transfer-encoding") == b"chunked":
            body, rest = unchunk(rest)
            if body is None:
                break
        else:
            n = int(fields.get(b"content-length", 0))
            if len(rest) < n and status[1] not in (b"204", b"304"):
                break  # cut, or an answer to HEAD
            body, rest = rest[:n], rest[n:]
        found.append((int(status[1]), fields, body))
        raw = rest
    return found


def unchunk(raw):
    body = b""
    while True:
        line, crlf, rest = raw.partition(b"\r\n")
        if not crlf:
            return None, b""
        n = int(line.split(b";")[0], 16)
        if len(rest) < n + 2:
            return None, b""
        body, raw = body + rest[:n], rest[n + 2:]
        if not n:
            return body, raw


def check(case, raw):
    """Asserts that what came back is in form; the statuses."""
    answers = answers_of(raw)
    for status, fields, body in answers:
        # The library itself answers 500 where one chunk's head is beyond its memory, 505 to another HTTP.
        assert status < 500 or status == 503 or b"x-request-id" not in fields, (case.kind, status, body)
        if b"x-request-id" in fields and status >= 400 and body:
            assert fields[b"content-type"] == b"application/json", (case.kind, fields)
            e = json.loads(body)["error"]  # Anthropic's has fewer members
            assert {"message", "type"} <= set(e) <= {"message", "type", "param", "code"} and e["message"], (case.kind, e)
    statuses = [status for status, _, _ in answers]
    if case.answers is not None:
        assert statuses == [200] * case.answers, (case.kind, statuses, raw[:500])
    return statuses
