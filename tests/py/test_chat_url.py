"""`quarry chat --url`: the terminal talks to a running server, ours and a fake one that misbehaves."""
import json
import re
import signal
import subprocess
import tempfile
import time

import pytest

from fake_openai import Error, Fake, chunk, said
from programs import BUILD, QUARRY, TINY, environment, goldens, quarry, refused, verb
from test_chat import CAPITALS, FACTS, STORY, Terminal, turns
from test_server import Server

pytestmark = pytest.mark.skipif(not (BUILD / "quarry-serve").exists(), reason="needs quarry-serve built")


@pytest.fixture(scope="module")
def server():
    s = Server("quarry-serve")
    s.url = f"http://127.0.0.1:{s.port}"
    yield s
    assert s.stop() == 0


@pytest.fixture
def fake():
    f = Fake(b"", {})
    yield f
    f.close()


def chat(url, *args, lines=(), env=None):
    return quarry("chat", "--url", url, *args, stdin="".join(line + "\n" for line in lines).encode(), env=env)


def test_the_server_says_what_run_says(server):
    done = chat(server.url, "--no-think", "--temp", "0", lines=CAPITALS)
    want = "".join(verb("run", "-p", q).stdout.decode() for q in CAPITALS[:1])
    assert done.returncode == 0 and done.stdout.decode().startswith(want) and f"# tiny at {server.url}/v1" in done.err
    told = turns(done)
    assert len(told) == 3 and told[1][0] > told[0][0] and told[1][1] > 0  # the conversation goes along, and is re-used
    again = chat(server.url + "/v1/", "-m", "tiny", "--no-think", "--temp", "0", lines=CAPITALS)
    assert again.stdout == done.stdout


def test_thinking_and_commands(server):
    done = chat(server.url, "--temp", "0", lines=["/think", CAPITALS[0], "/clear", "/no_think", CAPITALS[0], "/stats"])
    assert re.search("^[|] ", done.err, re.M) and done.stdout.decode().splitlines() == ["The capital of Korea is Seoul."] * 2
    assert "2 answers of" in done.err and "the conversation has" in done.err


def test_only_what_was_given_is_asked_for(fake):
    fake.answers = [said("a"), said("b")]
    assert chat(fake.url, lines=["hi"]).stdout == b"a\n"
    chat(fake.url, "--temp", "0.5", "--top-k", "7", "--seed", "18446744073709551", "-n", "9", "--think", "--truncate", "head", "--system", "Be kind.", lines=["hi"])
    plain, full = fake.requests
    assert plain == {"model": "fake", "messages": [{"role": "user", "content": "hi"}], "stream": True, "stream_options": {"include_usage": True}}
    assert {k: full[k] for k in full if k not in plain} == {
        "temperature": 0.5, "top_k": 7, "seed": 18446744073709551, "max_tokens": 9, "truncate": "head", "chat_template_kwargs": {"enable_thinking": True}}
    assert full["messages"][0] == {"role": "system", "content": "Be kind."}


def test_the_key(server):
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write("sesame-open-now\n")
        keys.flush()
        guarded = Server("quarry-serve", "--api-key-file", keys.name)
        try:
            url = f"http://127.0.0.1:{guarded.port}"
            refused(chat(url, lines=["hi"]), "401", "API key", "(--api-key KEY, or QUARRY_API_KEY in the environment)")
            refused(chat(url, "--api-key", "wrong", lines=["hi"]), "401")
            ask = ["--no-think", "--temp", "0"]
            assert chat(url, *ask, "--api-key", "sesame-open-now", lines=CAPITALS[:1]).returncode == 0
            assert chat(url, *ask, lines=CAPITALS[:1], env=environment(QUARRY_API_KEY="sesame-open-now")).returncode == 0
        finally:
            guarded.stop()


def test_wrong_usage(server):
    for args, part in ((["-c", "64"], "--ctx"), (["--device", "cpu"], "--device"), (["-t", "1"], "--threads")):
        refused(chat(server.url, *args), part, status=2)
    refused(quarry("chat", "-m", TINY, "--api-key", "x"), "--url", status=2)
    refused(chat("localhost:1"), "http://HOST:PORT")
    refused(chat("http://127.0.0.1:1"), "http://127.0.0.1:1/v1/models")
    refused(chat(server.url, "-m", "other", lines=["hi"]), "404", "other")


def test_a_failed_turn_is_told_and_the_next_one_answered(fake):
    fake.answers = [Error(429, "too many"), [chunk({"content": "half"})], [b"data: nonsense\n\n"], [b'data: {"error": {"message": "lost"}}\n\n'],
                    [b"data: \xff\n\n"], said("at last", {"content": "\x1b[31m"}, finish="length")]
    done = chat(fake.url, lines=["1", "2", "3", "4", "5", "6"])
    lines = [line for line in done.err.splitlines() if not line.startswith("# ")]
    assert done.returncode == 1 and len(lines) == 5
    for line, part in zip(lines, ("status 429: too many", "ended before", "expected JSON", "broke off: lost", "expected JSON")):
        assert part in line
    assert done.stdout == b"half\nat last\x1b[31m\n" and "stopped at the limit" in done.err
    assert [m["content"] for m in fake.requests[-1]["messages"]] == ["6"]


def test_ctrl_c_stops_reading_and_frees_the_server(server):
    long = next(g for g in goldens() if len(g["prompt_ids"]) > 8000)["messages"][-1]["content"].replace("\n", " ")
    before = server.counts()["cancelled_total"]
    process = subprocess.Popen([QUARRY, "chat", "--url", server.url, "--no-think", "--temp", "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment())
    process.stdin.write(long.encode() + b"\n")
    process.stdin.flush()
    end = time.monotonic() + 30
    while not server.counts()["running"]:
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(0.2)  # who is gone at once may only have closed his sending half
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(CAPITALS[0].encode() + b"\n", timeout=60)
    assert process.returncode == 0 and out.decode().strip() == "The capital of Korea is Seoul.", err
    assert "stopped by Ctrl-C" in err.decode() and server.counts()["cancelled_total"] == before + 1
    assert FACTS.findall(err.decode())[-1][0] == str(turns(chat(server.url, "--no-think", "--temp", "0", lines=CAPITALS[:1]))[0][0])


def test_a_silent_server_is_left_by_ctrl_c(fake):
    fake.answers = [[20]]
    process = subprocess.Popen([QUARRY, "chat", "--url", fake.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment())
    process.stdin.write(b"hi\n")
    process.stdin.flush()
    end = time.monotonic() + 30
    while not fake.requests:
        assert time.monotonic() < end
        time.sleep(0.01)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=15)
    assert process.returncode == 0 and time.monotonic() - began < 5


def test_a_person_talks_to_a_server(server):
    t = Terminal("--no-think", "--temp", "0", program=[QUARRY, "chat", "--url", server.url])
    t.read_until("> ")
    t.type(CAPITALS[0] + "\r")
    t.read_until("The capital of Korea is Seoul.")
    t.read_until("> ")
    t.type("/exit\r")
    assert t.close() == 0


def test_json_that_is_saved_can_be_sent_again(server, tmp_path):
    file = tmp_path / "talk.json"
    chat(server.url, "--temp", "0", lines=["/system Be kind.", "/think", "What is 68 + 57?", f"/save {file}"])
    messages = json.loads(file.read_text())
    assert [m["role"] for m in messages] == ["system", "user", "assistant"] and messages[2]["content"] == "68 + 57 = 125"
    assert messages[2]["reasoning_content"].startswith("ones: 8 + 7 = 15")
    status, r = server.chat(messages=[*messages, {"role": "user", "content": STORY}], max_tokens=2)
    assert status == 200, r
