#!/usr/bin/env python3
"""Writes a GGUF of a real size with random weights, loads it on the card and looks at what the host paid (Linux, Python alone).

  load_big.py QUARRY FILE [--layers N]      the 27B shape with a next-n block: 29 GB at the full 64 layers; FILE is removed afterwards

Fails unless it loads and runs, and host memory beyond the file's own pages stays below 256 MiB and the
programs. The plan that is printed tells whether the next-n block stayed behind.
"""
import argparse
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "py"))
import gguf_build as gb  # noqa: E402

MIB = 1 << 20
STAGE = 256          # MiB, as promised
PROGRAMS = 400       # MiB: the driver's own context and the program, measured 260 without a model on the first card tried


def pattern(dim):
    """Some thousand Q8_0 blocks of random bytes, scaled so that a row of a product has variance near 1."""
    scale = struct.pack("<e", dim[0] ** -0.5 / 73)
    raw = os.urandom(32 * 4096)
    return b"".join(scale + raw[i:i + 32] for i in range(0, len(raw), 32))


def stream(f, dim, type_, name):
    """One tensor's bytes, from a repeated pattern."""
    n = gb.n_bytes(dim, type_)
    if type_ != "q8_0":
        unit = struct.pack("<f", -1.0 if name.endswith("ssm_a") else 1.0) if type_ == "f32" else b"\0\0"
        f.write(unit * (n // len(unit)))
        return
    unit = pattern(dim)
    while n > 0:
        f.write(unit[:n])
        n -= len(unit)


def write_big(path, layers):
    s = gb.Shape(n_layers=layers, interval=4, n_nextn=1, n_embd=5120, n_ff=17408, n_vocab=248320, n_head=24, n_head_kv=4, head_dim=256,
                 rope_dims=64, sections=(11, 11, 10, 0), n_k_heads=16, n_v_heads=48, state_dim=128, tied=False, n_ctx=262144, name="random-27b")
    rows, at = [], 0
    for name, dim, matrix in gb.dims(s):
        t = "q8_0" if matrix else "f32"
        at += -at % 32
        rows.append((name, dim, t, at))
        at += gb.n_bytes(dim, t)
    head = gb.container(list(gb.keys(s).values()) + gb.tokenizer(s.n_vocab), [gb.info(n, d, gb.TYPES[t][0], a) for n, d, t, a in rows])
    with open(path, "wb", buffering=8 * MIB) as f:
        f.write(head)
        for name, dim, t, start in rows:
            f.write(b"\0" * (len(head) + start - f.tell()))
            stream(f, dim, t, name)
    return sum(gb.n_bytes(d, t) for n, d, t, _ in rows if ".nextn." in n or n.startswith("blk.%d." % layers))


def memory(pid):
    """MiB of anonymous, shared and file pages of a process, now."""
    try:
        rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
        return [int(rows.get(k, "0 kB").split()[0]) / 1024 for k in ("RssAnon", "RssShmem", "RssFile")]
    except (OSError, ValueError):
        return [0, 0, 0]


def run(argv):
    """Standard output, error and the largest memory() of a command."""
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    most = [0, 0, 0]
    while p.poll() is None:
        most = [max(a, b) for a, b in zip(most, memory(p.pid))]
        time.sleep(0.02)
    return p.returncode, *p.communicate(), most


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("quarry")
    a.add_argument("file")
    a.add_argument("--layers", type=int, default=64)
    a.add_argument("--device", default="cuda")
    o = a.parse_args()
    t = time.time()
    nextn = write_big(o.file, o.layers)
    size = os.path.getsize(o.file)
    print(f"wrote {size / 1e9:.1f} GB in {time.time() - t:.0f} s", flush=True)
    try:
        t = time.time()
        rc, out, err, (anon, shared, pages) = run([o.quarry, "bench", "-m", o.file, "--device", o.device, "-p", "64", "-n", "8", "-r", "1"])
        print(out.strip(), err.strip()[-2000:], sep="\n")
    finally:
        os.unlink(o.file)
    ok = rc == 0 and anon + shared < STAGE + PROGRAMS
    print(f"loaded and measured in {time.time() - t:.1f} s, {size / 1e9 / (time.time() - t):.2f} GB/s; host memory: anonymous {anon:.0f} MiB, shared {shared:.0f},"
          f" file pages {pages:.0f} at most; next-n block of {nextn / MIB:.0f} MiB in the file; status {rc}: {'ok' if ok else 'FAILED'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
