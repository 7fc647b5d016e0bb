"""`quarry bench --url` against a server of this file, which keeps known times and counts, or misbehaves."""
import http.server
import json
import os
import pty
import re
import select
import subprocess
import threading
import time

import pytest

from programs import QUARRY, environment, quarry, refused

PIECES, GAP, WAIT = 8, 0.02, 0.05


class Fake(http.server.ThreadingHTTPServer):
    """fault: what it does instead of answering well. `asked` holds the bodies that came."""
    daemon_threads = True

    def __init__(self, fault=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault, self.asked, self.keys = fault, [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def whole(self, status, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.server.keys.append(self.headers.get("Authorization"))
        self.whole(200, {"data": [{"id": "fake" if self.server.fault != "steers" else "fa\x1b[2Jke\x9b"}]} if self.path == "/v1/models" else {})

    def event(self, data):
        self.wfile.write(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())

    def do_POST(self):
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(ask)
        fault = self.server.fault
        words = len(ask["messages"][0]["content"].split())
        if fault == "strict" and "ignore_eos" in ask:
            return self.whole(400, {"error": {"message": "Unknown parameter: ignore_eos"}})
        if fault == "full" and words > 200:
            return self.whole(400, {"error": {"message": "too long"}})
        if fault == "page":
            return self.whole(502, b"<html>Bad Gateway\nmore</html>")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if fault == "nothing":
            return self.event("[DONE]")
        time.sleep(WAIT)
        for i in range(PIECES):
            if fault == "cut" and i == 3:
                return
            if fault == "breaks" and i == 3:
                return self.event({"error": {"message": "out of luck"}})
            if i:
                time.sleep(GAP)
            self.event({"choices": [{"delta": {"reasoning_content" if i < 2 else "content": "x"}}]})
        if fault != "no usage":
            self.event({"choices": [], "usage": {"prompt_tokens": 10 + 2 * words, "completion_tokens": PIECES, "prompt_tokens_details": {"cached_tokens": 5}}})
        self.event("[DONE]")


def bench(server, *args):
    return quarry("bench", "--url", server.url, *args, timeout=60)


def test_times_and_counts_are_the_servers():
    server = Fake()
    done = bench(server, "-p", "100,400", "-n", str(PIECES), "-r", "3", "--json", "--api-key", "abc")
    assert done.returncode == 0, done.err
    rows = json.loads(done.stdout)
    assert [abs(row["prompt_tokens"] - n) <= 2 for row, n in zip(rows, (100, 400))] == [True, True]
    for row in rows:
        assert row["cached_tokens"] == 5 and row["model"] == "fake"
        assert WAIT * 1e3 <= row["time_to_first_token_ms"] < WAIT * 1e3 + 200
        assert 0.3 / GAP < row["decode_tokens_per_second"] <= 1 / GAP
    texts = [ask["messages"][0]["content"] for ask in server.asked]
    assert len(set(texts)) == len(texts) == 2 + 2 * 4                   # every prompt another
    assert len({text[:12] for text in texts}) > 6                       # from its beginning on
    assert server.keys[0] == "Bearer abc"
    assert all(ask["ignore_eos"] and ask["stream"] and ask["max_tokens"] in (2, PIECES) for ask in server.asked)


def test_the_same_prompt_when_cached_and_many_at_once():
    server = Fake()
    done = bench(server, "-p", "100", "-n", str(PIECES), "-r", "2", "--streams", "3", "--cached", "--json")
    assert done.returncode == 0, done.err
    (row,) = json.loads(done.stdout)
    texts = [ask["messages"][0]["content"] for ask in server.asked[2:]]
    assert len(texts) == 3 * 3 and len(set(texts)) == 3
    assert row["total_tokens_per_second"] > 1.5 * row["decode_tokens_per_second"]


def test_a_terminal_sees_what_is_measured():
    """On standard error alone, and only where somebody looks at it: not in a file, not with -q."""
    args = [QUARRY, "bench", "--url", Fake().url, "-p", "50,60", "-n", str(PIECES), "-r", "1"]
    for more, seen in ((["--json"], True), ([], True), (["-q"], False)):
        master, slave = pty.openpty()
        done = subprocess.run([*args, *more], stdout=subprocess.PIPE, stderr=slave, env=environment(), timeout=60)
        os.close(slave)
        told = b""
        while select.select([master], [], [], 0)[0]:
            try:
                told += os.read(master, 65536)
            except OSError:
                break
        os.close(master)
        assert done.returncode == 0 and b"run 1" not in done.stdout and b"\r" not in done.stdout
        assert (b"prompt 2 of 2, about 60 tokens: run 1 of 1" in told) == seen
        assert len(re.findall(rb"# prompt \d of 2, about \d+ tokens: done in [\d.]+ s\r\n", told)) == 2 * seen
    assert "run 1" not in bench(Fake(), "-p", "50", "-n", str(PIECES), "-r", "1").err


def test_servers_with_less():
    done = bench(Fake("strict"), "-p", "50", "-n", "99", "-r", "1")
    assert done.returncode == 0 and "refuses ignore_eos" in done.err and "ended before 99 tokens" in done.err
    done = bench(Fake("no usage"), "-p", "50", "-n", str(PIECES), "-r", "1")
    assert done.returncode == 0 and "sends no usage" in done.err
    done = bench(Fake("steers"), "-p", "50", "-n", str(PIECES), "-r", "1")
    assert done.returncode == 0 and done.stdout.startswith(b"fa?[2Jke? at http")
    done = bench(Fake("full"), "-n", "4", "-r", "1")
    assert done.returncode == 1                       # even the scale's second prompt is too long


@pytest.mark.parametrize("fault, said", [("page", "status 502: <html>Bad Gateway"), ("breaks", "the server broke off: out of luck"), ("nothing", "expected a stream of text"),
                                         ("cut", "the stream ended before the answer did")])
def test_what_goes_wrong_is_one_line(fault, said):
    refused(bench(Fake(fault), "-p", "50", "-r", "1", "--json"), said)


def test_usage():
    refused(quarry("bench", "--url", "localhost:1"), "expected http://HOST:PORT")
    refused(quarry("bench", "--url", "http://127.0.0.1:1"), "/v1/models")
    refused(quarry("bench", "--url", "http://127.0.0.1:1", "-p", "3"), "-p", status=2)
    refused(quarry("bench", "--url", "http://127.0.0.1:1", "--trace"), "--trace", status=2)
