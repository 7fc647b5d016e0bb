"""Any legal shape runs right: random models of odd shapes, every numerics path, against the float64 evaluation of the same file."""
import os
import pathlib
import subprocess

import numpy as np
import pytest

import model_f64
from gguf_build import Shape, write_random

BUILD = pathlib.Path(os.environ.get("QUARRY_BUILD", "build"))

# Each stretches something: heads a group, value heads a key head, rhythm, odd sizes, formats, untied head, small and large heads.
SHAPES = {
    "gqa1_r1": (Shape(n_head=2, n_head_kv=2, n_v_heads=1), "q8_0"),
    "gqa6_r3": (Shape(n_head=6, n_head_kv=1, n_k_heads=2, n_v_heads=6, n_embd=96), "q8_0"),
    "gqa5_r5": (Shape(n_head=5, n_head_kv=1, n_k_heads=1, n_v_heads=5, n_embd=160, head_dim=64, rope_dims=16, sections=(4, 2, 2, 0)), "q8_0"),
    "gqa3_r4": (Shape(n_head=6, n_head_kv=2, n_k_heads=2, n_v_heads=8, interval=3, n_layers=5), "q8_0"),
    "r2_interval2": (Shape(interval=2, n_layers=4, n_k_heads=2, n_v_heads=4, head_dim=256, rope_dims=64, sections=(11, 11, 10, 0)), "q8_0"),
    "hidden352_ff32": (Shape(n_embd=352, n_ff=32, n_layers=3, interval=2, n_head=4, n_head_kv=2, state_dim=128, n_v_heads=3), "q8_0"),
    "no_attention": (Shape(interval=100, n_layers=3, n_v_heads=3), "q8_0"),
    "attention_only": (Shape(layers="aaa", n_layers=3), "q8_0"),
    "attention_first": (Shape(layers="agag", n_layers=4, tied=False), "q8_0"),
    "one_layer": (Shape(layers="g", n_layers=1, n_vocab=263), "q8_0"),
    "taps2_state16": (Shape(conv_taps=2, state_dim=16, n_k_heads=2, n_v_heads=2), "q8_0"),
    "taps6_state64": (Shape(conv_taps=6, state_dim=64, n_k_heads=1, n_v_heads=2), "q8_0"),
    "f32_odd": (Shape(n_embd=50, n_ff=37, head_dim=22, rope_dims=10, sections=(2, 2, 1, 0), n_head=3, n_head_kv=1, state_dim=24, n_v_heads=3, n_vocab=271), "f32"),
    "f16": (Shape(n_embd=72, n_ff=45, head_dim=40, rope_dims=40, sections=(8, 6, 6, 0), tied=False), "f16"),
    "bf16": (Shape(n_embd=68, n_ff=101, n_head=4, n_head_kv=2), "bf16"),
    "mixed": (Shape(n_embd=128, n_ff=96, n_head=4, n_head_kv=1, n_layers=8, n_v_heads=4, n_k_heads=2), "mixed"),
    # 150 tokens are beyond the 40 that its positions were made for; of 32 pairs 3 are kept, 9 are mixed, the others turn four times slower.
    "yarn": (Shape(layers="aga", n_layers=3, head_dim=64, rope_dims=64, sections=(11, 11, 10, 0), rope_base=1e3, n_ctx=40, yarn=(4.0, 40, 4.0, 0.5)), "q8_0"),
    "wide_ff": (Shape(n_embd=64, n_ff=2080, n_layers=2, interval=2), "q8_0"),
}
MIX = ["q8_0", "f16", "bf16", "f32"]
# Most of the time goes into compiling kernels that no other shape has, so canonical kernels alone (strict) are run on every third shape,
# and the reference path in one chunk; ./check --all: all on all.
SLOW = bool(os.environ.get("QUARRY_SLOW"))


def paths(name):
    """Numerics and chunks to look at."""
    strict = SLOW or list(SHAPES).index(name) % 3 == 0
    for numerics in ("reference", "pinned", "strict")[:3 if strict else 2]:
        yield from ((numerics, chunk) for chunk in ((150, 7) if SLOW or numerics != "reference" else (150,)))


def run(model, ids, numerics, out, chunk, env):
    p = subprocess.run([BUILD / "quarry", "eval", "-q", "-t", "1", "-m", model, "--ids", ",".join(map(str, ids)), "--logits", out, "--numerics", numerics,
                        "--chunk", str(chunk)], capture_output=True, text=True, env=env)
    assert p.returncode == 0, p.stderr


@pytest.fixture(scope="session")
def env(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    return os.environ | {"HOME": str(home), "XDG_CACHE_HOME": str(BUILD / "tests" / "random-cache")}


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name, tmp_path, env):
    s, type_ = SHAPES[name]
    seed = sum(map(ord, name))
    chosen = (lambda tensor: MIX[sum(map(ord, tensor)) % 4]) if type_ == "mixed" else (lambda tensor: type_)
    path = tmp_path / "model.gguf"
    values = write_random(path, s, seed, type_of=chosen)
    # A file's rows that are no multiple of 32 hold F16 instead of Q8_0.
    int8 = lambda tensor: chosen(tensor) == "q8_0" and values[tensor].shape[1] % 32 == 0
    # Past a page of KV and past a delta-net chunk, with repeats.
    ids = [int(i) for i in np.random.default_rng(seed).integers(0, s.n_vocab, 150)]
    exact, rounded = model_f64.logits(values, s, ids), model_f64.logits(values, s, ids, int8)
    noise = model_f64.kld(exact, rounded)      # what int8 activations cost at best
    for numerics, chunk in paths(name):
        want = exact if numerics == "reference" else rounded
        bound = 1e-9 if numerics == "reference" else 0.2 * noise + 1e-7
        out = tmp_path / "logits.f32"
        run(path, ids, numerics, out, chunk, env)
        got = np.fromfile(out, "<f4").reshape(len(ids), s.n_vocab)
        assert np.isfinite(got).all()
        kld, cos = model_f64.kld(want, got), model_f64.cosine(want, got)
        print(f"{name} {numerics} chunk {chunk}: KLD {kld:.2e} (bound {bound:.1e}), cosine {cos:.8f}")
        assert kld <= bound, (numerics, chunk, kld, bound)
