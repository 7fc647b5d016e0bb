#!/usr/bin/env python3
"""Writes a GGUF of a real size with random weights, loads it on the card and looks at what the host paid (Linux, Python alone).

  load_big.py QUARRY FILE [--layers N]      the 27B shape with a next-n block: 29 GB at the full 64 layers; FILE is removed afterwards

Fails unless it loads and runs, and host memory beyond the file's own pages stays below 256 MiB and the
programs. The plan that is printed tells whether the next-n block stayed behind.
"""
import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from random_file import MIB, write_random_file

STAGE = 256          # MiB, as promised
PROGRAMS = 400       # MiB: the driver's own context and the program, measured 260 without a model on the first card tried


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
    nextn = write_random_file(o.file, "qwen3.5-27b", n_layers=o.layers, n_nextn=1)
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
