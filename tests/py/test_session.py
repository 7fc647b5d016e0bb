"""Sessions on disk: `quarry run --session` and `quarry chat --session`, from process to process."""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time

import pytest

from programs import QUARRY, TINY, environment, quarry, refused, verb

REUSED = re.compile(r"^# prompt (\d+) tokens? \((\d+) re-used\)", re.M)
QUESTIONS = ["What is the capital of Korea?", "What is the capital of Japan?", "What is the capital of France?"]
STRICT = ("--numerics", "strict")


def run(*args, **more):
    return verb("run", *STRICT, *args, **more)


def said(done):
    assert done.returncode == 0, done.err
    return done.stdout.decode()


def chat(*lines, args=()):
    return verb("chat", *STRICT, "--no-think", *args, stdin="".join(line + "\n" for line in lines).encode())


def reused(done):
    return [tuple(map(int, m.groups())) for m in REUSED.finditer(done.err)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.session"


# --- run --------------------------------------------------------------------------------------------------------------


def test_a_raw_text_goes_on_where_it_was(path):
    """In two runs the same tokens as in one, and only the new ones are read."""
    whole = run("--raw", "-p", "Count from 3 to 20:", "-n", "12", "--ids").stdout.split()
    args = ["--raw", "--session", path, "-n", "6", "--ids"]
    first = run(*args, "-p", "Count from 3 to 20:")
    assert first.stdout.split() == whole[:6] and stat.S_IMODE(path.stat().st_mode) == 0o600
    # An empty prompt adds nothing, and one token is left to read.
    second = run(*args, "-p", "")
    assert second.stdout.split() == whole[6:]
    (n, held), = reused(second)
    assert n - held == 1
    third = run(*args, "-p", " and then 20 to 3:")
    (n, held), = reused(third)
    assert 1 < n - held < 14


def test_show_tells_what_a_session_is_of(path):
    said(run("-p", "Hi.", "-n", "4", "--session", path))
    facts = json.loads(said(quarry("show", path, "--json")))["session"]
    assert (facts["kv"], facts["numerics"], facts["bytes"]) == ("f16+f16", "strict", path.stat().st_size)
    assert facts["model"] == json.loads(said(quarry("show", TINY, "--json")))["id"] and facts["checkpoints"][-1] == facts["tokens"]
    text = said(quarry("show", path))
    assert facts["model"] in text and f"tokens        {facts['tokens']};" in text and "Hi." not in text
    assert facts["model_name"] and f"model         {facts['model_name']}, {facts['model']}\n" in text
    refused(quarry("show", path, "--fit", "1GiB"), "--fit is about a model", status=2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    refused(quarry("show", path), "cut off")
    path.write_bytes(whole[:100] + b"?" + whole[101:])
    refused(quarry("show", path), str(path))


def test_a_text_longer_than_the_context_is_cut_and_read_anew(path):
    said(run("--raw", "-p", "Count from 3 to 20, and then from 20 to 3: ", "-n", "40", "--session", path))
    refused(run("--raw", "-p", "", "-n", "2", "-c", "24", "--session", path), "-c raises it")
    done = run("--raw", "-p", "", "-n", "2", "-c", "24", "--truncate", "head", "--session", path)
    assert said(done)
    (n, held), = reused(done)
    assert 0 < n < 24 and held == 0


def test_a_link_stays_and_its_file_is_written(path):
    there = path.parent / "disk"
    there.mkdir()
    path.symlink_to("disk/far.session")
    said(run("--raw", "-p", "Count", "-n", "2", "--session", path))
    assert path.is_symlink() and path.stat().st_size and sorted(p.name for p in there.iterdir()) == ["far.session"]
    done = run("--raw", "-p", " on", "-n", "2", "--session", path)
    assert said(done) and path.is_symlink() and reused(done)[0][1] > 0
    assert sorted(p.name for p in path.parent.iterdir()) == ["a.session", "disk"]


def test_a_conversation_gets_turns(path):
    """The same answers as chat's in one process; what the template writes as before is not read again."""
    want = chat(*QUESTIONS)
    answers = said(want).splitlines()
    got, held = [], []
    for question in QUESTIONS:
        done = run("-p", question, "--session", path)
        got += said(done).splitlines()
        held += reused(done)
    assert got == answers
    assert held[0][1] == 0 and 0 < held[1][1] < held[2][1]
    assert held[1:] == reused(want)[1:]


def test_a_session_of_which_nothing_is_of_use_is_told(path):
    """Where the prompt leaves it; one that goes on is not spoken of."""
    assert "re-used:" not in (done := run("-p", QUESTIONS[0], "--system", "Be brief.", "-n", "4", "--session", path)).err and said(done)
    done = run("-p", QUESTIONS[1], "-n", "4", "--session", path)
    assert said(done) and "re-used:" not in done.err and reused(done)[0][1] > 0
    done = run("-p", QUESTIONS[2], "--system", "Be long.", "-n", "4", "--session", path)
    told, = re.findall(r"^# nothing of the session's (\d+) tokens is re-used: token (\d+) differs, in message 1 \(system\)$", done.err, re.M)
    assert said(done) and reused(done)[0][1] == 0 and 0 < int(told[1]) < 12 < int(told[0])
    shutil.copy(path, path.with_suffix(".copy"))
    done = chat(*QUESTIONS[:2], args=("--system", "Be new.", "--session", path))
    assert said(done) and done.err.count("nothing of the session's") == 1
    assert "re-used:" not in run("-q", "-p", "Hi", "--system", "Be other.", "-n", "4", "--session", path.with_suffix(".copy")).err


def test_thinking_is_kept_apart(path):
    first = said(run("-p", QUESTIONS[0], "--think", "--session", path))
    assert first.startswith("<think>\n") and "</think>" in first
    second = run("-p", QUESTIONS[1], "--session", path)
    assert said(second) and reused(second)[0][1] > 0
    assert path.read_bytes().count(b'"reasoning_content"') == 1


def test_chat_goes_on_with_what_run_began(path):
    said(run("-p", QUESTIONS[0], "--session", path))
    shutil.copy(path, path.with_suffix(".copy"))
    done = chat(QUESTIONS[1], args=("--session", path))
    assert said(done) == said(run("-p", QUESTIONS[1], "--session", path.with_suffix(".copy")))
    assert "2 messages" in done.err and reused(done)[0][1] > 0


# --- chat -------------------------------------------------------------------------------------------------------------


def test_chats_one_after_another_are_one(path):
    want = said(chat(*QUESTIONS)).splitlines()
    first = chat(*QUESTIONS[:2], args=("--session", path))
    assert first.err.count(f"session saved to {path}") == 1
    second = chat(QUESTIONS[2], args=("--session", path))
    assert said(first).splitlines() + said(second).splitlines() == want
    assert reused(second)[0][1] > 30


def test_a_session_that_is_cleared_begins_anew(path):
    said(chat(QUESTIONS[0], args=("--session", path)))
    before = path.stat().st_size
    said(chat("/clear", QUESTIONS[0], args=("--session", path)))
    assert path.stat().st_size == before
    done = chat("/exit", args=("--session", path))
    assert done.returncode == 0 and "2 messages" in done.err and path.stat().st_size == before


def test_a_chat_without_an_answer_leaves_no_file(path):
    assert chat("/exit", args=("--session", path)).returncode == 0
    assert not path.exists()


# --- what is refused --------------------------------------------------------------------------------------------------


def test_wrong_use(path, tmp_path):
    refused(quarry("chat", "--url", "http://127.0.0.1:1", "--session", path), "--session", "--url", status=2)
    refused(run("-p", "x", "--session", tmp_path), "a folder")
    refused(run("-p", "x", "--session", tmp_path / "no" / "a"), "No such file")
    (tmp_path / "note").write_text("Dear diary, this is long enough to be no session file's head at all. " * 9)
    refused(run("-p", "x", "--session", tmp_path / "note"), "not a session file")
    assert (tmp_path / "note").read_text().startswith("Dear diary")
    said(run("--raw", "-p", "Count", "-n", "2", "--session", path))
    refused(run("-p", "x", "--session", path), "expected --raw")
    refused(chat("hi", args=("--session", path)), "no conversation")
    path.unlink()
    said(run("-p", QUESTIONS[0], "--session", path))
    refused(run("--raw", "-p", "x", "--session", path), "expected no --raw")


def test_other_engines_and_damage(path):
    said(run("-p", QUESTIONS[0], "--session", path))
    data = path.read_bytes()
    refused(verb("run", "-p", "x", "--session", path), "numerics strict", "pinned-")
    other = run("-p", "x", "--session", path, "--kv-k", "f32")
    refused(other, "f16+f16", "f32+f16")
    assert "# kernels" not in other.err and "# memory" not in other.err     # refused before anything is built
    refused(run("-p", "x", "--session", path, "-c", "8"), "-c raises it")
    for at in (40, 410, 1000, len(data) // 3):      # head, tokens, the first checkpoint's state
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
        refused(run("-p", "x", "--session", path), "damaged")
    for n in (100, 500, len(data) - 1):
        path.write_bytes(data[:n])
        refused(run("-p", "x", "--session", path), "session")
    path.write_bytes(data)
    assert reused(run("-p", QUESTIONS[1], "--session", path))[0][1] > 0


# --- processes --------------------------------------------------------------------------------------------------------


def test_two_processes_do_not_interleave(path):
    """The second is refused while the first has the session, and may have it afterwards."""
    first = subprocess.Popen([QUARRY, "chat", "-m", TINY, "-t", "1", *STRICT, "--no-think", "--session", path], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
    first.stdin.write(QUESTIONS[0].encode() + b"\n")
    first.stdin.flush()
    assert first.stdout.readline()
    refused(run("-p", "x", "--session", path), "another process works with this session")
    first.stdin.close()
    assert first.wait(60) == 0
    assert reused(run("-p", QUESTIONS[1], "--session", path))[0][1] > 0


def test_a_killed_run_leaves_the_session_as_it_was(path):
    left = path.parent / ".quarry-session-a1b2c3"
    left.write_text("what a killed writer left")
    said(run("-p", QUESTIONS[0], "--session", path))
    assert not left.exists()
    data = path.read_bytes()
    for delay in (0.01, 0.03, 0.2):   # a whole run takes some 0.09 s
        p = subprocess.Popen([QUARRY, "run", "-m", TINY, "-t", "1", *STRICT, "-p", QUESTIONS[1], "--session", path], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=environment())
        if delay > 0.1:
            p.stdout.read(1)      # the answer has begun: it may be saved, whole, or not at all
        else:
            time.sleep(delay)
        p.send_signal(signal.SIGKILL)
        p.wait()
        now = path.read_bytes()
        assert now == data or delay > 0.1 or p.returncode == 0
    assert reused(run("-p", QUESTIONS[1], "--session", path))[0][1] > 0


def test_a_full_disk_is_told_and_the_old_session_stays(path):
    said(run("-p", QUESTIONS[0], "--session", path))
    data = path.read_bytes()
    limit = len(data) // 2 // 1024
    done = subprocess.run(["bash", "-c", f'ulimit -f {limit}; exec "$0" "$@"', QUARRY, "run", "-m", TINY, "-t", "1", *STRICT, "-p", QUESTIONS[1],
                           "--session", path], capture_output=True, env=environment())
    assert done.returncode == 1 and b"no room for the session" in done.stderr, done.stderr
    assert done.stdout and path.read_bytes() == data
    assert [p for p in os.listdir(path.parent)] == [path.name]
