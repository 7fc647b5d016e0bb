# Shared by ./quickstart and ./check: packages, the Python environment of the tests, the build. Sourced, in the top folder.
BUILD_PACKAGES="gcc libc6-dev make cmake pkg-config lua5.4 liblua5.4-dev libcjson-dev libutf8proc-dev libsodium-dev libarchive-dev libmicrohttpd-dev libedit-dev libcurl4-openssl-dev uthash-dev"
TEST_PACKAGES="chromium libcmocka-dev g++ clang libclang-rt-14-dev lua-check minisign qemu-user python3 python3-venv"

step() { printf '== %s\n' "$1" >&2; }

# Before anything is installed or begun: everything lies in build/.
need_writable() {
    mkdir -p build 2>/dev/null && [ -w build ] && return 0
    echo "cannot write in $PWD/build: run this in a copy of quarry that is yours, on a disk that can be written" >&2
    return 1
}

# Asks dpkg first, so that a second run needs no network and no root.
install_packages() {
    if ! command -v dpkg-query >/dev/null; then
        echo "this is not Debian: make sure that these packages' like are installed: $*" >&2
        return 0
    fi
    missing=""
    for p in "$@"; do
        dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -q '^installed$' || missing="$missing $p"
    done
    [ -n "$missing" ] || return 0
    as_root=""
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "packages are missing, and here is no sudo; as root: apt-get install --no-install-recommends$missing" >&2
            return 1
        fi
        as_root=sudo
    fi
    echo "installing:$missing" >&2
    $as_root apt-get update -q >/dev/null
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing >/dev/null
}

# Remade when its list of packages changes.
make_venv() {
    want=tests/py/requirements.txt
    cmp -s "$want" build/venv/requirements.txt && return 0
    mkdir -p build
    # The system's python3 by its path: a user's own may be any version and lack venv.
    rm -rf build/venv
    /usr/bin/python3 -m venv build/venv
    build/venv/bin/python -m pip install -q --disable-pip-version-check -r "$want"
    cp "$want" build/venv/requirements.txt
}

# A card's kernels are compiled by NVRTC. Where a card is and none serves it, one is put into build/nvrtc: 12.9 knows every card from
# sm_60 to sm_120 and runs under all drivers from 525 on.
find_nvrtc() {
    grep -qs 0x10de /sys/bus/pci/devices/*/vendor || return 0
    said=$(build/quarry-tune --effort none -m tests/models/tiny.gguf 2>&1) && return 0
    case $said in *"no NVRTC"*) ;; *) return 0 ;; esac
    step "a compiler for the card's kernels (build/nvrtc)"
    install_packages python3 python3-venv
    /usr/bin/python3 -m venv build/nvrtc
    build/nvrtc/bin/python -m pip install -q --disable-pip-version-check nvidia-cuda-nvrtc-cu12==12.9.86
}

# Options given are remembered by the build folder; without them tests are left as they were (off at first).
build_programs() {
    [ $# -gt 0 ] || [ -f build/CMakeCache.txt ] || set -- -DQUARRY_TESTS=OFF
    log=$(mktemp)
    if cmake -B build "$@" >"$log" 2>&1 && cmake --build build -j "$(nproc)" >"$log" 2>&1; then
        rm -f "$log"
    else
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
}
