"""quarry-tune --effort none from end to end: a set is built once, found again quickly, and repaired when something is damaged.

Needs the built programs (QUARRY_BUILD), a C compiler and tests/models/tiny.gguf."""
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest

BUILD = pathlib.Path(os.environ.get("QUARRY_BUILD", "build"))
SOURCE = pathlib.Path(os.environ.get("QUARRY_SOURCE", "."))
TUNE = BUILD / "quarry-tune"
QUARRY = BUILD / "quarry"
TINY = SOURCE / "tests/models/tiny.gguf"
SLOW = pytest.mark.skipif(not os.environ.get("QUARRY_SLOW"), reason="a minute in all: ./check --all")


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tune(home, *args, path=None, **env):
    variables = {"HOME": str(home), "PATH": path or os.environ["PATH"], **env}
    before = processor_seconds()
    done = subprocess.run([TUNE, *args], env=variables, capture_output=True, text=True, timeout=300)
    done.seconds = processor_seconds() - before  # not the clock's: others run beside it
    assert done.returncode in (0, 1, 2, 130), done
    return done


def build_tiny(home, *args, **env):
    return tune(home, "--effort", "none", "-m", str(TINY), *args, **env)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A home in which the tiny model's set was built; tests put back what they damage."""
    home = tmp_path_factory.mktemp("home")
    done = build_tiny(home)
    assert done.returncode == 0, done.stderr
    return home, done


def objects(home):
    return sorted((home / ".cache/quarry/objects").glob("??/*.so"))


def records(home):
    return sorted((home / ".cache/quarry/defaults").rglob("*.json"))


def state(home):
    return {p: p.read_bytes() for p in objects(home) + records(home)}


def test_builds_every_kernel_and_says_so(built):
    home, done = built
    kernels = int(re.search(r"built (\d+) kernels \(0 cached\) in [\d.]+ s with ", done.stderr).group(1))
    assert kernels == len(objects(home))
    with_object = [r for r in map(lambda p: json.loads(p.read_text()), records(home)) if r["objects"]]
    assert len(with_object) == kernels
    assert done.stdout == ""


def test_records_are_one_sorted_line_of_private_files(built):
    home, _ = built
    for path in records(home):
        text = path.read_text()
        record = json.loads(text)
        assert text == json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
        assert record["format"] == 1 and record["origin"] == "default"
        assert path.stat().st_mode & 0o777 == 0o600
        assert str(home) not in text
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in objects(home))


def test_second_run_builds_nothing_and_is_quick(built):
    home, _ = built
    before = state(home)
    done = build_tiny(home, path="/nonexistent")  # not even a compiler is needed
    assert done.returncode == 0, done.stderr
    assert "all cached" in done.stderr
    assert done.seconds < 2
    assert state(home) == before


def test_a_whole_set_needs_no_place_to_write(built, tmp_path):
    """Seen by another program as a store in which no file can be made."""
    home, _ = built
    cache = home / ".cache/quarry"
    before = state(home)
    if os.geteuid() == 0:
        pytest.skip("needs a user whom permissions bind (not root)")
    cache.chmod(0o500)
    try:
        done = build_tiny(home)
    finally:
        cache.chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert state(home) == before


def test_list_shows_the_store(built):
    home, _ = built
    lines = tune(home, "list").stdout.splitlines()
    assert len(lines) == len(records(home))
    assert any(line.startswith("default") and " matmul type=q8_0," in line for line in lines)
    as_json = [json.loads(line) for line in tune(home, "list", "--json").stdout.splitlines()]
    assert {r["op"] for r in as_json} >= {"layout", "embed", "matmul", "matvec", "rmsnorm"}


def test_damaged_object_is_told_and_built_again(built):
    home, _ = built
    path = objects(home)[0]
    before = state(home)
    path.write_bytes(path.read_bytes()[:1000])
    done = build_tiny(home)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if str(path) in line]
    assert len(told) == 1 and "damaged" in told[0]
    assert "built 1 kernel " in done.stderr
    assert state(home) == before


def test_lost_records_find_their_objects_again(built):
    home, _ = built
    before = state(home)
    for path in records(home):
        path.unlink()
    done = build_tiny(home)
    assert done.returncode == 0, done.stderr
    assert state(home) == before


@pytest.mark.parametrize("damage", [b"", b"{", b'{"format":99}', b"\xff" * 100], ids=["empty", "cut", "future", "noise"])
def test_damaged_record_is_told_and_written_again(built, damage):
    home, _ = built
    before = state(home)
    path = records(home)[-1]
    path.write_bytes(damage)
    done = build_tiny(home)
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stderr.splitlines() if str(path) in line]) == 1
    assert state(home) == before


@pytest.mark.parametrize("mode", ["damaged", pytest.param("writable by others", marks=SLOW)])
def test_many_damaged_files_are_one_line(built, mode):
    home, _ = built
    before = state(home)
    for path in before:
        if mode == "damaged":
            path.write_bytes(b"x")
        else:
            path.chmod(0o666)
    done = build_tiny(home)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if str(home) in line]
    assert len(told) == 1, done.stderr
    assert re.search(r"\b(\d+) damaged files under \S+/quarry \(first: /\S+: .+\); built anew", told[0])
    assert state(home) == before
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in before)


@SLOW
def test_run_tells_of_many_damaged_files_once(built):
    """Also where nothing can be built: the child and its parent meet the same files."""
    home, _ = built
    before = state(home)
    for path in before:
        path.write_bytes(b"x")
    done = ask(home, path="/nonexistent")
    assert done.returncode == 1
    assert len([line for line in done.stderr.splitlines() if "damaged" in line]) == 1, done.stderr
    build_tiny(home)
    assert state(home) == before


def test_unwritable_cache_is_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = build_tiny(tmp_path, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "XDG_CACHE_HOME" in done.stderr


def test_no_home_is_one_line(tmp_path):
    done = build_tiny("")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "XDG_CACHE_HOME" in done.stderr


def test_no_compiler_is_one_line(tmp_path):
    done = build_tiny(tmp_path, path="/nonexistent")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "no C compiler" in done.stderr


def test_compiler_errors_are_named(tmp_path):
    fake = tmp_path / "cc"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo fake 1.0; exit 0; }\necho "k.c:1:1: error: it went wrong" >&2\nexit 1\n')
    fake.chmod(0o755)
    done = build_tiny(tmp_path, "--cc", str(fake))
    assert done.returncode == 1
    assert "error: it went wrong" in done.stderr
    assert not objects(tmp_path) and not [r for r in records(tmp_path) if json.loads(r.read_text())["objects"]]


def test_wrong_usage_is_status_2(tmp_path):
    for args in ([], ["-m"], ["-m", "x", "--preset", "y"], ["--numerics", "exact", "-m", "x"], ["--card", "cpu:z80", "-m", "x"],
                 ["--card", "cuda:sm_70,l2=5,sms=3", "-m", "x"], ["fly"], ["-j", "0", "-m", "x"]):
        assert tune(tmp_path, *args).returncode == 2, args
    help = tune(tmp_path, "list", "--help").stdout
    assert help.startswith("usage: quarry tune list ") and help.count("quarry tune ") == 1 and "--measured" in help and "--sign" not in help
    done = tune(tmp_path, "--fly")
    assert done.returncode == 2 and done.stderr == "quarry-tune: unknown option '--fly' (`quarry tune --help` lists the options)\n"
    for verb, option, value in (("list", "--effort", "quick"), ("trust", "-m", "x"), ("explain", "--table", None), ("admit", "-j", "2"),
                                ("plan", "-o", "x"),
                                ("verify", "--json", None), ("verify", "--effort", "quick"), ("import", "--kv-k", "q8"), ("list", "--sign", "x")):
        words = {"explain": ["topk"], "admit": ["x"], "import": ["x"]}.get(verb, [])
        done = tune(tmp_path, verb, *words, option, *([value] if value else []))
        assert done.returncode == 2 and f"{verb}: {option} does not go with it" in done.stderr, done.stderr
    for args in (["--effort", "huge"], ["--effort", "quick", "--card", "cpu:avx2"], ["--effort", "quick", "--cache", "x"]):
        assert tune(tmp_path, *args, "-m", str(TINY)).returncode == 2, args


def test_strict_holds_canonical_kernels_alone(built):
    home, _ = built
    done = build_tiny(home, "--numerics", "strict")
    assert done.returncode == 0, done.stderr
    strict = [r for r in (json.loads(p.read_text()) for p in records(home)) if r["profile"] == "strict"]
    assert strict and all(r["numerics"] == "canonical" for r in strict)


def test_two_at_once_lose_nothing(tmp_path):
    variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    both = [subprocess.Popen([TUNE, "--effort", "none", "-m", TINY], env=variables, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        err = process.communicate(timeout=300)[1]
        assert process.returncode == 0, err
    done = build_tiny(tmp_path)
    assert "all cached" in done.stderr
    assert not list((tmp_path / ".cache/quarry/objects").glob("work-*"))


def test_a_compiler_that_does_not_answer_can_be_interrupted(tmp_path):
    cc = tmp_path / "cc"
    cc.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexec sleep 100\n")
    cc.chmod(0o755)
    process = subprocess.Popen([TUNE, "--effort", "none", "-m", TINY, "--cc", cc], env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
                               stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (tmp_path / "asked").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=10)[1]
    assert process.returncode == 130 and "interrupted" in err


def test_interrupt_keeps_what_is_built_and_leaves_no_rest(tmp_path):
    variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"].replace(f"{BUILD}/tests/cc_cache:", "")}   # a compiler that takes its time
    process = subprocess.Popen([TUNE, "--effort", "none", "-m", TINY, "-j", "1"], env=variables, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not objects(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    err = process.communicate(timeout=30)[1]
    assert time.monotonic() - begin < 2
    assert process.returncode == 130 and "interrupted" in err
    assert not list((tmp_path / ".cache/quarry/objects").glob("work-*"))
    assert not list((tmp_path / ".cache/quarry").rglob(".tmp-*"))
    kept = len(objects(tmp_path))
    done = build_tiny(tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"({kept} cached)" in done.stderr


# --- the program that needs a set -------------------------------------------------------------------------------------


def ask(home, *args, path=None, **env):
    variables = {"HOME": str(home), "PATH": path or os.environ["PATH"], **env}
    return subprocess.run([QUARRY, "run", "-m", TINY, "-p", "What is the capital of France?", "-n", "12", *args], env=variables,
                          capture_output=True, text=True, timeout=300)


def test_run_builds_the_set_in_a_child_and_says_so(tmp_path):
    first = ask(tmp_path)
    assert first.returncode == 0, first.stderr
    assert "Paris" in first.stdout
    assert "--effort none" in first.stderr and re.search(r"built \d+ kernels", first.stderr)
    second = ask(tmp_path, path="/nonexistent")
    assert second.returncode == 0 and second.stdout == first.stdout
    assert "quarry-tune" not in second.stderr


def test_run_repairs_a_damaged_set(built):
    home, _ = built
    answer = ask(home).stdout
    before = state(home)
    for path in objects(home):
        path.write_bytes(b"")
    done = ask(home)
    assert done.returncode == 0 and done.stdout == answer
    assert done.stderr.count("damaged object") >= 1
    ask(home)
    build_tiny(home)
    build_tiny(home, "--numerics", "strict")
    assert state(home) == before


def test_run_repairs_records_put_together_by_hand(built):
    """Each with the kernel and the object of another shape: whole files, a wrong answer if they were believed."""
    home, _ = built
    answer = ask(home).stdout
    before = {path: path.read_bytes() for path in records(home)}
    matvecs = [(path, json.loads(path.read_text())) for path in before if path.parent.name == "matvec"]
    matvecs = [(path, r) for path, r in matvecs if r["profile"] == "pinned"]
    for (path, own), (_, other) in zip(matvecs, matvecs[1:] + matvecs[:1]):
        path.write_text(json.dumps(own | {k: other[k] for k in ("kernel", "objects", "source")}, sort_keys=True, separators=(",", ":")) + "\n")
    done = ask(home)
    assert done.returncode == 0 and done.stdout == answer and "damaged record" in done.stderr, done.stderr
    build_tiny(home)
    build_tiny(home, "--numerics", "strict")
    assert {path: path.read_bytes() for path in before} == before


def test_run_repairs_objects_that_took_each_others_place(built):
    """Whole by their hashes, and not the kernels that they are named for."""
    home, _ = built
    answer = ask(home).stdout
    first, *others = objects(home)
    before = {path: path.read_bytes() for path in others}
    for path in others[:6]:
        path.write_bytes(first.read_bytes())
        path.with_suffix(".sum").write_bytes(first.with_suffix(".sum").read_bytes())
    done = ask(home)
    assert done.returncode == 0 and done.stdout == answer, done.stderr
    assert ask(home, "--numerics", "strict").returncode == 0      # which of the two sets the six are of, their names decide
    assert {path: path.read_bytes() for path in others} == before


def test_run_answers_without_a_cache(tmp_path):
    (tmp_path / "file").write_text("in the way")
    rest = set(pathlib.Path("/tmp").glob("quarry-??????"))
    done = ask(tmp_path, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout
    assert len([line for line in done.stderr.splitlines() if "XDG_CACHE_HOME" in line]) == 1
    assert set(pathlib.Path("/tmp").glob("quarry-??????")) <= rest


def test_run_without_a_compiler_says_what_is_missing(tmp_path):
    done = ask(tmp_path, path="/nonexistent")
    assert done.returncode == 1 and done.stdout == ""
    assert len([line for line in done.stderr.splitlines() if "no C compiler" in line]) == 1


def test_the_server_builds_what_is_missing_before_it_is_ready(built, tmp_path):
    """In a child, as run does; a damaged record beside it is told and built anew."""
    home = tmp_path / "copy"
    shutil.copytree(built[0], home)
    for path in objects(home)[:2]:
        path.unlink()
    damaged = records(home)[-1]
    damaged.write_bytes(b"{")
    server = subprocess.Popen([BUILD / "quarry-serve", "-m", TINY, "--port", "0"], env={"HOME": str(home), "PATH": os.environ["PATH"]}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    said = []
    for line in server.stderr:
        said.append(line)
        if line.startswith("# ready"):
            break
    server.send_signal(signal.SIGTERM)
    said += server.communicate(timeout=60)[1].splitlines(True)
    text = "".join(said)
    assert server.returncode == 0, text
    assert re.search(r"\d+ of \d+ kernels are missing: building them with default params \(quarry-tune --effort none\)", text)
    assert re.search(r"kernels: 0 tuned, 0 borrowed, \d+ default; ", text) and len([line for line in said if str(damaged) in line]) == 1
    assert state(home).keys() == {home / p.relative_to(built[0]) for p in state(built[0])}


# --- measuring --------------------------------------------------------------------------------------------------------

# A compiler that breaks two candidates of topk: one writes to address 0, one returns without having written anything.
BREAKING_CC = """#!/bin/sh
case "$*" in
*topk*block128*) sed -i '/^void topk/{n;s/{/{ *(volatile int *)0 = 0;/}' ./*topk*block128*.c ;;
*topk*block256*) sed -i '/^void topk/{n;s/{/{ return;/}' ./*topk*block256*.c ;;
esac
exec cc "$@"
"""


def tuned_records(home):
    return sorted((home / ".local/share/quarry/tunes").rglob("*.json"))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A home for which the tiny model was tuned, with one thread and a compiler that breaks two candidates."""
    home = tmp_path_factory.mktemp("tuned")
    cc = home / "breaking-cc"
    cc.write_text(BREAKING_CC)
    cc.chmod(0o755)
    done = tune(home, "tune", "--effort", "quick", "-t", "1", "-m", str(TINY), "--cc", str(cc))
    assert done.returncode == 0, done.stderr
    return home, done, cc


def test_every_problem_is_measured_and_recorded(tuned):
    home, done, _ = tuned
    records = [json.loads(p.read_text()) for p in tuned_records(home)]
    problems = int(re.match(r"(\d+) problems: ", done.stdout).group(1))
    assert len(records) == problems and "0 not tuned" in done.stdout
    for r in records:
        assert r["origin"] == "tuned" and r["effort"] == "quick" and r["format"] == 1
        if r["op"] == "layout":
            continue
        assert r["measured"] and all(m["n"] >= 3 and m["median_us"] > 0 for m in r["measured"])
        assert r["cost"]["bytes"][1] > 0 and r["baseline"]["us"] > 0 and r["roof"]["bound"] in ("bytes", "ops")
        assert (r["gain"] > 0) == (r["params"] != r["baseline"]["params"])


def test_tuned_records_are_one_sorted_line(tuned):
    for path in tuned_records(tuned[0]):
        text = path.read_text()
        assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
        assert str(tuned[0]) not in text


def test_the_gate_ran_before_anything_was_written(tuned):
    assert re.search(r"gate passed: \d+ positions, \d+ of them continued greedily, of \d+ of \d+ texts .*; mean KLD ", tuned[1].stdout)


def test_candidates_that_crash_or_are_wrong_fail_alone(tuned):
    lines = tuned[1].stderr.splitlines()
    at = next(i for i, line in enumerate(lines) if "] topk " in line)
    assert "default params" in lines[at]
    assert re.search(r"2 failed, the first: topk_\w+: .*(signal 11|expected)", lines[at + 1])


def test_nothing_is_left_to_do_the_second_time(tuned):
    home, _, cc = tuned
    before = {p: p.read_bytes() for p in tuned_records(home)}
    done = tune(home, "tune", "--effort", "quick", "-t", "1", "-m", str(TINY), "--cc", str(cc))
    assert done.returncode == 0 and done.stdout.startswith("nothing to do")
    assert done.stderr == "" and done.seconds < 2
    assert {p: p.read_bytes() for p in tuned_records(home)} == before


# --- what is recorded stays, when it is found right again ---------------------------------------------------------------


def copy_of(tuned, tmp_path):
    """A home of its own with what was tuned, and the arguments that tune it again."""
    home = tmp_path / "copy"
    shutil.copytree(tuned[0], home)
    return home, ("--effort", "quick", "-t", "1", "-m", str(TINY))


def record_of(home, op):
    path = next(p for p in tuned_records(home) if p.parent.name == op)
    return path, json.loads(path.read_text())


def write_record(path, record):
    path.write_text(json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n")


def states(home, *args):
    """op -> states of its problems, as plan tells."""
    done = tune(home, "plan", "--json", *args)
    assert done.returncode == 0, done.stderr
    ops = {}
    for p in json.loads(done.stdout)["problems"]:
        ops.setdefault(p["op"], set()).add(p["state"])
    return ops


def another_compiler(tmp_path):
    cc = tmp_path / "other-cc"
    cc.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo "other 99.1"; exit 0; }\nexec cc "$@"\n')
    cc.chmod(0o755)
    return "--cc", str(cc)


def test_under_another_compiler_winners_are_to_be_checked_again(tuned, tmp_path):
    home, args = copy_of(tuned, tmp_path)
    planned = states(home, *args, *another_compiler(tmp_path))
    assert planned["layout"] == {"recorded"} and planned["swiglu"] == {"looked at again"}


@SLOW
def test_under_another_compiler_winners_are_checked_again_and_stay(tuned, tmp_path):
    home, args = copy_of(tuned, tmp_path)
    args += another_compiler(tmp_path)
    before = {p: json.loads(p.read_text()) for p in tuned_records(home)}
    done = tune(home, "tune", *args)
    assert done.returncode == 0 and "0 not tuned" in done.stdout, done.stderr
    again = int(re.search(r"^(\d+) recorded winners were built and checked again, and stay$", done.stdout, re.M).group(1))
    assert again == len([r for r in before.values() if r["objects"]]) and done.stderr.count(": right again, ") == again
    assert done.stderr.count("compiled by ") == 1 and "gate" not in done.stdout
    for path, old in before.items():
        new = json.loads(path.read_text())
        assert (new["params"], new["effort"], new["source"]) == (old["params"], old["effort"], old["source"])
        assert all(o["compiler"] == "other 99.1" for o in new["objects"])
    assert tune(home, "tune", *args).stdout.startswith("nothing to do")


def test_what_was_changed_by_hand_is_never_believed(tuned, tmp_path):
    """Params that are not legal, params of another kernel, a cut file, an object that is gone."""
    home, args = copy_of(tuned, tmp_path)
    illegal, record = record_of(home, "swiglu")
    write_record(illegal, record | {"params": record["params"].replace("isa=", "isa=z")})
    other, record = record_of(home, "conv_silu")
    vecs = re.search(r"vecs=\d+", record["params"]).group(0)
    write_record(other, record | {"params": record["params"].replace(vecs, "vecs=1" if vecs != "vecs=1" else "vecs=2")})
    cut, _ = record_of(home, "gated_norm")
    cut.write_bytes(b"{")
    gone = record_of(home, "rope_table")[1]["objects"][0]["name"]
    (home / ".cache/quarry/objects" / gone[:2] / (gone + ".so")).unlink()
    planned = states(home, *args)
    assert {op: s for op, s in planned.items() if s != {"recorded"}} == {
        "swiglu": {"to be measured"}, "gated_norm": {"to be measured"}, "conv_silu": {"to be measured"}, "rope_table": {"looked at again"}}
    done = tune(home, "tune", *args)
    assert done.returncode == 0 and "gate passed" in done.stdout, done.stderr
    assert re.search(r"\b3 damaged files under \S+ \(first: \S+: damaged record: ", done.stderr)   # the store gives none of them out
    assert "rope_table" not in done.stderr                                 # built again with the default kernels
    assert set.union(*states(home, *args).values()) == {"recorded"}


def test_plan_leaves_out_what_failed_here(tuned):
    home, _, cc = tuned
    planned = json.loads(tune(home, "plan", "topk", "-t", "1", "-m", str(TINY), "--cc", str(cc), "--json").stdout)["problems"][0]
    assert planned["state"] == "to be measured" and planned["known_bad"] == 2 and len(planned["candidates"]) >= 3
    assert not [p for p in planned["candidates"] if "avx512vnni" in p and "block=128" in p]


def test_explain_tells_why(tuned):
    home, args = tuned[0], ("-t", "1", "--device", "cpu")
    path, record = record_of(home, "gdn_step")
    for model in ((), ("-m", str(TINY))):
        text = tune(home, "explain", "gdn_step", *args, *model).stdout
        assert text.startswith(f"gdn_step {record['shape']}\n  winner    {record['params']}\n            tuned with effort quick; ")
        assert f"{record['measured'][0]['median_us']:.1f} us, spread " in text and re.search(r"\n  roof      (\d+ % of what |in cache)", text)
        assert "\n  search    " in text and "\n  race      of all that were tried, at 1 row" in text
        got = json.loads(tune(home, "explain", "gdn_step", *args, *model, "--json").stdout)
        assert [g["record"] for g in got] == [record]
    matmuls = [json.loads(p.read_text()) for p in tuned_records(home) if p.parent.name == "matmul"]
    text = tune(home, "explain", "matmul", "n=1280", *args).stdout
    assert text.count("winner") >= 1 and text.count("\nmatmul ") + 1 == len([r for r in matmuls if "n=1280" in r["shape"]])
    search = json.loads(tune(home, "explain", "topk", *args, "--json").stdout)[0]["search"]
    assert search["space"] - search["legal"] == sum(search["pruned"].values())
    assert len([c for c in search["candidates"] if c.get("bad", "").startswith(("crash: ", "wrong: "))]) == 2
    timed = [c for c in search["candidates"] if c["times"]]
    assert record_of(home, "topk")[1]["params"] in [c["params"] for c in timed] and all(len(z["us"]) > 1 for z in timed[0]["times"])
    assert re.search(r"\n              bad       \S+: (crash|wrong): .*\n", tune(home, "explain", "topk", *args).stdout)
    other = tune(home, "explain", "gdn_step", "-t", "2", "--device", "cpu", "-m", str(TINY)).stdout
    assert "            borrowed from " + record["card"] in other
    for words, why in ((("fly",), "expected one of"), (("matmul", "n=7,"), "expected a part of"), (("matmul", "-t", "7"), "nothing was measured for ")):
        done = tune(home, "explain", *words, "--device", "cpu", *(args[:2] if "-t" not in words else ()))
        assert done.returncode == 1 and done.stdout == "" and why in done.stderr.splitlines()[-1]
    assert tune(home, "explain").returncode == 2


def test_explain_shows_every_size_of_a_race(tuned):
    """Steps of a winner, columns of its race, and the default params' time are the same in number; without a journal that is said."""
    home, args = tuned[0], ("-t", "1", "--device", "cpu")
    path, record = record_of(home, "attn_prefill")
    text = tune(home, "explain", "attn_prefill", *args).stdout
    steps = [f"{t['rows']} rows" + (f" behind {t['past']} tokens" if t["past"] else "") for t in record["measured"]]
    assert len(steps) > 1 and f"\n  race      of all that were tried, at {' | '.join(steps)}; " in text
    winner, = re.findall(r"\n  ((?: +\S+)+) us       \S+  <- winner", text)
    assert [float(us) for us in winner.split()] == pytest.approx([t["median_us"] for t in record["measured"]], rel=0.5)
    search = json.loads(tune(home, "explain", "attn_prefill", *args, "--json").stdout)[0]["search"]
    assert [(t["rows"], t["past"]) for t in search["default_times"]] == [(t["rows"], t["past"]) for t in record["measured"]]
    assert search["default_times"][0]["median_us"] == pytest.approx(record["baseline"]["us"], rel=1e-3)
    several = [r for r in map(lambda p: json.loads(p.read_text()), tuned_records(home))
               if len(r.get("measured", [])) > 1 and r["params"] != r["baseline"]["params"]]
    for r in several:
        text = tune(home, "explain", r["op"], r["shape"], *args).stdout
        assert re.search(r"\n  default   .*: [\d.]+ us at \d+ rows?.*, [\d.]+ us at ", text), text


def test_verify_looks_at_every_winner_again(tuned, tmp_path):
    """A compiler breaks one of them: it is told, and taken out of use; all others are right."""
    home, args = copy_of(tuned, tmp_path)
    path, record = record_of(home, "swiglu")
    cc = tmp_path / "breaking-cc"
    cc.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo "other 99.1"; exit 0; }\n'
                  f'case "$*" in *{record["kernel"]}.c*) sed -i "/^void swiglu/{{n;s/{{/{{ return;/}}" ./*.c ;; esac\nexec cc "$@"\n')
    cc.chmod(0o755)
    winners = {}
    for r in (json.loads(p.read_text()) for p in tuned_records(home)):
        if r["objects"]:
            winners[r["op"]] = winners.get(r["op"], 0) + 1
    before = {p: p.read_bytes() for p in tuned_records(home)}
    done = tune(home, "verify", "-t", "1", "--device", "cpu", "--cc", str(cc))
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "quarry-tune: 1 winner is wrong on this machine", done.stderr
    counted = {m[0]: int(m[1]) for m in re.findall(r"^(\w+): (\d+) winners? right", done.stdout, re.M)}
    assert counted == winners | {"swiglu": 0}
    assert re.search(r"^  WRONG: swiglu \S+ \S+: .*\n    it is out of use, kept as (\S+);", done.stdout, re.M).group(1) == str(path.with_suffix(".wrong"))
    assert path.with_suffix(".wrong").read_bytes() == before.pop(path)
    assert {p: p.read_bytes() for p in tuned_records(home)} == before
    assert states(home, *args)["swiglu"] == {"to be measured"}
    assert " 1 default" in ask_tuned(home).stderr
    again = tune(home, "verify", "rmsnorm", "-t", "1", "--device", "cpu", "-m", str(TINY))
    assert again.returncode == 0 and re.match(r"rmsnorm: 2 winners right; [\d.]+ to [\d.]+ of the recorded time; against default params", again.stdout)


def test_verify_needs_something_to_verify(tmp_path):
    done = tune(tmp_path, "verify", "-t", "1", "--device", "cpu")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "nothing was measured for cpu:" in done.stderr
    assert tune(tmp_path, "verify", "--card", "cpu:avx2").returncode == 2
    for words, why in ((), "op: expected one of layout"), (("--sparse-prefill", "0.99"), "no winner is recorded"):
        done = tune(tmp_path, "verify", "attn_pick", "-t", "1", "--device", "cpu", "-m", str(TINY), *words)
        assert done.returncode == 1 and why in done.stderr


def compare(home, other, *args):
    return tune(home, "compare", str(other), "-t", "1", "--device", "cpu", *args)


def with_params(record, params):
    """The record as another tune would have it with these params: kernel and text are what the generator gives."""
    def unit(p):
        return subprocess.run([BUILD / "quarry-gen", record["op"], "--shape", record["shape"], "--params", p, "--unit", "--card", record["card"]],
                              capture_output=True, text=True, check=True).stdout
    assert hashlib.sha256(unit(record["params"]).encode()).hexdigest() == record["source"]
    text = unit(params)
    return record | {"params": params, "kernel": re.match(r"/\* (\w+):", text).group(1), "source": hashlib.sha256(text.encode()).hexdigest()}


@pytest.fixture
def two_sets(tuned, tmp_path):
    """A home with what was tuned, its records as a file, and these with a slow winner of swiglu."""
    home, _ = copy_of(tuned, tmp_path)
    records = [json.loads(line) for line in tune(home, "list", "--measured", "-t", "1", "--device", "cpu").stdout.splitlines()]
    slow = with_params(next(r for r in records if r["op"] == "swiglu"), "isa=scalar,fma=soft")
    (tmp_path / "same.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    (tmp_path / "slow.jsonl").write_text("".join(json.dumps(slow if r["op"] == "swiglu" else r) + "\n" for r in records))
    return home, tmp_path / "same.jsonl", tmp_path / "slow.jsonl", slow


def test_compare_duels_where_two_tunes_differ(two_sets):
    home, same, slow, record = two_sets
    n = len(same.read_text().splitlines())
    before = {p: p.read_bytes() for p in tuned_records(home)}
    done = compare(home, same)
    within = "0 within 2 % or the noise of their duel"
    assert done.returncode == 0 and re.fullmatch(rf"{n} winners the same, {within}, 0 better there, 0 worse there; [\d.]+ s\n", done.stdout), done
    done = compare(home, slow)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "quarry-tune: 1 winner differs by more than 2 % and their duel's noise", done
    row, counts = done.stdout.splitlines()
    assert re.fullmatch(r"worse   swiglu n=768,out=q8: here isa=\S+, there isa=scalar\S*: [\d.]+ % slower over all its sizes, a difference beyond [\d.]+ %; "
                        r"at the first size [\d.]+ us here, [\d.]+ there", row)
    assert counts.startswith(f"{n - 1} winners the same, {within}, 0 better there, 1 worse there")
    assert {p: p.read_bytes() for p in tuned_records(home)} == before
    path, _ = record_of(home, "swiglu")
    write_record(path, record)
    done = compare(home, same, "--json", "-m", str(TINY))
    told = json.loads(done.stdout)
    assert done.returncode == 1 and told["better"] == 1 and told["same"] == n - 1 and told["worse"] == told["failed"] == 0
    row, = told["differ"]
    assert row["verdict"] == "better" and row["own"] == record["params"] and row["gain"] > 0.02 and row["own_us"] > row["other_us"] > 0


def test_compare_tells_of_kernels_that_fail_here(two_sets, tmp_path):
    home, _, slow, record = two_sets
    cc = tmp_path / "breaking-cc"
    cc.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo "other 99.2"; exit 0; }\n'
                  f'case "$*" in *{record["kernel"]}.c*) sed -i "/^void swiglu/{{n;s/{{/{{ return;/}}" ./*.c ;; esac\nexec cc "$@"\n')
    cc.chmod(0o755)
    done = compare(home, slow, "--cc", str(cc))
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "quarry-tune: 1 winner fails here"
    assert re.match(r"failed  swiglu n=768,out=q8: here \S+, there \S+: .*expected", done.stdout)


def test_compare_believes_nothing_that_a_file_says(two_sets, tmp_path):
    home, same, slow, record = two_sets
    before = state(home)
    bad = tmp_path / "bad.jsonl"
    for change, why in (({"params": "isa=abacus"}, "isa"), ({"source": "0" * 64}, "not what this version's generator makes"),
                        ({"kernel": "system"}, "not what this version's generator makes"), ({"shape": "n=9999999,out=q8"}, "beyond 1048576"),
                        ({"card": "cpu:avx2,t=77"}, "expected records of"), ({"generator": "0" * 64}, "no problem that was measured here")):
        bad.write_text(json.dumps(record | change) + "\n")
        done = compare(home, bad)
        assert done.returncode == 1 and done.stdout == "" and why in done.stderr.splitlines()[-1], (change, done)
    for text, why in (("{" * 100, "bad.jsonl:1"), ("", "no problem that was measured here"), ("\0\1\2", "bad.jsonl:1")):
        bad.write_text(text)
        done = compare(home, bad)
        assert done.returncode == 1 and done.stdout == "" and why in done.stderr.splitlines()[-1], (text, done)
    assert compare(home, tmp_path / "none.jsonl").returncode == 1
    assert compare(tmp_path / "empty", same).returncode == 1
    assert state(home) == before
    assert tune(home, "compare").returncode == 2 and tune(home, "compare", str(same), "--card", "cpu:avx2").returncode == 2


def test_list_tells_what_a_model_would_run_with(tuned):
    home, _, _ = tuned
    for threads, origin in (("1", "tuned"), ("2", "borrowed")):
        done = tune(home, "list", "-t", threads, "--device", "cpu", "-m", str(TINY))
        lines = done.stdout.splitlines()
        assert all(line.startswith(origin) for line in lines) and done.stderr.endswith(f"\n{len(lines)} problems: {len(lines)} {origin}\n")
        assert any(" rows<=512 isa=" in line and re.search(r"  [\d.]+ us, (\d+ % of roof \(|in cache)", line) for line in lines)
    everything = tune(home, "list", "-t", "1", "--device", "cpu")
    assert everything.stderr.splitlines()[-1] == f"{len(everything.stdout.splitlines())} records: {len(tuned_records(home))} tuned, {len(records(home))} default"


@SLOW
def test_a_place_that_is_lost_before_the_end_loses_nothing(tuned, tmp_path):
    """While the gate runs, the place of winners goes away, as on a disk that becomes read-only: one line; the next tune has what was measured."""
    home, args = copy_of(tuned, tmp_path)
    path, _ = record_of(home, "swiglu")
    path.unlink()
    place = home / ".local/share/quarry/tunes"
    process = subprocess.Popen([TUNE, "tune", *args], env={"HOME": str(home), "PATH": os.environ["PATH"]}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    for line in process.stderr:
        said.append(line)
        if "gate: " in line:
            place.rename(tmp_path / "away")
            place.write_text("in the way")
            break
    rest = process.communicate(timeout=300)[1].splitlines()
    assert process.returncode == 1, rest
    assert str(place) in rest[-1] and "XDG_DATA_HOME" in rest[-1] and "swiglu n=768,out=q8: " in "".join(said)
    place.unlink()
    (tmp_path / "away").rename(place)
    done = tune(home, "tune", *args)
    assert done.returncode == 0 and "gate passed" in done.stdout, done.stderr
    assert "1 problems were measured by a tune that did not end; 0 are left" in done.stderr and "] swiglu" not in done.stderr
    assert path.exists() and set.union(*states(home, *args).values()) == {"recorded"}


def test_a_changed_template_is_that_ops_affair_alone(tuned, tmp_path):
    home, args = copy_of(tuned, tmp_path)
    tree = tmp_path / "tree"
    for folder in ("gen", "templates", "runtime"):
        shutil.copytree(SOURCE / folder, tree / folder)
    for path in (tree / "templates/swiglu").glob("*.lua"):
        path.write_text(path.read_text() + "\n-- changed\n")
    changed = states(home, *args, "--generator", str(tree))
    assert [op for op, s in changed.items() if s != {"recorded"}] == ["swiglu"]


def ask_tuned(home):
    variables = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run([QUARRY, "run", "-t", "1", "-m", TINY, "-p", "What is the capital of France?", "-n", "12"], env=variables,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "Paris" in done.stdout, done.stderr
    return done


def test_run_uses_what_was_tuned(tuned):
    counted = re.search(r"kernels: (\d+) tuned, 0 borrowed, 0 default", ask_tuned(tuned[0]).stderr)
    assert int(counted.group(1)) == len(tuned_records(tuned[0]))


@pytest.mark.parametrize("damage", [b"", b"{", b'{"format":99}'], ids=["empty", "cut", "future"])
def test_a_damaged_winner_is_one_line_and_default_params(tuned, damage):
    home, _, _ = tuned
    path = next(p for p in tuned_records(home) if p.parent.name == "gated_norm")
    whole = path.read_bytes()
    path.write_bytes(damage)
    try:
        done = ask_tuned(home)
    finally:
        path.write_bytes(whole)
    assert len([line for line in done.stderr.splitlines() if str(path) in line]) == 1
    assert "borrowed, 1 default" in done.stderr


def test_a_winner_whose_object_is_cut_is_built_again(tuned):
    home, _, _ = tuned
    record = json.loads(next(p for p in tuned_records(home) if p.parent.name == "swiglu").read_text())
    name = record["objects"][0]["name"]
    path = home / ".cache/quarry/objects" / name[:2] / (name + ".so")
    whole = path.read_bytes()
    path.write_bytes(whole[:500])
    done = ask_tuned(home)
    assert len([line for line in done.stderr.splitlines() if str(path) in line]) == 1
    assert " 0 default" in done.stderr and path.read_bytes() == whole


def test_bench_traces_every_kernel(tuned):
    home, _, _ = tuned
    done = subprocess.run([QUARRY, "bench", "-t", "1", "-m", TINY, "-p", "64", "-n", "4", "-r", "1", "--trace", "--json"],
                          env={"HOME": str(home), "PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [r for r in json.loads(done.stdout) if "trace" in r]
    prefill = {r["op"] for r in lines if r["trace"] == "pp64"}
    decode = {r["op"] for r in lines if r["trace"] == "tg4"}
    assert {"matmul", "gdn_chunk", "attn_prefill"} <= prefill and {"matvec", "gdn_step", "attn_decode"} <= decode
    assert all(r["us"] > 0 and r["calls"] > 0 and r["bytes"] > 0 and r["percent_of_roof"] > 0 for r in lines)


def failing_cc(tmp_path):
    fake = tmp_path / "cc"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && { echo fake 1.0; exit 0; }\necho "k.c:1:1: error: it went wrong" >&2\nexit 1\n')
    fake.chmod(0o755)
    return fake


def test_a_compiler_that_fails_ends_a_tune_in_one_line(tmp_path):
    for cc, why in (("/bin/false", "/bin/false"), (failing_cc(tmp_path), "it went wrong")):
        done = tune(tmp_path, "tune", "--effort", "quick", "-t", "1", "-m", str(TINY), "--cc", str(cc))
        assert done.returncode == 1 and done.stdout == ""
        assert len(done.stderr.splitlines()) == 1 and why in done.stderr
        assert not tuned_records(tmp_path) and not objects(tmp_path)


def test_default_kernels_of_another_compiler_do_not_hide_that_this_one_fails(tmp_path):
    assert build_tiny(tmp_path, "-t", "1").returncode == 0
    done = tune(tmp_path, "tune", "--effort", "quick", "-t", "1", "-m", str(TINY), "--cc", str(failing_cc(tmp_path)))
    assert done.returncode == 1 and done.stdout == ""
    assert "the default params cannot be built: " in done.stderr.splitlines()[-1]
    assert not tuned_records(tmp_path)


# A compiler whose matvec kernels return at once, layouts and all.
IDLE_CC = """#!/bin/sh
case "$*" in *matvec*) sed -i '/^void matvec/{n;s/{/{ return;/}' ./*matvec*.c ;; esac
exec cc "$@"
"""


@SLOW
def test_layouts_that_cannot_be_measured_are_not_recorded(tmp_path):
    cc = tmp_path / "idle-cc"
    cc.write_text(IDLE_CC)
    cc.chmod(0o755)
    done = tune(tmp_path, "tune", "--effort", "quick", "-t", "1", "-m", str(TINY), "--cc", str(cc))
    unmeasured = set(re.findall(r"layout of (\S+): .*not measured: the default params fail", done.stderr))
    recorded = [json.loads(p.read_text()) for p in tuned_records(tmp_path)]
    assert unmeasured and not unmeasured & {r["shape"] for r in recorded if r["op"] == "layout"}
    assert not [r for r in recorded if r["op"] == "matvec"]


def test_no_place_for_winners_is_one_line_before_any_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = tune(tmp_path, "tune", "--effort", "quick", "-m", str(TINY), XDG_DATA_HOME=str(tmp_path / "file"))
    assert done.returncode == 1 and done.seconds < 5
    assert len(done.stderr.splitlines()) == 1 and "XDG_DATA_HOME" in done.stderr


def start_quick(home, *more, **env):
    variables = {"HOME": str(home), "PATH": os.environ["PATH"], **env}
    command = [TUNE, "tune", "--effort", "quick", "-t", "1", "-m", str(TINY), *more]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process, sig):
    """It must end at once; its output is then in .out and .err."""
    process.send_signal(sig)
    begin = time.monotonic()
    process.out, process.err = process.communicate(timeout=30)
    assert time.monotonic() - begin < 2


def interrupt(home, ready, sig=signal.SIGINT, more=()):
    """A quick tune that is ended with `sig` once `ready` is true."""
    process = start_quick(home, *more)
    deadline = time.monotonic() + 120
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    end(process, sig)
    return process


def journal(home):
    """All whole lines of all sessions, oldest first."""
    sessions = sorted((home / ".local/state/quarry/journal/v1").glob("*/*.jsonl"))
    return [json.loads(line) for p in sessions for line in p.read_text().split("\n")[:-1]]


def count(home, ev):
    return sum(e["ev"] == ev for e in journal(home))


def test_tunes_that_were_ended_go_on_where_they_were(tmp_path):
    """One interrupted, one killed, one that comes to its end, and two that wait for that one: a second ends while it does."""
    done = interrupt(tmp_path, lambda: count(tmp_path, "won"))
    assert done.returncode == 130 and done.out == ""
    assert re.fullmatch(r"quarry-tune: interrupted.* kept.*; the same command goes on from there", done.err.splitlines()[-1]), done.err
    assert objects(tmp_path) and not tuned_records(tmp_path)
    assert not list((tmp_path / ".cache/quarry/objects").glob("work-*"))
    assert journal(tmp_path)[-1]["ev"] == "close" and journal(tmp_path)[-1]["left"] > 0
    enough = 2 * count(tmp_path, "won") + 12
    killed = interrupt(tmp_path, lambda: count(tmp_path, "won") >= enough, signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL and not tuned_records(tmp_path)
    kept = {json.dumps(e["record"], sort_keys=True) for e in journal(tmp_path) if e["ev"] == "won"}
    last = start_quick(tmp_path)
    while count(tmp_path, "open") < 3:
        time.sleep(0.01)
    waiting, after = start_quick(tmp_path), start_quick(tmp_path)
    assert f"another tune works on this card (process {last.pid}): waiting" in waiting.stderr.readline()
    end(waiting, signal.SIGINT)
    assert waiting.returncode == 130 and last.poll() is None
    _, err = last.communicate(timeout=300)
    assert last.returncode == 0, err
    assert re.search(r"\d+ problems were measured by a tune that did not end; \d+ are left", err)
    assert kept <= {json.dumps(json.loads(p.read_text()), sort_keys=True) for p in tuned_records(tmp_path)}  # nothing was measured again
    assert not count(tmp_path, "bad")
    out, err = after.communicate(timeout=300)
    assert after.returncode == 0 and "nothing to do" in out, err


def test_again_measures_what_is_recorded_and_loses_none_of_it(tuned, tmp_path):
    home, args = copy_of(tuned, tmp_path)
    before, won = {p: p.read_bytes() for p in tuned_records(home)}, count(home, "won")
    done = interrupt(home, lambda: count(home, "won") > won, more=("--again",))
    assert done.returncode == 130 and " kept" in done.err.splitlines()[-1], done.err
    assert {p: p.read_bytes() for p in tuned_records(home)} == before
    assert tune(home, "tune", *args).stdout.startswith("nothing to do")
    for more in (("--effort", "none"), ("--roofs", "--device", "cpu")):
        done = tune(home, "tune", "--again", "-m", str(TINY), *more)
        assert done.returncode == 2 and "--again measures a model's kernels" in done.stderr


@SLOW
def test_again_records_anew(tuned, tmp_path):
    home, args = copy_of(tuned, tmp_path)
    before = {p: json.loads(p.read_text()) for p in tuned_records(home)}
    done = tune(home, "tune", "--again", *args)
    assert done.returncode == 0 and ", 0 recorded before, 0 not tuned" in done.stdout, done.stderr
    after = {p: json.loads(p.read_text()) for p in tuned_records(home)}
    assert before.keys() == after.keys()
    assert all(before[p]["measured"] != r["measured"] for p, r in after.items() if r["op"] != "layout")


def test_no_place_for_a_journal_is_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    process = start_quick(tmp_path, XDG_STATE_HOME=str(tmp_path / "file"))
    lines = [process.stderr.readline()]
    while lines[-1] and "layout of" not in lines[-1]:
        lines.append(process.stderr.readline())
    end(process, signal.SIGTERM)
    assert process.returncode == 130
    assert len([line for line in lines if "goes on without a journal" in line]) == 1
    assert process.err.splitlines()[-1] == "quarry-tune: interrupted: nothing is recorded; the kernels that were built are kept"
