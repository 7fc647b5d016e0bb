"""A CPU without AVX: the programs start and answer under an emulated Westmere, with kernels that its own child built for it.

Every instruction that Westmere lacks is an error of the emulator, in the programs and in the kernels alike."""
import json
import re
import shutil
import subprocess

import pytest

from programs import BUILD, QUARRY, TINY, environment, goldens

QEMU = shutil.which("qemu-x86_64")
emulated = pytest.mark.skipif(not QEMU, reason="needs qemu-x86_64 (Debian: qemu-user)")
CHATS = [g for g in goldens() if g["messages"][0]["content"] in ("What is the capital of Norway?", "노르웨이의 수도는 어디인가요?", "68 더하기 57는?")]
PROGRAMS = ["quarry", "quarry-tune", "quarry-gen", "quarry-serve"]


def westmere(*args, home):
    env = environment(HOME=str(home), XDG_CACHE_HOME=None)
    return subprocess.run([QEMU, "-cpu", "Westmere", *args], env=env, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@emulated
def test_three_goldens_are_answered(home):
    assert len(CHATS) == 3
    for i, g in enumerate(CHATS):
        done = westmere(QUARRY, "run", "-m", TINY, "-t", "1", "-p", g["messages"][0]["content"], home=home)
        assert done.returncode == 0, done.stderr
        assert done.stdout == g["text"].replace("<|im_end|>", "") + "\n"
        assert re.search(r"isa=sse42\+scalar,", done.stderr), done.stderr
        assert ("--effort none" in done.stderr) == (i == 0), "expected the kernels to be built once"


@emulated
def test_every_kernel_is_for_that_card(home):
    """Runs after the answers: their kernels are the only ones in this home."""
    records = [json.loads(p.read_text()) for p in (home / ".cache/quarry/defaults").rglob("*.json")]
    assert records and all("avx" not in json.dumps(r["card"]) for r in records)
    objects = list((home / ".cache/quarry/objects").rglob("*.so"))
    assert objects
    for path in objects:
        assert not beyond_sse42(path), path


# roof_ops.c: loops that measure a path's peak, called only where the card has the path. templates/ref.h: clones of a function, of which the loader
# picks the CPU's.
CHOSEN = re.compile(r"^avx\w*_(?:f32|int8)$|^\w+\.avx2(?:\.\d+)?$")


def beyond_sse42(path):
    """The first instructions of a program that use AVX registers, or VEX or EVEX forms."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
    found = []
    for function in text.split("\n\n"):
        name = re.search(r"^[0-9a-f]+ <(.*)>:", function, re.M)
        if not name or not CHOSEN.match(name.group(1)):
            found += re.findall(r"^.*(?:%[yz]mm\d|\tv[a-z0-9]+ .*%xmm|\tvzero).*$", function, re.M)
    return found[:5]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_hold_no_avx(program):
    assert beyond_sse42(BUILD / program) == []


@pytest.mark.parametrize("program", PROGRAMS)
@emulated
def test_programs_start(program, home):
    done = westmere(BUILD / program, "--version", home=home)
    assert done.returncode == 0 and done.stdout.startswith("quarry"), done.stderr
