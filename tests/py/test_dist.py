"""dist/ keeps up with the tree: what an image is built of, and the packages that it names for building and for running."""
import pathlib
import re
import shutil
import subprocess

import pytest

from programs import BUILD, SOURCE

STAGES = (SOURCE / "dist/Containerfile").read_text(encoding="utf-8").split("\nFROM ")[1:]
# Opened by name when they are needed.
OPENED = ["libarchive.so.13", "libcurl.so.4"]
is_debian = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="asks dpkg which package a library is of")


def packages(stage):
    return re.search(r"--no-install-recommends \\\n(.*?)(?:&&|\nRUN|\nCOPY)", stage, re.S)[1].replace("\\\n", " ").split()


def words_of_setup(name):
    return re.search(rf'^{name}="(.*?)"', (SOURCE / "tests/setup.sh").read_text(encoding="utf-8"), re.M)[1].split()


def test_an_image_is_built_with_what_the_scripts_install():
    assert set(words_of_setup("BUILD_PACKAGES")) <= set(packages(STAGES[0]))


@is_debian
def test_what_cmake_asks_for_is_installed():
    """Each module that pkg-config is asked for comes from one of the packages."""
    asked = re.findall(r"^pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET ([\w.]+)\)", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)
    assert len(asked) >= 7
    for module in asked:
        place = subprocess.run(["pkg-config", "--variable=pcfiledir", module], capture_output=True, text=True, check=True).stdout.strip()
        assert owner(f"{place}/{module}.pc") & set(words_of_setup("BUILD_PACKAGES")), module


def owner(path):
    """The packages that own a file; a library's may be known below /usr or without it."""
    real = str(pathlib.Path(path).resolve())
    for name in (path, real, real.removeprefix("/usr"), "/usr" + real):
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if done.returncode == 0:
            return set(re.findall(r"^([a-z0-9.+-]+)(?::\w+)?: ", done.stdout, re.M))
    return set()


def libraries(program):
    """NAME: PATH of what the program itself asks for."""
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout)
    found = dict(re.findall(r"^\s*(\S+) => (\S+)", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout, re.M))
    return {name: found[name] for name in needed if name in found}


@is_debian
def test_an_image_runs_with_what_it_installs():
    needed = {}
    for name in ("quarry", "quarry-gen", "quarry-tune", "quarry-serve"):
        needed.update(libraries(BUILD / name))
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for name in OPENED:
        needed[name] = re.search(rf"^\s*{re.escape(name)} .*=> (\S+)", known, re.M)[1]
    there = set(packages(STAGES[1])) | {"libc6"}
    assert len(needed) >= 8
    for name, path in needed.items():
        if path.startswith(("/lib", "/usr/lib")):
            assert owner(path) & there, (name, owner(path))


def test_what_stays_outside_is_not_needed(tmp_path):
    """The folder as .dockerignore leaves it is configured, and names no file outside itself."""
    lines = (SOURCE / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")][0] == "*"
    inside = {line[1:] for line in lines if line.startswith("!")}
    for name in inside:
        (shutil.copytree if (SOURCE / name).is_dir() else shutil.copy)(SOURCE / name, tmp_path / name)
    used = set(re.search(r"foreach\(part ([\w ]+)\)", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8"))[1].split())
    for path in [*tmp_path.rglob("CMakeLists.txt"), *tmp_path.rglob("*.[ch]")]:
        used |= set(re.findall(r'(?:\$\{CMAKE_SOURCE_DIR\}/|#include "(?=\w+/)|install\(FILES )(\w+)', path.read_text(encoding="utf-8")))
    used = {name for name in used if (SOURCE / name).exists()}
    assert used == inside - {"CMakeLists.txt"}
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-DQUARRY_TESTS=OFF"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
