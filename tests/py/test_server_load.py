"""Sixty-four clients at once for a while (20 s; ten minutes with QUARRY_SLOW): no error, every answer right, memory flat."""
import concurrent.futures
import http.client
import json
import os
import random
import re
import time

from test_server import PROGRAMS, SURE, Server, asked, is_idle, parts, until

CLIENTS = 64
SECONDS = 600 if os.environ.get("QUARRY_SLOW") else 20
FEW = [g for g in SURE if len(g["prompt_ids"]) < 300 and len(g["ids"]) < 60]


def streamed(raw):
    """Thinking and content of a stream's chunks, and why it ended."""
    events = [e for e in raw.decode().split("\n\n") if e and not e.startswith(":")]
    assert events[-1] == "data: [DONE]", events[-1]
    thinking, content, finish = "", "", None
    for e in events[:-1]:
        choice = json.loads(e.removeprefix("data: "))["choices"][0]
        thinking += choice["delta"].get("reasoning_content") or ""
        content += choice["delta"].get("content") or ""
        finish = choice["finish_reason"] or finish
    return thinking or None, content, finish


def answer(c, g, stream):
    c.request("POST", "/v1/chat/completions", json.dumps({**asked(g), "temperature": 0, "stream": stream}))
    r = c.getresponse()
    raw = r.read()
    assert r.status == 200, raw
    if stream:
        return streamed(raw)
    choice = json.loads(raw)["choices"][0]
    return choice["message"].get("reasoning_content"), choice["message"]["content"], choice["finish_reason"]


def client(port, number, end):
    """How many answers came, all of them right; some connections stay, some are new each time."""
    rng = random.Random(number)
    n, c = 0, None
    while time.monotonic() < end:
        if not c or rng.random() < 0.3:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        g = rng.choice(FEW)
        assert answer(c, g, rng.random() < 0.5) == (*parts(g), "stop"), g["messages"]
        n += 1
    return n


def resident(server):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{server.process.pid}/status").read()).group(1))


def test_sixty_four_clients_at_once():
    assert len(FEW) > 10
    server = Server(PROGRAMS[0], "--queue", 128, "-q", "-c", 2048)
    try:
        end = time.monotonic() + SECONDS
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            results = [pool.submit(client, server.port, i, end) for i in range(CLIENTS)]
            time.sleep(SECONDS / 4)
            before = resident(server)
            counts = [r.result() for r in results]
        assert min(counts) >= 1 and resident(server) - before < 8192, (counts, before, resident(server))
        until(lambda: is_idle(server))
        now = server.counts()
        assert now["answered_total"] == sum(counts) and now["failed_total"] == now["cancelled_total"] == 0
    finally:
        assert server.stop() == 0 and not server.err, server.err
