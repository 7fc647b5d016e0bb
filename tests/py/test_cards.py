"""Cards and variants by config alone: a card file and a model file in a folder of the user's, nothing else touched. Kernels are made for them,
compiled, checked by tests/simt, tuned (on this CPU) and run. The commands of gen/README.md and templates/README.md do what they say, and every
file of gen/cards says what is known of its card, and from where.

Needs the built programs (QUARRY_BUILD), a C compiler, g++; what compiles CUDA needs NVRTC (pip's nvidia-cuda-nvrtc-cu12)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import model_f64
from gguf_build import Shape, write_random

BUILD = pathlib.Path(os.environ.get("QUARRY_BUILD", "build")).resolve()
SOURCE = pathlib.Path(os.environ.get("QUARRY_SOURCE", pathlib.Path(__file__).parents[2])).resolve()

# Head counts, rhythm and sizes of no model there is: three query heads a KV head, three value heads a key head, attention every third layer.
VARIANT = """return {
  name = "ours-1b", n_layers = 3, interval = 3,
  n_embd = 96, n_ff = 160, n_vocab = 300, n_ctx_train = 4096,
  n_head = 6, n_head_kv = 2, head_dim = 32, rope_dims = 8, rope_sections = { 2, 1, 1, 0 },
  n_k_heads = 2, n_v_heads = 6, state_dim = 32,
  tied = true,
}
"""
SHAPE = Shape(n_layers=3, interval=3, n_embd=96, n_ff=160, n_head=6, n_head_kv=2, n_k_heads=2, n_v_heads=6, n_vocab=300, name="ours-1b")
# A T4 as a hypervisor might hand it out: a fourth of its SMs, half its shared memory.
CARD = """return {
  key = "cuda:sm_75,sms=10,l2=1024,bus=64,smem=32",
  title = "a quarter of a T4",
  measured = {},
  published = {},
  unknown = { "everything" },
}
"""
SMEM = 32 << 10


def run(home, program, *args, timeout=600):
    """VIRTUAL_ENV: the environment of this Python, where pip may have put NVRTC."""
    variables = {"HOME": str(home), "PATH": os.environ["PATH"], "VIRTUAL_ENV": sys.prefix}
    return subprocess.run([BUILD / program, *map(str, args)], env=variables, capture_output=True, text=True, timeout=timeout)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """A folder with the two files, which is a home too."""
    folder = tmp_path_factory.mktemp("ours")
    (folder / "ours-1b.lua").write_text(VARIANT)
    (folder / "quarter-t4.lua").write_text(CARD)
    return folder


# --- gen/cards -----------------------------------------------------------------------------------------------------------

def test_every_card_says_what_is_known_and_from_where(tmp_path):
    listed = run(tmp_path, "quarry-gen", "--cards").stdout.splitlines()
    assert [line.split()[0] for line in listed] == sorted(p.stem for p in (SOURCE / "gen/cards").glob("*.lua"))
    for line in listed:
        name, key = line.split()[0], line.split()[-1]
        shown = run(tmp_path, "quarry-gen", "--cards", name).stdout
        title, key_line, rest = shown.split("\n", 2)
        parts = r"measured by this program:\n(.*)published by others:\n(.*)measured by nobody:\n(.*)"
        measured, published, unknown = re.fullmatch(parts, rest, re.S).groups()
        assert title and key_line == key, name
        assert (measured == "  nothing\n") == (name != "h200"), name
        assert unknown != "  nothing\n", name
        assert all(re.fullmatch(r"  .+ \[.+\]|  nothing", fact) for fact in published.splitlines()), published
        assert published != "  nothing\n" or name == "cpu-generic", name


def test_a_name_is_a_key(tmp_path):
    """The programs and the generator agree about every name."""
    for line in run(tmp_path, "quarry-gen", "--cards").stdout.splitlines():
        name, key = line.split()[0], line.split()[-1]
        told = run(tmp_path, "quarry-tune", "list", "--card", name).stderr.splitlines()[0]
        assert re.fullmatch(re.escape(f"card {key}") + "(: .*)?", told), told
        one, other = (run(tmp_path, "quarry-gen", "rmsnorm", "--shape", "n=96,out=f32", "--card", card) for card in (name, key))
        assert one.returncode == 0 and one.stdout == other.stdout, name


@pytest.mark.parametrize("text, part", [
    ("return {", "line:1: "), ("return 5", "one table"), ("return {}", "found none"), ("return { key = 5 }", "found none"),
    ("return { key = 'sm_75' }", "found sm_75"), ("return { key = 'cuda:sm_7x' }", "card 'cuda:sm_7x'"), ("while true do end", "too long"),
    ("local t = 'x' while true do t = t .. t end", "memory"), ("return os.execute('true')", "line:1: "), ("\x1bLua", "quarter.lua"),
    ("return { key = '" + "cuda:" + "x" * 300 + "' }", "expected key"), ("return setmetatable({}, {})", "line:1: "),
    ("return { kye = 'cuda:sm_75' }", "quarter.lua: unknown field 'kye', the nearest that is known is 'key'"),
    ("return { key = 'cuda:sm_75', publishd = {} }", "unknown field 'publishd', the nearest that is known is 'published'"),
    ("return { key = 'cuda:sm_75', ['" + "x" * 300 + "'] = 1 }", "unknown field 'x"), ("return { 'cuda:sm_75' }", "a value without a name"),
    ("return { key = 'cuda:sm_75', title = {} }", "'title': expected a text"),
    (r"return { key = 'cuda:sm_75', title = 'a\0b' }", "'title': expected a text"),
    (r"return { key = 'cuda:sm_75\0x' }", "expected key ="),
    ("return { key = 'cuda:sm_75', measured = 'x' }", "'measured': expected a list"),
    ("return { key = 'cuda:sm_75', published = { { 'x' } } }", "'published': expected a list"),
    ("return { key = 'cuda:sm_75', unknown = { a = 'x' } }", "'unknown': expected a list"),
])
def test_a_wrong_card_file_is_one_line(tmp_path, text, part):
    (tmp_path / "quarter.lua").write_text(text)
    for program in (["quarry-gen", "rmsnorm", "--shape", "n=96,out=f32"], ["quarry-tune", "list"]):
        done = run(tmp_path, *program, "--card", tmp_path / "quarter.lua")
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1 and part in done.stderr, done.stderr
    shown = run(tmp_path, "quarry-gen", "--cards", tmp_path / "quarter.lua")
    assert shown.returncode == 2 and shown.stdout == "" and shown.stderr.count("\n") == 1 and part in shown.stderr, shown.stderr


def test_a_card_file_steers_no_terminal(tmp_path):
    (tmp_path / "odd.lua").write_text(r"return { key = 'cuda:sm_75', title = 'a\27[2Jb', published = { 'c\27d', { 'e', 'f\27g' } } }")
    shown = run(tmp_path, "quarry-gen", "--cards", tmp_path / "odd.lua").stdout
    assert "\x1b" not in shown and "a?[2Jb" in shown and "  c?d\n  e [f?g]\n" in shown


@pytest.mark.parametrize("change, part", [
    (("interval = 3", "interval = -1"), "'interval'"), (("n_head = 6", "n_head = 5"), "5 attention heads"),
    (("n_ff = 160,", ""), "'n_ff' is missing"), (("return {", "{"), "line:1: "),
    (("n_ff = 160", "n_ff = 1.5"), "'n_ff': expected a whole number"), (("tied = true", "tied = 1"), "'tied': expected true or false"),
    (("tied = true", "tide = true"), "unknown field 'tide', the nearest that is known is 'tied'"),
    (('"ours-1b"', '"other"'), "expected the file's name 'ours-1b'"),
    (("{ 2, 1, 1, 0 }", "{ 2, 1 }"), "four whole numbers"), (("n_layers = 3", "n_layers = 100000"), "n_layers is 100000"),
])
def test_a_wrong_model_file_is_one_line(tmp_path, change, part):
    assert change[0] in VARIANT
    path = tmp_path / "ours-1b.lua"
    path.write_text(VARIANT.replace(*change))
    done = run(tmp_path, "quarry", "show", "--preset", path)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1 and part in done.stderr, done.stderr


# --- the READMEs -----------------------------------------------------------------------------------------------------------

def tree_in(folder):
    for part in ("gen", "templates"):
        shutil.copytree(SOURCE / part, folder / part)
    for part in ("runtime", "tests"):
        (folder / part).symlink_to(SOURCE / part)
    (folder / "build").symlink_to(BUILD)


# First of those that build: the others find its kernels.
@pytest.mark.parametrize("name, least", [("gen/README.md", 5), ("templates/README.md", 4)])
def test_commands_of_the_readmes(ours, tmp_path, name, least):
    tree_in(tmp_path)
    env = {"PATH": os.environ["PATH"], "HOME": str(ours), "VIRTUAL_ENV": sys.prefix}
    blocks = re.findall(r"^```sh\n(.*?)^```", (SOURCE / name).read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) >= least
    for block in blocks:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        if "no NVRTC compiles" in done.stderr and "--effort none" in block:
            continue
        assert done.returncode == 0 and done.stdout + done.stderr, (block, done.stdout[-2000:], done.stderr[-2000:])
        assert "FAIL" not in done.stdout, block


def test_files_that_they_name_exist():
    for name in ("gen/README.md", "templates/README.md", "tuned/README.md"):
        text = (SOURCE / name).read_text(encoding="utf-8")
        for path in re.findall(r"`((?:gen|templates|tests|tuned|runtime|autotune)/[\w./-]*)`", text):
            if "NAME" not in path and "OP" not in path:
                assert (SOURCE / path).exists(), (name, path)


# --- a card of one's own ------------------------------------------------------------------------------------------------------

def space(home, card, op, shape):
    done = run(home, "quarry-gen", op, "--shape", shape, "--space", "--card", card)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return [line for line in lines if line.startswith("legal ")], [line for line in lines if line.startswith("pruned ") and "shared memory" in line]


def test_its_limits_prune(ours):
    shape = "type=q8_0,act=q8,layout=planes,n=512,k=96,epi=parts"
    legal, too_large = space(ours, ours / "quarter-t4.lua", "matmul", shape)
    of_t4, too_large_there = space(ours, "t4", "matmul", shape)
    assert legal and set(legal) < set(of_t4) and len(too_large) > len(too_large_there)


def test_a_set_is_compiled_for_it(ours):
    done = run(ours, "quarry-tune", "--effort", "none", "--preset", ours / "ours-1b.lua", "--type", "f16", "--card", ours / "quarter-t4.lua")
    if done.returncode and "no NVRTC compiles" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    listed = run(ours, "quarry-tune", "list", "--json", "--card", ours / "quarter-t4.lua")
    records = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {r["card"] for r in records} == {"cuda:sm_75,sms=10,l2=1024,bus=64,smem=32"}
    assert {"attn_decode", "gdn_step", "matvec", "rmsnorm"} <= {r["op"] for r in records if r["objects"]}
    assert all(phase["smem"] <= SMEM for r in records for phase in r.get("launch", []))
    assert any("heads=6,kv_heads=2,head_dim=32" in r["shape"] for r in records)


@pytest.mark.parametrize("op, shape", [
    ("rmsnorm", "n=96,out=both"), ("qk_rope", "heads=6,kv_heads=2,head_dim=32,pairs=4"), ("gdn_prep", "k_heads=2,v_heads=6,dim=32"),
    ("matvec", "type=f16,act=f32,layout=rows,n=96,k=160,epi=add"),
])
def test_its_kernels_pass_simt(ours, op, shape):
    done = run(ours, "op_check", "--card", ours / "quarter-t4.lua", "--op", op, "--shape", shape, "--sample", 2, "--cache", ours / "op_cache")
    assert done.returncode == 0, done.stdout
    assert int(re.match(r"(\d+) passed, 0 failed", done.stdout).group(1)) > 0


# --- a variant of one's own -----------------------------------------------------------------------------------------------------

def test_file_and_preset_are_one_shape(ours):
    path = ours / "ours-1b.gguf"
    write_random(path, SHAPE, 7, "f16")
    by_preset = "--preset", ours / "ours-1b.lua", "--format", "f16"
    shown = [json.loads(run(ours, "quarry", "show", "--json", *args).stdout) for args in ((path,), by_preset)]
    assert shown[0]["shape"] == shown[1]["shape"] and shown[0]["shape"]["layers"] == ["delta_net", "delta_net", "attention"]


def test_it_is_tuned_and_runs(ours):
    path = ours / "ours-1b.gguf"
    values = write_random(path, SHAPE, 7, "f16")
    done = run(ours, "quarry-tune", "--effort", "quick", "-m", path, "-t", 1)
    assert done.returncode == 0, done.stderr
    assert "0 not tuned" in done.stdout and "gate passed" in done.stdout
    ids = [int(i) for i in np.random.default_rng(7).integers(0, SHAPE.n_vocab, 90)]
    out = ours / "logits.f32"
    done = run(ours, "quarry", "eval", "-t", 1, "-m", path, "--ids", ",".join(map(str, ids)), "--logits", out)
    assert done.returncode == 0 and re.search(r"kernels: \d+ tuned, 0 borrowed, 0 default", done.stderr), done.stderr
    got = np.fromfile(out, "<f4").reshape(len(ids), SHAPE.n_vocab)
    assert model_f64.kld(model_f64.logits(values, SHAPE, ids), got) <= 1e-7
    done = run(ours, "quarry", "bench", "--preset", ours / "ours-1b.lua", "--type", "f16", "-t", 1, "--json")
    assert done.returncode == 0, done.stderr
