"""quarry-tune for cards that are not here: a set for each generation, compiled by the NVRTC that knows it, and what is said where there is none.

Needs the built programs (QUARRY_BUILD) and tests/models/tiny.gguf. What compiles needs NVRTC: pip's nvidia-cuda-nvrtc-cu12 for sm_60 to sm_70."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

BUILD = pathlib.Path(os.environ.get("QUARRY_BUILD", "build"))
SOURCE = pathlib.Path(os.environ.get("QUARRY_SOURCE", "."))
TUNE = BUILD / "quarry-tune"
TINY = SOURCE / "tests/models/tiny.gguf"


def tune(home, *args):
    """VIRTUAL_ENV: the environment of this Python, where pip may have put NVRTC."""
    variables = {"HOME": str(home), "PATH": os.environ["PATH"], "VIRTUAL_ENV": sys.prefix}
    return subprocess.run([TUNE, *args], env=variables, capture_output=True, text=True, timeout=600)


def build(home, card, *args):
    return tune(home, "--effort", "none", "-m", str(TINY), "--card", card, *args)


def line_of(done):
    """The only line on stderr, apart from what was taken for the card."""
    lines = [line for line in done.stderr.splitlines() if ": taken with " not in line]
    assert len(lines) == 1, done.stderr
    return lines[0]


def nothing_written(home):
    return not [p for p in home.rglob("*") if p.is_file()]


def need_nvrtc(done):
    if done.returncode and "no NVRTC compiles" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("cc", [61, 75])
def test_a_set_for_a_card_that_is_not_here(tmp_path, cc):
    done = build(tmp_path, f"cuda:sm_{cc}")
    need_nvrtc(done)
    kernels = int(re.search(r"built (\d+) kernels \(0 cached\) in [\d.]+ s with NVRTC \d+\.\d+", done.stderr).group(1))
    assert kernels == len(list((tmp_path / ".cache/quarry/objects").glob("??/*.cubin")))
    listed = tune(tmp_path, "list", "--card", f"cuda:sm_{cc}", "--json")
    records = [json.loads(line) for line in listed.stdout.splitlines()]
    built = [r for r in records if r["objects"]]
    assert len(built) == kernels
    for r in built:
        made = r["objects"][0]
        assert made["kind"] == "cubin" and made["arch"] == f"sm_{cc}" and re.fullmatch(r"NVRTC \d+\.\d+", made["compiler"])
        assert 0 < made["regs"] <= 255 and r["launch"] and all(p["threads"] % 32 == 0 for p in r["launch"])
    again = build(tmp_path, f"cuda:sm_{cc}")
    assert "all cached" in again.stderr
    assert tune(tmp_path, "list", "--card", f"cuda:sm_{cc}", "--measured").stdout == ""


def test_a_named_library_is_the_only_one(tmp_path):
    done = build(tmp_path, "cuda:sm_75", "--nvrtc", "/nonexistent/libnvrtc.so")
    assert done.returncode == 1 and nothing_written(tmp_path)
    line = line_of(done)
    assert line.startswith("quarry-tune: no NVRTC compiles for sm_75")
    assert "--nvrtc /nonexistent/libnvrtc.so" in line and "pip install nvidia-cuda-nvrtc-cu12" in line
    done = build(tmp_path, "cuda:sm_75", "--nvrtc", "")
    assert done.returncode == 2 and "--nvrtc: expected a library or a folder, found ''" in done.stderr


def test_a_named_library_that_would_hang(tmp_path):
    os.mkfifo(tmp_path / "libnvrtc.so")
    for given in tmp_path / "libnvrtc.so", tmp_path:
        done = build(tmp_path / "home", "cuda:sm_75", "--nvrtc", str(given))
        assert done.returncode == 1 and "expected a regular file, found a FIFO" in line_of(done)


def test_a_card_that_no_compiler_knows(tmp_path):
    """One of the future: it may come, and nothing is left behind until a compiler knows it."""
    done = build(tmp_path, "cuda:sm_777")
    assert done.returncode == 1 and "sm_777" in line_of(done) and nothing_written(tmp_path)


@pytest.mark.parametrize("cc", [63, 71, 73, 74, 77, 99])
def test_a_card_that_there_is_not(tmp_path, cc):
    for verb in ["--effort", "none", "-m", str(TINY)], ["list"]:
        done = tune(tmp_path, *verb, "--card", f"cuda:sm_{cc}")
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and nothing_written(tmp_path)
        assert f"there is no card with sm_{cc}; expected one of sm_60 sm_61 sm_62 sm_70 sm_72 sm_75 sm_80" in done.stderr and "--help" in done.stderr


def test_what_a_key_leaves_out_is_told(tmp_path):
    def told(key):
        return [line for line in tune(tmp_path, "list", "--card", key).stderr.splitlines() if ": taken with " in line]

    assert told("cuda:sm_75") == ["quarry-tune: card cuda:sm_75: taken with sms=40,l2=4096,bus=256,smem=64"]
    assert told("cuda:sm_70,l2=6144,without=mma") == ["quarry-tune: card cuda:sm_70,l2=6144,without=mma: taken with sms=40,bus=256,smem=96"]
    assert told("cpu:avx2,l2=256") == ["quarry-tune: card cpu:avx2,l2=256: taken with isa=avx2+sse42+scalar,l1=32,l3=8192,t=1"]
    assert told("cuda:sm_75,sms=40,l2=4096,bus=256,smem=64") == []


def test_the_environment_does_not_change_an_object(tmp_path):
    """NVRTC reads variables of its own; a compiling child has none of them."""
    home = tmp_path / "a"
    need_nvrtc(build(home, "cuda:sm_75"))
    other = tmp_path / "b"
    variables = {"HOME": str(other), "PATH": os.environ["PATH"], "VIRTUAL_ENV": sys.prefix, "NVRTC_APPEND_FLAGS": "--use_fast_math --maxrregcount=16",
                 "NVRTC_PREPEND_FLAGS": "--gpu-architecture=sm_90", "CUDA_CACHE_DISABLE": "1"}
    done = subprocess.run([TUNE, "--effort", "none", "-m", str(TINY), "--card", "cuda:sm_75"], env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    objects = [{p.name: p.read_bytes() for p in (h / ".cache/quarry/objects").glob("??/*.cubin")} for h in (home, other)]
    assert objects[0] == objects[1]


def test_ptx_for_a_newer_card(tmp_path):
    unit = subprocess.run([BUILD / "quarry-gen", "rmsnorm", "--shape", "n=96,out=f32", "--card", "cuda:sm_75", "--unit"], capture_output=True, text=True, timeout=60)
    (tmp_path / "k.cu").write_text(unit.stdout)
    done = tune(tmp_path, "--compile-ptx", str(tmp_path / "k.cu"), str(tmp_path / "k.ptx"), "75")
    need_nvrtc(done)
    text = (tmp_path / "k.ptx").read_text()
    assert ".target sm_75" in text and ".visible .entry rmsnorm_n96_f32" in text


def test_card_and_device_are_not_both_named(tmp_path):
    done = tune(tmp_path, "--effort", "none", "-m", str(TINY), "--card", "cuda:sm_75", "--device", "cpu")
    assert done.returncode == 2 and "--device" in done.stderr and "(`quarry tune --help` lists the options)" in done.stderr


def test_an_interrupt_beside_the_drivers_threads(tmp_path):
    """A real driver starts threads when it is asked which card is here; the signal must not end the program through one of them."""
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "VIRTUAL_ENV": sys.prefix, "LD_LIBRARY_PATH": str(BUILD / "tests/fake_cuda/now"), "FAKE_CUDA": "cc=75"}
    process = subprocess.Popen([TUNE, "--effort", "none", "-m", str(TINY), "--device", "cuda:0"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    objects = tmp_path / ".cache/quarry/objects"
    while process.poll() is None and not list(objects.glob("??/*.cubin")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    if "no NVRTC compiles" in err:
        pytest.skip(err.strip())
    assert process.returncode == 130 and err.splitlines()[-1].startswith("quarry-tune: interrupted"), (process.returncode, err)


def measure_on_fake_card(tmp_path, nvml):
    """The measuring child over a driver whose kernels do nothing: its answer to one request for five samples."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LD_LIBRARY_PATH": str(BUILD / "tests/fake_cuda/now"), "FAKE_NVML": nvml}
    module = tmp_path / "kernel.cubin"
    module.write_text("FAKE\nkernel threads=128\n")
    shape = "kv_heads=2,head_dim=32,fk=f16,fv=f16"
    requests = [
        {"do": "problem", "slot": 0, "ref": "kv_append", "shape": shape, "check": [[3, 1, 0], [1, 1, 0]], "time": [[4, 1, 0]], "cold": 0},
        {"do": "time", "slot": 0, "object": str(module), "kernel": "kernel", "launch": [128, 0] + [1, 0, 0, 0] * 3, "size": 0, "n": 5},
    ]
    done = subprocess.run([TUNE, "--measure", "cuda:0"], input="".join(json.dumps(r) + "\n" for r in requests), env=env, capture_output=True,
                          text=True, timeout=60)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 3 and all(a["ok"] for a in answers), done
    assert len(answers[2]["us"]) == 5
    return answers[2]


def test_samples_tell_the_cards_clocks(tmp_path):
    answer = measure_on_fake_card(tmp_path, "sm=1455,mem=877,mw=149600,heat=71,reasons=0x4")
    assert answer["clocks"] == {"sm_mhz": 1455, "mem_mhz": 877, "watts": 150, "celsius": 71, "slowed": "power"}
    assert "clocks" not in measure_on_fake_card(tmp_path, "broken")


def test_samples_of_a_hot_card_are_taken_once_more(tmp_path):
    assert measure_on_fake_card(tmp_path, "slowed-once,heat=99,reasons=0x20")["clocks"]["slowed"] == ""
    assert measure_on_fake_card(tmp_path, "heat=99,reasons=0x20")["clocks"]["slowed"] == "heat"
