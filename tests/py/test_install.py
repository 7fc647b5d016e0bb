"""`cmake --install build --prefix DIR` needs no root, and what it installs stands alone: no build folder, no source folder."""
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest

from programs import BUILD, SOURCE, TINY, environment, goldens

CMAKE = shutil.which("cmake")
NOBODY = pwd.getpwnam("nobody")
IS_ROOT = os.geteuid() == 0
pytestmark = pytest.mark.skipif(not CMAKE, reason="needs cmake")


def without_root(folder):
    """Options of subprocess.run for a user who owns nothing but `folder`; we ourselves, if we are such a user."""
    if not IS_ROOT:
        return {}
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    return {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}


@pytest.fixture(scope="module")
def place():
    """A folder below which everything may happen, reachable by any user: not pytest's, which every other session closes to others again."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quarry-install-"))
    folder.chmod(0o755)
    for name in ("home", "prefix", "build", "tmp"):
        (folder / name).mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def files(folder):
    return {p.relative_to(folder): (p.stat().st_mtime_ns, p.stat().st_size) for p in folder.rglob("*") if p.is_file()}


def copy_of_the_build(place):
    """`cmake --install` writes install_manifest.txt into the build folder: a user without rights to ours (root's home is closed) gets a copy of
    what it reads, of the source folder too."""
    for path in BUILD.rglob("cmake_install.cmake"):
        to = place / "build" / path.relative_to(BUILD)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(path.read_text().replace(str(BUILD), str(place / "build")).replace(str(SOURCE), str(place / "source")))
    shutil.copytree(SOURCE / "tuned", place / "source/tuned")
    shutil.copy2(SOURCE / "LICENSE", place / "source")
    for program in BUILD.glob("quarry*"):
        if program.is_file():
            shutil.copy2(program, place / "build")
    shutil.copy2(BUILD / "CMakeCache.txt", place / "build")
    return place / "build"


@pytest.fixture(scope="module")
def prefix(place):
    build = copy_of_the_build(place)
    options = without_root(place / "prefix")
    without_root(build)
    done = subprocess.run([CMAKE, "--install", build, "--prefix", place / "prefix"], capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, **options)
    assert done.returncode == 0, done.stderr + done.stdout
    return place / "prefix"


def installed(prefix, program, *args, **more):
    place = prefix.parent
    options = without_root(place / "home")
    without_root(place / "tmp")
    env = environment(**{"HOME": str(place / "home"), "XDG_CACHE_HOME": None, "TMPDIR": str(place / "tmp"), **more})
    return subprocess.run([prefix / "bin" / program, *args], env=env, cwd="/", capture_output=True, text=True, timeout=300, **options)


def test_the_programs_are_there_and_nothing_else(prefix):
    there = sorted(str(p) for p in files(prefix))
    records = [p for p in there if p.startswith("share/quarry/tuned/") and p.endswith(".jsonl")]
    assert [p for p in there if p not in records] == ["bin/quarry", "bin/quarry-gen", "bin/quarry-serve", "bin/quarry-tune", "share/doc/quarry/LICENSE"]
    assert len(records) == len(list((SOURCE / "tuned").glob("*.jsonl")))
    for p in prefix.glob("bin/*"):
        assert p.stat().st_mode & 0o777 == 0o755


def test_they_name_neither_source_nor_build(prefix):
    """Apart from what debuggers read."""
    for p in prefix.glob("bin/*"):
        dynamic = subprocess.run(["readelf", "-d", p], capture_output=True, text=True, check=True).stdout
        assert "RUNPATH" not in dynamic and "RPATH" not in dynamic
        for line in subprocess.run(["strings", "-d", p], capture_output=True, text=True, check=True).stdout.splitlines():
            assert str(BUILD) not in line


def test_show_and_generate(prefix):
    model = readable_model(prefix)
    done = installed(prefix, "quarry", "show", model)
    assert done.returncode == 0 and "qwen35" in done.stdout, done.stderr
    done = installed(prefix, "quarry-gen", "rmsnorm", "--shape", "n=1024,out=q8")
    assert done.returncode == 0 and "rmsnorm" in done.stdout, done.stderr


def readable_model(prefix):
    """A copy, since the source folder may be closed to other users."""
    to = prefix.parent / "tiny.gguf"
    if not to.exists():
        shutil.copyfile(TINY, to)
        to.chmod(0o644)
    return to


def test_it_answers_and_writes_to_its_cache_alone(prefix):
    place = prefix.parent
    model = readable_model(prefix)
    before, programs = files(SOURCE / "tests/models"), files(prefix)
    for g in goldens()[:2]:
        done = installed(prefix, "quarry", "run", "-m", model, "-t", "1", "-p", g["messages"][0]["content"])
        assert done.returncode == 0, done.stderr
        assert done.stdout == g["text"].replace("<|im_end|>", "") + "\n"
    written = files(place / "home")
    assert written and all(str(p).startswith(".cache/quarry/") for p in written)
    assert files(place / "tmp") == {} and list((place / "tmp").iterdir()) == []
    assert files(prefix) == programs and files(SOURCE / "tests/models") == before


def test_the_sibling_beside_it_is_its_verb(prefix):
    by_verb, by_name = installed(prefix, "quarry", "gen", "--version"), installed(prefix, "quarry-gen", "--version")
    assert by_verb.returncode == 0 and by_verb.stdout == by_name.stdout and by_name.stdout


def test_why_its_cache_cannot_be_made_is_told(prefix):
    """Not that the folder above it, which could not be made either, is not there."""
    closed = prefix.parent / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    done = installed(prefix, "quarry-tune", "--effort", "none", "-m", readable_model(prefix), XDG_CACHE_HOME=str(closed / "above"))
    assert done.returncode == 1
    assert f"{closed}/above/quarry: cannot make the directory: Permission denied" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("script", ["quickstart", "check"])
def test_a_folder_that_cannot_be_written_is_one_line(place, script):
    """Before packages are looked for, and without what CMake says of it."""
    copy = place / script
    (copy / "tests").mkdir(parents=True)
    for name in (script, "tests/setup.sh"):
        shutil.copy(SOURCE / name, copy / name)
    who = without_root(place / "tmp")
    for blocked in (copy, copy / "build"):          # another's folder, then a build/ of another's
        blocked.mkdir(exist_ok=True)
        blocked.chmod(0o555)
        done = subprocess.run([copy / script], capture_output=True, text=True, timeout=60, env=environment(), **who)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith(f"cannot write in {copy}/build: ")
        copy.chmod(0o755)
