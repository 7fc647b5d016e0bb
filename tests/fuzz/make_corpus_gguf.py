"""Writes the seeds of fuzz_gguf into corpus/gguf: small valid models of several shapes, and odd but legal containers."""
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "py"))
import gguf_build as b  # noqa: E402

SMALL = dict(n_embd=8, n_ff=4, n_head=2, n_head_kv=1, head_dim=4, rope_dims=2, sections=(1, 0, 0, 0), state_dim=8,
             n_k_heads=1, n_v_heads=1, n_vocab=8)


def save(name, raw):
    b.write(os.path.join(here, "corpus", "gguf", name), raw)


save("two_layers", b.model(b.Shape(n_layers=2, interval=2, **SMALL)))
save("nextn_bf16", b.model(b.Shape(n_layers=2, n_nextn=1, layers="ag", **SMALL), "bf16"))
save("untied_v2", b.model(b.Shape(n_layers=1, tied=False, **SMALL), version=2))
save("q8", b.model(b.Shape(n_layers=1, **{**SMALL, "n_embd": 32, "n_ff": 32, "state_dim": 32, "n_vocab": 4}), "q8_0"))

tokens = ["a", "b", "ab", "c", "<|im_end|>", "d", "e", "[PAD]"]
vocab = [b.key("tokenizer.ggml.model", b.STR, "gpt2"), b.key("tokenizer.ggml.pre", b.STR, "qwen35"),
         b.array("tokenizer.ggml.tokens", b.STR, tokens), b.array("tokenizer.ggml.token_type", b.I32, [1, 1, 1, 1, 3, 1, 4, 5]),
         b.array("tokenizer.ggml.merges", b.STR, ["a b"]), b.key("tokenizer.ggml.eos_token_id", b.U32, 4),
         b.key("tokenizer.chat_template", b.STR, "{{ enable_thinking }}")]
s = b.Shape(n_layers=1, **SMALL)
save("tokenizer", b.lay_out([*b.keys(s).values(), *vocab], b.tensors(s)))

kv, rec = "qwen35.attention.head_count_kv", "qwen35.rope.dimension_sections"
s = b.Shape(n_layers=2, interval=2, **SMALL)
k = b.keys(s)
del k["qwen35.full_attention_interval"]
k[kv], k[rec] = b.array(kv, b.U32, [0, 1]), b.array(rec, b.I32, [1, 0, 0])
ts = [(n.replace("ssm_dt.bias", "ssm_dt"), d, t, raw) for n, d, t, raw in b.tensors(s)]
save("dialect", b.lay_out([*k.values(), b.key("qwen35.ssm.v_head_reordered", b.BOOL, 0)], ts + [("v.x", [1], "f32", b"\0" * 4)]))

every = [b.key("k%d" % t, t, "s" if t == b.STR else 1) for t in (*range(9), 10, 11, 12)]
every += [b.array("a%d" % t, t, ["s", ""] if t == b.STR else [1, 0]) for t in (*range(9), 10, 11, 12)]
save("every_type", b.lay_out(every + [b.key("general.alignment", b.U32, 8)], [("t", [3, 2], "i8", b"\0" * 6)], align=8))
save("html", b"<!DOCTYPE html><html></html>")
save("header_only", b.container([]))
