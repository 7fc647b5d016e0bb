"""Where a model runs, and `quarry doctor`, over a driver without a card (tests/fake_cuda): one line, an exit status, no hang."""
import json
import os
import pathlib
import sys
import tempfile

import pytest
from programs import BUILD, environment, quarry, refused, verb

FAKE = BUILD / "tests/fake_cuda"


def driver(fake="", age="now"):
    return environment(LD_LIBRARY_PATH=str(FAKE / age), FAKE_CUDA=fake)


def run(device, env=None):
    return verb("run", "--raw", "-p", "a", "-n", "1", "--device", device, env=env)


def bus(*devices):
    """A folder like /sys/bus/pci/devices with display controllers (address, vendor, id)."""
    root = tempfile.TemporaryDirectory(prefix="quarry-bus-")
    for address, vendor, device in devices:
        here = pathlib.Path(root.name) / address
        here.mkdir()
        for name, text in ("class", "0x030000"), ("vendor", vendor), ("device", device):
            (here / name).write_text(text + "\n")
    return root


def test_a_device_is_one_of_four_names():
    for bad in "gpu", "cuda:", "cuda:x", "":
        refused(run(bad), "--device is auto, cpu, cuda or cuda:N", f"'{bad}'", status=2)


def test_the_cpu_is_the_cpu_whatever_the_driver_says():
    done = run("cpu", driver("init=803"))
    assert done.returncode == 0, done.err


@pytest.mark.parametrize(
    "fake, age, parts",
    [
        ("init=100", "now", ["cuInit: CUDA_ERROR_NO_DEVICE (100)"]),
        ("init=803", "now", ["CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "restart"]),
        ("version=10020", "now", ["driver is too old", "CUDA 10.2", "470"]),
        ("", "ancient", ["driver has no cuGraphInstantiateWithFlags", "470"]),
        ("cc=52", "now", ["compute capability 5.2", "6.0"]),
        ("retain=2", "now", ["cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2)"]),
        ("memory=100", "now", ["does not fit", "MiB are needed", "36 MiB are free"]),
    ],
)
def test_a_card_that_cannot_be_used_is_one_line(fake, age, parts):
    refused(run("cuda", driver(fake, age)), *parts)


def test_an_index_that_is_not_there():
    refused(run("cuda:2", driver("cards=2")), "cuda:2 is not there: the driver shows 2 cards")


def test_no_driver_at_all(tmp_path):
    """Where there is no card either, a driver would be no help."""
    (tmp_path / "libcuda.so.1").write_text("no library")
    vendors = pathlib.Path("/sys/bus/pci/devices").glob("*/vendor")
    device = any(v.read_text().strip() == "0x10de" for v in vendors)
    parts = ["no NVIDIA driver", "install the driver"] if device else ["cuda: no NVIDIA device is on the PCI bus; ", "--device cpu runs on the CPU"]
    refused(run("cuda", environment(LD_LIBRARY_PATH=str(tmp_path))), *parts)


def test_auto_does_not_leave_a_card_for_the_cpu():
    refused(run("auto", driver("retain=46")), "there is", "cannot be used", "CUDA_ERROR_DEVICE_UNAVAILABLE (46)", "--device cpu runs on the CPU")


def doctor(*args, fake="", age="now"):
    done = quarry("doctor", *args, env=driver(fake, age))
    assert done.returncode == 0 and done.err == "", done.err
    return done.stdout.decode()


def test_doctor_without_a_card(tmp_path):
    with bus(("0000:00:02.0", "0x1234", "0x1111")) as root:
        out = doctor("--pci", root, "--libcuda", "/nowhere/libcuda.so.1")
        env = environment(LD_LIBRARY_PATH=None)
        plain = quarry("doctor", "--pci", root, env=env).stdout.decode().splitlines()
    bus_line, driver_line, means = out.splitlines()
    assert bus_line == "bus      no NVIDIA device on the PCI bus" and means == "means    no NVIDIA device: quarry runs on the CPU"
    assert driver_line.startswith("driver   no NVIDIA driver: /nowhere/libcuda.so.1: ")  # it was named
    if not pathlib.Path("/sys/module/nvidia").exists() and plain[1].startswith("driver   none"):
        assert plain == [bus_line, "driver   none", means]


def test_doctor_with_a_card_and_no_driver():
    with bus(("0000:05:00.0", "0x10de", "0x1dc1")) as root:
        out = doctor("--pci", root, "--libcuda", "/nowhere/libcuda.so.1")
    assert "0000:05:00.0 10de:1dc1, kernel driver none" in out
    assert "to do    0000:05:00.0: no driver holds it; install NVIDIA's driver of the 580 series, the last for Pascal and Volta" in out


def test_doctor_with_cards():
    with bus(("0000:01:00.0", "0x10de", "0x1dc1"), ("0000:09:00.0", "0x10de", "0x1dc1")) as root:
        out = doctor("--quick", "--pci", root, fake="cc=70,version=12090")
    assert "CUDA 12.9" in out
    assert "cuda:0   Fake Card 0 (sm_70) at 0000:01:00.0, 68 SMs of 1380 MHz, 1.0 GiB" in out
    assert "0000:09:00.0: the driver does not show it" in out


def test_doctor_as_json():
    with bus(("0000:01:00.0", "0x10de", "0x1dc1")) as root:
        found = json.loads(doctor("--json", "--quick", "--pci", root, fake="cc=75"))
    assert found["driver"]["cuda"] == 13000
    assert found["pci"][0]["device"] == 0x1DC1
    (card,) = found["cards"]
    assert card["compute_capability"] == 75 and card["card"] == "cuda:sm_75,sms=68,l2=6144,bus=4096,smem=96"
    assert any(line.startswith("cuda:0: ") for line in found["to_do"]) and isinstance(found["means"], list)


def test_doctor_counts_what_it_leaves_out():
    with bus(*((f"0000:{n:02x}:00.0", "0x10de", "0x1dc1") for n in range(1, 36))) as root:
        out = doctor("--quick", "--pci", root, "--libcuda", "/nowhere/libcuda.so.1")
        found = json.loads(doctor("--json", "--quick", "--pci", root, "--libcuda", "/nowhere/libcuda.so.1"))
    assert out.count("bus      0000:") == 32 and "bus      and 3 more\n" in out
    assert len(found["pci"]) == 32 and found["pci_more"] == 3 and found["cards_more"] == 0


def test_doctor_on_a_card_that_is_too_old():
    with bus() as root:
        found = json.loads(doctor("--json", "--quick", "--pci", root, fake="cc=52"))
        out = doctor("--quick", "--pci", root, fake="cc=52")
    (card,) = found["cards"]
    assert card["compute_capability"] == 52 and card["card"] == "" and card["nvrtc"] == card["nvrtc_problem"] == ""
    assert found["means"] == ["cuda:0: compute capability 5.2 is too old for quarry, which needs 6.0"]
    assert "cuda:sm_52" not in out


@pytest.mark.parametrize("what, part", [("fifo", "expected a regular file, found a FIFO"), ("cut", "the file is cut off"), ("text", "no shared object")])
def test_doctor_on_a_library_that_is_none(tmp_path, what, part):
    library = tmp_path / "libcuda.so.1"
    if what == "fifo":
        os.mkfifo(library)
    else:
        library.write_bytes((FAKE / "now/libcuda.so.1").read_bytes()[:4096] if what == "cut" else b"no library")
    with bus() as root:
        out = doctor("--quick", "--pci", root, "--libcuda", str(library))
    assert f"driver   no NVIDIA driver: {library}: " in out and part in out and len(out.splitlines()) == 3


def test_doctor_refuses_what_it_does_not_know():
    refused(quarry("doctor", "--tunes", "/dev/null/none"), "expects a folder with records", status=2)
    refused(quarry("doctor", "x"), "'x' is an argument without an option", status=2)


def test_objects_that_the_driver_refuses_are_one_line(tmp_path):
    """The driver that plays one takes no real cubin: what a rig says whose driver is older than its kernels."""
    env = {**driver("cc=75"), "VIRTUAL_ENV": sys.prefix, "XDG_CACHE_HOME": str(tmp_path)}
    done = run("cuda", env)
    if "no NVRTC compiles" in done.err:
        pytest.skip(done.err.splitlines()[-1])
    lines = [line for line in done.err.splitlines() if not line.startswith("# ")]
    assert done.returncode == 1 and len(lines) == 1, done.err
    for part in "the driver refuses", "CUDA_ERROR_INVALID_IMAGE (200)", "it was built by NVRTC", "the driver is of CUDA 13.0", "--nvrtc PATH":
        assert part in lines[0]
