"""Starts the built programs for tests: the test model, its goldens, one kernel cache shared by all tests, a home of nobody.

Everything runs on one thread, so that tests may run side by side."""
import json
import os
import pathlib
import subprocess
import tempfile

SOURCE = pathlib.Path(os.environ.get("QUARRY_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("QUARRY_BUILD", SOURCE / "build"))
QUARRY = BUILD / "quarry"
TINY = SOURCE / "tests/models/tiny.gguf"
CACHE = BUILD / "tests/cache"
HOME = tempfile.TemporaryDirectory(prefix="quarry-home-")
START, END, THINK, THINK_END = 4071, 4072, 4094, 4095  # ids of <|im_start|>, <|im_end|>, <think>, </think>


def environment(**more):
    """HOME and the cache are ours; anything else that could change an answer is the program's own business."""
    env = {"PATH": os.environ["PATH"], "HOME": HOME.name, "XDG_CACHE_HOME": str(CACHE), **more}
    return {k: v for k, v in env.items() if v is not None}


def quarry(*args, stdin=b"", timeout=300, env=None):
    """Output as bytes in .stdout, stderr as text in .err."""
    done = subprocess.run([QUARRY, *args], input=stdin, capture_output=True, timeout=timeout, env=env or environment())
    done.err = done.stderr.decode()
    return done


def verb(name, *args, model=TINY, **more):
    return quarry(name, "-m", model, "-t", "1", *args, **more)


def refused(done, *parts, status=1):
    """One line on stderr that holds `parts`, apart from facts; nothing on stdout."""
    lines = [line for line in done.err.splitlines() if not line.startswith("# ")]
    assert done.returncode == status, (done.returncode, done.err)
    assert len(lines) == 1 and all(part in lines[0] for part in parts), lines
    assert done.stdout == b""


def goldens(name="greedy"):
    with open(SOURCE / f"tests/models/tiny/goldens/{name}.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f]
