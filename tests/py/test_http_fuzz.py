"""Some hundreds of hostile requests (http_fuzz.py), ten thousand with QUARRY_SLOW; then the server answers as before and holds nothing.

A number as an argument asks for that many: python tests/py/test_http_fuzz.py 100000 [SEED]"""
import collections
import concurrent.futures
import json
import os
import re
import sys
import time

import pytest

import http_fuzz
from programs import BUILD
from test_server import NORWAY, Server, is_idle, until

COUNT = 10000 if os.environ.get("QUARRY_SLOW") else 400
AT_ONCE = 12


@pytest.fixture(scope="module", params=[name for name in ("quarry-serve", "quarry-serve-san") if (BUILD / name).exists()])
def program(request):
    return request.param


def memory(server):
    """Resident kilobytes and threads."""
    text = open(f"/proc/{server.process.pid}/status").read()
    return [int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) for name in ("VmRSS", "Threads")]


def control(server):
    status, r = server.chat(**NORWAY)
    assert status == 200
    return r["choices"], r["usage"]["completion_tokens"]


def one(port, seed, i):
    case = http_fuzz.make(seed, i)
    try:
        return case.kind, http_fuzz.check(case, http_fuzz.play(port, case))
    except Exception as e:
        raise AssertionError(f"case {i} of seed {seed} ({case.kind}): {e!r}; it sent {b''.join(case.pieces)[:300]!r}") from e


def hurt(server, count, seed):
    """Plays the cases; how many answers of each kind and status there were."""
    seen = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for kind, statuses in pool.map(lambda i: one(server.port, seed, i), range(count)):
            seen[kind, "none"] += not statuses
            seen.update((kind, s) for s in statuses)
    return seen


def connections(server):
    return int(re.search(r"^quarry_connections (\d+)", server.get("/metrics")[2].decode(), re.M)[1])


def run(program, count, seed):
    server = Server(program, "--header-time", 5, "--body-time", 5, "-q", "-c", 1024, "--cache-host", 0)   # checkpoints in host memory would grow to their budget
    try:
        before, idle_threads = control(server), memory(server)[1]
        hurt(server, 200, f"warm {seed}")  # pages of KV memory and snapshots come as they are touched
        kilobytes = memory(server)[0]
        seen = hurt(server, count, seed)
        assert server.process.poll() is None, server.stop()
        assert control(server) == before
        until(lambda: is_idle(server))
        until(lambda: connections(server) <= 1, 20)
        until(lambda: memory(server)[1] <= idle_threads + 1, 20)
        assert program.endswith("san") or memory(server)[0] - kilobytes < 25000, "memory grows"
        counts = json.loads(server.get("/health")[2])
        assert counts["failed_total"] == 0, counts
    finally:
        status = server.stop()
    assert status == 0 and not server.err, server.err
    return seen


def test_hostile_requests_hurt_nobody(program):
    seen = run(program, COUNT, 1)
    answered = collections.Counter()
    for (_, status), n in seen.items():
        answered[status] += n
    assert answered[200] > COUNT / 10 and answered[400] > COUNT / 10 and answered[404] and answered[405], answered


if __name__ == "__main__":
    began = time.monotonic()
    for key, n in sorted(run(os.environ.get("QUARRY_PROGRAM", "quarry-serve-san"), int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else 1).items(), key=str):
        print(*key, n)
    print(f"{time.monotonic() - began:.0f} s")
