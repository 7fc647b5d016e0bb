"""quarry tune contribute and admit: an owner's records as one text, and what may come of such a text.

Needs the built programs (QUARRY_BUILD) and a C compiler. Records are made by --effort none and given times here: what they claim is not tested."""
import getpass
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("QUARRY_BUILD", "build"))
CARD = "cpu:amd-25-97,isa=avx2+sse42+scalar,l1=32,l2=1024,l3=32768,t=3"
# One layer of delta net, one of attention, 16-bit weights: few kernels.
MODEL = """return {
  name = "two", n_layers = 2, interval = 2, n_embd = 64, n_ff = 32, n_vocab = 300, n_ctx_train = 4096,
  n_head = 2, n_head_kv = 1, head_dim = 32, rope_dims = 8, rope_sections = { 2, 1, 1, 0 }, n_k_heads = 1, n_v_heads = 2, state_dim = 32, tied = true,
}
"""


def tune(home, *args):
    variables = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run([BUILD / "quarry-tune", *map(str, args)], env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1, 2), (done.returncode, done.stderr)
    return done


def as_measured(record, us):
    return record | {"origin": "tuned", "effort": "normal", "gain": 0.5, "driver": "580.159.03", "roof": {"bound": "bytes", "pct": 50},
                     "baseline": {"params": record["params"], "us": 2 * us},
                     "measured": [{"rows": 1, "past": 0, "n": 11, "median_us": us, "mad_us": 1}]}


def line(record):
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home whose store holds measured winners of a card that is not here, and one of older templates."""
    home = tmp_path_factory.mktemp("home")
    (home / "two.lua").write_text(MODEL)
    done = tune(home, "--effort", "none", "--preset", home / "two.lua", "--type", "f16", "--card", CARD)
    assert done.returncode == 0, done.stderr
    made = sorted((home / ".cache/quarry/defaults/v1").rglob("*.json"))
    assert len(made) > 20
    for i, path in enumerate(made):
        record = as_measured(json.loads(path.read_text()), 100 + 2 * i)
        to = home / ".local/share/quarry/tunes/v1" / path.relative_to(home / ".cache/quarry/defaults/v1")
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(line(record))
    to.with_name("0" * 16 + "-" + "0" * 16 + ".json").write_text(line(record | {"generator": "0" * 64}))
    for folder in (home / ".local").rglob(""):
        folder.chmod(0o700)
    for path in (home / ".local").rglob("*.json"):
        path.chmod(0o600)
    return home


@pytest.fixture(scope="module")
def text(home):
    done = tune(home, "contribute", "--card", CARD)
    assert done.returncode == 0, done.stderr
    assert "1 records are left out" in done.stderr
    return done.stdout


def records(text):
    return [json.loads(row) for row in text.splitlines() if row.startswith("{")]


def sealed(rows):
    """A contribution of these records, as contribute would end it."""
    body = "".join(line(r) for r in rows)
    return "# quarry contribution 1\n" + body + "sha256 " + hashlib.sha256(body.encode()).hexdigest() + "\n"


def admit(home, folder, text, *more):
    path = folder / "sent.txt"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return tune(home, "admit", path, *more)


def test_the_text_tells_what_a_reviewer_asks(text, home):
    head, body = text.split("#\n{", 1)
    facts = f"# card      {CARD}\n", "# driver    580.159.03\n", "# compiler  ", "# clocks ", "# ceilings ", "# records   %d\n" % len(records(text))
    for part in facts:
        assert part in head, part
    for r in records(text):
        row = next(row for row in head.splitlines() if f"| {r['op']} " in row and f" {r['shape']} " in row)
        assert r["params"] in row and (not r["kernel"] or "%.2f" % r["measured"][0]["median_us"] in row and " 50 % bytes" in row and " normal" in row)
        assert re.fullmatch("[0-9a-f]{64}", r["generator"]) and r["objects"] == [] and r["origin"] == "tuned"
    assert "{" + body == sealed(records(text)).split("\n", 1)[1]


def test_a_text_that_could_not_be_written_is_no_success(home):
    with open("/dev/full", "w") as full:
        for args in (["contribute", "--card", CARD], ["--help"]):
            done = subprocess.run([BUILD / "quarry-tune", *args], env={"HOME": str(home), "PATH": os.environ["PATH"]}, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
            assert done.returncode == 1 and "could not write the result" in done.stderr, (args, done)


def test_nothing_personal_is_in_it(text, home):
    for word in (str(home), "/tmp", "/home", socket.gethostname(), getpass.getuser() if getpass.getuser() != "root" else "/root"):
        assert word not in text, word
    assert not re.search(r"\b20\d\d-\d\d", text)


def test_its_records_go_in_as_they_would_ship(home, text, tmp_path):
    looked = admit(home, tmp_path, text)
    assert looked.returncode == 0 and f"{len(records(text))} records of {CARD}, all legal" in looked.stdout, looked.stderr
    assert list(tmp_path.glob("*.jsonl")) == []
    done = admit(home, tmp_path, text.replace("\n", "\r\n"), tmp_path)      # as some mailers send it
    assert done.returncode == 0 and f"{len(records(text))} new, 0 better" in done.stdout, done.stderr
    file, = tmp_path.glob("*.jsonl")
    assert file.name == re.sub("[^a-z0-9.-]", "_", CARD) + ".jsonl"
    shipped = [row for row in tune(home, "list", "--measured", "--card", CARD).stdout.splitlines() if '"op":"ceiling"' not in row]
    assert [row for row in shipped if "0" * 64 not in row] == file.read_text().splitlines()
    before = file.read_bytes()
    again = admit(home, tmp_path, text, tmp_path)
    assert again.returncode == 0 and f"0 new, 0 better than what was there, {len(records(text))} not" in again.stdout
    assert file.read_bytes() == before


def test_a_better_one_replaces_and_an_older_one_goes(home, text, tmp_path):
    assert admit(home, tmp_path, text, tmp_path).returncode == 0
    file, = tmp_path.glob("*.jsonl")
    rows = [json.loads(row) for row in file.read_text().splitlines()]
    kernels = [r for r in rows if r["kernel"]]
    faster, noise, quick = [as_measured(r, r["measured"][0]["median_us"] - by) for r, by in zip(kernels, (50, 1, 50))]
    done = admit(home, tmp_path, sealed([faster, noise, quick | {"effort": "quick"}]), tmp_path)
    assert done.returncode == 0 and "0 new, 1 better than what was there, 2 not; 0 of" in done.stdout, done.stderr
    assert "1 of 3 records are of effort quick" in done.stderr
    assert line(faster) in file.read_text() and line(kernels[0]) not in file.read_text()
    stale = line(kernels[3]).replace(kernels[3]["generator"], "0" * 64)
    file.write_text(file.read_text().replace(line(kernels[3]), stale))
    done = admit(home, tmp_path, sealed([kernels[3]]), tmp_path)
    assert done.returncode == 0 and "1 new, 0 better than what was there, 0 not; 1 of other templates" in done.stdout
    assert stale not in file.read_text() and line(kernels[3]) in file.read_text()


def test_what_is_odd_is_said(home, text, tmp_path):
    r = next(r for r in records(text) if r["op"] == "matmul")
    odd = r | {"roof": {"bound": "ops", "pct": 180}, "gain": 0.95, "measured": [r["measured"][0] | {"mad_us": 50}]}
    done = admit(home, tmp_path, sealed([odd]))
    assert done.returncode == 0 and done.stdout.rstrip().endswith("4 to look at")
    for part in ("faster than the roof", "its times spread by more than 10 %", "its gain is not what its times say", "ten times as fast"):
        assert f"look: matmul {r['shape']}: {part}" in done.stderr, part
    assert f"look: matmul {r['shape']} rows<=512: faster than the roof" in admit(home, tmp_path, sealed([odd | {"rows": 512}])).stderr


def test_what_came_with_the_program_is_listed_as_shipped(home, text, tmp_path):
    """In its file it says tuned, for there it was."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "tuned").mkdir()
    program = shutil.copy(BUILD / "quarry-tune", tmp_path / "bin")
    assert admit(home, tmp_path, text, tmp_path / "tuned").returncode == 0
    done = subprocess.run([program, "list", "--card", CARD], env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]}, capture_output=True, text=True)
    n = len(records(text))
    assert [row.split()[0] for row in done.stdout.splitlines()] == n * ["shipped"] and f"{n} records: {n} shipped" in done.stderr, done


def changed(text, **fields):
    rows = records(text)
    i = next(i for i, r in enumerate(rows) if r["op"] == "matmul")
    rows[i] = rows[i] | fields
    return sealed(rows)


@pytest.mark.parametrize("change, part", [
    (lambda t: t.replace('"median_us":1', '"median_us":2', 1), "changed on their way"),
    (lambda t: t[:len(t) // 2].rsplit("\n", 1)[0], "the text is cut"), (lambda t: "", "expected records, found none"),
    (lambda t: t.replace("contribution 1", "contribution 2"), "sent.txt:1: expected '# quarry contribution 1'"),
    (lambda t: t.replace('"format":1', '"format":1,"format":1', 1), "format"), (lambda t: t.replace("# card", "# \udcff", 1), "expected UTF-8"),
    (lambda t: t + "more\n", "expected nothing behind the hash"), (lambda t: t.replace("#\n{", "hello\n{", 1), "expected a record"),
    (lambda t: sealed(records(t) + records(t)[:1]), "a second record"),
    (lambda t: sealed(records(t)[:1] + [records(t)[1] | {"card": "cpu:avx2"}]), "expected records of one card"),
    (lambda t: sealed([r | {"card": "cpu:avx2"} for r in records(t)]), "expected a card's whole key"),
    (lambda t: changed(t, params="isa=avx2,fma=hw,tm=77"), "tm"), (lambda t: changed(t, source="0" * 64), "not what this version's generator makes"),
    (lambda t: changed(t, generator="0" * 64), "other templates"), (lambda t: changed(t, origin="default"), "expected a measured winner"),
    (lambda t: changed(t, measured=[]), "expected times"), (lambda t: changed(t, op="none"), "no such op"),
    (lambda t: changed(t, format=2), "record of format 2"), (lambda t: changed(t, kernel="../../x"), "'kernel' holds"),
    (lambda t: changed(t, params="isa=avx512vnni"), "required: the card has the instruction path"),
])
def test_a_wrong_text_is_one_line_and_writes_nothing(home, text, tmp_path, change, part):
    done = admit(home, tmp_path, change(text), tmp_path)
    errors = [row for row in done.stderr.splitlines() if ": look: " not in row]
    assert done.returncode == 1 and done.stdout == "" and len(errors) == 1 and part in errors[0], done.stderr
    assert list(tmp_path.glob("*.jsonl")) == []


def test_damaged_texts_end_well(home, text, tmp_path):
    rng = random.Random(3)
    small = sealed(records(text)[:2]).encode()
    for _ in range(60):
        raw = bytearray(small)
        for _ in range(rng.randint(1, 4)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        done = admit(home, tmp_path, raw.decode("utf-8", "surrogateescape"))
        assert bytes(raw) == small or done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr


def test_nothing_to_give_is_one_line(tmp_path):
    done = tune(tmp_path, "contribute", "--card", CARD)
    why = f"nothing to contribute: no winners of {CARD} were measured here (quarry tune -m FILE measures)"
    assert done.returncode == 1 and done.stderr == f"quarry-tune: {why}\n"
    assert tune(tmp_path, "admit").returncode == 2
    assert tune(tmp_path, "admit", tmp_path / "none.txt").returncode == 1
