"""`quarry eval` and `quarry bench` from end to end: logits to a file and back, perplexity, windows, bad input; tables and JSON."""
import json
import os
import math
import re
import subprocess

import numpy as np
import pytest

from programs import END, QUARRY, SOURCE, TINY, environment, goldens, quarry, refused, verb

VOCAB = 4096
GOLDEN = goldens()[1]
IDS = GOLDEN["prompt_ids"] + GOLDEN["ids"]


def listed(ids):
    return ",".join(map(str, ids))


def evaluate(*args, **more):
    done = verb("eval", "--json", *args, **more)
    assert done.returncode == 0, done.err
    assert done.stdout.count(b"\n") == 1
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Logits of the golden chat by the reference path."""
    path = tmp_path_factory.mktemp("eval") / "ref.f32"
    evaluate("--ids", listed(IDS), "--numerics", "reference", "--logits", path)
    return path


# --- logits -------------------------------------------------------------------------------------------------------------


def test_logits_are_rows_of_the_vocabulary_and_hold_the_golden_choices(reference):
    rows = np.fromfile(reference, "<f4").reshape(len(IDS), VOCAB)
    assert np.isfinite(rows).all()
    first = len(GOLDEN["prompt_ids"]) - 1
    assert rows[first:-1].argmax(1).tolist() == GOLDEN["ids"]
    for row, step in zip(rows[first:], GOLDEN["steps"]):
        for token, logit in step[:-1]:
            assert abs(row[token] - logit) < 2e-3


def test_against_itself_nothing_differs(reference):
    got = evaluate("--ids", listed(IDS), "--numerics", "reference", "--against", reference)
    assert got["kld_mean"] == got["kld_max"] == got["max_logit_difference"] == 0
    assert got["same_first"] == got["compared"] == got["tokens"] == len(IDS)


@pytest.mark.parametrize("mode", ["pinned", "strict", "free"])
def test_int8_activations_are_near_the_reference(reference, mode):
    got = evaluate("--ids", listed(IDS), "--numerics", mode, "--against", reference)
    assert 0 < got["kld_mean"] < 1e-3 and got["kld_mean"] <= got["kld_max"]
    assert 0 < got["max_logit_difference"] < 1


def test_the_figures_are_those_of_the_files(reference, tmp_path):
    """KLD, first choices, difference and perplexity recomputed here from the two files."""
    path = tmp_path / "got.f32"
    said = evaluate("--ids", listed(IDS), "--against", reference, "--logits", path)
    ref, got = (np.fromfile(p, "<f4").reshape(len(IDS), VOCAB).astype(np.float64) for p in (reference, path))
    log = [x - x.max(1, keepdims=True) - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)) for x in (ref, got)]
    kld = (np.exp(log[0]) * (log[0] - log[1])).sum(1)
    assert said["kld_mean"] == pytest.approx(kld.mean(), rel=1e-6) and said["kld_max"] == pytest.approx(kld.max(), rel=1e-6)
    assert said["max_logit_difference"] == pytest.approx(abs(ref - got).max(), rel=1e-4)
    assert said["same_first"] == (ref.argmax(1) == got.argmax(1)).sum()
    nll = -log[1][np.arange(len(IDS) - 1), IDS[1:]]
    assert said["scored"] == len(nll) and said["perplexity"] == pytest.approx(math.exp(nll.mean()), rel=1e-6)


def test_steps_of_any_size_give_near_logits(reference):
    for chunk in (1, 7, 512):
        got = evaluate("--ids", listed(IDS), "--numerics", "reference", "--chunk", str(chunk), "--against", reference)
        assert got["max_logit_difference"] < 2e-3 and got["same_first"] == len(IDS)


def test_a_file_of_another_length_is_refused(reference, tmp_path):
    raw = reference.read_bytes()
    for size in (len(raw) - 4, len(raw) - 4 * VOCAB, 0):
        path = tmp_path / "short.f32"
        path.write_bytes(raw[:size])
        refused(verb("eval", "--ids", listed(IDS), "--against", path), str(path), str(len(IDS)), str(VOCAB))
    path = tmp_path / "long.f32"
    path.write_bytes(raw + bytes(4))
    refused(verb("eval", "--ids", listed(IDS), "--against", path), str(path), str(len(IDS)), str(VOCAB))


def test_a_file_of_another_kind_is_named_before_the_model_is_read(reference, tmp_path):
    want = f"expected logits as --logits writes them, of this text and model: {len(IDS)} tokens x {VOCAB} x 4 = {len(IDS) * VOCAB * 4} bytes; found "
    for path, found in ((TINY, "a GGUF file"), (tmp_path, "a folder"), (SOURCE / "README.md", f"{(SOURCE / 'README.md').stat().st_size} bytes")):
        done = verb("eval", "--ids", listed(IDS), "--against", path)
        refused(done, f"{path}: {want}{found}")
        assert "# " not in done.err


def test_files_that_cannot_be_used_are_named(tmp_path):
    refused(verb("eval", "--ids", "1,2", "--against", tmp_path / "none.f32"), "none.f32")
    refused(verb("eval", "--ids", "1,2", "--logits", tmp_path / "no/where.f32"), "where.f32")
    refused(verb("eval", "--ids", "1,2", "--logits", "/dev/full"), "/dev/full")
    refused(verb("eval", "--text", tmp_path / "none.txt"), "none.txt")
    refused(verb("eval", "--ids", "@" + str(tmp_path / "none.ids")), "none.ids")


# --- ids and text ---------------------------------------------------------------------------------------------------------


def test_ids_may_come_from_a_file(reference, tmp_path):
    path = tmp_path / "ids.json"
    path.write_text(json.dumps(IDS, indent=1))
    assert evaluate("--ids", f"@{path}", "--numerics", "reference", "--against", reference)["kld_max"] == 0


@pytest.mark.parametrize("ids, word", [("", "empty"), ("1,x", "x"), ("-1", "-1"), ("1;2", ";2"), ("99999999999", "99999999999"), (f"1,{VOCAB}", str(VOCAB))])
def test_bad_ids_are_named(ids, word):
    refused(verb("eval", "--ids", ids), word)


def test_text_and_its_control_tokens(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(GOLDEN["prompt"] + GOLDEN["text"], encoding="utf-8")
    with_control = evaluate("--text", path, "--control")
    assert with_control["tokens"] == len(IDS)
    assert evaluate("--text", path)["tokens"] > len(IDS)
    assert evaluate("--text", "-", "--control", stdin=path.read_bytes())["perplexity"] == with_control["perplexity"]


def test_a_text_longer_than_the_context_is_read_in_windows(tmp_path):
    """Each window starts anew: its figures are those of its ids alone."""
    ids = (IDS * 8)[:150]
    whole = evaluate("--ids", listed(ids), "-c", "64", "--numerics", "reference")
    assert whole["tokens"] == 150 and whole["scored"] == 63 + 63 + 21
    parts = [evaluate("--ids", listed(ids[at:at + 64]), "-c", "64", "--numerics", "reference") for at in (0, 64, 128)]
    nll = sum(math.log(p["perplexity"]) * p["scored"] for p in parts)
    assert whole["perplexity"] == pytest.approx(math.exp(nll / whole["scored"]), rel=1e-5)
    path = tmp_path / "text.txt"
    path.write_text("노르웨이의 수도는 오슬로입니다. What is 3 + 4?\n" * 12, encoding="utf-8")
    assert math.isfinite(evaluate("--text", path, "-c", "64")["perplexity"])


def test_one_token_has_logits_and_no_perplexity():
    done = verb("eval", "--ids", str(END))
    assert done.returncode == 0 and done.stdout == b"tokens      1\n"


def test_no_perplexity_is_null_in_json():
    said = verb("eval", "--ids", str(END), "--json").stdout
    assert json.loads(said, parse_constant=float)["perplexity"] is None


@pytest.mark.parametrize("bad", [b"\xe6\xad", b"\xff", b"\xc0\x80"], ids=repr)
def test_invalid_text_is_refused(bad):
    refused(verb("eval", "--text", "-", stdin=b"ok " + bad), "UTF-8")


def test_control_tokens_are_a_texts():
    refused(verb("eval", "--ids", "1,2", "--control"), "--control", status=2)


def test_an_empty_text_is_refused():
    refused(verb("eval", "--text", "/dev/null"), "empty")


@pytest.mark.parametrize("args", [[], ["--ids", "1", "--text", "x"], ["--ids", "1", "--chunk", "0"], ["--ids", "1", "word"], ["--nope"]], ids=" ".join)
def test_wrong_usage_is_status_2(args):
    done = verb("eval", *args)
    assert done.returncode == 2 and done.stdout == b""


# --- bench ----------------------------------------------------------------------------------------------------------------

QUICK = ["-p", "16", "-n", "2", "-r", "2"]


def test_bench_prints_a_row_a_test_and_depth():
    done = verb("bench", *QUICK, "-d", "0,100")
    assert done.returncode == 0, done.err
    rows = re.findall(r"^\| (\w+) +\| +(\d+) \| +([\d.]+) \| +([\d.]+) \| +([\d.]+) \|(.*)\|$", done.stdout.decode(), re.M)
    assert [(r[0], r[1]) for r in rows] == [("pp16", "0"), ("tg2", "0"), ("pp16", "100"), ("tg2", "100")]
    for test, _, median, low, high, roof in rows:
        assert 0 < float(low) <= float(median) <= float(high)
        assert "% of" in roof or (test.startswith("tg") and "in cache" in roof)
    table = [line for line in done.stdout.decode().splitlines() if line.startswith("|")]
    assert len({len(line) for line in table}) == 1


def test_bench_json_says_the_same_fields():
    done = verb("bench", *QUICK, "--json", "-d", "50")
    rows = json.loads(done.stdout)
    assert [(r["test"], r["depth"], r["threads"]) for r in rows] == [("pp16", 50, 1), ("tg2", 50, 1)]
    assert ("in_cache" in rows[1]) != ("roof" in rows[1]) and "in_cache" not in rows[0]
    assert json.loads(verb("bench", "-p", "0", "-n", "0", "--json").stdout) == []


@pytest.mark.parametrize("preset, type", [("tiny", "q8_0"), ("tiny", "f16"), ("qwen3.5-0.8b", "q8_0")])
def test_bench_of_a_shape_without_a_file(preset, type):
    done = quarry("bench", "--preset", preset, "--type", type, "-t", "1", "-p", "8", "-n", "2", "-r", "1", "--json")
    assert done.returncode == 0, done.err
    rows = json.loads(done.stdout)
    assert [(r["model"], r["test"]) for r in rows] == [(preset, "pp8"), (preset, "tg2")]
    assert all(r["tokens_per_second"] > 0 for r in rows)
    if "roof" in rows[1]:
        assert rows[1]["percent_of_roof"] == pytest.approx(100 * rows[1]["tokens_per_second"] / rows[1]["roof"], abs=0.1)


def test_bench_refuses():
    refused(quarry("bench", "--preset", "qwen9-1b"), "qwen9-1b")
    for args in (["-d", "1,x"], ["-d", ""], ["-r", "0"], ["-p", "-1"], ["--preset", "qwen3.5-0.8b"], ["--type", "f16"]):
        assert verb("bench", *args).returncode == 2, args
    assert quarry("bench").returncode == 2
    assert quarry("bench", "--preset", "qwen3.5-0.8b", "--type", "q9_9", "-t", "1").returncode in (1, 2)


def test_bench_tells_the_formats_of_its_rows():
    for kv in ("f16", "r3"):
        rows = json.loads(verb("bench", "--json", "-d", "32000", "-p", "0", "-n", "2", "-r", "1", "--kv-k", kv, "--kv-v", kv).stdout)
        assert [(r["kv_k"], r["kv_v"], r["depth"]) for r in rows] == [(kv, kv, 32000)]
    assert ", K f16, V q8, medians of 1" in verb("bench", "-p", "0", "-n", "2", "-r", "1", "--kv-v", "q8").stdout.decode()


def test_bench_refuses_a_depth_beyond_the_context():
    refused(verb("bench", "-d", "40000"), "depth 40000 + 512 tokens", "32768")
    assert [r["depth"] for r in json.loads(verb("bench", "--json", "-d", "32768", "-p", "0", "-n", "2", "-r", "1").stdout)] == [32768]   # its end is in
    refused(verb("bench", "-d", "0,1024", "-c", "512"), "depth 1024 + 512 tokens do not fit -c 512")


def test_more_threads_than_processors_are_told():
    done = quarry("eval", "-m", TINY, "--ids", "1", "-t", "64", env=environment())
    assert done.returncode == 0
    assert ("# 64 threads on" in done.err) == (len(os.sched_getaffinity(0)) < 64)


def test_bench_json_holds_any_path(tmp_path):
    path = tmp_path / 'a "quoted" \\ name.gguf'
    path.symlink_to(TINY)
    rows = json.loads(verb("bench", *QUICK, "--json", model=path).stdout)
    assert rows[0]["model"] == str(path)


def test_results_that_cannot_be_written_are_a_failure():
    for args in (["eval", "--ids", "1,2"], ["bench", *QUICK]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([QUARRY, args[0], "-m", TINY, "-q", "-t", "1", *args[1:]], stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
        assert done.returncode == 1 and done.stderr == f"quarry {args[0]}: could not write the result\n"
