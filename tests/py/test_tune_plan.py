"""quarry-tune plan: what a tune would try, told without a card, a compiler or a trace left behind.

Needs the built programs (QUARRY_BUILD) and tests/models/tiny.gguf."""
import json
import re
import subprocess

import pytest
from programs import BUILD, TINY

H200 = "cuda:sm_90,sms=132,l2=61440,bus=6016,smem=227"


def plan(home, *args, status=0):
    done = subprocess.run([BUILD / "quarry-tune", "plan", *args], env={"HOME": str(home), "PATH": "/nonexistent"}, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done


def tiny(home, *args, card="cpu:avx2"):
    return plan(home, "-m", str(TINY), "--card", card, *args)


@pytest.mark.parametrize("card", ["cpu:avx2", H200, "cuda:sm_70"])
def test_every_problem_is_there_with_its_candidates_and_reasons(tmp_path, card):
    got = json.loads(tiny(tmp_path, "--json", card=card).stdout)
    assert got["effort"] == "normal" and got["seconds"] > 0 and got["again"] == 0
    problems = got["problems"]
    assert got["to_measure"] == len([p for p in problems if p["op"] != "layout" or len(p["candidates"]) > 1])
    assert {"layout", "matvec", "matmul", "attn_decode", "gdn_step"} <= {p["op"] for p in problems}
    for p in problems:
        assert p["state"] == "to be measured" and p["candidates"], p
        assert p["space"] - p["legal"] == sum(p["pruned"].values()), p
        assert len(set(p["candidates"])) == len(p["candidates"]) <= p["legal"]
    assert not list(tmp_path.rglob("*"))


def test_buckets_are_problems_of_their_own_from_effort_normal_on(tmp_path):
    sizes = {}
    for effort in ("quick", "normal"):
        problems = json.loads(tiny(tmp_path, "matmul", "--json", "--effort", effort).stdout)["problems"]
        sizes[effort] = {(p["op"], p["rows"], p["ctx"]) for p in problems}
        assert len({(p["op"], p["shape"], p["rows"], p["ctx"]) for p in problems}) == len(problems)
    assert {("matmul", 64, 0), ("matmul", 512, 0)} == sizes["normal"]
    assert all(rows == ctx == 0 for _, rows, ctx in sizes["quick"]) and sizes["quick"]


def test_a_card_without_an_instruction_is_told_what_it_lacks(tmp_path):
    text = tiny(tmp_path, "matmul", card="cuda:sm_60").stdout
    assert re.search(r"pruned \d+, each for the first of these", text)
    assert "mma" not in " ".join(re.findall(r"^      (\S+)$", text, re.M))
    with_mma = tiny(tmp_path, "matmul", card=H200).stdout
    assert "path=mma_i8" in with_mma and re.search(r"rows<=2048: tries \d+ and the winner's neighbours", with_mma)


def test_text_counts_what_json_lists(tmp_path):
    problems = json.loads(tiny(tmp_path, "gdn_step", "--json").stdout)["problems"]
    text = tiny(tmp_path, "gdn_step").stdout
    assert len(re.findall(r"tries \d+", text)) == len(problems)
    assert re.search(r"^effort normal: \d+ problems? to measure with about \d+ candidates; about \d+ s of measuring", text, re.M)


def test_wrong_words_are_one_line(tmp_path):
    assert "expected one of layout embed" in plan(tmp_path, "fly", "-m", str(TINY), "--card", "cpu:avx2", status=1).stderr
    assert "expected an op or nothing" in plan(tmp_path, "matvec", "matmul", "-m", str(TINY), status=2).stderr
    assert "expected one of -m FILE and --preset NAME" in plan(tmp_path, status=2).stderr
    assert plan(tmp_path, "--effort", "none", "-m", str(TINY)).stdout.startswith("effort none: default params")
