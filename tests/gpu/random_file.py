#!/usr/bin/env python3
"""Writes a GGUF of a preset's shape with random Q8_0 weights and a vocabulary of bytes and made-up words, for what needs a file of real size:
loading it, serving it (Python alone).

  random_file.py PRESET FILE      qwen3.5-0.8b: 0.8 GB, qwen3.5-9b: 9.5 GB, qwen3.5-27b: 28 GB
"""
import os
import re
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent / "py"))
import gguf_build as gb  # noqa: E402

MIB = 1 << 20
# As Qwen's own, without tools.
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def shape(preset, **more):
    """The numbers of gen/models/PRESET.lua and the family's own."""
    text = (HERE.parents[2] / f"gen/models/{preset}.lua").read_text()
    fields = {k: v == "true" if v in ("true", "false") else int(v) for k, v in re.findall(r"(\w+) = (\d+|true|false)", text)}
    return gb.Shape(**{**dict(rope_dims=64, sections=(11, 11, 10, 0), n_ctx=262144, name="random-" + preset), **fields, **more})


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


def write_random_file(path, preset, **more):
    """more: fields of the shape that are other than the preset's. Returns the bytes of the next-n block."""
    s = shape(preset, **more)
    rows, at = [], 0
    for name, dim, matrix in gb.dims(s):
        t = "q8_0" if matrix else "f32"
        at += -at % 32
        rows.append((name, dim, t, at))
        at += gb.n_bytes(dim, t)
    keys = list(gb.keys(s).values()) + gb.tokenizer(s.n_vocab, template=TEMPLATE, words=True)
    head = gb.container(keys, [gb.info(n, d, gb.TYPES[t][0], a) for n, d, t, a in rows])
    with open(path, "wb", buffering=8 * MIB) as f:
        f.write(head)
        for name, dim, t, start in rows:
            f.write(b"\0" * (len(head) + start - f.tell()))
            stream(f, dim, t, name)
    return sum(gb.n_bytes(d, t) for n, d, t, _ in rows if ".nextn." in n or n.startswith("blk.%d." % s.n_layers))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write_random_file(sys.argv[2], sys.argv[1])
