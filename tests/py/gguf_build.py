"""Builds GGUF files byte by byte, right or wrong on purpose, for tests. Plain Python; numpy only for random weights.

Three levels:
  key(), array(), info(), container()    one piece of a file each; every count, type and size can be made to lie
  Shape, keys(), tensors(), write()      a valid model of any shape, as lists to change before they are written
  write_random()                         the same with random weights, and those weights as float32 arrays
"""
import struct
from dataclasses import dataclass, field

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
FORM = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}

# tensor types: id, elements a block, bytes a block
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144),
         "i8": (24, 1, 1), "bf16": (30, 1, 2)}


def string(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(b)) + b


def value(type_, v):
    return string(v) if type_ == STR else struct.pack("<" + FORM[type_], v)


def key(name, type_, v):
    return string(name) + struct.pack("<I", type_) + value(type_, v)


def array(name, elem, values, count=None):
    n = len(values) if count is None else count
    return string(name) + struct.pack("<IIQ", ARR, elem, n) + b"".join(value(elem, v) for v in values)


def info(name, dims, type_, offset, n_dims=None):
    n = len(dims) if n_dims is None else n_dims
    return (string(name) + struct.pack("<I", n) + b"".join(struct.pack("<Q", d % 2**64) for d in dims)
            + struct.pack("<IQ", type_, offset))


def container(kvs, infos=(), data=b"", n_kv=None, n_tensors=None, version=3, magic=b"GGUF", align=32):
    head = magic + struct.pack("<IQQ", version, len(infos) if n_tensors is None else n_tensors,
                               len(kvs) if n_kv is None else n_kv) + b"".join(kvs) + b"".join(infos)
    return head + b"\0" * (-len(head) % align) + data


def lay_out(kvs, tensors, align=32, **more):
    """A whole file of tensors (name, dims, type name, bytes) one after the other."""
    infos, data = [], b""
    for name, dims, type_, raw in tensors:
        data += b"\0" * (-len(data) % align)
        infos.append(info(name, dims, TYPES[type_][0], len(data)))
        data += raw
    return container(kvs, infos, data, align=align, **more)


def n_bytes(dims, type_):
    n = 1
    for d in dims:
        n *= d
    _, block, size = TYPES[type_]
    assert dims[0] % block == 0, (dims, type_)
    return n // block * size


@dataclass
class Shape:
    """A legal shape, small by default. Any field may be changed; `layers` overrules `interval` ("a": attention)."""
    n_layers: int = 4
    interval: int = 4
    layers: str = ""
    n_nextn: int = 0
    n_embd: int = 64
    n_ff: int = 32
    n_head: int = 2
    n_head_kv: int = 1
    head_dim: int = 32
    rope_dims: int = 8
    sections: tuple = (2, 1, 1, 0)
    rope_base: float = 1e7
    conv_taps: int = 4
    n_k_heads: int = 1
    n_v_heads: int = 2
    state_dim: int = 32
    n_vocab: int = 300
    n_ctx: int = 4096
    eps: float = 1e-6
    tied: bool = True
    name: str = "built"
    yarn: tuple = ()                               # factor, original context, beta fast, beta slow
    extra: list = field(default_factory=list)      # more keys, as bytes

    def kinds(self):
        return self.layers or "".join("a" if (i + 1) % self.interval == 0 else "g" for i in range(self.n_layers))


def byte_tokens():
    """The 256 byte tokens of a byte-level vocabulary, as the GPT-2 table writes them."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(b) if b in keep else chr(next(other)) for b in range(256)]


def tokenizer(n_vocab, merges=(), special=("<|endoftext|>", "<|im_start|>", "<|im_end|>"), pre="qwen35", template=None, words=False):
    """Keys of a tokenizer with n_vocab tokens: bytes, merges' results, special ones, then unused padding (or words, that a text is seen)."""
    tokens = byte_tokens() + [m.replace(" ", "", 1) for m in merges]
    types = [1] * len(tokens)
    tokens += special
    types += [3] * len(special)
    eos = len(tokens) - 1
    while len(tokens) < n_vocab:
        types.append(1 if words else 5)
        tokens.append(("\u0120w%d" if words else "[PAD%d]") % len(tokens))
    assert len(tokens) == n_vocab, "vocabulary too small"
    kvs = [key("tokenizer.ggml.model", STR, "gpt2"), key("tokenizer.ggml.pre", STR, pre),
           array("tokenizer.ggml.tokens", STR, tokens), array("tokenizer.ggml.token_type", I32, types),
           array("tokenizer.ggml.merges", STR, merges), key("tokenizer.ggml.eos_token_id", U32, eos)]
    return kvs + ([key("tokenizer.chat_template", STR, template)] if template else [])


def keys(s, arch="qwen35"):
    """The shape's keys as a dict name -> bytes (so that a test may replace or drop one), without a tokenizer."""
    rows = [("general.architecture", STR, arch), ("general.name", STR, s.name),
            ("block_count", U32, s.n_layers + s.n_nextn), ("context_length", U32, s.n_ctx),
            ("embedding_length", U32, s.n_embd), ("feed_forward_length", U32, s.n_ff),
            ("attention.head_count", U32, s.n_head), ("attention.head_count_kv", U32, s.n_head_kv),
            ("attention.key_length", U32, s.head_dim), ("attention.value_length", U32, s.head_dim),
            ("attention.layer_norm_rms_epsilon", F32, s.eps), ("rope.dimension_count", U32, s.rope_dims),
            ("rope.freq_base", F32, s.rope_base), ("ssm.conv_kernel", U32, s.conv_taps),
            ("ssm.state_size", U32, s.state_dim), ("ssm.group_count", U32, s.n_k_heads),
            ("ssm.time_step_rank", U32, s.n_v_heads), ("ssm.inner_size", U32, s.n_v_heads * s.state_dim),
            ("vocab_size", U32, s.n_vocab)]
    if s.yarn:
        rows += [("rope.scaling.type", STR, "yarn"), ("rope.scaling.factor", F32, s.yarn[0]), ("rope.scaling.original_context_length", U32, s.yarn[1]),
                 ("rope.scaling.yarn_beta_fast", F32, s.yarn[2]), ("rope.scaling.yarn_beta_slow", F32, s.yarn[3])]
    if s.n_nextn:
        rows.append(("nextn_predict_layers", U32, s.n_nextn))
    if not s.layers:
        rows.append(("full_attention_interval", U32, s.interval))
    out = {}
    for name, type_, v in rows:
        full = name if name.startswith("general.") else arch + "." + name
        out[full] = key(full, type_, v)
    full = arch + ".rope.dimension_sections"
    out[full] = array(full, I32, s.sections)
    if s.layers:
        full = arch + ".attention.recurrent_layers"
        out[full] = array(full, BOOL, [int(k != "a") for k in s.kinds()] + [0] * s.n_nextn)
    for i, raw in enumerate(s.extra):
        out["extra%d" % i] = raw
    return out


def dims(s):
    """All tensors of a shape: (name, dims, is a matrix)."""
    d, k_dim, v_dim = s.n_embd, s.n_k_heads * s.state_dim, s.n_v_heads * s.state_dim
    conv, attn, kv = 2 * k_dim + v_dim, s.n_head * s.head_dim, s.n_head_kv * s.head_dim
    out = [("token_embd.weight", [d, s.n_vocab], True), ("output_norm.weight", [d], False)]
    if not s.tied:
        out.append(("output.weight", [d, s.n_vocab], True))
    attention = [("attn_q.weight", [d, 2 * attn], True), ("attn_k.weight", [d, kv], True), ("attn_v.weight", [d, kv], True),
                 ("attn_output.weight", [attn, d], True), ("attn_q_norm.weight", [s.head_dim], False),
                 ("attn_k_norm.weight", [s.head_dim], False)]
    delta = [("attn_qkv.weight", [d, conv], True), ("attn_gate.weight", [d, v_dim], True),
             ("ssm_beta.weight", [d, s.n_v_heads], True), ("ssm_alpha.weight", [d, s.n_v_heads], True),
             ("ssm_conv1d.weight", [s.conv_taps, conv], False), ("ssm_dt.bias", [s.n_v_heads], False),
             ("ssm_a", [s.n_v_heads], False), ("ssm_norm.weight", [s.state_dim], False), ("ssm_out.weight", [v_dim, d], True)]
    every = [("attn_norm.weight", [d], False), ("post_attention_norm.weight", [d], False),
             ("ffn_gate.weight", [d, s.n_ff], True), ("ffn_up.weight", [d, s.n_ff], True),
             ("ffn_down.weight", [s.n_ff, d], True)]
    nextn = [("nextn.eh_proj.weight", [2 * d, d], True), ("nextn.enorm.weight", [d], False),
             ("nextn.hnorm.weight", [d], False)]
    for i, kind in enumerate(s.kinds() + "n" * s.n_nextn):
        part = every + (delta if kind == "g" else attention) + (nextn if kind == "n" else [])
        out += [("blk.%d.%s" % (i, name), dim, matrix) for name, dim, matrix in part]
    return out


def tensors(s, type_="f32"):
    """(name, dims, type, bytes) with bytes that are legal values: zeros, ones for vectors, -1 for ssm_a."""
    out = []
    for name, dim, matrix in dims(s):
        t = type_ if matrix and dim[0] % TYPES[type_][1] == 0 else "f16" if matrix else "f32"
        fill = b"\0" * n_bytes(dim, t)
        if not matrix:
            fill = struct.pack("<f", -1.0 if name.endswith("ssm_a") else 1.0) * (n_bytes(dim, t) // 4)
        out.append((name, dim, t, fill))
    return out


def model(s, type_="f32", **more):
    """A valid model's bytes, with a tokenizer if the vocabulary has room for one."""
    kvs = list(keys(s).values()) + (tokenizer(s.n_vocab) if s.n_vocab >= 259 else [])
    return lay_out(kvs, tensors(s, type_), **more)


def write(path, raw):
    with open(path, "wb") as f:
        f.write(raw)
    return str(path)


# --- random weights (numpy) ---------------------------------------------------------------------------------------------

def quantise(x, type_):
    """Bytes of a float32 array in a format, and the float32 values that those bytes stand for."""
    import numpy as np
    x = np.ascontiguousarray(x, dtype=np.float32)
    if type_ == "f32":
        return x.tobytes(), x
    if type_ == "f16":
        h = x.astype(np.float16)
        return h.tobytes(), h.astype(np.float32)
    if type_ == "bf16":
        u = x.view(np.uint32)
        u = (u + 0x7FFF + ((u >> 16) & 1)) >> 16
        return u.astype(np.uint16).tobytes(), (u.astype(np.uint32) << 16).view(np.float32).reshape(x.shape)
    assert type_ == "q8_0"
    b = x.reshape(-1, 32)
    d = np.abs(b).max(axis=1) / np.float32(127)
    with np.errstate(divide="ignore"):
        inverse = np.where(d > 0, np.float32(1) / d, np.float32(0))
    scaled = b * inverse[:, None]
    q = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
    h = d.astype(np.float16)
    raw = np.concatenate([h[:, None].view(np.uint8), q.view(np.uint8)], axis=1)
    return raw.tobytes(), (q.astype(np.float32) * h.astype(np.float32)[:, None]).reshape(x.shape)


def random_values(name, dim, rng):
    """Values that keep activations near 1: matrices of variance 1/k, norms near 1, decays between 0.2 and 0.999."""
    rows = tuple(reversed(dim))
    if name.endswith("ssm_a"):
        return -rng.uniform(1, 16, rows)
    if name.endswith("ssm_dt.bias"):
        return rng.uniform(-7, -2, rows)
    if name.endswith("ssm_conv1d.weight"):
        return rng.normal(0, 0.5, rows)
    if len(dim) == 1:
        return rng.uniform(0.7, 1.3, rows)
    return rng.normal(0, dim[0] ** -0.5, rows)


def write_random(path, s, seed=1, type_="q8_0", type_of=None, kvs=None):
    """Writes a model with random weights. type_of(name) may choose another type for a matrix. Returns name -> float32 array
    in numpy's order (rows first), as the file's bytes stand for them."""
    import numpy as np
    rng = np.random.default_rng(seed)
    rows, values = [], {}
    for name, dim, matrix in dims(s):
        t = (type_of(name) if type_of else type_) if matrix else "f32"
        if dim[0] % TYPES[t][1]:
            t = "f16"
        raw, values[name] = quantise(random_values(name, dim, rng), t)
        rows.append((name, dim, t, raw))
    head = list(keys(s).values()) + (kvs if kvs is not None else tokenizer(s.n_vocab) if s.n_vocab >= 259 else [])
    write(path, lay_out(head, rows))
    return values
