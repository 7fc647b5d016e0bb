"""64 clients at once on two threads: nobody is told anything that they would not be told alone, nothing grows, and all is counted.

A quarter of a minute, ten with QUARRY_SLOW; by hand `test_soak.py SECONDS [strict|pinned]` with QUARRY_PROGRAM."""
import json
import os
import re
import sys
import threading
import time

import pytest

import soak
from test_server import Server, until

SECONDS = 600 if os.environ.get("QUARRY_SLOW") else 18
MEGABYTE = 1024


def resident(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


def metrics(server):
    text = server.get("/metrics")[2].decode()
    return {k: float(v) for k, v in re.findall(r"^quarry_(\S+) (\S+)$", text, re.M)}


def sample(server, out, stop):
    while not stop.wait(0.5):
        out.append(resident(server))


def check_counts(m0, m1, alone, clients):
    """What the clients counted is what the server counted; of those who left only bounds are known."""
    def grew(name):
        return m1[name] - m0.get(name, 0)

    everybody = [alone, *clients]
    done, left = (sum(c.jobs[k] for c in everybody) for k in ("done", "left"))
    ended = {k: grew(f'answers_total{{outcome="{k}"}}') for k in ("stop", "length", "failed", "cancelled")}
    assert ended["failed"] == 0, ended
    assert done <= ended["stop"] + ended["length"] <= done + left, (ended, done, left)
    # A client that left before its request was read made no job.
    assert sum(ended.values()) <= done + left, (ended, done, left)
    generated, prompt = sum(c.generated for c in everybody), sum(c.prompt for c in everybody)
    assert generated <= grew("generated_tokens_total") <= generated + left * soak.LEAVES["max_tokens"]
    assert prompt <= grew("prompt_tokens_total") <= prompt + left * 100
    for (path, status), n in sum((c.statuses for c in everybody), soak.collections.Counter()).items():
        label = path if path.startswith("/v1/") and "embeddings" not in path else None
        if label and (path, status) != (soak.CHAT, 200):
            assert grew(f'http_requests_total{{method="POST",path="{path}",status="{status}"}}') == n, (path, status, n)
    for name in ("requests_running", "requests_waiting", "slots_reading", "kv_pages_promised"):
        assert m1[name] == 0, name
    return {**ended, "answers read": done, "left": left, "generated": generated, "prompt": prompt}


def is_idle(server):
    m = metrics(server)
    return m["requests_running"] == m["requests_waiting"] == 0 and not any(s["is_processing"] for s in json.loads(server.get("/slots")[2]))


def run(program, seconds, numerics, parallel=4):
    server = Server(program, "-t", 2, "-q", "-c", 8192, "--numerics", numerics, "--queue", 256, "--parallel", parallel,
                    "--cache-host", "16MiB")   # a budget that is soon reached: from then on memory is flat
    try:
        before, asks, memory, stop = metrics(server), soak.all_asks(), [], threading.Event()
        alone = soak.play_alone(server.port, asks)
        watch = threading.Thread(target=sample, args=(server, memory, stop))
        watch.start()
        clients, faults = soak.crowd(server.port, asks, seconds, numerics == "strict")
        stop.set()
        watch.join()
        assert not faults, "\n".join(faults)
        until(lambda: is_idle(server), 20)
        until(lambda: metrics(server)["connections"] <= 1, 20)
        counts = check_counts(before, metrics(server), alone, clients)
        # The same again, alone, by the same slots.
        for a in asks:
            if numerics == "strict" or not a.exact:
                assert soak.Client(server.port).whole(a) == a.right, a.name
    finally:
        status = server.stop()
    assert status == 0 and not server.err, server.err
    third, end = max(memory[: len(memory) // 3 + 1]), max(memory[-len(memory) // 3:])
    return {**counts, "RSS MB": [round(x / MEGABYTE, 1) for x in (memory[0], third, end)]}


@pytest.mark.parametrize("numerics,share", [("pinned", 1), ("strict", 0.34)])
def test_a_crowd(numerics, share):
    got = run("quarry-serve", SECONDS * share, numerics)
    print(got)
    assert got["RSS MB"][2] - got["RSS MB"][1] < 4, got
    assert got["answers read"] > SECONDS * share and got["left"] and got["cancelled"]


if __name__ == "__main__":
    began = time.monotonic()
    print(run(os.environ.get("QUARRY_PROGRAM", "quarry-serve"), float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "pinned"))
    print(f"{time.monotonic() - began:.0f} s")
