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

# What is built in phase "default" waits in vain, so that anything else wins; later gdn_step has the file `harm` as its first statement.
CC = r"""#!/bin/sh
here=$(dirname "$0")
for a in "$@"; do
    case "$a" in
    *conv_silu*.c|*gdn_step*.c)
        [ "$(cat "$here/phase")" = default ] && sed -i '/^void [a-z]/{n;s/{/{ for (volatile int i = 0; i < 100000; i++) {}/}' "$a" ;;
    esac
    case "$a" in
    *gdn_step*.c)
        [ "$(cat "$here/phase")" = default ] || { cat "$here/in_gate" "$a" >"$a.new" && mv "$a.new" "$a"
            sed -i "/^void [a-z]/{n;s/{/{ if (in_gate()) $(cat "$here/harm")/}" "$a"; } ;;
    esac
done
exec cc "$@"
"""
IN_GATE = r"""#include <stdio.h>
#include <string.h>
static int in_gate(void)
{
    char line[4096] = "";
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f) fclose(f);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(line + i, "--gate")) return 1;
    return 0;
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
        subprocess.run(command(home, "--effort", "none", "--numerics", numerics), env=environment(home), check=True, stderr=subprocess.DEVNULL, timeout=300)
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


@pytest.mark.parametrize("harm, says", [("return;", "mean KLD "), ("*(volatile int *)0 = 0;", "the set fails: crash: signal 11 ")], ids=["wrong", "crash"])
def test_the_spoiled_op_is_named_and_not_written(home, harm, says):
    done = tune(home, harm)
    assert done.returncode == 0, done.stderr
    blamed = [line for line in done.stderr.splitlines() if "is to blame" in line]
    assert len(blamed) == 1 and says in blamed[0] and blamed[0].endswith("gdn_step is to blame and keeps its default params"), done.stderr
    assert re.search(r"^gate passed: \d+ positions, ", done.stdout, re.M)
    assert list(tuned(home)) == ["conv_silu"]
    record = json.loads(tuned(home)["conv_silu"])
    assert record["params"] != record["baseline"]["params"]


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
    process = subprocess.Popen(command(home, "tune", "--effort", "quick"), env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
