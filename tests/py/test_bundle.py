"""Kernel sets that travel: quarry tune export, import and trust, between homes that know nothing of each other.

Needs the built programs (QUARRY_BUILD), a C compiler, tests/models/tiny.gguf, and minisign for one test."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ.get("QUARRY_BUILD", "build"))
SOURCE = pathlib.Path(os.environ.get("QUARRY_SOURCE", "."))
TUNE = BUILD / "quarry-tune"
QUARRY = BUILD / "quarry"
TINY = SOURCE / "tests/models/tiny.gguf"
NOWHERE = "/nonexistent"  # a PATH without a compiler


def program(name, home, *args, path=None, cwd=None):
    variables = {"HOME": str(home), "PATH": path or os.environ["PATH"]}
    done = subprocess.run([name, *map(str, args)], env=variables, cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1, 2), done
    return done


def tune(home, *args, **more):
    return program(TUNE, home, *args, **more)


def good(done):
    assert done.returncode == 0, done.stderr
    return done


def refused(done, *parts, status=1):
    """The last line on stderr says why; nothing is on stdout."""
    assert done.returncode == status and done.stdout == "", done
    line = done.stderr.splitlines()[-1]
    assert all(part in line for part in parts), line


def records(home):
    folder = home / ".local/share/quarry/tunes"
    return {str(p.relative_to(folder)): json.loads(p.read_text()) for p in sorted(folder.rglob("*.json"))}


def answer(home, **more):
    done = program(QUARRY, home, "run", "-m", TINY, "-p", "Hello", "-n", "8", "-t", "2", **more)
    assert done.returncode == 0, done.stderr
    return done.stdout, re.search(r"kernels: (\d+) tuned, (\d+) borrowed, (\d+) default", done.stderr).groups()


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A home whose default params count as winners that were measured quickly: measuring itself is not what is tested here."""
    home = tmp_path_factory.mktemp("origin")
    good(tune(home, "--effort", "none", "-m", TINY, "-t", 2))
    made = home / ".cache/quarry/defaults"
    for path in made.rglob("*.json"):
        record = json.loads(path.read_text())
        record.update(origin="tuned", effort="quick", measured=[dict(rows=1, past=0, n=5, median_us=10, mad_us=1)], gain=0,
                      baseline=dict(params=record["params"], us=10), roof=dict(bound="bytes", pct=50))
        to = home / ".local/share/quarry/tunes" / path.relative_to(made)
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        to.write_text(json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n")
        to.chmod(0o600)
    shutil.rmtree(made)
    made = good(tune(home, "trust", "--new", home / "own.key"))
    key = made.stdout.split()[0]
    good(tune(home, "export", "-t", 2, "-o", home / "plain.tar.zst"))
    good(tune(home, "export", "-t", 2, "-o", home / "signed.tar.zst", "--binaries", "--sign", home / "own.key"))
    return home, key


def test_only_a_file_is_written_over(origin, tmp_path):
    home, _ = origin
    os.mkfifo(tmp_path / "fifo")
    refused(tune(home, "export", "-t", 2, "-o", tmp_path / "fifo"), "fifo", "expected a regular file or none", "FIFO", status=1)
    assert (tmp_path / "fifo").is_fifo()
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    good(tune(home, "export", "-t", 2, "-o", tmp_path / "link"))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").stat().st_size > 100


def test_a_set_of_the_default_name_is_not_written_over(origin, tmp_path):
    home, _ = origin
    (tmp_path / "set.tar.zst").write_text("signed, and sent to others")
    refused(tune(home, "export", "-t", 2, cwd=tmp_path), "set.tar.zst is there already")
    refused(tune(home, "build", "--card", "cpu:sse42", "-m", TINY, cwd=tmp_path), "set.tar.zst is there already")
    assert (tmp_path / "set.tar.zst").read_text() == "signed, and sent to others"
    good(tune(home, "export", "-t", 2, "-o", "set.tar.zst", cwd=tmp_path))
    assert (tmp_path / "set.tar.zst").stat().st_size > 100


def test_nothing_to_export(tmp_path):
    refused(tune(tmp_path, "export", cwd=tmp_path), "nothing to export")
    assert list(tmp_path.glob("*.zst")) == []


def test_what_cannot_be_signed_or_written_is_found_first(origin, tmp_path):
    home, _ = origin
    refused(tune(home, "export", "-t", 2, "-o", tmp_path / "no/set.tar.zst"), "no/set.tar.zst")
    refused(tune(home, "export", "-t", 2, "-o", tmp_path / "a.tar.zst", "--sign", tmp_path / "none.key"), "none.key")
    (tmp_path / "bad.key").write_text("untrusted comment: x\nno key\n")
    (tmp_path / "bad.key").chmod(0o600)
    refused(tune(home, "build", "--card", "cpu:avx2", "-m", TINY, "-o", tmp_path / "a.tar.zst", "--sign", tmp_path / "bad.key"), "minisign secret key")
    refused(tune(home, "list", "--sign", tmp_path / "bad.key"), "--sign", status=2)
    shutil.copy(home / "own.key", tmp_path / "open.key")
    for mode, found in ((0o644, "found 0644"), (0o660, "found 0660")):
        (tmp_path / "open.key").chmod(mode)
        refused(tune(home, "export", "-t", 2, "-o", tmp_path / "a.tar.zst", "--sign", tmp_path / "open.key"), "expected mode 0600", found, "chmod 600 ")
    assert not (tmp_path / "a.tar.zst").exists()
    (tmp_path / "open.key").chmod(0o400)
    good(tune(home, "export", "-t", 2, "-o", tmp_path / "a.tar.zst", "--sign", tmp_path / "open.key"))


def test_a_set_is_the_same_bytes_every_time_and_readable_without_quarry(origin, tmp_path):
    home, key = origin
    good(tune(home, "export", "-t", 2, cwd=tmp_path))
    assert (tmp_path / "set.tar.zst").read_bytes() == (home / "plain.tar.zst").read_bytes()
    if not shutil.which("zstd"):
        pytest.skip("needs the program zstd")
    listed = subprocess.run(["tar", "--zstd", "--utc", "-tvf", home / "signed.tar.zst"], capture_output=True, text=True, check=True).stdout.splitlines()
    names = [line.split()[-1] for line in listed]
    assert names[:2] == ["MANIFEST.json", "MANIFEST.json.minisig"] and names[2:] == sorted(names[2:])
    assert all(re.match(r"-rw-r--r-- 0/0 +\d+ 1970-01-01 00:00 ", line) for line in listed)
    assert {n.split("/")[0] for n in names[2:]} == {"objects", "records", "src"}
    assert b"/home" not in (home / "plain.tar.zst").read_bytes()


def test_minisign_checks_the_signature(origin, tmp_path):
    home, key = origin
    if not shutil.which("minisign") or not shutil.which("zstd"):
        pytest.skip("needs the programs minisign and zstd")
    subprocess.run(["tar", "--zstd", "-xf", home / "signed.tar.zst", "-C", tmp_path], check=True)
    done = subprocess.run(["minisign", "-Vm", tmp_path / "MANIFEST.json", "-P", key], capture_output=True, text=True)
    assert done.returncode == 0 and "verified" in done.stdout, done


def test_unsigned_set_is_compiled_and_tested_here(origin, tmp_path):
    home, _ = origin
    done = good(tune(tmp_path, "import", home / "plain.tar.zst"))
    assert "not signed: data only" in done.stderr
    compiled, taken, tested = map(int, re.search(r"\((\d+) kernels compiled, (\d+) taken as they came, (\d+) tested\)", done.stdout).groups())
    assert compiled == tested > 20 and taken == 0
    assert records(tmp_path) == records(home)      # the same compiler made the same objects
    again = good(tune(tmp_path, "import", home / "plain.tar.zst"))
    assert f"{len(records(home))} are here already" in again.stdout
    assert "all cached" in tune(tmp_path, "--effort", "none", "-m", TINY, "-t", 2, path=NOWHERE).stderr
    assert answer(tmp_path) == answer(home)
    nothing = good(tune(tmp_path, "--effort", "quick", "-m", TINY, "-t", 2))
    assert "nothing to do" in nothing.stdout       # no candidate is measured again


def test_without_a_compiler_only_a_trusted_set_comes_in(origin, tmp_path):
    home, key = origin
    refused(tune(tmp_path, "import", home / "plain.tar.zst", path=NOWHERE), "nothing here compiles", "not signed and has none", "quarry tune trust KEY")
    refused(tune(tmp_path, "import", home / "signed.tar.zst", path=NOWHERE), "nothing here compiles", "quarry tune trust KEY")
    assert records(tmp_path) == {}
    good(tune(tmp_path, "trust", key))
    done = good(tune(tmp_path, "import", home / "signed.tar.zst", path=NOWHERE))
    assert re.search(r"\(0 kernels compiled, (\d+) taken as they came, \1 tested\)", done.stdout)
    assert records(tmp_path) == records(home)
    assert answer(tmp_path, path=NOWHERE) == answer(home)


def test_another_card_gets_data_or_with_trust_and_no_compiler_kernels(origin, tmp_path):
    """Another number of threads is another card."""
    home, key = origin
    data, rig = tmp_path / "data", tmp_path / "rig"
    done = good(tune(data, "import", home / "signed.tar.zst", "-t", 1))
    assert "kept as that card's" in done.stdout and "for this card" not in done.stdout
    assert all(r["objects"] == [] for r in records(data).values()) and len(records(data)) == len(records(home))
    assert not list((data / ".cache/quarry/objects").glob("??/*.so"))
    trusting = tmp_path / "trusting"
    good(tune(trusting, "trust", key))
    done = good(tune(trusting, "import", home / "signed.tar.zst", "-t", 1))
    assert re.search(r"signed by the trusted key \S+", done.stderr) and "data only" not in done.stderr
    assert re.search(r"\d+ kept as that card's: this is another one, which borrows and builds them where it is near; this card is cpu:\S+t=1;", done.stdout), done.stdout
    good(tune(rig, "trust", key))
    done = good(tune(rig, "import", home / "signed.tar.zst", "-t", 1, path=NOWHERE))
    assert re.search(r" (\d+) for this card \(0 kernels compiled", done.stdout)
    assert "all cached" in tune(rig, "--effort", "none", "-m", TINY, "-t", 1, path=NOWHERE).stderr
    listed = [line.split()[0] for line in tune(rig, "list", "-t", 1).stdout.splitlines()]
    assert set(listed) == {"borrowed"}


def test_damaged_sets_leave_nothing(origin, tmp_path):
    home, key = origin
    good(tune(tmp_path, "trust", key))
    whole = (home / "signed.tar.zst").read_bytes()
    for name, data in {"cut": whole[:len(whole) // 2], "empty": b"", "text": b"no set at all\n", "flipped": whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:]}.items():
        path = tmp_path / f"{name}.tar.zst"
        path.write_bytes(data)
        refused(tune(tmp_path, "import", path), f"{name}.tar.zst: ")
    refused(tune(tmp_path, "import", tmp_path / "none.tar.zst"), "none.tar.zst")
    refused(tune(tmp_path, "import"), "one FILE", status=2)
    assert records(tmp_path) == {} and not (tmp_path / ".cache").exists()


def test_trust_knows_its_keys(tmp_path):
    made = good(tune(tmp_path, "trust", "--new", tmp_path / "a.key"))
    key, key_id = made.stdout.split()
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600
    refused(tune(tmp_path, "trust", "--new", tmp_path / "a.key"), "a.key")
    assert "no key is trusted" in good(tune(tmp_path, "trust")).stderr
    (tmp_path / "a.pub").write_text(f"untrusted comment: of a friend\n{key}\n")
    good(tune(tmp_path, "trust", tmp_path / "a.pub"))
    assert "already" in good(tune(tmp_path, "trust", key)).stdout
    assert tune(tmp_path, "trust").stdout == f"{key} {key_id} of a friend\n"
    listed = tmp_path / ".local/share/quarry/trusted"
    assert listed.stat().st_mode & 0o777 == 0o600
    listed.chmod(0o666)
    refused(tune(tmp_path, "trust"), "others may write it")
    listed.chmod(0o600)
    refused(tune(tmp_path, "trust", key[:-1]), "neither a public key")
    (tmp_path / "garbage").write_bytes(b"\x1b[2J\x07no key\n")
    refused(tune(tmp_path, "trust", tmp_path / "garbage"), "garbage: '?[2J?no key", "expected a minisign public key")
    refused(tune(tmp_path, "export", "--roofs"), "--roofs", status=2)
    refused(tune(tmp_path, "trust", tmp_path / "a.key"), "a.key holds a secret key: expected the public one")
    refused(tune(tmp_path, "trust", "--remove", "0" * 16), "no trusted key")
    good(tune(tmp_path, "trust", "--remove", key_id))
    assert tune(tmp_path, "trust").stdout == ""
    refused(tune(tmp_path, "trust", key, "--remove", key_id), "expected one of", status=2)


def test_a_set_built_for_a_plain_cpu_starts_a_rig_without_a_compiler(origin, tmp_path):
    home, key = origin
    maker, rig = tmp_path / "maker", tmp_path / "rig"
    done = good(tune(maker, "build", "--card", "cpu:sse42", "-m", TINY, "-o", tmp_path / "sse.tar.zst", "--sign", home / "own.key"))
    assert re.search(r"tiny\.gguf for cpu:other-0-0,isa=sse42\+scalar,\S+: 0 tuned, 0 borrowed, (\d+) default, signed", done.stdout)
    assert key in done.stderr
    done = good(tune(rig, "import", tmp_path / "sse.tar.zst"))        # with a compiler this card makes better ones itself
    assert "left out: default kernels of that card, and this machine compiles this card's own" in done.stdout and records(rig) == {}
    assert not (rig / ".cache/quarry/defaults").exists()
    good(tune(rig, "trust", key))
    done = good(tune(rig, "import", tmp_path / "sse.tar.zst", path=NOWHERE))
    assert re.search(r" (\d+) for this card \(0 kernels compiled, (\d+) taken as they came, \2 tested\)", done.stdout)
    done = good(program(QUARRY, rig, "run", "-m", TINY, "-p", "Hello", "-n", "8", path=NOWHERE))
    assert "0 tuned, 0 borrowed" in done.stderr
    assert done.stdout == good(program(QUARRY, home, "run", "-m", TINY, "-p", "Hello", "-n", "8")).stdout


def test_a_set_built_for_a_card_that_nobody_has_here(tmp_path, origin):
    """Needs NVRTC 12, which pip's nvidia-cuda-nvrtc-cu12 brings."""
    home, key = origin
    variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "VIRTUAL_ENV": sys.prefix}
    args = ["build", "--card", "cmp-100-210", "-m", TINY, "-o", tmp_path / "cmp.tar.zst", "--sign", home / "own.key"]
    done = subprocess.run([TUNE, *map(str, args)], env=variables, capture_output=True, text=True, timeout=600)
    if done.returncode and "no NVRTC compiles" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0 and "for cuda:sm_70,sms=" in done.stdout, done
    assert "with NVRTC 12." in done.stderr         # a driver of CUDA 12 is what such a rig has
    good(tune(tmp_path, "trust", key))
    here = good(tune(tmp_path, "import", tmp_path / "cmp.tar.zst"))
    assert "no CUDA card is here" in here.stdout and records(tmp_path) == {}
