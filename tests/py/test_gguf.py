"""`quarry show` on model files: good ones of every dialect, and bad ones of every kind.

A bad file ends with status 1, one line on stderr that names the file and what is wrong, nothing on stdout (but for what `show`
can tell of a file that is only not supported), no signal, in
under a second, and with no more memory than twice the file and 16 MiB.
"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile

import pytest

import gguf_build as b
from gguf_build import ARR, BOOL, F32, F64, I32, STR, U8, U16, U32, U64, array, container, info, key, string

QUARRY = os.path.join(os.environ["QUARRY_BUILD"], "quarry")
SOURCE = os.environ.get("QUARRY_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
TINY = os.path.join(SOURCE, "tests", "models", "tiny.gguf")
ARCH = key("general.architecture", STR, "qwen35")
MIB = 1 << 20
with open(QUARRY, "rb") as program:
    SANITIZED = b"__asan_init" in program.read()   # its shadow memory makes the limits below meaningless


# Starts the program from a small process of its own: a child's peak memory counts what its parent had at the fork, and
# pytest grows. Limits the heap, then writes "status peak-in-bytes
# CPU-seconds" to the file named first. (CPU time: wall time would count the tests that run beside this one.)
STARTER = """
import os, resource, sys
report, limit, argv = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
pid = os.fork()
if not pid:
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    os.execv(argv[0], argv)
_, status, usage = os.wait4(pid, 0)
with open(report, "w") as f:
    f.write("%d %d %f" % (os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime))
"""


def show(*args, data_limit=0):
    """Runs `quarry show`; (status, stdout, stderr, CPU seconds, peak resident bytes)."""
    with tempfile.NamedTemporaryFile("r") as report:
        p = subprocess.Popen([sys.executable, "-I", "-S", "-c", STARTER, report.name, str(0 if SANITIZED else data_limit),
                              QUARRY, "show", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True)
        try:
            out, err = p.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            raise
        status, peak, seconds = report.read().split()
    return int(status), out.decode(), err.decode(), float(seconds), int(peak)


@pytest.fixture(scope="module")
def baseline():
    """Peak memory of a run that opens nothing: what the program and its starter cost by themselves."""
    return max(show("--help")[4] for _ in range(3))


@pytest.fixture
def refuse(tmp_path, baseline):
    """refuse(bytes or path, words...): the promises of this file's head hold, and the line has every word. The line names
    the path, or (of a set) the file of `about`."""
    def check(what, *words, size=None, about=None):
        path = what
        if isinstance(what, bytes):
            path = b.write(tmp_path / "bad.gguf", what)
            size = len(what)
        size = size or 0
        status, out, err, seconds, peak = show(path, data_limit=2 * size + 16 * MIB)
        # A well-formed file that is only not supported is described as far as it goes.
        assert status == 1 and (not out or out.endswith("the reason follows\n")), (status, out, err)
        assert err.endswith("\n") and err.count("\n") == 1, err
        assert (about or str(path)) in err
        assert len(err) < 1200
        for word in words:
            assert word in err, (word, err)
        assert "out of memory" not in err
        if not SANITIZED:
            assert seconds < 1
            assert peak <= baseline + 2 * size + 16 * MIB, (peak, baseline, size)
        return err
    return check


def test_unsupported_type_is_described(tmp_path):
    s = b.Shape(n_embd=256, n_ff=256)
    path = b.write(tmp_path / "q4.gguf", b.lay_out(list(b.keys(s).values()), b.tensors(s, "q4_k")))
    status, out, err, _, _ = show(path)
    assert status == 1 and "Q4_K" in err and "token_embd.weight" in err
    assert "qwen35" in out and "Q4_K" in out and "not run by this version" in out


def show_ok(path, *options):
    status, out, err, _, _ = show(path, "--json", *options)
    assert (status, err) == (0, ""), err
    return json.loads(out)


def build(tmp_path, shape=None, type_="f32", change=None, drop=(), add=(), tensors=None, name="m.gguf", **more):
    """A valid model with some keys replaced (change: name -> bytes), dropped or added, and its tensors mapped."""
    s = shape or b.Shape()
    kvs = b.keys(s)
    kvs.update(change or {})
    for k in drop:
        del kvs[k]
    ts = b.tensors(s, type_)
    if tensors:
        ts = tensors(ts)
    return b.write(tmp_path / name, b.lay_out([*kvs.values(), *b.tokenizer(s.n_vocab), *add], ts, **more))


def rename(pairs):
    return lambda ts: [(pairs.get(n, n), d, t, raw) for n, d, t, raw in ts]


# --- good files ---------------------------------------------------------------------------------------------------------

def test_tiny():
    j = show_ok(TINY)
    s = j["shape"]
    assert (s["n_layers"], s["n_nextn"], s["n_embd"], s["n_k_heads"], s["n_v_heads"]) == (8, 1, 256, 2, 6)
    assert s["layers"] == ["delta_net", "delta_net", "delta_net", "attention"] * 2
    assert s["tied"] and j["tokenizer"]["tokens"] == 4096 and j["tokenizer"]["eos"] == 4072
    assert j["template"] == {"bytes": j["template"]["bytes"], "enable_thinking": True, "preserve_thinking": True, "tools": True}
    assert sum("next-n" in n for n in j["notices"]) == 1
    assert j["memory"][0]["context"] == 1024 and j["memory"][-1]["context"] == 32768
    for m in j["memory"]:
        assert m["total"] == sum(v for k, v in m.items() if k not in ("context", "total"))
    assert show_ok(TINY, "--check")["weights"]["checked"]


def test_text_says_what_json_says():
    status, out, err, _, _ = show(TINY)
    assert status == 0 and err == ""
    for word in ("qwen35", "quarry-tiny", "Q8_0", "<|im_end|>", "preserve_thinking yes", "32K", "next-n"):
        assert word in out


@pytest.mark.parametrize("type_", ["f32", "f16", "bf16", "q8_0"])
@pytest.mark.parametrize("version", [2, 3])
def test_types_and_versions(tmp_path, type_, version):
    j = show_ok(build(tmp_path, type_=type_, version=version), "--check")
    assert j["gguf_version"] == version
    assert {t["type"] for t in j["weights"]["types"]} == {type_.upper(), "F32"}


@pytest.mark.parametrize("shape", [
    b.Shape(n_layers=1), b.Shape(n_layers=3, interval=9), b.Shape(interval=1), b.Shape(interval=2, n_nextn=1),
    b.Shape(n_k_heads=2, n_v_heads=10), b.Shape(n_head=6, n_head_kv=1), b.Shape(n_embd=352, n_ff=32), b.Shape(tied=False),
    b.Shape(layers="aagg"), b.Shape(head_dim=2, rope_dims=2, sections=(1, 0, 0, 0)), b.Shape(state_dim=8, n_v_heads=3),
], ids=lambda s: "%s-%d" % (s.kinds(), s.n_embd + s.n_v_heads))
def test_any_legal_shape(tmp_path, shape):
    j = show_ok(build(tmp_path, shape))
    assert j["shape"]["layers"] == [{"a": "attention", "g": "delta_net"}[k] for k in shape.kinds()]
    assert j["shape"]["tied"] == shape.tied


def test_preset_needs_no_file():
    status, out, _, _, _ = show("--preset", "qwen3.5-27b", "--json")
    j = json.loads(out)
    assert status == 0 and abs(j["weights"]["parameters"] / 26.896e9 - 1) < 1e-3
    for name, millions in (("0.8b", 752), ("2b", 1882), ("4b", 4206), ("9b", 8954)):
        j = json.loads(show("--preset", "qwen3.5-" + name, "--json")[1])
        assert abs(j["weights"]["parameters"] / 1e6 / millions - 1) < 1e-3
    assert json.loads(show("--preset", "tiny", "--json")[1])["weights"]["bytes"] == show_ok(TINY)["weights"]["bytes"]


@pytest.mark.parametrize("args", [[], ["--preset"], ["--preset", "tiny", "x.gguf"], ["--nope"], ["a", "b"],
                                  ["--preset", "tiny", "--format", "q4_k"], ["--preset", "tiny", "--check"], [TINY, "--type", "f16"]])
def test_usage(args):
    status, out, err, _, _ = show(*args)
    assert status == 2 and out == "" and err.count("\n") == 1 and "`quarry show --help`" in err


def test_big_vocabulary_opens_fast(tmp_path, baseline):
    """A header as large as the real models': 248,320 tokens and as many merges."""
    n = 248320
    tokens = b.byte_tokens() + ["t%d" % i for i in range(n - 257)] + ["<|im_end|>"]
    vocab = [key("tokenizer.ggml.model", STR, "gpt2"), array("tokenizer.ggml.tokens", STR, tokens),
             array("tokenizer.ggml.token_type", I32, [1] * (n - 1) + [3]),
             array("tokenizer.ggml.merges", STR, ["a b%d" % i for i in range(n)]),
             key("tokenizer.ggml.eos_token_id", U32, n - 1)]
    s = b.Shape(n_layers=1, n_embd=2, n_ff=2, n_vocab=n)
    path = b.write(tmp_path / "v.gguf", b.lay_out([*b.keys(s).values(), *vocab], b.tensors(s)))
    runs = [show(path, "--json") for _ in range(3)]
    assert json.loads(runs[0][1])["tokenizer"]["tokens"] == n
    assert SANITIZED or min(r[3] for r in runs) < 0.5
    assert SANITIZED or max(r[4] for r in runs) <= baseline + 2 * os.path.getsize(path) + 16 * MIB


# --- dialects -----------------------------------------------------------------------------------------------------------

SECTIONS = "qwen35.rope.dimension_sections"
KV = "qwen35.attention.head_count_kv"
INTERVAL = "qwen35.full_attention_interval"


def notices(j, word):
    return [n for n in j["notices"] if word in n]


def test_another_exporters_file(tmp_path):
    """Everything at once: 3 sections, KV heads as an array with zeros, ssm_dt without .bias, riders."""
    riders = [("v.blk.0.x", [8], "f32", b"\0" * 32), ("mm.0.weight", [8], "f32", b"\0" * 32),
              ("mtp.layers.0.x", [8], "f32", b"\0" * 32)]
    fix = {"blk.%d.ssm_dt.bias" % i: "blk.%d.ssm_dt" % i for i in range(4)}
    j = show_ok(build(tmp_path, b.Shape(n_head_kv=2),
                      change={SECTIONS: array(SECTIONS, I32, [2, 1, 1]), KV: array(KV, U32, [0, 0, 0, 2])}, drop=[INTERVAL],
                      add=[key("qwen35.ssm.v_head_reordered", BOOL, 1), key("qwen35.vision.block_count", U32, 12)],
                      tensors=lambda ts: rename(fix)(ts) + riders))
    assert j["shape"]["rope_sections"] == [2, 1, 1, 0] and j["shape"]["n_head_kv"] == 2
    assert j["shape"]["layers"] == ["delta_net"] * 3 + ["attention"]
    assert len(notices(j, "skipped")) == 1 and "3 tensors" in notices(j, "skipped")[0]


@pytest.mark.parametrize("rope,sections", [(8, [2, 1, 1, 0]), (64, [11, 11, 10, 0]), (32, [6, 5, 5, 0]), (2, [1, 0, 0, 0])])
def test_missing_sections(tmp_path, rope, sections):
    j = show_ok(build(tmp_path, b.Shape(head_dim=64, rope_dims=rope), drop=[SECTIONS]))
    assert j["shape"]["rope_sections"] == sections and len(notices(j, "dimension_sections")) == 1


def test_yarn_keys(tmp_path):
    j = show_ok(build(tmp_path, b.Shape(yarn=(4.0, 1000, 32.0, 1.0), n_ctx=4000)))
    assert j["shape"]["yarn"] == {"factor": 4, "original": 1000, "limit": 4000, "attention": pytest.approx(1.13862944)}
    s = b.Shape(yarn=(2.0, 1000, 32.0, 1.0), n_ctx=4096)
    s.extra = [b.key("qwen35.rope.scaling.attn_factor", F32, 0.5), b.key("qwen35.rope.scaling.yarn_attn_factor", F32, 3.0)]
    j = show_ok(build(tmp_path, s))
    assert j["shape"]["yarn"]["attention"] == pytest.approx(1.5 * 1.06931472) and j["shape"]["yarn"]["limit"] == 4096
    assert "yarn" not in show_ok(build(tmp_path, b.Shape(yarn=(1.0, 1000, 32.0, 1.0))))["shape"]


@pytest.mark.parametrize("yarn,extra,word", [
    ((0.5, 1000, 32.0, 1.0), (), "expected 1 to 10000"), ((2.0, 1000, 1.0, 1.0), (), "yarn_beta_fast"), ((2.0, 0, 32.0, 1.0), (), "original_context_length"),
    ((2.0, 1000, 32.0, 1.0), ("yarn_ext_factor", 0.5), "yarn_ext_factor"), ((2.0, 1000, 32.0, 1.0), ("yarn_log_multiplier", 0.1), "yarn_log_multiplier"),
])
def test_bad_yarn_keys(tmp_path, refuse, yarn, extra, word):
    s = b.Shape(yarn=yarn)
    if extra:
        s.extra = [b.key("qwen35.rope.scaling." + extra[0], F32, extra[1])]
    path = build(tmp_path, s)
    refuse(path, word, size=os.path.getsize(path))


@pytest.mark.parametrize("keys, word", [
    ({"attn_factor": 1e20}, "attn_factor' is 1e+20: expected 0.01 to 100"), ({"attn_factor": 1e38}, "attn_factor' is 1e+38: expected 0.01 to 100"),
    ({"attn_factor": 1e-30}, "attn_factor' is 1e-30: expected 0.01 to 100"),
    ({"yarn_attn_factor": 1e20}, "yarn_attn_factor' is 1e+20, times attn_factor 1e+20: expected 0.01 to 100"),
    ({"attn_factor": 50.0, "yarn_attn_factor": 4.0}, "yarn_attn_factor' is 4, times attn_factor 200: expected 0.01 to 100"),
    ({"attn_factor": 0.02, "yarn_attn_factor": 0.02}, "expected 0.01 to 100"),
])
def test_attention_factors_of_yarn_have_a_range(tmp_path, refuse, keys, word):
    s = b.Shape(yarn=(2.0, 1000, 32.0, 1.0))
    s.extra = [b.key("qwen35.rope.scaling." + name, F32, v) for name, v in keys.items()]
    path = build(tmp_path, s)
    refuse(path, word, size=os.path.getsize(path))


def test_per_layer_arrays_with_and_without_nextn(tmp_path):
    s = b.Shape(n_nextn=1)
    for kv in ([1] * 4, [1] * 5, [0, 0, 0, 1, 1]):
        assert show_ok(build(tmp_path, s, change={KV: array(KV, U32, kv)}))["shape"]["n_head_kv"] == 1
    ff = "qwen35.feed_forward_length"
    assert show_ok(build(tmp_path, s, change={ff: array(ff, I32, [32] * 5)}))["shape"]["n_ff"] == 32
    rec = "qwen35.attention.recurrent_layers"
    for form, values in ((BOOL, [0, 1, 1, 0]), (U32, [0, 1, 1, 0, 0])):
        j = show_ok(build(tmp_path, b.Shape(n_nextn=1, layers="agga"), change={rec: array(rec, form, values)}))
        assert j["shape"]["layers"] == ["attention", "delta_net", "delta_net", "attention"]


def test_grouped_value_heads(tmp_path):
    j = show_ok(build(tmp_path, add=[key("qwen35.ssm.v_head_reordered", BOOL, 0)]))
    assert j["shape"]["v_grouped"] and len(notices(j, "grouped")) == 1


def test_fused_qkv_in_attention(tmp_path):
    def fuse(ts):
        kept = [t for t in ts if t[0] not in ("blk.3.attn_q.weight", "blk.3.attn_k.weight", "blk.3.attn_v.weight")]
        return kept + [("blk.3.attn_qkv.weight", [64, 128 + 64], "f32", b"\0" * 64 * 192 * 4)]
    j, plain = show_ok(build(tmp_path, tensors=fuse)), show_ok(build(tmp_path, name="plain.gguf"))
    assert j["weights"]["bytes"] == plain["weights"]["bytes"] and j["notices"] == plain["notices"]


def test_nextn_block_is_recognised(tmp_path):
    j = show_ok(build(tmp_path, b.Shape(n_nextn=1)))
    assert len(notices(j, "next-n")) == 1
    assert j["weights"]["bytes"] == show_ok(build(tmp_path, name="without.gguf"))["weights"]["bytes"]
    # announced, not there; there, not announced
    j = show_ok(build(tmp_path, b.Shape(n_nextn=1), tensors=lambda ts: [t for t in ts if "blk.4" not in t[0]]))
    assert "no tensors" in notices(j, "next-n")[0]


def test_odd_values_are_noted(tmp_path):
    j = show_ok(build(tmp_path, b.Shape(eps=1e-5, n_vocab=320), add=[key("general.file_type", U32, 7)]))
    assert notices(j, "epsilon") and notices(j, "file_type") and notices(j, "unused") and notices(j, "chat_template")


def test_only_mtp(tmp_path, refuse):
    path = build(tmp_path, b.Shape(n_nextn=1), tensors=lambda ts: [t for t in ts if not t[0].startswith("blk.") or "blk.4." in t[0]])
    refuse(path, "only the next-n (MTP) block", size=os.path.getsize(path))


# --- not GGUF at all ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("raw,word", [
    (b"", "empty"), (b"<!DOCTYPE html><html><body>Not Found</body></html>", "HTML page"), (b"\n  <html>", "HTML page"),
    (b"\xef\xbb\xbf<?xml version='1.0'?><Error/>", "XML"), (b'{"error":"Repository not found"}', "JSON"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "LFS pointer"), (b"Entry not found", "text file"),
    (b"PK\x03\x04" + b"\0" * 60, "zip"), (b"\x1f\x8b\x08" + b"\0" * 60, "gzip"), (b"\0" * 5000, "zero bytes"),
    (struct.pack("<Q", 40) + b'{"__metadata__":{}}' + b" " * 40, "safetensors"), (b"tjgg\3\0\0\0", "GGML"),
    (b"FUGG\0\0\0\3", "big-endian"), (b"GGU", "not a GGUF file"), (b"\x93\x11\xab" * 99, "not a GGUF file"),
])
def test_other_kinds_of_file(refuse, raw, word):
    refuse(raw, "not a GGUF file", word)


def test_no_regular_file(tmp_path, refuse):
    refuse(tmp_path, "a directory")
    os.mkfifo(tmp_path / "fifo")
    refuse(tmp_path / "fifo", "a FIFO")
    refuse("/dev/null", "a device")
    refuse(tmp_path / "nothing.gguf", "cannot open", "No such file")
    (tmp_path / "loop").symlink_to("loop")
    refuse(tmp_path / "loop", "cannot open")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "sock"))
        refuse(tmp_path / "sock")


# --- headers that lie ---------------------------------------------------------------------------------------------------

def one_kv(name, type_, payload):
    return container([ARCH, string(name) + struct.pack("<I", type_) + payload])


BAD_HEADERS = {
    "dimension 0": (container([ARCH], [info("t", [0, 32], 0, 0)]), "tensor 't': dimension 0 is 0"),
    "dimension 1 is 0": (container([ARCH], [info("t", [32, 0], 8, 0)]), "tensor 't': dimension 1 is 0"),
    "dimension -1": (container([ARCH], [info("t", [32, -1], 0, 0)]), "tensor 't': dimension 1 is -1"),
    "product overflows": (container([ARCH], [info("t", [2**40, 2**40], 0, 0)]), "overflows"),
    "bytes overflow": (container([ARCH], [info("t", [2**61, 2], 0, 0)]), "overflow"),
    "five dimensions": (container([ARCH], [info("t", [1] * 5, 0, 0)]), "at most 4 dimensions, found 5"),
    "many dimensions": (container([ARCH], [info("t", [1], 0, 0, n_dims=2**32 - 1)]), "4294967295"),
    "empty key": (container([key("", STR, "x")]), "metadata key 0 is empty"),
    "second key empty": (container([ARCH, key("", U32, 1)]), "metadata key 1 is empty"),
    "key not UTF-8": (container([key(b"a\xff", U32, 1)]), "metadata key 0 is not valid UTF-8"),
    "key twice": (container([ARCH, key("k", U32, 1), key("k", U32, 1)]), "key 'k' occurs twice"),
    "tensor name empty": (container([ARCH], [info("", [1], 0, 0)]), "name of tensor 0"),
    "tensor name long": (container([ARCH], [info("n" * 64, [1], 0, 0)], b"\0" * 32), "1 to 63 bytes, found 64"),
    "tensor name bad": (container([ARCH], [info(b"a\x1b[31m", [1], 0, 0)]), "not printable"),
    "tensor twice": (container([ARCH], [info("t", [8], 0, 0), info("t", [8], 0, 32)], b"\0" * 64), "tensor 't' occurs twice"),
    "type 199": (container([ARCH], [info("t", [32], 199, 0)], b"\0" * 128), "tensor 't' uses type 199, unknown to this version"),
    "type 4": (container([ARCH], [info("t", [32], 4, 0)], b"\0" * 128), "uses type 4, unknown"),
    "type 5": (container([ARCH], [info("t", [32], 5, 0)], b"\0" * 128), "uses type 5, unknown"),
    "type 31": (container([ARCH], [info("t", [32], 31, 0)], b"\0" * 128), "uses type 31, unknown"),
    "type -1": (container([ARCH], [info("t", [32], 2**32 - 1, 0)], b"\0" * 128), "uses type 4294967295, unknown"),
    "type 2^31": (container([ARCH], [info("t", [32], 2**31, 0)], b"\0" * 128), "uses type 2147483648, unknown"),
    "half a block": (container([ARCH], [info("t", [33], 8, 0)], b"\0" * 128), "blocks of 32"),
    "hole": (container([ARCH], [info("t", [8], 0, 32)], b"\0" * 64), "expected its data at offset 0"),
    "overlap": (container([ARCH], [info("t", [8], 0, 0), info("u", [8], 0, 0)], b"\0" * 64), "tensor 'u'"),
    "offset huge": (container([ARCH], [info("t", [8], 0, 2**64 - 32)], b"\0" * 64), "tensor 't'"),
    "data missing": (container([ARCH], [info("t", [64], 0, 0)], b"\0" * 64), "its data ends at byte"),
    "data far away": (container([ARCH], [info("t", [2**50], 0, 0)], b"\0" * 64), "its data ends at byte"),
    "value type 13": (one_kv("k", 13, b"\0" * 8), "value type 13"),
    "value type -1": (one_kv("k", 2**32 - 1, b"\0" * 8), "value type 4294967295"),
    "array of arrays": (one_kv("k", ARR, struct.pack("<IQ", ARR, 1) + b"\0" * 20), "array of arrays"),
    "array of type 99": (one_kv("k", ARR, struct.pack("<IQ", 99, 1) + b"\0" * 20), "element type 99"),
    "array count": (one_kv("k", ARR, struct.pack("<IQ", U8, 2**62)), "4611686018427387904 x u8"),
    "array count of strings": (one_kv("k", ARR, struct.pack("<IQ", STR, 2**61)), "x string"),
    "array count overflows": (one_kv("k", ARR, struct.pack("<IQ", U64, 2**61 + 1)), "x u64"),
    "string length": (one_kv("k", STR, struct.pack("<Q", 2**63)), "key 'k'"),
    "string in array": (one_kv("k", ARR, struct.pack("<IQ", STR, 2) + string("a") + struct.pack("<Q", 99)), "string 1"),
    "bool of 2": (one_kv("k", BOOL, b"\2"), "expected a bool of 0 or 1, found 2"),
    "bool of 2 in array": (array("k", BOOL, [0, 1, 2]), "expected a bool of 0 or 1, found 2"),
    "version 1": (container([ARCH], version=1), "expected GGUF version 2 or 3, found 1"),
    "version 0": (container([ARCH], version=0), "found 0"),
    "version 4": (container([ARCH], version=4), "found 4"),
    "big endian": (container([ARCH], version=3 << 24), "big-endian"),
    "key count": (container([ARCH], n_kv=2**60), "number of keys"),
    "key count -1": (container([ARCH], n_kv=2**64 - 1), "number of keys"),
    "tensor count": (container([ARCH], n_tensors=2**60), "number of tensors"),
    "tensor count one more": (container([ARCH], n_tensors=1), "tensor"),
    "alignment 0": (container([ARCH, key("general.alignment", U32, 0)]), "general.alignment"),
    "alignment 24": (container([ARCH, key("general.alignment", U32, 24)]), "general.alignment"),
    "alignment u64": (container([ARCH, key("general.alignment", U64, 32)]), "general.alignment"),
    "alignment string": (container([ARCH, key("general.alignment", STR, "32")]), "expected u32, found string"),
    "alignment huge": (container([ARCH, key("general.alignment", U32, 2**31)], [info("t", [8], 0, 0)], b"\0" * 64), "tensor 't'"),
    "no keys": (container([]), "general.architecture"),
    "architecture is a number": (container([key("general.architecture", U32, 1)]), "expected a string, found u32"),
}
BAD_HEADERS["bool of 2 in array"] = (container([ARCH, array("k", BOOL, [0, 1, 2])]), "expected a bool of 0 or 1, found 2")


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_bad_header(refuse, case):
    raw, word = BAD_HEADERS[case]
    refuse(raw, word)


def test_truncated_everywhere(tmp_path):
    """Cut at every byte of the header, and inside the data: never a crash, always one line."""
    raw = b.lay_out([ARCH, key("a", STR, "xy"), array("b", STR, ["p", "q"]), array("c", U16, [1, 2, 3]), key("d", BOOL, 1)],
                    [("t", [8], "f32", b"\0" * 32), ("u", [32], "q8_0", b"\0" * 34)])
    for n in range(len(raw)):
        path = b.write(tmp_path / "cut.gguf", raw[:n])
        status, out, err, _, _ = show(path)
        assert (status, out, err.count("\n")) == (1, "", 1), (n, status, err)
        assert str(path) in err


def test_truncated_model(tmp_path, refuse):
    raw = b.model(b.Shape())
    for n in (len(raw) - 1, len(raw) - 300 * 64 * 4, len(raw) // 2):
        refuse(raw[:n], "its data ends at byte", "the file has %d bytes" % n)


def test_many_keys_and_tensors_are_fast(refuse):
    """Duplicates at the end of long lists: found without comparing each with each; counts above the limit are refused."""
    refuse(container([ARCH] + [key("k%d" % (i % 60000), U8, 0) for i in range(60001)]), "occurs twice")
    n = 100000
    refuse(container([ARCH], [info("t%d" % (i % n), [8], 24, 32 * i) for i in range(n + 1)], b"\0" * 32 * (n + 1)), "occurs twice")
    refuse(container([ARCH] + [key("k%d" % i, U8, 0) for i in range(70000)]), "number of keys")
    refuse(container([ARCH], [info("t%d" % i, [1], 24, 32 * i) for i in range(140000)], b"\0" * 32 * 140000), "number of tensors")


# --- keys that do not make a model --------------------------------------------------------------------------------------

def changed(name, type_, v):
    return {"qwen35." + name: key("qwen35." + name, type_, v)}


@pytest.mark.parametrize("name,type_,v,word", [
    ("block_count", U32, 0, "block_count"), ("block_count", U32, 2**32 - 1, "block_count"), ("block_count", F32, 4, "an integer, found f32"),
    ("block_count", STR, "4", "an integer, found string"), ("block_count", I32, -4, "block_count"), ("block_count", U32, 2000, "2000"),
    ("embedding_length", U32, 0, "embedding_length"), ("embedding_length", U32, 2**31, "embedding_length"),
    ("context_length", U32, 0, "context_length"), ("feed_forward_length", U32, 0, "feed_forward_length"),
    ("attention.head_count", U32, 0, "head_count"), ("attention.head_count", U32, 3, "expected dimensions"),
    ("attention.head_count_kv", U32, 0, "head_count_kv"), ("attention.head_count_kv", U32, 3, "multiple of 3 KV heads"),
    ("attention.key_length", U32, 0, "key_length"), ("attention.key_length", U32, 31, "value_length"),
    ("attention.layer_norm_rms_epsilon", F32, float("nan"), "layer_norm_rms_epsilon"),
    ("attention.layer_norm_rms_epsilon", F32, 0.0, "layer_norm_rms_epsilon"),
    ("attention.layer_norm_rms_epsilon", F32, -1.0, "layer_norm_rms_epsilon"),
    ("attention.layer_norm_rms_epsilon", U32, 1, "expected f32, found u32"), ("attention.layer_norm_rms_epsilon", F64, 1e300, "epsilon"),
    ("attention.scale", F32, float("inf"), "attention.scale"),
    ("attention.scale", F32, 1e38, "attention.scale' is 1e+38: expected above 0 and at most 1000"),
    ("rope.dimension_count", U32, 0, "dimension_count"), ("rope.dimension_count", U32, 7, "rope turns 7"),
    ("rope.dimension_count", U32, 64, "rope turns 64 of 32"), ("rope.dimension_count", U32, 4, "sections"),
    ("rope.freq_base", F32, float("nan"), "freq_base"), ("rope.freq_base", F32, 0.0, "freq_base"),
    ("rope.scaling.type", STR, "linear", "'linear'"), ("rope.scaling.type", STR, "yarn", "scaling.factor"), ("rope.scaling.factor", F32, 4.0, "scaling.factor"),
    ("ssm.conv_kernel", U32, 0, "conv_kernel"), ("ssm.state_size", U32, 0, "state_size"), ("ssm.state_size", U32, 512, "inner_size"),
    ("ssm.group_count", U32, 0, "group_count"), ("ssm.group_count", U32, 3, "multiple of 3 key heads"),
    ("ssm.time_step_rank", U32, 0, "time_step_rank"), ("ssm.inner_size", U32, 65, "inner_size"),
    ("full_attention_interval", U32, 0, "full_attention_interval"), ("full_attention_interval", U32, 2, "full attention by the file's keys"),
    ("nextn_predict_layers", U32, 4, "nextn_predict_layers"), ("nextn_predict_layers", U32, 2**31, "nextn_predict_layers"),
    ("expert_count", U32, 8, "mixtures of experts"), ("ssm.v_head_reordered", U32, 1, "expected bool, found u32"),
])
def test_bad_key(tmp_path, refuse, name, type_, v, word):
    path = build(tmp_path, change=changed(name, type_, v))
    refuse(path, word, size=os.path.getsize(path))


@pytest.mark.parametrize("name", ["block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
                                  "attention.layer_norm_rms_epsilon", "ssm.conv_kernel", "ssm.state_size", "ssm.group_count",
                                  "ssm.time_step_rank", "ssm.inner_size"])
def test_missing_key(tmp_path, refuse, name):
    path = build(tmp_path, drop=["qwen35." + name])
    refuse(path, "key 'qwen35.%s' is missing" % name, size=os.path.getsize(path))


@pytest.mark.parametrize("name,elem,values,word", [
    (SECTIONS, I32, [2, 1], "expected 4 entries"), (SECTIONS, I32, [2, 1, 1, 0, 0], "expected 4 entries"),
    (SECTIONS, I32, [2, 1, 2, 0], "exceed"), (SECTIONS, I32, [2, 1, 9, 0], "section 2 is 9"), (SECTIONS, I32, [2, -1, 1, 0], "entry 1"), (SECTIONS, F32, [2, 1, 1, 0], "array of f32"),
    (SECTIONS, STR, ["2", "1", "1"], "array of string"), (KV, U32, [1, 1, 1], "expected 4 entries"), (KV, U32, [], "expected 4 entries"),
    (KV, U32, [1] * 6, "expected 4 entries"), (KV, I32, [0, 0, 0, -1], "entry 3"), (KV, F32, [1.0] * 4, "array of f32"),
    (KV, U32, [1, 1, 1, 0], "is 0 at layer 3"), ("qwen35.feed_forward_length", U32, [32, 32, 64, 32], "64 at layer 2"),
])
def test_bad_array(tmp_path, refuse, name, elem, values, word):
    path = build(tmp_path, change={name: array(name, elem, values)})
    refuse(path, word, size=os.path.getsize(path))


@pytest.mark.parametrize("arch,word", [("llama", "'llama'"), ("qwen35moe", "not supported yet"), ("qwen3next", "not supported yet"),
                                       ("clip", "vision projector"), ("", "''"), ("qwen35\n\x1b[31m", "qwen35"), ("q" * 5000, "qqq")])
def test_other_architecture(refuse, arch, word):
    refuse(container([key("general.architecture", STR, arch)]), word)


def test_adapter(refuse):
    refuse(container([ARCH, key("general.type", STR, "adapter")]), "'adapter'")


T = "tokenizer.ggml."


@pytest.mark.parametrize("kv,word", [
    (array(T + "tokens", U32, [1, 2]), "array of string"), (array(T + "tokens", STR, []), "found 0"),
    (key(T + "tokens", STR, "a"), "an array of string, found string"),
    (array(T + "token_type", F32, [1.0] * 300), "array of f32"), (array(T + "token_type", I32, [1] * 299), "found 299"),
    (array(T + "token_type", I32, [1] * 299 + [7]), "token 299"), (array(T + "token_type", I32, [1] * 299 + [-1]), "token 299"),
    (array(T + "scores", U8, [1] * 300), "expected an array of f32, found array of u8"), (array(T + "scores", F32, [0.0] * 4), "found 4"),
    (array(T + "merges", U8, [1] * 40), "expected an array of string, found array of u8"),
    (key(T + "eos_token_id", U32, 300), "outside the vocabulary of 300"), (key(T + "eos_token_id", I32, -1), "outside"),
    (key(T + "eos_token_id", STR, "</s>"), "expected an integer, found string"),
    (key(T + "padding_token_id", U32, 2**32 - 1), "outside"), (array(T + "eos_token_ids", U32, [1, 300]), "outside"),
    (key(T + "model", U32, 1), "expected a string"), (key("tokenizer.chat_template", U32, 1), "expected a string"),
    (array(T + "token_type", U8, [1] * 150), "found 150"),
])
def test_bad_vocabulary(tmp_path, refuse, kv, word):
    n = struct.unpack("<Q", kv[:8])[0]
    name = kv[8:8 + n]
    s = b.Shape()
    vocab = [k for k in b.tokenizer(s.n_vocab) if k[8:8 + n] != name or len(name) != struct.unpack("<Q", k[:8])[0]]
    path = b.write(tmp_path / "v.gguf", b.lay_out([*b.keys(s).values(), *vocab, kv], b.tensors(s)))
    refuse(path, name.decode(), word, size=os.path.getsize(path))


def test_token_type_of_another_width_is_widened(tmp_path):
    """An 8-bit array of the right length must not be read as 32-bit."""
    s = b.Shape()
    vocab = [array(T + "token_type", U8, [1] * 299 + [3]) if b"token_type" in k[:40] else k for k in b.tokenizer(s.n_vocab)]
    j = show_ok(b.write(tmp_path / "v.gguf", b.lay_out([*b.keys(s).values(), *vocab], b.tensors(s))))
    assert j["tokenizer"]["types"]["normal"] == 299 and j["tokenizer"]["special"][0]["id"] == 299


# --- tensors that do not make a model -----------------------------------------------------------------------------------

def replace(name, dim, type_, raw=None):
    def f(ts):
        return [(name, dim, type_, b"\0" * b.n_bytes(dim, type_) if raw is None else raw) if t[0] == name else t for t in ts]
    return f


@pytest.mark.parametrize("change,words", [
    (replace("blk.0.ffn_up.weight", [64, 33], "f32"), ["blk.0.ffn_up.weight", "[64, 32]", "[64, 33]"]),
    (replace("blk.0.ffn_up.weight", [32, 64], "f32"), ["blk.0.ffn_up.weight", "[64, 32]", "[32, 64]"]),
    (replace("blk.0.ffn_up.weight", [64, 32, 2], "f32"), ["blk.0.ffn_up.weight", "expected dimensions"]),
    (replace("blk.0.ffn_up.weight", [64, 32], "q4_0"), ["blk.0.ffn_up.weight' is Q4_0; this version runs F32, F16, BF16, Q8_0"]),
    (replace("blk.0.ffn_up.weight", [64, 32], "i8"), ["blk.0.ffn_up.weight' is I8"]),
    (replace("blk.0.attn_norm.weight", [64], "f16"), ["blk.0.attn_norm.weight' is F16; expected F32"]),
    (replace("blk.0.ssm_conv1d.weight", [128, 4], "f32"), ["blk.0.ssm_conv1d.weight", "[4, 128]"]),
    (replace("token_embd.weight", [64, 299], "f32"), ["token_embd.weight", "300"]),
    (replace("output_norm.weight", [64], "f32", struct.pack("<f", float("nan")) * 64), ["output_norm.weight', element 0", "finite"]),
    (replace("blk.1.ssm_a", [2], "f32", struct.pack("<ff", -1, float("inf"))), ["blk.1.ssm_a', element 1", "finite"]),
    (lambda ts: [t for t in ts if t[0] != "blk.2.ssm_out.weight"], ["blk.2.ssm_out.weight' is missing"]),
    (lambda ts: [t for t in ts if t[0] != "token_embd.weight"], ["token_embd.weight' is missing"]),
    (lambda ts: [t for t in ts if t[0] != "blk.3.attn_q.weight"], ["blk.3.attn_q.weight' is missing"]),
    (lambda ts: [t for t in ts if not t[0].startswith("blk.")], ["no layers"]),
    (lambda ts: [], ["no tensors"]),
    (lambda ts: ts + [("blk.0.ffn_up.scale", [1], "f32", b"\0" * 4)], ["blk.0.ffn_up.scale", "would change the results"]),
    (lambda ts: ts + [("blk.3.attn_q.bias", [128], "f32", b"\0" * 512)], ["blk.3.attn_q.bias", "would change the results"]),
    (lambda ts: ts + [("rope_freqs.weight", [4], "f32", b"\0" * 16)], ["rope_freqs.weight"]),
    (lambda ts: ts + [("blk.7.attn_norm.weight", [64], "f32", b"\0" * 256)], ["blk.7.attn_norm.weight", "4 layers"]),
])
def test_bad_tensors(tmp_path, refuse, change, words):
    path = build(tmp_path, tensors=change)
    refuse(path, *words, size=os.path.getsize(path))


def test_q4_k_is_named(tmp_path, refuse):
    s = b.Shape(n_embd=256)
    path = build(tmp_path, s, tensors=replace("blk.0.ffn_up.weight", [256, 32], "q4_k"))
    refuse(path, "blk.0.ffn_up.weight' is Q4_K; this version runs F32, F16, BF16, Q8_0", size=os.path.getsize(path))


@pytest.mark.parametrize("type_,raw", [("f32", struct.pack("<f", float("inf"))), ("f16", b"\0\xfc"), ("bf16", b"\xc0\x7f"),
                                       ("q8_0", b"\0\x7c" + b"\0" * 32)])
def test_check_finds_bad_numbers(tmp_path, type_, raw):
    """Row 3 of a matrix holds one number that is none: seen with --check."""
    row = b.n_bytes([64], type_)
    data = bytearray(32 * row)
    data[3 * row:3 * row + len(raw)] = raw
    path = build(tmp_path, type_=type_, tensors=replace("blk.2.ffn_gate.weight", [64, 32], type_, bytes(data)))
    assert show_ok(path)
    status, out, err, _, _ = show(path, "--check")
    assert (status, out, err.count("\n")) == (1, "", 1) and "blk.2.ffn_gate.weight', row 3, element 0" in err


def test_check_opens_the_tokenizer(tmp_path):
    """Merges of pieces that the vocabulary lacks: legal as arrays, no tokenizer."""
    s = b.Shape()
    vocab = [array(T + "merges", STR, ["a \u0104"]) if b"ggml.merges" in k[:40] else k for k in b.tokenizer(s.n_vocab)]
    path = b.write(tmp_path / "v.gguf", b.lay_out([*b.keys(s).values(), *vocab], b.tensors(s)))
    assert show_ok(path)
    status, out, err, _, _ = show(path, "--check")
    assert (status, out, err.count("\n")) == (1, "", 1) and str(path) in err and "merge" in err


def test_odd_alignment(tmp_path, refuse):
    assert show_ok(build(tmp_path, add=[key("general.alignment", U32, 4)], align=4))
    for pad in range(4):   # whether floats lie at odd addresses hangs on the header's length
        path = build(tmp_path, add=[key("general.alignment", U32, 1), key("a", STR, "x" * pad)], align=1)
        status, _, err, _, _ = show(path)
        assert status == (0 if os.path.getsize(path) % 4 == 0 else 1)
        assert status == 0 or "general.alignment is 1" in err
    big = build(tmp_path, add=[key("general.alignment", U32, 4096)], align=4096)
    assert show_ok(big)


# --- split files --------------------------------------------------------------------------------------------------------

def split(tmp_path, prefix="m", n=3, shape=None, empty_first=False, change=None):
    """Writes a model as n files; change(i, keys, tensors) may edit one before it is written."""
    s = shape or b.Shape()
    ts = b.tensors(s)
    per = -(-len(ts) // (n - empty_first))
    paths = []
    for i in range(n):
        at = (i - empty_first) * per
        mine = [] if empty_first and i == 0 else ts[at:at + per]
        kvs = {"no": key("split.no", U16, i), "count": key("split.count", U16, n), "total": key("split.tensors.count", I32, len(ts))}
        if i == 0:
            kvs.update(b.keys(s))
            kvs["vocab"] = b"".join(b.tokenizer(s.n_vocab))
        if change:
            kvs, mine = change(i, kvs, mine) or (kvs, mine)
        extra = len(b.tokenizer(s.n_vocab)) - 1 if "vocab" in kvs else 0
        raw = b.lay_out(list(kvs.values()), mine, n_kv=len(kvs) + extra)
        paths.append(b.write(tmp_path / ("%s-%05d-of-%05d.gguf" % (prefix, i + 1, n)), raw))
    return paths


@pytest.mark.parametrize("empty_first", [False, True])
def test_any_file_of_a_set_opens_all(tmp_path, empty_first):
    whole = show_ok(build(tmp_path))
    paths = split(tmp_path, empty_first=empty_first)
    ids = set()
    for p in paths:
        j = show_ok(p)
        assert j["files"] == 3 and j["weights"]["bytes"] == whole["weights"]["bytes"] and j["shape"] == whole["shape"]
        ids.add(j["id"])
    assert len(ids) == 1


def test_set_with_missing_files(tmp_path, refuse):
    paths = split(tmp_path)
    os.remove(paths[2])
    for p in paths[:2]:
        refuse(p, "1 of the 3 files", "m-00003-of-00003.gguf", size=10**5)
    os.remove(paths[0])
    refuse(paths[1], "2 of the 3 files", "m-00001-of-00003.gguf, m-00003-of-00003.gguf", size=10**5)


def test_set_that_disagrees(tmp_path, refuse):
    for sub, change, words in (
        ("count", lambda i, k, t: i == 1 and k.update(count=key("split.count", U16, 4)), ["00002-of-00003", "split.count 4"]),
        ("total", lambda i, k, t: i == 2 and k.update(total=key("split.tensors.count", I32, 9)), ["00003-of-00003", "split.tensors.count 9"]),
        ("all", lambda i, k, t: k.update(total=key("split.tensors.count", I32, 9)), ["split.tensors.count' is 9"]),
        ("no", lambda i, k, t: i == 1 and k.update(no=key("split.no", U16, 2)), ["00002-of-00003", "split.no 2"]),
        ("type", lambda i, k, t: i == 1 and k.update(no=key("split.no", STR, "1")), ["split.no"]),
        ("negative", lambda i, k, t: i == 1 and k.update(no=key("split.no", I32, -1)), ["split.no"]),
        ("arch", lambda i, k, t: i == 1 and k.update(a=key("general.architecture", STR, "llama")), ["general.architecture"]),
        ("tensor", lambda i, k, t: (k, [("output_norm.weight", [64], "f32", b"\0" * 256)] + t[1:]) if i == 2 else None,
         ["output_norm.weight' occurs twice"]),
        ("dup", lambda i, k, t: i == 2 and k.update(x=key("x", U8, 1), y=key("x", U8, 1)), ["00003", "'x' occurs twice"]),
    ):
        (tmp_path / sub).mkdir()
        paths = split(tmp_path / sub, change=change)
        for p in paths:
            refuse(p, "split." if "split." in words[-1] else words[-1], size=10**5, about="m-0000")
        refuse(paths[0], *words, size=10**5, about="m-0000")


def test_file_of_another_set(tmp_path, refuse):
    paths = split(tmp_path)
    (tmp_path / "o").mkdir()
    other = split(tmp_path / "o", n=3, shape=b.Shape(n_layers=8))
    os.replace(other[2], paths[2])
    refuse(paths[0], "00003-of-00003", "split.tensors.count", size=10**5, about="m-00003")


def test_renamed_file_of_a_set(tmp_path, refuse):
    paths = split(tmp_path)
    os.rename(paths[1], tmp_path / "model.gguf")
    refuse(tmp_path / "model.gguf", "file 2 of a set of 3", "-00002-of-00003.gguf", size=10**5)
    os.rename(tmp_path / "model.gguf", tmp_path / "m-00002-of-00005.gguf")
    refuse(tmp_path / "m-00002-of-00005.gguf", "2 of 5", "split.count 3", size=10**5)


def test_truncated_file_in_a_set(tmp_path, refuse):
    paths = split(tmp_path)
    with open(paths[1], "r+b") as f:
        f.truncate(os.path.getsize(paths[1]) - 100)
    refuse(paths[0], "00002-of-00003", "its data ends", size=10**5, about="m-00002")
    b.write(paths[1], b"<!DOCTYPE html><html></html>")
    refuse(paths[0], "00002-of-00003", "HTML page", size=10**5, about="m-00002")


# --- where it would lie -------------------------------------------------------------------------------------------------

def fit_of(*args):
    status, out, err, _, _ = show(*args)
    return status, out, err


def test_fit_places_a_file():
    j = show_ok(TINY, "--fit", "2x1GiB", "--ctx", "2048", "--parallel", "2", "--kv-v", "q8")["fit"]
    assert j["fits"] and j["sequences"] == 2 and j["context"] == 2048 and (j["kv_k"], j["kv_v"]) == ("f16", "q8")
    assert [s["first_layer"] for s in j["stages"]] == [0] + [s["last_layer"] + 1 for s in j["stages"][:-1]]
    assert j["stages"][-1]["last_layer"] == 7
    for s in j["stages"]:
        parts = [v for k, v in s["plan"].items() if k != "total"]
        assert sum(parts) == s["plan"]["total"] and s["plan"]["total"] + s["left"] == j["cards"][s["card"]]
    assert [(f["k"], f["v"]) for f in j["formats"]][-1] == ("f16", "q8")
    assert all(f["fits"] for f in j["formats"])


def test_fit_counts_checkpoints_as_the_server_does():
    made = {size: show_ok(TINY, "--fit", "2GiB", *(["--cache-device", size] if size else []))["fit"] for size in ("", "0", "100MiB")}
    assert [f["checkpoints"] for f in made.values()][:2] == [5, 0] and made["0"]["whole"]["checkpoints"] == 0
    each = made[""]["whole"]["checkpoints"] // 5
    assert made["100MiB"]["checkpoints"] == (100 << 20) // each and made["100MiB"]["whole"]["checkpoints"] <= 100 << 20


def test_fit_counts_sparse_prefill_where_asked():
    dense, sparse = (show_ok(TINY, "--fit", "2GiB", "--ctx", "32768", *more)["fit"] for more in ((), ("--sparse-prefill", "0.99")))
    assert (dense["sparse_prefill"], sparse["sparse_prefill"]) == (False, True)
    assert sparse["whole"]["scratch"] > dense["whole"]["scratch"]
    assert sparse["whole"]["total"] - dense["whole"]["total"] == sparse["whole"]["scratch"] - dense["whole"]["scratch"]
    assert sparse["advice"].endswith("and that --sparse-prefill")


def test_fit_leaves_alone_what_one_card_holds():
    for cards, card in (("2x16GiB", 1), ("700MiB,16GiB,16GiB", 2)):
        status, out, err = fit_of(TINY, "--fit", cards, "--ctx", "2048")
        last = out.splitlines()[-1]
        assert (status, err) == (0, "") and f"card {card} alone holds it all, the other" in last and "quarry-serve takes there with -c 2048" in last
    for cards in ("30.8GiB", "30.8GiB,700MiB"):
        status, out, err = fit_of("--preset", "qwen3.5-27b", "--ctx", "32768", "--fit", cards)
        assert "steps of up to 2048 rows: does not fit" in out, out


def test_fit_of_a_model_of_few_tokens(tmp_path):
    status, out, err = fit_of(build(tmp_path, b.Shape(n_ctx=40)), "--fit", "24GiB")
    line = next(line for line in out.splitlines() if line.startswith("  f16 / f16"))
    assert line.split()[-2:] == ["40", "fits"], out


def test_fit_says_what_to_change():
    status, out, err = fit_of("--preset", "qwen3.6-27b", "--fit", "3x16GiB", "--ctx", "256K")
    assert (status, err) == (1, "") and "does not fit" in out
    assert "--kv-k q8 --kv-v q8 would fit, or --ctx " in out.splitlines()[-1]
    status, out, err = fit_of("--preset", "qwen3.6-27b", "--fit", "24GiB")
    assert "it needs more or larger cards" in out.splitlines()[-1]
    status, out, err = fit_of("--preset", "qwen3.6-27b", "--fit", "3x16GiB", "--kv-k", "r3", "--kv-v", "r3")
    assert "a plan only" in out.splitlines()[-1] and "embedding is on card 1, the head on card 3" in out


@pytest.mark.parametrize("args, words", [
    (["--fit", "16"], "expected sizes as 16GiB"),
    (["--fit", "65x1GiB"], "1 to 64 cards"),
    (["--ctx", "4096"], "go with --fit"),
    (["--fit", "16GiB", "--ctx", "0"], "--ctx expects a whole number from 1 to"),
    (["--fit", "16GiB", "--parallel", "x"], "--parallel expects a whole number from 1 to 256, not 'x'"),
    (["--fit", "16GiB", "--kv-k", "r5"], "found r5"), (["--fit", "16GiB", "--cache-device", "x"], "found x"), (["--cache-device", "1GiB"], "go with --fit"),
    (["--fit", "16GiB", "--sparse-prefill", "1"], "below 1, as 0.99, found 1"), (["--sparse-prefill", "0.99"], "go with --fit"),
    (["--fit", "16GiB", "--ctx", "16777216"], "from 1 to 16777215"), (["--fit", "16GiB", "--ctx", "16384K"], "from 1 to 16777215"),
])
def test_fit_refuses(args, words):
    status, out, err = fit_of(TINY, *args)
    assert status == 2 and not out and words in err and err.count("\n") == 1, err
