"""A tune of op conv_silu whose candidates are bad in every way that is known, and which is killed at random moments.

However it ends, the same command goes on, comes to its end, finds every bad candidate (and says how it is bad), and a good one wins."""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

BUILD = pathlib.Path(os.environ.get("QUARRY_BUILD", "build"))
SOURCE = pathlib.Path(os.environ.get("QUARRY_SOURCE", "."))
CC = SOURCE / "tests/faults/bad_cc.py"
COMMAND = [BUILD / "tune_op", "conv_silu", SOURCE / "tests/models/tiny.gguf", CC, BUILD / "quarry-tune"]

# What the journal calls each kind.
KINDS = {
    "crash": "crash", "abort": "crash", "exits": "crash", "deep": "crash", "killed": "crash", "late-crash": "crash",
    "hang": "hang", "flood": "hang", "stopped": "hang",
    "wrong": "wrong", "infinite": "wrong", "wrong-second": "wrong", "wrong-ragged": "wrong", "unwritten": "wrong",
    "unstable": "unstable", "before": "canary", "behind": "canary", "input": "canary",
    "no-build": "build", "compiler-crash": "build", "compiler-hang": "build", "opening": "build",
}
SLOW = {"hang", "flood", "stopped", "compiler-hang"}
# Never the default of a CPU that runs these tests.
VICTIMS = [f"_{isa}_{fma}_vecs{n}" for isa in ("scalar", "sse42") for fma in ("soft", "none") for n in (1, 2, 4)]


class Rig:
    """A home in which a tune with these faults is started, killed and started again."""

    def __init__(self, home, faults):
        self.home, self.faults = home, faults
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"], "FAULTS": json.dumps(faults)}

    def start(self):
        return subprocess.Popen(COMMAND, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self):
        done = subprocess.run(COMMAND, env=self.env, capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, -signal.SIGKILL), (done.returncode, done.stdout, done.stderr)
        return done

    def kill_after(self, seconds):
        """True if it ended before."""
        process = self.start()
        try:
            process.communicate(timeout=seconds)
            assert process.returncode == 0
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return False
        return True

    def journal(self):
        sessions = sorted((self.home / ".local/state/quarry/journal/v1").glob("*/*.jsonl"))
        return [json.loads(line) for p in sessions for line in p.read_text().split("\n")[:-1]]

    def bad(self):
        """Params and kind of what the journal calls bad."""
        return {e["params"]: e["kind"] for e in self.journal() if e["ev"] == "bad"}

    def records(self):
        return [json.loads(p.read_text()) for p in (self.home / ".local/share/quarry/tunes").rglob("*.json")]


def params_of(victim):
    isa, fma, vecs = victim[1:].split("_")
    return f"isa={isa},fma={fma},vecs={vecs[4:]}"


def check(rig, killed):
    """After kills a candidate may have been blamed for one of them; a bad one then need not have shown how it is bad."""
    expected = {params_of(v): KINDS[kind] for v, kind in rig.faults.items()}
    bad = rig.bad()
    blamed = {p for p, kind in bad.items() if kind == "died"}
    assert killed or not blamed
    for params, kind in expected.items():
        assert params in bad or killed, (params, bad)
        assert bad.get(params, kind) in (kind, "died"), (params, bad)
    assert set(bad) - blamed <= set(expected), bad
    (record,) = rig.records()
    assert record["op"] == "conv_silu" and record["params"] not in expected
    assert record["baseline"]["params"] not in bad
    assert rig.journal()[-1] == {"ev": "close", "left": 0}


def test_handful_of_all_kinds_at_once(tmp_path):
    quick = [k for k in KINDS if k not in SLOW] + ["hang"]
    seed = time.time_ns()
    random.seed(seed)
    print("seed", seed)
    rig = Rig(tmp_path, dict(zip(VICTIMS, random.sample(quick, len(VICTIMS)))))
    kills = 0
    while kills < 4 and not rig.kill_after(random.uniform(0.3, 4)):
        kills += 1
    done = rig.finish()
    check(rig, kills > 0)
    assert "Sanitizer" not in done.stderr
    begin = time.monotonic()
    assert "nothing to do" in rig.finish().stdout and time.monotonic() - begin < 5


def measuring_child(parent):
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"--measure" in (p / "cmdline").read_bytes() and f"\nPPid:\t{parent}\n" in (p / "status").read_text():
                return int(p.name)
        except OSError:
            pass
    return None


def test_handful_of_killed_children_blame_nobody(tmp_path):
    """The measuring child is killed by somebody else, a system short of memory say."""
    rig = Rig(tmp_path, {})
    process = rig.start()
    kills = 0
    while kills < 3 and process.poll() is None:
        child = measuring_child(process.pid)
        if child:
            time.sleep(random.uniform(0, 1.5))
            try:
                os.kill(child, signal.SIGKILL)
                kills += 1
            except ProcessLookupError:
                pass
            time.sleep(2)
        time.sleep(0.02)
    out, _ = process.communicate(timeout=200)
    assert process.returncode == 0, out
    assert kills and not rig.bad()
    check(rig, False)


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_one_by_one_and_fifty_kills(tmp_path, kind):
    kills, homes = 0, 0
    while kills < 50:
        home = tmp_path / str(homes := homes + 1)
        home.mkdir()
        rig = Rig(home, {v: kind for v in random.sample(VICTIMS, 2)})
        while kills < 50 and not rig.kill_after(random.uniform(0, 2)):
            kills += 1
        rig.finish()
        check(rig, True)


def test_all_that_ends_the_tune_itself_is_not_tried_for_ever(tmp_path):
    rig = Rig(tmp_path, {VICTIMS[4]: "kills-tune"})
    ends = [rig.finish().returncode for _ in range(4)]
    assert ends == [-signal.SIGKILL] * 3 + [0]
    (record,) = rig.records()
    assert record["params"] != params_of(VICTIMS[4])


def test_all_that_writes_far_away_costs_the_child_alone(tmp_path):
    rig = Rig(tmp_path, {VICTIMS[4]: "far"})
    assert rig.finish().returncode == 0
    (record,) = rig.records()
    assert set(rig.bad()) <= {params_of(VICTIMS[4])} and record["params"] != params_of(VICTIMS[4])
