"""A cache whose disk is mounted noexec: a CPU's kernels cannot be mapped from there. They are built elsewhere, and what lies there stays."""
import os
import shutil
import subprocess

import pytest

from programs import BUILD, TINY, environment, goldens

ALONE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
MOUNT = 'mount -t tmpfs -o noexec none "$1" && cp -a "$2/." "$1" && (cd "$1" && find . -type f | sort > "$3") && shift 3 && "$@"'


def can_mount():
    return shutil.which("unshare") and not subprocess.run([*ALONE, "sh", "-c", "mount -t tmpfs -o noexec none /mnt"], capture_output=True).returncode


pytestmark = pytest.mark.skipif(not can_mount(), reason="may not mount a disk of its own")


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A cache that holds the test model's kernels."""
    place = tmp_path_factory.mktemp("full")
    done = subprocess.run([BUILD / "quarry-tune", "--effort", "none", "-m", TINY, "-t", "1"], env=environment(XDG_CACHE_HOME=str(place)), capture_output=True)
    assert done.returncode == 0, done.stderr
    return place


def run_noexec(tmp_path, content, *command):
    """Behind the command's own output: what lies on that disk then, beside what lay there before."""
    disk, before = tmp_path / "disk", tmp_path / "before"
    disk.mkdir()
    script = MOUNT + '; rc=$?; (cd "$XDG_CACHE_HOME" && find . -type f | sort) > after; exit $rc'
    done = subprocess.run([*ALONE, "sh", "-c", script, "sh", disk, content, before, *command], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                          env=environment(XDG_CACHE_HOME=str(disk)))
    return done, before.read_text().split(), (tmp_path / "after").read_text().split()


def test_kernels_are_built_elsewhere_and_none_is_lost(full, tmp_path):
    g = goldens()[0]
    done, before, after = run_noexec(tmp_path, full, BUILD / "quarry", "run", "-m", TINY, "-t", "1", "-p", g["messages"][0]["content"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == g["text"].replace("<|im_end|>", "") + "\n"
    assert "its disk is mounted noexec (XDG_CACHE_HOME names another place); kernels are built in a temporary directory" in done.stderr
    assert before == after and len([name for name in before if name.endswith(".so")]) > 20


def test_the_tuner_says_so_in_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    done, _, _ = run_noexec(tmp_path, tmp_path / "empty", BUILD / "quarry-tune", "--effort", "none", "-m", TINY, "-t", "1")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"quarry-tune: {tmp_path}/disk/quarry: kernels cannot run from there: its disk is mounted noexec "
                                        "(XDG_CACHE_HOME names another place)"]
