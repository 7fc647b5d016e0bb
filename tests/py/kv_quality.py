"""What a KV format costs, by context: the tables of README.md ("What K and V are stored as"). Not a test: it takes many minutes.
usage: kv_quality.py [--tokens 1024,4096,8192,16384] [--texts 8,4,2,1] [--only tiny|random]    (needs numpy, tokenizers)

tiny    texts of about so many tokens with needles (pass codes), one of which is asked for; the test model reads text and answer with every
        pair of formats, and `--numerics reference` (f32 KV, fp32 activations) beside it. KLD: mean KL(reference || this) over all positions.
        first: share of positions with the reference's first choice. found: codes of which every token would have been chosen.
random  one head of 256, normal keys and values, queries of twice that: |o - exact| / |exact| of attention's output, by tokens. The formats
        are written here once more, in numpy, after templates/kv_append/args.h.
"""
import argparse
import pathlib
import random
import sys
import tempfile

import numpy as np

from programs import SOURCE, TINY, quarry

PAIRS = [("f16", "f16"), ("q8", "q8"), ("q8", "r4"), ("q8", "r3"), ("r4", "r4"), ("r4", "r3"), ("r3", "r3")]

# --- the test model -------------------------------------------------------------------------------------------------------


def texts_of(corpus, encode, tokens, n):
    """[(ids, from, to)] of about `tokens` long: a text with codes, a question for one, its answer; where that code's tokens are."""
    out = []
    for seed in range(n):
        chars = tokens * 4
        for _ in range(3):
            (user, _, answer), = corpus.t_needle(random.Random(1000 * tokens + seed), chars)
            text, _ = corpus.render([{"role": "user", "content": user}], None, False, generation=True)
            ids = encode(text + answer)
            chars = chars * (tokens - 60) // len(ids)
        code = text + answer[:answer.index(" is ") + 4]
        out.append((ids, len(encode(code)), len(ids)))
    return out


def logits(ids, k, v, numerics, folder):
    out = pathlib.Path(folder, "logits.f32")
    args = ["eval", "-m", TINY, "--ids", "@-", "-c", str(len(ids) + 64), "--numerics", numerics, "--kv-k", k, "--kv-v", v, "--logits", out, "-q"]
    ids_file = pathlib.Path(folder, "ids")
    ids_file.write_text(",".join(map(str, ids)))
    args[4] = f"@{ids_file}"
    done = quarry(*args, timeout=7200)
    if done.returncode:
        sys.exit(done.err)
    return np.fromfile(out, np.float32).reshape(len(ids), -1)


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def compare(want, got):
    """Sum of KLD, number of positions with the same first choice."""
    kld = same = 0
    for i in range(0, len(want), 1024):
        p, q = log_softmax(want[i:i + 1024]), log_softmax(got[i:i + 1024])
        kld += (np.exp(p) * (p - q)).sum()
        same += (p.argmax(-1) == q.argmax(-1)).sum()
    return kld, same


def tiny(tokens, texts):
    from tokenizers import Tokenizer
    sys.path.insert(0, str(SOURCE / "tests/models/tiny"))
    import corpus
    tok = Tokenizer.from_file(str(SOURCE / "tests/models/tiny/tokenizer.json"))
    print("| tokens | K / V | KLD | first | found |\n|---:|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for t, n in zip(tokens, texts):
            sums = {pair: np.zeros(5) for pair in PAIRS}
            for ids, begin, end in texts_of(corpus, lambda s: tok.encode(s, add_special_tokens=False).ids, t, n):
                want = logits(ids, "f32", "f32", "reference", folder)
                for pair in PAIRS:
                    got = logits(ids, *pair, "pinned", folder)
                    found = all(got[i - 1].argmax() == ids[i] for i in range(begin, end))
                    sums[pair] += [*compare(want, got), len(ids), found, 1]
            for (k, v), (kld, same, rows, found, asked) in sums.items():
                print(f"| {t} | {k} / {v} | {kld / rows:.1e} | {100 * same / rows:.2f} % | {found:.0f} of {asked:.0f} |", flush=True)


# --- random data ------------------------------------------------------------------------------------------------------------

LEVELS = {"r3": np.array([13, 40, 71, 114.]), "r4": np.array([6, 18, 31, 44, 58, 75, 96, 127.])}
SIGMA = {"r3": 53, "r4": 46.5}
DIM = 256


def rotate(x):
    sign = np.where((np.arange(DIM) * 0x9E3779B1 >> 31) & 1, -1.0, 1.0)
    y, h = x * sign, 1
    while h < DIM:
        y = y.reshape(-1, DIM // (2 * h), 2, h)
        y = np.stack([y[:, :, 0] + y[:, :, 1], y[:, :, 0] - y[:, :, 1]], 2)
        h *= 2
    return y.reshape(x.shape) / 16


def stored(f, x):
    """What a format leaves of x [tokens][DIM]; rotated formats: of the rotated x, which scores and norms cannot tell from it."""
    if f == "f16":
        return x.astype(np.float16).astype(np.float64)
    if f == "q8":
        b = x.reshape(-1, 32)
        most = np.abs(b).max(-1, keepdims=True)
        return (np.rint(b * (127 / most)) * (most / 127).astype(np.float16).astype(np.float64)).reshape(x.shape)
    y, level = rotate(x), LEVELS[f]
    norm = np.sqrt((y * y).sum(-1, keepdims=True))
    size = level[np.searchsorted((level[1:] + level[:-1]) / 2, np.abs(y) / norm * 16 * SIGMA[f])]
    scale = (norm / np.sqrt((size * size).sum(-1, keepdims=True))).astype(np.float16).astype(np.float64)
    return np.copysign(size, y) * scale


def attention(q, k, v):
    s = q @ k.T / 16
    p = np.exp(s - s.max(-1, keepdims=True))
    return p @ v / p.sum(-1, keepdims=True)


def random_data(tokens):
    print("| tokens | " + " | ".join(f"{k} / {v}" for k, v in PAIRS) + " |\n|---:|" + "---:|" * len(PAIRS))
    r = np.random.default_rng(8)
    for t in tokens:
        q, k, v = 2 * r.standard_normal((64, DIM)), r.standard_normal((t, DIM)), r.standard_normal((t, DIM))
        exact, turned = attention(q, k, v), attention(q, k, rotate(v))
        errors = []
        for fk, fv in PAIRS:
            want = turned if fv[0] == "r" else exact
            got = attention(rotate(q) if fk[0] == "r" else q, stored(fk, k), stored(fv, v))
            errors.append(np.linalg.norm(got - want) / np.linalg.norm(want))
        print(f"| {t} | " + " | ".join(f"{e:.2g}" for e in errors) + " |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--texts", default="8,4,2,1")
    p.add_argument("--tokens", default="1024,4096,8192,16384")
    p.add_argument("--only", choices=["tiny", "random"])
    o = p.parse_args()
    if o.only != "random":
        tiny(*([int(x) for x in text.split(",")] for text in (o.tokens, o.texts)))
    if o.only != "tiny":
        random_data([256, 1024, 4096, 16384, 65536, 262144])


main()
