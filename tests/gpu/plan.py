#!/usr/bin/env python3
"""Is memory what was planned? 27B as q8_0 with its whole context of 262 144 tokens, K and V of three bits, decoded at its end on this card.

    python3 tests/gpu/plan.py PATH/quarry [--preset NAME] [--kv r3] [--ctx N]

Fails unless a decode step runs there, what the card gave is within 2 % of the plan, the plan is what `quarry show --fit` says of such a card, and
(with the defaults) it is at most 34 GiB with KV of at most 3.5 GB and fits three cards of 16 GiB."""
import argparse
import json
import re
import subprocess
import sys

MIB = 1 << 20


def fit(o, cards):
    out = subprocess.run([o.quarry, "show", "--preset", o.preset, "--fit", cards, "--ctx", str(o.ctx), "--kv-k", o.kv, "--kv-v", o.kv, "--json"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["fit"]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("quarry")
    a.add_argument("--preset", default="qwen3.6-27b")
    a.add_argument("--kv", default="r3")
    a.add_argument("--ctx", type=int, default=262144)
    a.add_argument("--device", default="cuda")
    o = a.parse_args()
    p = subprocess.run([o.quarry, "bench", "--preset", o.preset, "--device", o.device, "--kv-k", o.kv, "--kv-v", o.kv, "-c", str(o.ctx), "-d", str(o.ctx - 8),
                        "-p", "0", "-n", "8", "-r", "1"], capture_output=True, text=True)
    print(p.stdout.strip(), p.stderr.strip()[-3000:], sep="\n")
    told = re.search(r"memory: ([\d.]+) MiB were planned, ([\d.]+) MiB are taken", p.stderr)
    if p.returncode or not told:
        print(f"FAIL: status {p.returncode}, or no line about memory")
        return 1
    planned, taken = (float(v) * MIB for v in told.groups())
    whole = fit(o, "1024GiB")
    said = whole["whole"]["total"] - whole["whole"]["driver"] - whole["whole"]["checkpoints"]   # bench keeps no checkpoints
    faults = []
    if abs(taken - planned) > 0.02 * planned:
        faults.append("taken is not within 2 % of the plan")
    if abs(said - planned) > 0.005 * planned:
        faults.append(f"show --fit says {said / MIB:.1f} MiB without checkpoints")
    if (o.preset, o.kv, o.ctx) == ("qwen3.6-27b", "r3", 262144):
        if planned > 34 << 30 or whole["formats"][-1]["kv_bytes"] > 3.5e9:
            faults.append("the plan is larger than 34 GiB, or KV than 3.5 GB")
        if not fit(o, "3x16GiB")["fits"]:
            faults.append("three cards of 16 GiB do not hold it")
    print(f"planned {planned / MIB:.1f} MiB, taken {taken / MIB:.1f} MiB ({100 * (taken / planned - 1):+.2f} %), KV {whole['formats'][-1]['kv_bytes'] / 1e9:.2f} GB: "
          + ("; ".join(faults) + ": FAILED" if faults else "ok"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
