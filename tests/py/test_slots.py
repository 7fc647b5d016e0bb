"""`POST /slots/ID?action=save|restore|erase` of quarry-serve: what a slot holds outlives the server and is really used again."""
import concurrent.futures
import json
import stat

import pytest

from test_server import NORWAY, OSLO, Server, is_error, program, refused, send, start, until  # noqa: F401

STRICT = ("--numerics", "strict", "--parallel", 1)
STORY = {"messages": [{"role": "user", "content": "Tell me a story about Mina and a blue star. " * 5}], "enable_thinking": False, "max_tokens": 40}


def order(s, action, slot=0, **body):
    status, _, raw = s.ask("POST", f"/slots/{slot}?action={action}", body)
    return status, json.loads(raw)


def done(s, action, slot=0, **body):
    status, r = order(s, action, slot, **body)
    assert status == 200 and r["id_slot"] == slot, r
    return r


def is_refused(s, part, action, slot=0, status=400, **body):
    got, r = order(s, action, slot, **body)
    assert got == status and part in r["error"]["message"] and "\n" not in r["error"]["message"], (got, r)


def held(s):
    """An answer may be there before the view of its slot is."""
    until(lambda: not any(x["is_processing"] for x in json.loads(s.get("/slots")[2])))
    return [x["tokens_held"] for x in json.loads(s.get("/slots")[2])]


def told(s, **fields):
    status, r = s.chat(**fields)
    assert status == 200, r
    return r["choices"][0]["message"]["content"], r["usage"]["prompt_tokens"], r["usage"]["prompt_tokens_details"]["cached_tokens"]


def more(fields, text, question):
    return {**fields, "messages": [*fields["messages"], {"role": "assistant", "content": text}, {"role": "user", "content": question}]}


@pytest.fixture
def files(tmp_path):
    return tmp_path / "slots"


def test_a_conversation_goes_on_in_another_server(start, files):
    s = start(*STRICT, "--slot-save-path", files)
    assert stat.S_IMODE(files.stat().st_mode) == 0o700
    text, n, _ = told(s, **STORY)
    again = more(STORY, text, "And then?")
    saved = done(s, "save", filename="mina.bin")
    path = files / "mina.bin"
    assert saved["filename"] == "mina.bin" and saved["n_saved"] == held(s)[0] >= n and saved["timings"]["save_ms"] > 0
    assert saved["n_written"] == path.stat().st_size and stat.S_IMODE(path.stat().st_mode) == 0o600
    want = told(s, **again)
    assert s.stop() == 0

    s = start(*STRICT, "--slot-save-path", files)
    assert held(s) == [0]
    r = done(s, "restore", filename="mina.bin")
    assert (r["n_restored"], r["n_read"]) == (saved["n_saved"], saved["n_written"]) and r["timings"]["restore_ms"] > 0
    assert held(s) == [saved["n_saved"]]
    got = told(s, **again)
    assert got[0] == want[0] and got[2] >= n - 40, (got, want)


def test_the_restored_prompt_itself_comes_again(start, files):
    """Its end is behind what the slot holds: a checkpoint before it is in the file too."""
    s = start(*STRICT, "--slot-save-path", files)
    text, n, cached = told(s, **STORY)
    assert cached == 0
    done(s, "save", filename="a")
    s.stop()
    s = start(*STRICT, "--slot-save-path", files, "--cache-host", 0)
    done(s, "restore", filename="a")
    for _ in range(3):
        again, n_again, cached = told(s, **STORY)
        assert (again, n_again) == (text, n) and 0 < n - cached < 40
    # Another question instead of the last one: only what both have in common, which is nothing here.
    assert told(s, **NORWAY)[0] == OSLO


def test_a_cache_without_room_for_all_checkpoints_is_told(start, files):
    s = start(*STRICT, "--slot-save-path", files)
    text, n, _ = told(s, **STORY)
    told(s, **more(STORY, text, "And then?"))
    done(s, "save", filename="a")
    all_kept = done(s, "restore", filename="a")["checkpoints"]
    assert all_kept["read"] == all_kept["kept"] >= 2, all_kept
    one = json.loads(s.get("/slots")[2])[0]["checkpoints"]["device"]
    s.stop()
    s = start(*STRICT, "--slot-save-path", files, "--cache-device", one["bytes"] // one["n"] + 200000, "--cache-host", 0)
    r = done(s, "restore", filename="a")["checkpoints"]
    assert r["read"] == all_kept["read"] and r["kept"] < r["read"], (r, one)
    s.stop()
    assert f"only {r['kept']} of {r['read']} checkpoints kept: --cache-device has no room for more" in s.err


def test_what_is_erased_and_restored(start, files):
    s = start(*STRICT, "--slot-save-path", files)
    told(s, **NORWAY)
    n = held(s)[0]
    done(s, "save", filename="a")
    assert done(s, "erase") == {"id_slot": 0, "n_erased": n}
    assert held(s) == [0] and done(s, "erase")["n_erased"] == 0
    is_refused(s, "empty", "save", filename="b")
    assert done(s, "restore", filename="a")["n_restored"] == n and held(s) == [n]
    assert done(s, "restore", filename="a")["n_restored"] == n       # over what it holds
    done(s, "save", filename="b")                                    # what was restored is saved as it was
    assert (files / "b").stat().st_size == (files / "a").stat().st_size
    assert told(s, **NORWAY)[0] == OSLO


def test_slots_are_apart(start, files):
    s = start("--numerics", "strict", "--parallel", 3, "--slot-save-path", files)
    told(s, **NORWAY)
    assert [n > 0 for n in held(s)] == [True, False, False]
    done(s, "save", filename="a")
    for other in range(3):
        done(s, "restore", other, filename="a")
    assert len(set(held(s))) == 1 and held(s)[0] > 0
    done(s, "erase", 1)
    assert [n > 0 for n in held(s)] == [True, False, True]
    assert told(s, **NORWAY)[0] == OSLO


def test_a_slot_at_work_is_waited_for(start, files):
    s = start(*STRICT, "--slot-save-path", files)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(told, s, **NORWAY) for _ in range(4)]
        orders = [pool.submit(done, s, "save", filename=f"f{i}") for i in range(4)]
        assert all(a.result()[0] == OSLO for a in answers)
        assert all(o.result()["n_saved"] > 0 for o in orders if not o.exception())
    done(s, "save", filename="last")
    assert done(s, "restore", filename="last")["n_restored"] > 0


def test_orders_while_others_are_answered(start, files):
    s = start("--numerics", "strict", "--parallel", 2, "--slot-save-path", files)
    want = told(s, **STORY)[0]
    done(s, "save", filename="a")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(told, s, **STORY) for _ in range(6)]
        for i in range(10):
            done(s, "restore", i % 2, filename="a")
        assert {a.result()[0] for a in answers} == {want}


# --- what is refused --------------------------------------------------------------------------------------------------


def test_without_a_directory(start):
    s = start(*STRICT)
    for action in ("save", "restore"):
        is_refused(s, "--slot-save-path", action, status=501, filename="a")
    assert done(s, "erase")["n_erased"] == 0


def test_wrong_orders(start, files, tmp_path):
    s = start(*STRICT, "--slot-save-path", files)
    told(s, **NORWAY)
    for name in ("../a", "a/b", "/etc/passwd", ".hidden", "", "..", "x" * 201, "a\nb"):
        is_refused(s, "filename", "save", filename=name)
    for body in ({}, {"filename": 5}, {"filename": None}):
        is_refused(s, "filename", "restore", **body)
    for action in ("delete", "", "SAVE"):
        is_refused(s, "?action=", action, filename="a")
    for slot in (1, 99, -1, "x", "0x", 10 ** 20):
        is_refused(s, "id of a slot", "erase", slot, status=404)
    is_refused(s, "No such file", "restore", filename="none")
    (files / "folder").mkdir()
    is_refused(s, "a folder", "restore", filename="folder")
    assert list(files.iterdir()) == [files / "folder"]
    done(s, "save", filename="a")
    data = (files / "a").read_bytes()
    for at in (20, 100, len(data) // 2, len(data) - 1):
        (files / "bad").write_bytes(data[:at] + bytes([data[at] ^ 8]) + data[at + 1:])
        is_refused(s, "bad: ", "restore", filename="bad")
    for n in (0, 17, len(data) // 2):
        (files / "bad").write_bytes(data[:n])
        is_refused(s, "bad: ", "restore", filename="bad")
    n = done(s, "restore", filename="a")["n_restored"]
    assert held(s) == [n] and told(s, **NORWAY)[0] == OSLO
    s.stop()
    is_refused(start("--numerics", "free", "--slot-save-path", files), "numerics strict", "restore", filename="a")
    is_refused(start(*STRICT, "--kv-k", "f32", "--slot-save-path", files), "f16+f16", "restore", filename="a")
    is_refused(start(*STRICT, "-c", "8", "--slot-save-path", files), "-c raises it", "restore", filename="a")


def test_the_option(program, tmp_path):
    refused(program, "-m", "x", "--slot-save-path", "", status=2)
    (tmp_path / "file").write_text("")
    refused(program, "-m", "x", "--slot-save-path", tmp_path / "file", status=1)
