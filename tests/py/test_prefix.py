"""What was read is not read again, and changes no answer: turns of a conversation, prompts that share a beginning, evictions, restarts, cancels.

Where answers are compared, the server is strict: the same bits whatever was re-used, batched or evicted, so logprobs are compared as they are told. Times
are the processor's share: a server that was kept from running is asked once more."""
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from programs import BUILD, goldens
from test_server import Server, until
from test_soak import metrics

SLOW = bool(os.environ.get("QUARRY_SLOW"))
MIB = 1 << 20
CHECKPOINT = 3 * MIB  # one of the test model's, on the device, is a little less
WORDS = "the a red blue old new house river stone bird sings runs sleeps in on under near with and but so".split()


@pytest.fixture
def start():
    running = []

    def go(*args):
        running.append(Server("quarry-serve", *args))
        return running[-1]

    yield go
    for s in running:
        if s.process.poll() is None:
            s.stop(signal.SIGTERM, signal.SIGTERM)


def text(seed, words):
    r = random.Random(seed)
    return " ".join(r.choice(WORDS) for _ in range(words)) + "."


def says(role, content):
    return {"role": role, "content": content}


def ask(server, messages, **more):
    """(usage, what the answer was: text and the logprob of each token)"""
    body = {"messages": messages, "enable_thinking": False, "max_tokens": 12, "logprobs": True, **more}
    status, answer = server.chat(**body)
    assert status == 200, answer
    choice = answer["choices"][0]
    return answer["usage"], (choice["message"]["content"], [t["logprob"] for t in choice["logprobs"]["content"]])


def cached(usage):
    return usage["prompt_tokens_details"]["cached_tokens"]


def first_token_s(server, messages):
    began = time.monotonic()
    usage, _ = ask(server, messages, max_tokens=1)
    return time.monotonic() - began, usage


# --- turns ------------------------------------------------------------------------------------------------------------


def test_a_conversation_of_8k_tokens(start, tmp_path):
    """The reply comes back without its thinking; then prompts that differ in their last words; then the server starts anew."""
    args = ("-c", 16384, "--parallel", 2, "--cache-disk", "1GiB", "--cache-dir", tmp_path / "kept")
    s = start(*args)
    head = [says("system", text(1, 5400)), says("user", "Who sings?")]
    took, usage = first_token_s(s, head)
    total = usage["prompt_tokens"]
    assert 8000 < total < 9000 and cached(usage) == 0
    _, reply = ask(s, head, enable_thinking=True, max_tokens=40)
    turn = lambda asks: [*head, says("assistant", reply[0] or "A bird."), says("user", asks)]
    again = 1e9
    for asks in ("Where?", "And where?", "Where else?"):
        if again > 0.1 * took:
            again, usage = first_token_s(s, turn(asks))
        assert cached(usage) >= 0.99 * usage["prompt_tokens"], usage
    for i in range(3):
        usage, _ = ask(s, [*turn("Where?"), says("assistant", "In the house."), says("user", text(100, 60) + text(i, 5))])
        assert cached(usage) >= 0.98 * total
    assert s.stop() == 0
    s = start(*args)
    after = 1e9
    for asks in ("Where?", "And where?"):
        if after > 0.25 * took:
            after, usage = first_token_s(s, turn(asks))
        assert cached(usage) >= 0.99 * usage["prompt_tokens"]
    assert metrics(s)['prompt_cache_total{result="hit",reason="disk"}'] >= 1
    print(f"first token cold {took:.3f} s, second turn {again:.3f} s, after a restart {after:.3f} s")
    assert again <= 0.1 * took and after <= 0.25 * took


def test_files_that_were_killed_or_torn(start, tmp_path):
    args = ("-c", 2048, "--parallel", 1, "--cache-disk", "64MiB", "--cache-dir", tmp_path / "kept")
    prompts = [[says("system", text(2 + i, 300)), says("user", "Who sings?")] for i in range(3)]
    s = start(*args, "--numerics", "strict")
    want = []
    for i, p in enumerate(prompts):
        want.append(ask(s, p)[1])
        # Written while nobody asks, so a kill loses nothing.
        until(lambda: metrics(s)['checkpoints{tier="disk"}'] >= 2 * i + 2, 20)
    m = metrics(s)
    assert 0 < m['checkpoint_bytes{tier="disk"}'] <= m['checkpoint_budget_bytes{tier="disk"}'] == 64 * MIB
    s.process.kill()
    s.process.wait()
    files = sorted((tmp_path / "kept").glob("*.session"))
    assert len(files) >= 6 and all(f.stat().st_mode & 0o077 == 0 for f in files)
    for i, f in enumerate(files[::2]):
        whole = bytearray(f.read_bytes())
        if i % 2:
            whole[len(whole) // 2] ^= 1
        f.write_bytes(whole if i % 2 else whole[:len(whole) // 2])
    s = start(*args, "--numerics", "strict")
    got = [ask(s, p) for p in prompts]
    assert [g[1] for g in got] == want and any(cached(g[0]) > 200 for g in got)
    assert s.stop() == 0
    # The states of one numerics are of no use to another.
    s = start(*args, "--numerics", "pinned")
    assert cached(ask(s, prompts[0])[0]) == 0


# --- shared beginnings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 4] if SLOW else [4])
def test_a_shared_head_changes_no_answer(start, slots):
    """Prompts on a head of 600 tokens, cold and then warm in another order."""
    n = 40 if SLOW else 12
    args = ("-c", 2048, "--numerics", "strict", "--parallel", slots)
    cold, warm = start(*args, "--cache-device", 0), start(*args)
    head = says("system", text(4, 450))
    prompts = [[head, says("user", text(1000 + i, 3 + i % 11) + " Why?")] for i in range(n)]
    want = [ask(cold, p)[1] for p in prompts]
    order = list(range(n))
    random.Random(slots).shuffle(order)
    ask(warm, [head, says("user", "Hello")])
    got = {}

    def some(mine):
        for i in mine:
            usage, got[i] = ask(warm, prompts[i])
            assert cached(usage) > 400

    threads = [threading.Thread(target=some, args=(order[k::slots],)) for k in range(slots)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert [got.get(i) for i in range(n)] == want
    m = metrics(cold)
    assert m['checkpoint_budget_bytes{tier="device"}'] == m['checkpoint_bytes{tier="device"}'] == m['checkpoint_budget_bytes{tier="host"}'] == 0


def test_pinned_goldens_come_back_the_same(start):
    """Token for token where the margin is above 0.5: read anew, from a checkpoint, and after evictions."""
    s = start("-c", 8192, "--parallel", 2, "--cache-device", 4 * CHECKPOINT, "--cache-host", 20 * MIB)
    sure = [g for g in goldens() if g["margin_min"] > 0.5 and len(g["prompt_ids"]) < 3000]
    for g in [*sure, *reversed(sure)]:
        status, _, raw = s.ask("POST", "/v1/completions", {"prompt": g["prompt_ids"], "temperature": 0, "max_tokens": 400})
        assert status == 200 and json.loads(raw)["choices"][0]["text"] == g["text"].removesuffix("<|im_end|>")


# --- why not ----------------------------------------------------------------------------------------------------------


def test_a_miss_has_its_reason(start):
    s = start("-c", 2048, "--parallel", 1, "--cache-device", 2 * CHECKPOINT, "--cache-host", 0)
    date = lambda day: [says("system", text(5, 100) + f" It is day {day}. " + text(6, 100)), says("user", "Who runs?")]
    ask(s, date("one"))
    ask(s, date("two"))
    for i in range(5):
        ask(s, [says("system", text(20 + i, 150)), says("user", "Hello")])
    ask(s, date("one"))
    m = metrics(s)
    assert m["checkpoints_lost_total"] >= 3 and m['prompt_cache_total{result="miss",reason="evicted"}'] >= 1
    s.stop()
    lines = re.findall(r"prompt \d+ \((\d+) cached: (\w+)(.*?)\), answer", s.err)
    assert [x[1] for x in lines[:2]] == ["empty", "no_place"]
    at = int(re.fullmatch(r"; token (\d+) differs, in message 1 \(system\)", lines[1][2])[1])
    assert 60 < at < 400 and "day" not in s.err and "river" not in s.err
    s = start("-c", 2048, "--parallel", 1, "--log-text")
    ask(s, date("one"))
    ask(s, date("two"))
    s.stop()
    assert re.search(r"token %d differs: '.*tw.*' was '.*on.*', in message 1" % at, s.err), s.err


def test_budgets_are_told_and_kept(start):
    s = start("-c", 2048, "--parallel", 2, "--cache-device", 4 * CHECKPOINT, "--cache-host", 24 * MIB)
    for i in range(16):
        ask(s, [says("system", text(40 + i, 120)), says("user", "Hello")], max_tokens=2)
    until(lambda: json.loads(s.get("/slots")[2])[0]["checkpoints"]["host"]["n"] >= 4, 10)
    c = json.loads(s.get("/slots")[2])[1]["checkpoints"]
    assert c["device"]["n"] <= 5 and 0 < c["host"]["bytes"] <= c["host"]["budget"] == 24 * MIB and c["disk"] == {"n": 0, "bytes": 0, "budget": 0, "used": 0}
    hits = [cached(ask(s, [says("system", text(40 + i, 120)), says("user", "Bye")])[0]) > 0 for i in reversed(range(16))]
    m = metrics(s)
    assert m['checkpoints_used_total{tier="host"}'] >= 1 and sum(hits) >= 3, hits
    assert m['prompt_cache_total{result="hit",reason="host"}'] >= 1


@pytest.mark.parametrize("args,word", [(["--cache-device", "0", "--cache-host", "1GiB"], "none anywhere"), (["--cache-dir", "x"], "--cache-disk"),
                                       (["--cache-host", "lots"], "8GiB"), (["--cache-disk", "-1"], "8GiB"), (["--cache-every", "x"], "--cache-every")])
def test_sizes_that_are_none(args, word):
    done = subprocess.run([BUILD / "quarry-serve", "-m", "x", *args], capture_output=True, text=True)
    assert done.returncode == 2 and word in done.stderr and len(done.stderr.splitlines()) == 1


def test_less_than_one_checkpoint_is_refused(start):
    s = Server("quarry-serve", "--cache-device", "1MiB", wait=False)
    s.process.wait(timeout=60)
    s.stop()
    assert s.process.returncode == 1 and "hold no checkpoint" in s.err


# --- others -----------------------------------------------------------------------------------------------------------


def leave_early(server, body):
    """Asks for a stream and goes after its first bytes."""
    data = json.dumps({**body, "stream": True}).encode()
    c = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    c.recv(200)
    c.close()


def test_nobody_gets_anothers_answer(start):
    """16 at once, each on a head of its own length, some of whom leave; whoever stays gets what he would have got alone."""
    args = ("-c", 2048, "--numerics", "strict", "--parallel", 4)
    alone, s = start(*args, "--cache-device", 0), start(*args, "--cache-device", 6 * CHECKPOINT, "--cache-host", 16 * MIB)
    prompts = [[says("user", f"Reply only with the word {w} five times. " + text(i, 10 * (i % 7)))] for i, w in enumerate(WORDS[:16])]
    want = [ask(alone, p)[1] for p in prompts]
    for turn in range(20 if SLOW else 3):
        r, got = random.Random(turn), {}

        def one(i):
            got[i] = ask(s, prompts[i])[1]

        leave = set(r.sample(range(16), 5))
        threads = [threading.Thread(target=leave_early, args=(s, {"messages": prompts[i], "max_tokens": 200})) if i in leave
                   else threading.Thread(target=one, args=(i,)) for i in r.sample(range(16), 16)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert all(got[i] == want[i] for i in range(16) if i not in leave) and len(got) == 11


def test_a_long_prompt_beside_a_stream_changes_neither(start):
    """How long they wait for each other is test_latency.py's."""
    args = ("-c", 16384, "--numerics", "strict", "--parallel", 2)
    s = start(*args)
    stream, long = [says("user", "Count from 3 to 33.")], [says("system", text(7, 1000)), says("user", "Who?")]
    alone = [ask(s, stream, max_tokens=150)[1], ask(s, long)[1]]
    s = start(*args)
    got = {}
    a = threading.Thread(target=lambda: got.update(a=ask(s, stream, max_tokens=150)[1]))
    a.start()
    got["b"] = ask(s, long)[1]
    a.join()
    assert [got["a"], got["b"]] == alone


class Family:
    """Conversations that grow from each other: any earlier one may be gone on with, edited, or asked again."""

    def __init__(self, seed):
        """One of sixteen is of long texts, which need eviction by their bytes; the others are soon read, so that there can be many."""
        self.r = random.Random(seed)
        self.words, self.most = (250, 6000) if seed % 16 == 0 else (40, 900)
        self.known = [[says("system", text(f"{seed} {k}", self.r.randint(5, self.words)))] for k in range(2)]

    def next(self):
        base = self.r.choice(self.known[-6:])
        if len(base) > 2 and self.r.random() < 0.3:
            base = base[:1 + 2 * self.r.randrange(len(base) // 2)]
        return [*base, says("user", text(self.r.random(), self.r.randint(1, self.words // 4)))]

    def answered(self, messages, answer):
        if sum(len(m["content"]) for m in messages) < self.most:
            self.known.append([*messages, says("assistant", answer or "So.")])


def test_random_interleavings(start, tmp_path):
    """Forks, evictions through all tiers, cancels and restarts: every answer equals that of a server which keeps nothing."""
    args = ("-c", 4096, "--numerics", "strict", "--parallel", 3)
    kept = (*args, "--cache-device", 4 * CHECKPOINT, "--cache-host", 15 * MIB, "--cache-disk", 30 * MIB, "--cache-dir", tmp_path / "kept", "--cache-every", 32)
    fresh, s = start(*args, "--cache-device", 0), start(*kept)
    hits = 0
    for seed in range(1000 if SLOW else 4):
        f = Family(seed)
        for _ in range(4):
            asked, got = [f.next() for _ in range(3)], {}
            leaves = f.r.random() < 0.4

            def one(i):
                got[i] = ask(s, asked[i], max_tokens=6)

            threads = [threading.Thread(target=one, args=(i,)) for i in range(3)]
            if leaves:
                threads.append(threading.Thread(target=leave_early, args=(s, {"messages": f.next(), "max_tokens": 100})))
            [t.start() for t in threads]
            [t.join() for t in threads]
            for i in range(3):
                assert got[i][1] == ask(fresh, asked[i], max_tokens=6)[1], (seed, asked[i])
                hits += cached(got[i][0]) > 0
                f.answered(asked[i], got[i][1][0])
        if seed % 3 == 2:
            s.stop(*([signal.SIGTERM] if seed % 2 else [signal.SIGKILL]))
            s = start(*kept)
    assert hits > 10
