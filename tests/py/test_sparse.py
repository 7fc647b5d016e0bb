"""Sparse prefill: off unless asked for, refused where it cannot be, and a code hidden in a long prompt is found with it."""
import os
import random
import re
import subprocess
import sys

import pytest

import programs as P

sys.path.insert(0, str(P.SOURCE / "tests/models/tiny"))
import corpus  # noqa: E402

SLOW = bool(os.environ.get("QUARRY_SLOW"))


def needle(seed, characters):
    """A prompt as the chat template has it, and its answer."""
    (user, _, answer), = corpus.t_needle(random.Random(seed), characters)
    return f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", answer


@pytest.mark.parametrize("value", ["0", "1", "1.5", "-0.5", "nan", "much", ""])
def test_a_share_is_between_0_and_1(value):
    P.refused(P.verb("run", "-p", "x", "--sparse-prefill", value), "--sparse-prefill", status=2)


@pytest.mark.parametrize("numerics", ["strict", "reference"])
def test_exact_numerics_refuse_it(numerics):
    P.refused(P.verb("run", "-p", "x", "--sparse-prefill", "0.99", "--numerics", numerics), "sparse prefill", numerics)


def test_a_share_by_chance_goes_with_sparse_prefill():
    P.refused(P.verb("bench", "--sparse-share", "0.1"), "--sparse-share goes with --sparse-prefill", status=2)


def test_it_is_said_and_a_short_prompt_is_as_without():
    prompt = "What is the capital of France?"
    dense, sparse = P.verb("run", "-p", prompt), P.verb("run", "-p", prompt, "--sparse-prefill", "0.9")
    assert "sparse" not in dense.err and "more than 8192 tokens" in sparse.err and "90 %" in sparse.err
    assert sparse.stdout == dense.stdout != b""


def measured(tmp_path, seed, characters, mass, since):
    prompt, answer = needle(seed, characters)
    file = tmp_path / "prompt"
    file.write_text(prompt, encoding="utf-8")
    done = subprocess.run([P.BUILD / "sparse_mass", P.TINY, file, str(mass), str(since)], capture_output=True, text=True, timeout=900, env=P.environment())
    assert done.returncode == 0, done.stderr
    figures, ids = done.stdout.splitlines()
    read, kept = (float(re.search(p, figures).group(1)) for p in (r"read ([0-9.]+) %", r"kept ([0-9.]+)"))
    plain = P.verb("run", "--raw", "-f", str(file), "-n", "24", "--ids", timeout=900)
    expected = plain.stdout.split()
    return read, kept, ids.split()[:len(expected)], [i.decode() for i in expected], answer


@pytest.mark.parametrize("seed,characters,mass,since", [(3, 16000, 0.8, 1024)] + ([(s, 72000, 0.99, 8192) for s in range(4)] if SLOW else []))
def test_a_code_is_found_and_the_mass_is_kept(tmp_path, seed, characters, mass, since):
    read, kept, ids, expected, answer = measured(tmp_path, seed, characters, mass, since)
    assert ids == expected and len(ids) > 4
    assert kept >= mass and (mass > 0.9 or read < 97), (read, kept)
