"""The gate of quarry-tune: a set that is wrong only as a whole is found out, its op named, and nothing of it written.

The kernels are spoiled by a compiler of the test's own: what it adds to them does harm in the gate's process alone, so that every earlier
check passes. Needs the built programs (QUARRY_BUILD), a C compiler and tests/models/tiny.gguf."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

BUILD = pathlib.Path(os.environ.get("QUARRY_BUILD", "build"))
SOURCE = pathlib.Path(os.environ.get("QUARRY_SOURCE", "."))
TUNE = BUILD / "quarry-tune"
TINY = SOURCE / "tests/models/tiny.gguf"
OPS = ("conv_silu", "gdn_step")  # have candidates that differ

# What is built in phase "default" waits in vain wherever it is timed, so that anything else wins; later gdn_step does `harm` in the gate.
CC = r"""#!/bin/sh
here=$(dirname "$0")
add() {
    cat "$here/in_gate" "$2" >"$2.new" && mv "$2.new" "$2"
    sed -i "/^void [a-z]/{n;s/{/{ $1/}" "$2"
}
for a in "$@"; do
    case "$(cat "$here/phase") $a" in
    default*conv_silu*.c|default*gdn_step*.c) add "if (!in_gate()) for (volatile int i = 0; i < 1000000; i++) {}" "$a" ;;
    tune*gdn_step*.c) add "if (in_gate()) $(cat "$here/harm")" "$a" ;;
    esac
done
exec cc "$@"
"""
IN_GATE = r"""#include <stdio.h>
#include <string.h>
static int look(void)
{
    char line[4096] = "";
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f) fclose(f);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(line + i, "--gate")) return 1;
    return 0;
}
static int in_gate(void)
{
    static int known = -1;
    return known < 0 ? (known = look()) : known;
}
"""


def command(home, *args):
    return [TUNE, *args, "-t", "1", "-m", TINY, "--cc", home / "cc"]


def environment(home):
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


def tuned(home):
    return {p.parent.name: p.read_text() for p in (home / ".local/share/quarry/tunes").rglob("*.json") if p.parent.name in OPS}


@pytest.fixture(scope="module")
def default_set(tmp_path_factory):
    """A home in which all but OPS count as tuned, with their default params."""
    home = tmp_path_factory.mktemp("home")
    for name, text in (("cc", CC), ("in_gate", IN_GATE), ("phase", "default")):
        (home / name).write_text(text)
    (home / "cc").chmod(0o755)
    for numerics in ("pinned", "reference"):
        subprocess.run(command(home, "--effort", "none", "--numerics", numerics), env=environment(home), check=True,
                       stderr=subprocess.DEVNULL, timeout=300)
    (home / "phase").write_text("tune")
    made = home / ".cache/quarry/defaults"
    for path in made.rglob("*.json"):
        record = json.loads(path.read_text())
        if record["op"] in OPS or record["profile"] != "pinned":
            continue
        record.update(origin="tuned", effort="quick", gain=0)
        to = home / ".local/share/quarry/tunes" / path.relative_to(made)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n")
    return home


@pytest.fixture
def home(default_set, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(default_set, home)
    return home


def tune(home, harm):
    (home / "harm").write_text(harm)
    return subprocess.run(command(home, "tune", "--effort", "quick"), env=environment(home), capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("harm, says", [("return;", "mean KLD "), ("*(volatile int *)0 = 0;", "the set fails: crash: signal 11 ")],
                         ids=["wrong", "crash"])
def test_the_spoiled_op_is_named_and_not_written(home, harm, says):
    done = tune(home, harm)
    assert done.returncode == 0, done.stderr
    blamed = [line for line in done.stderr.splitlines() if "is to blame" in line]
    assert len(blamed) == 1 and says in blamed[0], done.stderr
    assert re.search(r": gdn_step \S+ with vecs=\d+ is to blame and keeps its default params$", blamed[0]), done.stderr
    assert re.search(r"^gate passed: \d+ positions, ", done.stdout, re.M)
    assert list(tuned(home)) == ["conv_silu"]
    record = json.loads(tuned(home)["conv_silu"])
    assert record["params"] != record["baseline"]["params"]
    events = [json.loads(line) for path in (home / ".local/state/quarry/journal").rglob("*.jsonl") for line in path.read_text().splitlines()]
    assert [(e["op"], e["kind"]) for e in events if e["ev"] == "bad"] == [("gdn_step", "wrong")]
    assert [e["passed"] for e in events if e["ev"] == "gate"] == [True]


def gate_child_of(pid):
    """The pid of a --gate child of `pid` that has begun to read, else None."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text()
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid and b"--gate" in (entry / "cmdline").read_bytes().split(b"\0"):
                return int(entry.name)
        except (OSError, ValueError):
            pass
    return None


def test_a_killed_gate_is_one_line_and_nothing_is_written(home):
    (home / "harm").write_text(";")
    process = subprocess.Popen(command(home, "tune", "--effort", "quick"), env=environment(home), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    child = None
    while not child and process.poll() is None and time.monotonic() < deadline:
        child = gate_child_of(process.pid)
        time.sleep(0.01)
    assert child, process.communicate()
    os.kill(child, signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    told = [line for line in err.splitlines() if "ended by signal 9" in line]
    assert process.returncode == 1 and out == ""
    assert len(told) == 1 and told[0].endswith("nothing is written") and err.splitlines()[-1] == told[0], err
    assert not tuned(home)
    assert not list((home / ".cache/quarry/objects").glob("work-*"))


def test_the_gate_refuses_what_is_no_job(tmp_path):
    for job in (b"", b"{", b"[]\n", b'{"do":"score"}\n', b'{"do":"score","trace":"/nonexistent","numerics":"pinned"}\n', b"\xff\n"):
        done = subprocess.run([TUNE, "--gate"], input=job, env=environment(tmp_path), capture_output=True, timeout=60)
        answer = json.loads(done.stdout)
        assert done.returncode == 1 and answer["ok"] is False and answer["why"], done


# --- the child, asked directly ----------------------------------------------------------------------------------------


def ask(home, **job):
    """Its answer, and the texts that it read."""
    job = {"model": str(TINY), "device": "cpu", "threads": 1, "n_ctx": 16384, "answer": 16, "program_dir": str(BUILD), "numerics": "pinned",
           "rate": 20e9, "least": 4, "patience": 100, **job}
    done = subprocess.run([TUNE, "--gate"], input=json.dumps(job) + "\n", env=environment(home), capture_output=True, text=True, timeout=120)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode == 0) == lines[-1]["ok"], done
    return lines[-1], {line["text"] for line in lines[:-1]}


def test_a_set_is_equal_to_itself_and_a_reference_that_is_too_slow_says_so(default_set, tmp_path):
    trace = str(tmp_path / "trace")
    slow, texts = ask(default_set, do="reference", trace=trace, seconds=1e-3)
    assert slow["slow"] and "its first text would take about" in slow["why"] and not texts
    for _ in range(2):  # what was begun before does no harm
        answer, texts = ask(default_set, do="reference", trace=trace, seconds=1e-3, must=1)
        assert answer["ok"] and texts == {"ko-facts"}
    score, again = ask(default_set, do="score", trace=trace)
    assert again == texts and score["kld"] == 0 and score["differ"] == 0 and score["rows"] == score["kept"] > 16
    (tmp_path / "trace").write_bytes(b"no trace")
    assert "cut short" in ask(default_set, do="score", trace=trace)[0]["why"]
